// Clients that use a site without a pause while its server is reloaded or upgraded: over HTTP/1.1 with and without TLS,
// HTTP/2 and HTTP/3. They request pages, download slowly, upload, run scripts, and exchange messages by WebSocket.
//
//	clients HTTP HTTPS ROOTS FOLDER    HTTP and HTTPS are ports of 127.0.0.1, FOLDER has the files of the site
//
// Commands on standard input:
//
//	counts       prints the number of complete exchanges by kind, and of failures, as JSON
//	failures     prints the first failures, each in a line, and an empty line
//	visit PORT   opens connections to another port with TLS, which are used until the end
//	end          completes all exchanges, prints the failures, and ends the program

package main

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("four arguments are needed: %q", arguments)
	}
	pem, err := os.ReadFile(arguments[2])
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", arguments[2])
	}
	load, err := newLoad(roots, arguments[3])
	if err != nil {
		return err
	}
	load.start(arguments[0], arguments[1])
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		switch command, argument, _ := strings.Cut(commands.Text(), " "); command {
		case "counts":
			if err := json.NewEncoder(os.Stdout).Encode(load.report()); err != nil {
				return err
			}
		case "failures":
			load.printFailures()
		case "visit":
			load.visit(argument)
		case "end":
			return load.end()
		default:
			return fmt.Errorf("unknown command %q", command)
		}
	}
	return commands.Err()
}
