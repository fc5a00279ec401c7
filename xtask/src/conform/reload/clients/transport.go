package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Size of the receive buffers, so that a slow download does not wait in the kernel of the client.
const receiveBuffer = 128 << 10

// Version of HTTP, with or without TLS.
type protocol string

const (
	clear    protocol = "http1-clear"
	version1 protocol = "http1"
	version2 protocol = "http2"
	version3 protocol = "http3"
)

// A site at one port, seen over one protocol.
type target struct {
	protocol protocol
	port     string
	roots    *x509.CertPool
}

func (target *target) url(path string) string {
	scheme := "https"
	if target.protocol == clear {
		scheme = "http"
	}
	return scheme + "://localhost:" + target.port + path
}

func (target *target) tls(application string) *tls.Config {
	return &tls.Config{RootCAs: target.roots, ServerName: "localhost", NextProtos: []string{application}}
}

func (target *target) address() string {
	return "127.0.0.1:" + target.port
}

// Connects by TCP.
func (target *target) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", target.address())
	if err != nil {
		return nil, err
	}
	return connection, connection.(*net.TCPConn).SetReadBuffer(receiveBuffer)
}

// Connects by QUIC.
func (target *target) dialQUIC(ctx context.Context, _ string, tls *tls.Config, config *quic.Config) (*quic.Conn, error) {
	return quic.DialAddr(ctx, target.address(), tls, config)
}

// Transport that can close its connections.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// Returns a transport with no connection yet. It keeps one connection.
func (target *target) transport() transport {
	if target.protocol == version3 {
		config := &quic.Config{InitialStreamReceiveWindow: receiveBuffer, MaxStreamReceiveWindow: receiveBuffer}
		return &http3.Transport{
			TLSClientConfig:    target.tls(http3.NextProtoH3),
			QUICConfig:         config,
			DisableCompression: true,
			Dial:               target.dialQUIC,
		}
	}
	made := &http.Transport{
		DialContext:         target.dial,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 1,
		Protocols:           new(http.Protocols),
	}
	if target.protocol == version2 {
		made.Protocols.SetHTTP2(true)
		made.TLSClientConfig = target.tls("h2")
	} else {
		made.Protocols.SetHTTP1(true)
		made.TLSClientConfig = target.tls("http/1.1")
	}
	return made
}
