package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"
)

// Site under test.
type target struct {
	address string
	folder  string
	tls     *tls.Config
	// Tokens of earlier connections, or nil. They prove the address of the client.
	tokens quic.TokenStore
}

func newTarget(port, roots, folder string) (*target, error) {
	pem, err := os.ReadFile(roots)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", roots)
	}
	config := &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{http3.NextProtoH3}}
	return &target{address: "127.0.0.1:" + port, folder: folder, tls: config}, nil
}

// Returns the file of the site that has a path.
func (site *target) file(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(site.folder, path))
}

// Events of one connection that the cases check.
type events struct {
	mutex      sync.Mutex
	retries    int
	keyUpdates int
}

func (seen *events) AddProducer() qlogwriter.Recorder { return seen }
func (seen *events) Close() error                     { return nil }

func (seen *events) RecordEvent(event qlogwriter.Event) {
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	switch event := event.(type) {
	case qlog.PacketReceived:
		if event.Header.PacketType == qlog.PacketTypeRetry {
			seen.retries++
		}
	case qlog.KeyUpdated:
		if event.Trigger == qlog.KeyUpdateLocal && event.KeyType == qlog.KeyTypeClient1RTT {
			seen.keyUpdates++
		}
	}
}

func (seen *events) counts() (retries, keyUpdates int) {
	seen.mutex.Lock()
	defer seen.mutex.Unlock()
	return seen.retries, seen.keyUpdates
}

// A connection with HTTP/3.
type connection struct {
	quic   *quic.Conn
	client *http3.ClientConn
	seen   *events
}

// Opens a connection. With `early`, it returns before the handshake is complete if a session can be resumed.
func (site *target) connect(ctx context.Context, config *tls.Config, early bool) (*connection, error) {
	seen := &events{}
	settings := &quic.Config{
		TokenStore: site.tokens,
		Tracer:     func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return seen },
	}
	dial := quic.DialAddr
	if early {
		dial = quic.DialAddrEarly
	}
	conn, err := dial(ctx, site.address, config, settings)
	if err != nil {
		return nil, err
	}
	transport := &http3.Transport{DisableCompression: true}
	return &connection{quic: conn, client: transport.NewClientConn(conn), seen: seen}, nil
}

func (connection *connection) close() {
	connection.quic.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

// Waits until the handshake is complete.
func (connection *connection) complete(ctx context.Context) error {
	select {
	case <-connection.quic.HandshakeComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sends a request. The caller closes the body of the response.
func (connection *connection) request(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "https://localhost"+path, body)
	if err != nil {
		return nil, err
	}
	return connection.client.RoundTrip(request)
}

// Requests a path without a body. Returns the body of the response, whose status must be 200.
func (connection *connection) text(ctx context.Context, method, path string) (string, error) {
	response, err := connection.request(ctx, method, path, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	found, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: status %d", path, response.StatusCode)
	}
	return string(found), err
}

// Requests a file of the site and compares the body.
func (connection *connection) check(ctx context.Context, site *target, method, path string) error {
	response, err := connection.request(ctx, method, path, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer response.Body.Close()
	found, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	expected, err := site.file(path)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !bytes.Equal(found, expected) {
		return fmt.Errorf("%s: status %d with %d bytes instead of 200 with the %d bytes of the file",
			path, response.StatusCode, len(found), len(expected))
	}
	return nil
}

// Handshakes that begin and do not continue, so that the server keeps a connection for each.
type halfOpen struct {
	net.PacketConn
	answered chan string
}

// Passes no packet to the connections. Reports the connection ID of each response, which is the destination of a packet
// with a long header (RFC 9000, section 17.2).
func (silent *halfOpen) ReadFrom(buffer []byte) (int, net.Addr, error) {
	for {
		length, _, err := silent.PacketConn.ReadFrom(buffer)
		if err != nil {
			return 0, nil, err
		}
		if length > 6 && buffer[0]&0x80 != 0 && length > 6+int(buffer[5]) {
			silent.answered <- string(buffer[6 : 6+int(buffer[5])])
		}
	}
}

// Begins handshakes, and waits until the server has responded to each of them. The returned function ends them.
func (site *target) openHalf(ctx context.Context, count int) (func(), error) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address, err := net.ResolveUDPAddr("udp", site.address)
	if err != nil {
		return nil, err
	}
	silent := &halfOpen{PacketConn: socket, answered: make(chan string)}
	transport := &quic.Transport{Conn: silent, ConnectionIDLength: 8}
	ctx, cancel := context.WithCancel(ctx)
	var dials sync.WaitGroup
	known := map[string]bool{}
	stop := func() {
		cancel()
		// Unread responses must not block the transport.
		go func() {
			for range silent.answered {
			}
		}()
		dials.Wait()
		transport.Close()
		socket.Close()
	}
	for len(known) < count {
		before := len(known)
		dials.Go(func() {
			settings := &quic.Config{HandshakeIdleTimeout: timeout}
			if _, err := transport.Dial(ctx, address, site.tls, settings); err == nil {
				panic("a handshake was completed without packets")
			}
		})
		for len(known) == before {
			select {
			case id := <-silent.answered:
				known[id] = true
			case <-ctx.Done():
				stop()
				return nil, errors.New("the server does not answer handshakes")
			}
		}
	}
	return stop, nil
}
