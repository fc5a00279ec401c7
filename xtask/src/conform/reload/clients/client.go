package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const (
	// Deadline of an exchange: far longer than a busy machine needs.
	timeout = 3 * time.Minute
	// Pause between the requests of a connection, and between new connections, so that the machine has time for the
	// other programs of the load.
	requestPause = 2 * time.Millisecond
	connectPause = 25 * time.Millisecond
	// Bytes that a download reads at once, and the pause between two reads.
	pieceSize  = 64 << 10
	piecePause = 25 * time.Millisecond
	// Pieces of an upload, and the pause between two pieces.
	uploadPieces = 24
	uploadPause  = 15 * time.Millisecond
)

// Clients of one target.
type client struct {
	load   *load
	target target
	// Number of the last upload, so that each has other bytes.
	uploads atomic.Int64
}

// Sends a request and passes its response to a function. A request that the transport sends again is a failure: the
// server has left the first one without a response.
func (client *client) exchange(transport http.RoundTripper, method, path string, body io.Reader, length int64,
	read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var sent atomic.Int32
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Add(1) }})
	request, err := http.NewRequestWithContext(ctx, method, client.target.url(path), body)
	if err != nil {
		return err
	}
	if length > 0 {
		request.ContentLength = length
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", path, response.StatusCode)
	}
	if err := read(response); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if count := sent.Load(); count > 1 {
		return fmt.Errorf("%s: the request was sent %d times", path, count)
	}
	return nil
}

// Requests the small file.
func (client *client) get(transport http.RoundTripper) error {
	client.load.pause(requestPause)
	return client.exchange(transport, http.MethodGet, "/small.txt", nil, 0, func(response *http.Response) error {
		found, err := io.ReadAll(response.Body)
		if err == nil && !bytes.Equal(found, client.load.small) {
			err = fmt.Errorf("the body is %q", found)
		}
		return err
	})
}

// Requests the small file on a new connection.
func (client *client) connect() error {
	client.load.pause(connectPause)
	transport := client.target.transport()
	defer closeAll(transport)
	return client.get(transport)
}

// Requests the large file and reads it slowly, faster after the end of the load.
func (client *client) download() error {
	transport := client.target.transport()
	defer closeAll(transport)
	return client.exchange(transport, http.MethodGet, "/large.bin", nil, 0, func(response *http.Response) error {
		digest, length, piece := sha256.New(), 0, make([]byte, pieceSize)
		for {
			count, err := io.ReadFull(response.Body, piece)
			digest.Write(piece[:count])
			length += count
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				break
			}
			if err != nil {
				return fmt.Errorf("after %d bytes: %w", length, err)
			}
			client.load.pause(piecePause)
		}
		if found := fmt.Sprintf("%x", digest.Sum(nil)); found != client.load.large || int64(length) != response.ContentLength {
			return fmt.Errorf("%d of %d bytes have the digest %s", length, response.ContentLength, found)
		}
		return nil
	})
}

// Sends a body slowly to a path that responds with its length and digest.
func (client *client) upload(path string) error {
	transport := client.target.transport()
	defer closeAll(transport)
	body := &slowBody{load: client.load, number: client.uploads.Add(1), digest: sha256.New()}
	return client.exchange(transport, http.MethodPost, path, body, uploadPieces*pieceSize, func(response *http.Response) error {
		found, err := io.ReadAll(response.Body)
		expected := fmt.Sprintf("%d %x", uploadPieces*pieceSize, body.digest.Sum(nil))
		if err == nil && string(found) != expected {
			err = fmt.Errorf("the response is %q, not %q", found, expected)
		}
		return err
	})
}

func closeAll(transport transport) {
	transport.CloseIdleConnections()
	if closer, ok := transport.(io.Closer); ok {
		closer.Close()
	}
}
