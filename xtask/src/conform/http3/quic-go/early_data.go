package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Path of the upstream that responds with the field Early-Data of the request.
const earlyField = "/app/fields/early-data"

// A token store that reports each token.
type tokens struct {
	quic.TokenStore
	stored chan struct{}
}

func (tokens *tokens) Put(key string, token *quic.ClientToken) {
	tokens.TokenStore.Put(key, token)
	select {
	case tokens.stored <- struct{}{}:
	default:
	}
}

// A session cache that resumes its first session again and again, as an attacker who repeats early data does.
type firstSession struct {
	mutex   sync.Mutex
	session *tls.ClientSessionState
	stored  chan struct{}
}

func (cache *firstSession) Get(string) (*tls.ClientSessionState, bool) {
	cache.mutex.Lock()
	defer cache.mutex.Unlock()
	return cache.session, cache.session != nil
}

func (cache *firstSession) Put(_ string, session *tls.ClientSessionState) {
	cache.mutex.Lock()
	defer cache.mutex.Unlock()
	if cache.session == nil && session != nil {
		cache.session = session
		close(cache.stored)
	}
}

// Visits a site. Returns it with the token of the visit, and a configuration that resumes the session of the visit.
func returning(ctx context.Context, site *target) (*target, *tls.Config, error) {
	tokens := &tokens{quic.NewLRUTokenStore(1, 4), make(chan struct{}, 1)}
	cache := &firstSession{stored: make(chan struct{})}
	known := *site
	known.tokens = tokens
	config := site.tls.Clone()
	config.ClientSessionCache = cache
	return &known, config, visit(ctx, &known, config, cache.stored, tokens.stored)
}

// Sends a request in early data. Returns the connection after the response.
func requestEarly(ctx context.Context, site *target, config *tls.Config) (*connection, error) {
	connection, err := site.connect(ctx, config, true)
	if err != nil {
		return nil, err
	}
	field, err := connection.text(ctx, http3.MethodGet0RTT, earlyField)
	if err == nil && field != "1" {
		err = fmt.Errorf("the request was not served as early data: %q", field)
	}
	if err != nil {
		return connection, err
	}
	if err := connection.complete(ctx); err != nil {
		return connection, err
	}
	if state := connection.quic.ConnectionState(); !state.Used0RTT || !state.TLS.DidResume {
		err = fmt.Errorf("early data %t, resumed %t", state.Used0RTT, state.TLS.DidResume)
	}
	return connection, err
}

func earlyData(ctx context.Context, site *target) (string, error) {
	site, config, err := returning(ctx, site)
	if err != nil {
		return "", err
	}
	connection, err := requestEarly(ctx, site, config)
	if connection != nil {
		defer connection.close()
	}
	if err != nil {
		return "", err
	}
	// Requests after the handshake are not early.
	field, err := connection.text(ctx, http.MethodGet, earlyField)
	if err != nil || field != "" {
		return "", fmt.Errorf("the second request: %q, %v", field, err)
	}
	return "a GET was served before the handshake was complete", nil
}

// A session can be resumed once, so that early data cannot be repeated (RFC 8446, section 8.1).
func replay(ctx context.Context, site *target) (string, error) {
	site, config, err := returning(ctx, site)
	if err != nil {
		return "", err
	}
	first, err := requestEarly(ctx, site, config)
	if first != nil {
		defer first.close()
	}
	if err != nil {
		return "", err
	}
	second, err := requestEarly(ctx, site, config)
	if second == nil {
		return "", err
	}
	defer second.close()
	if !errors.Is(err, quic.Err0RTTRejected) {
		return "", fmt.Errorf("repeated early data was not refused: %v", err)
	}
	// The handshake is completed as a full one. quic-go cannot continue HTTP/3 on this connection.
	if err := second.complete(ctx); err != nil {
		return "", err
	}
	if state := second.quic.ConnectionState(); state.Used0RTT || state.TLS.DidResume {
		return "", fmt.Errorf("after the refusal: early data %t, resumed %t", state.Used0RTT, state.TLS.DidResume)
	}
	third, err := one(ctx, site, config, small)
	if err != nil {
		return "", err
	}
	third.close()
	return "early data with a session that was resumed before is refused", nil
}
