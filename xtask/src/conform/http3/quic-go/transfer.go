package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Deadline for the transfer of a large body.
const transferTimeout = 10 * time.Minute

func get(site *target, path string) error {
	return exchange(site, http.MethodGet, path, nil, 0, func(response *http.Response) error {
		digest := sha256.New()
		length, err := io.Copy(digest, response.Body)
		if err != nil {
			return err
		}
		fmt.Printf("%d %d %x\n", response.StatusCode, length, digest.Sum(nil))
		return nil
	})
}

func put(site *target, path, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return err
	}
	return exchange(site, http.MethodPost, path, file, about.Size(), func(response *http.Response) error {
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		fmt.Printf("%d %s\n", response.StatusCode, text)
		return nil
	})
}

func exchange(site *target, method, path string, body io.Reader, length int64, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), transferTimeout)
	defer cancel()
	connection, err := site.connect(ctx, site.tls, false)
	if err != nil {
		return err
	}
	defer connection.close()
	request, err := http.NewRequestWithContext(ctx, method, "https://localhost"+path, body)
	if err != nil {
		return err
	}
	request.ContentLength = length
	response, err := connection.client.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return read(response)
}
