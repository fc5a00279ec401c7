// Runs the provider mockoidc, and an application that responds with the request that it has received. Prints their
// addresses as a line of JSON. Each line of the input is a user, whom the next login authenticates; the response is a
// line. Ends with its input.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/oauth2-proxy/mockoidc"
)

// Maximum size of a request body that the application returns.
const maxBody = 1 << 20

// The request as the application has received it.
type received struct {
	Method string      `json:"method"`
	Target string      `json:"target"`
	Fields http.Header `json:"fields"`
	Body   string      `json:"body"`
}

func echo(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBody))
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(received{request.Method, request.RequestURI, request.Header, string(body)})
}

func run() error {
	// mockoidc reads the secret of a client from the form alone, and names a method that it does not support.
	mockoidc.TokenEndpointAuthMethodsSupported = []string{"client_secret_post"}
	provider, err := mockoidc.Run()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		if err := http.Serve(listener, http.HandlerFunc(echo)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	output := json.NewEncoder(os.Stdout)
	err = output.Encode(map[string]string{
		"issuer":        provider.Issuer(),
		"client_id":     provider.ClientID,
		"client_secret": provider.ClientSecret,
		"application":   "http://" + listener.Addr().String(),
	})
	if err != nil {
		return err
	}
	input := json.NewDecoder(os.Stdin)
	for {
		var user mockoidc.MockUser
		switch err := input.Decode(&user); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		provider.QueueUser(&user)
		if err := output.Encode("queued"); err != nil {
			return err
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
