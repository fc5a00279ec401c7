package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/quic-go/quic-go/http3"
)

const (
	small = "/small.txt"
	large = "/large.bin"
	// Files `/parts/0.txt` and so on, and the connections of `multiconnect`.
	parts = 100
	// Handshakes in progress at which the server requires Retry, and some more.
	handshakes = 270
	// Connections of which one must show a key update of the client. One in ten does not.
	keyUpdateAttempts = 12
	// Bytes of a request body: more than all windows.
	upload = 5_000_000
)

// Opens a connection and requests a file.
func one(ctx context.Context, site *target, config *tls.Config, path string) (*connection, error) {
	connection, err := site.connect(ctx, config, false)
	if err != nil {
		return nil, err
	}
	if err := connection.check(ctx, site, http.MethodGet, path); err != nil {
		connection.close()
		return nil, err
	}
	return connection, nil
}

func handshake(ctx context.Context, site *target) (string, error) {
	connection, err := one(ctx, site, site.tls, small)
	if err != nil {
		return "", err
	}
	defer connection.close()
	state := connection.quic.ConnectionState()
	if state.TLS.NegotiatedProtocol != http3.NextProtoH3 || state.TLS.DidResume {
		return "", fmt.Errorf("protocol %q, resumed %t", state.TLS.NegotiatedProtocol, state.TLS.DidResume)
	}
	return fmt.Sprintf("%s, %s", state.Version, tls.CipherSuiteName(state.TLS.CipherSuite)), nil
}

func transfer(ctx context.Context, site *target) (string, error) {
	connection, err := site.connect(ctx, site.tls, false)
	if err != nil {
		return "", err
	}
	defer connection.close()
	paths := []string{large, large, large}
	for number := range parts {
		paths = append(paths, fmt.Sprintf("/parts/%d.txt", number))
	}
	failures := make(chan error, len(paths))
	var requests sync.WaitGroup
	for _, path := range paths {
		requests.Go(func() { failures <- connection.check(ctx, site, http.MethodGet, path) })
	}
	requests.Wait()
	close(failures)
	for failure := range failures {
		err = errors.Join(err, failure)
	}
	return fmt.Sprintf("%d files in parallel", len(paths)), err
}

// The environment makes Go prefer ChaCha20, as on processors without AES.
func chacha20(ctx context.Context, site *target) (string, error) {
	connection, err := one(ctx, site, site.tls, large)
	if err != nil {
		return "", err
	}
	defer connection.close()
	suite := connection.quic.ConnectionState().TLS.CipherSuite
	if suite != tls.TLS_CHACHA20_POLY1305_SHA256 {
		return "", fmt.Errorf("cipher suite %s", tls.CipherSuiteName(suite))
	}
	return tls.CipherSuiteName(suite), nil
}

// quic-go changes its keys after the first 100 packets, unless the server has changed them before. The server does so
// after a random number of packets between 10 and 1000, so some connections show nothing.
func keyUpdate(ctx context.Context, site *target) (string, error) {
	for range keyUpdateAttempts {
		connection, err := one(ctx, site, site.tls, large)
		if err != nil {
			return "", err
		}
		_, updates := connection.seen.counts()
		connection.close()
		if updates > 0 {
			return fmt.Sprintf("changed %d times by the client", updates), nil
		}
	}
	return "", errors.New("the client changed no keys")
}

func retry(ctx context.Context, site *target) (string, error) {
	connection, err := one(ctx, site, site.tls, small)
	if err != nil {
		return "", err
	}
	connection.close()
	before, _ := connection.seen.counts()
	stop, err := site.openHalf(ctx, handshakes)
	if err != nil {
		return "", err
	}
	defer stop()
	connection, err = one(ctx, site, site.tls, small)
	if err != nil {
		return "", err
	}
	defer connection.close()
	after, _ := connection.seen.counts()
	if before != 0 || after != 1 {
		return "", fmt.Errorf("%d Retry packets without load and %d under load", before, after)
	}
	return fmt.Sprintf("required while %d handshakes are in progress", handshakes), nil
}

// A session cache that reports each ticket.
type sessions struct {
	tls.ClientSessionCache
	stored chan struct{}
}

func (sessions *sessions) Put(key string, session *tls.ClientSessionState) {
	sessions.ClientSessionCache.Put(key, session)
	select {
	case sessions.stored <- struct{}{}:
	default:
	}
}

// Opens a connection, requests a file, and waits for events.
func visit(ctx context.Context, site *target, config *tls.Config, events ...<-chan struct{}) error {
	connection, err := one(ctx, site, config, small)
	if err != nil {
		return err
	}
	defer connection.close()
	for _, event := range events {
		select {
		case <-event:
		case <-ctx.Done():
			return errors.New("no session ticket, or no token")
		}
	}
	return nil
}

// Returns a configuration that resumes the session of a connection, which is closed.
func withSession(ctx context.Context, site *target) (*tls.Config, error) {
	cache := &sessions{tls.NewLRUClientSessionCache(1), make(chan struct{}, 1)}
	config := site.tls.Clone()
	config.ClientSessionCache = cache
	return config, visit(ctx, site, config, cache.stored)
}

func resumption(ctx context.Context, site *target) (string, error) {
	config, err := withSession(ctx, site)
	if err != nil {
		return "", err
	}
	connection, err := one(ctx, site, config, large)
	if err != nil {
		return "", err
	}
	defer connection.close()
	if !connection.quic.ConnectionState().TLS.DidResume {
		return "", errors.New("the session was not resumed")
	}
	return "the second connection resumed the session", nil
}

// The server does not accept early data unless it is configured, so the request has to wait for the handshake.
func zeroRTT(ctx context.Context, site *target) (string, error) {
	config, err := withSession(ctx, site)
	if err != nil {
		return "", err
	}
	connection, err := site.connect(ctx, config, true)
	if err != nil {
		return "", err
	}
	defer connection.close()
	if err := connection.check(ctx, site, http3.MethodGet0RTT, small); err != nil {
		return "", err
	}
	state := connection.quic.ConnectionState()
	if state.Used0RTT || !state.TLS.DidResume {
		return "", fmt.Errorf("early data %t, resumed %t", state.Used0RTT, state.TLS.DidResume)
	}
	return "not offered by the server; the session was resumed", nil
}

func multiConnect(ctx context.Context, site *target) (string, error) {
	for number := range parts {
		connection, err := one(ctx, site, site.tls, fmt.Sprintf("/parts/%d.txt", number))
		if err != nil {
			return "", fmt.Errorf("connection %d: %w", number, err)
		}
		connection.close()
	}
	return fmt.Sprintf("%d connections, one after another", parts), nil
}

func http3Requests(ctx context.Context, site *target) (string, error) {
	connection, err := site.connect(ctx, site.tls, false)
	if err != nil {
		return "", err
	}
	defer connection.close()
	body := bytes.Repeat([]byte("ebb and flow\n"), upload/13)
	rows := []struct {
		method, path string
		body         io.Reader
		status       int
		expected     string
	}{
		{http.MethodGet, "/app/hello", nil, http.StatusOK, "hello"},
		{http.MethodPost, "/app/digest", bytes.NewReader(body), http.StatusOK,
			fmt.Sprintf("%d %x", len(body), sha256.Sum256(body))},
		// Without a known length, the body ends with the stream.
		{http.MethodPost, "/app/digest", io.MultiReader(bytes.NewReader(body)), http.StatusOK,
			fmt.Sprintf("%d %x", len(body), sha256.Sum256(body))},
		{http.MethodHead, large, nil, http.StatusOK, ""},
		{http.MethodHead, "/nowhere", nil, http.StatusNotFound, ""},
	}
	for _, row := range rows {
		response, err := connection.request(ctx, row.method, row.path, row.body)
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", row.method, row.path, err)
		}
		found, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != row.status || string(found) != row.expected || response.ProtoMajor != 3 {
			return "", fmt.Errorf("%s %s: %s %d %.100q, %v", row.method, row.path, response.Proto, response.StatusCode,
				found, err)
		}
	}
	return fmt.Sprintf("%d requests of several methods", len(rows)), nil
}
