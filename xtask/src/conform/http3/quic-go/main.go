// Cases of QUIC and HTTP/3 with quic-go as the client.
//
//	client PORT ROOTS FOLDER CASE...    runs cases; FOLDER has the files of the site at PORT
//	client get PORT ROOTS PATH          prints status, length and SHA-256 of the body of a response
//	client put PORT ROOTS PATH FILE     sends a file and prints the response
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Deadline for one case: far longer than a busy machine needs.
const timeout = 3 * time.Minute

var cases = map[string]func(context.Context, *target) (string, error){
	"handshake":    handshake,
	"transfer":     transfer,
	"chacha20":     chacha20,
	"keyupdate":    keyUpdate,
	"retry":        retry,
	"resumption":   resumption,
	"zerortt":      zeroRTT,
	"earlydata":    earlyData,
	"replay":       replay,
	"multiconnect": multiConnect,
	"http3":        http3Requests,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 4 {
		return fmt.Errorf("too few arguments: %q", arguments)
	}
	switch arguments[0] {
	case "get", "put":
		site, err := newTarget(arguments[1], arguments[2], "")
		if err != nil {
			return err
		}
		if arguments[0] == "get" {
			return get(site, arguments[3])
		}
		return put(site, arguments[3], arguments[4])
	}
	site, err := newTarget(arguments[0], arguments[1], arguments[2])
	if err != nil {
		return err
	}
	for _, name := range arguments[3:] {
		work, ok := cases[name]
		if !ok {
			return fmt.Errorf("unknown case %q", name)
		}
		context, cancel := context.WithTimeout(context.Background(), timeout)
		seen, err := work(context, site)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("%s: %s\n", name, seen)
	}
	return nil
}
