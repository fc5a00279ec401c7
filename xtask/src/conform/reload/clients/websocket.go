package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
)

const (
	socketPath   = "/app/echo"
	messagePause = 50 * time.Millisecond
	// Deadline of an echo.
	echoTimeout = time.Minute
)

// Codes of frames (RFC 6455, section 5.2) with the bit of a final frame.
const (
	textFrame  = 0x81
	closeFrame = 0x88
	pingFrame  = 0x89
	pongFrame  = 0x8a
)

// Byte stream of a WebSocket.
type socket struct {
	reader *bufio.Reader
	writer io.Writer
	close  func()
}

// Exchanges messages on one connection until the end of the load, then closes it.
func (client *client) websocket() error {
	socket, err := client.open()
	if err != nil {
		return fmt.Errorf("opening: %w", err)
	}
	defer socket.close()
	watchdog := time.AfterFunc(echoTimeout, socket.close)
	defer watchdog.Stop()
	kind := string(client.target.protocol) + " echo"
	for number := 0; !client.load.isOver(); number++ {
		message := fmt.Appendf(nil, "message %d", number)
		watchdog.Reset(echoTimeout)
		if err := socket.send(textFrame, message); err != nil {
			return fmt.Errorf("sending message %d: %w", number, err)
		}
		found, err := socket.receive(textFrame)
		if err != nil {
			return fmt.Errorf("waiting for the echo of message %d: %w", number, err)
		}
		if !bytes.Equal(found, message) {
			return fmt.Errorf("%q came back for %q", found, message)
		}
		client.load.count(kind)
		client.load.pause(messagePause)
	}
	code := binary.BigEndian.AppendUint16(nil, 1000)
	if err := socket.send(closeFrame, code); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	if _, err := socket.receive(closeFrame); err != nil {
		return fmt.Errorf("waiting for the close: %w", err)
	}
	return nil
}

// Sends a frame of at most 125 bytes. Its mask is zero.
func (socket *socket) send(code byte, content []byte) error {
	frame := append([]byte{code, 0x80 | byte(len(content)), 0, 0, 0, 0}, content...)
	_, err := socket.writer.Write(frame)
	return err
}

// Returns the content of the next frame, which must have this code. Pings are answered.
func (socket *socket) receive(code byte) ([]byte, error) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(socket.reader, head[:]); err != nil {
			return nil, err
		}
		content := make([]byte, head[1]&0x7f)
		if _, err := io.ReadFull(socket.reader, content); err != nil {
			return nil, err
		}
		switch head[0] {
		case code:
			return content, nil
		case pingFrame:
			if err := socket.send(pongFrame, content); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("an unexpected frame %x %q", head, content)
		}
	}
}

func (client *client) open() (*socket, error) {
	switch client.target.protocol {
	case version2:
		return client.openStream()
	case version3:
		return client.openQUIC()
	default:
		return client.upgrade()
	}
}

// Opens a WebSocket over HTTP/1.1 (RFC 6455, section 4).
func (client *client) upgrade() (*socket, error) {
	connection, err := client.target.dial(context.Background(), "", "")
	if err != nil {
		return nil, err
	}
	if client.target.protocol != clear {
		connection = tls.Client(connection, client.target.tls("http/1.1"))
	}
	request, err := http.NewRequest(http.MethodGet, client.target.url(socketPath), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "websocket")
	request.Header.Set("Sec-WebSocket-Version", "13")
	request.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	if err := request.Write(connection); err != nil {
		return nil, closed(connection, err)
	}
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, request)
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if err != nil {
		return nil, closed(connection, err)
	}
	return &socket{reader, connection, func() { connection.Close() }}, nil
}

func closed(connection net.Conn, err error) error {
	connection.Close()
	return err
}

// Opens a WebSocket on a stream of HTTP/2 (RFC 8441). Go's standard library refuses such requests.
func (client *client) openStream() (*socket, error) {
	plain, err := client.target.dial(context.Background(), "", "")
	if err != nil {
		return nil, err
	}
	connection, err := new(http2.Transport).NewClientConn(tls.Client(plain, client.target.tls("h2")))
	if err != nil {
		return nil, closed(plain, err)
	}
	body, writer := io.Pipe()
	request, err := client.connectRequest(body)
	if err != nil {
		return nil, closed(plain, err)
	}
	request.Header.Set(":protocol", "websocket")
	response, err := connection.RoundTrip(request)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", response.StatusCode)
	}
	if err != nil {
		return nil, closed(plain, err)
	}
	return &socket{bufio.NewReader(response.Body), writer, func() { connection.Close() }}, nil
}

func (client *client) connectRequest(body io.Reader) (*http.Request, error) {
	request, err := http.NewRequest(http.MethodConnect, client.target.url(socketPath), body)
	if err == nil {
		request.Header.Set("Sec-WebSocket-Version", "13")
	}
	return request, err
}

// Opens a WebSocket on a stream of HTTP/3 (RFC 9220).
func (client *client) openQUIC() (*socket, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	transport := client.target.transport().(*http3.Transport)
	connection, err := client.target.dialQUIC(ctx, "", transport.TLSClientConfig, transport.QUICConfig)
	if err != nil {
		return nil, err
	}
	end := func() { connection.CloseWithError(0x100, "") }
	stream, err := transport.NewClientConn(connection).OpenRequestStream(ctx)
	if err != nil {
		end()
		return nil, err
	}
	request, err := client.connectRequest(nil)
	if err != nil {
		end()
		return nil, err
	}
	request.Proto = "websocket"
	if err = stream.SendRequestHeader(request); err == nil {
		var response *http.Response
		if response, err = stream.ReadResponse(); err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d", response.StatusCode)
		}
	}
	if err != nil {
		end()
		return nil, err
	}
	return &socket{bufio.NewReader(stream), stream, end}, nil
}
