package main

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Pause after a failure, so that a server that is down is not polled in a busy loop.
const failurePause = 100 * time.Millisecond

// Number of failures that are printed.
const mostPrinted = 30

// All clients of the program.
type load struct {
	roots *x509.CertPool
	// Content of the small file, and SHA-256 of the large one.
	small []byte
	large string

	begun time.Time
	// Closed when the clients have to end.
	over  chan struct{}
	group sync.WaitGroup

	mutex    sync.Mutex
	counts   map[string]int
	failures []string
	failed   int
}

func newLoad(roots *x509.CertPool, folder string) (*load, error) {
	small, err := os.ReadFile(filepath.Join(folder, "small.txt"))
	if err != nil {
		return nil, err
	}
	large, err := os.ReadFile(filepath.Join(folder, "large.bin"))
	if err != nil {
		return nil, err
	}
	return &load{
		roots:  roots,
		small:  small,
		large:  fmt.Sprintf("%x", sha256.Sum256(large)),
		begun:  time.Now(),
		over:   make(chan struct{}),
		counts: map[string]int{},
	}, nil
}

// Starts the clients of both ports.
func (load *load) start(clearPort, securePort string) {
	for _, protocol := range []protocol{clear, version1, version2, version3} {
		port := securePort
		if protocol == clear {
			port = clearPort
		}
		client := &client{load: load, target: target{protocol: protocol, port: port, roots: load.roots}}
		name := string(protocol)
		kept := client.target.transport()
		load.repeat(name+" get", func() error { return client.get(kept) })
		load.repeat(name+" connect", client.connect)
		load.repeat(name+" download", client.download)
		load.repeat(name+" upload", func() error { return client.upload("/app/digest") })
		load.repeat(name+" script", func() error { return client.upload("/php/digest.php") })
		load.repeat(name+" websocket", client.websocket)
	}
}

// Uses another port with TLS: the connections that are opened now are used until the end of the program.
func (load *load) visit(port string) {
	for _, protocol := range []protocol{version1, version2, version3} {
		client := &client{load: load, target: target{protocol: protocol, port: port, roots: load.roots}}
		name := "visit " + string(protocol)
		load.once(name+" download", client.download)
		load.once(name+" websocket", client.websocket)
	}
}

// Repeats work until the end.
func (load *load) repeat(kind string, work func() error) {
	load.group.Go(func() {
		for !load.isOver() {
			load.do(kind, work)
		}
	})
}

func (load *load) once(kind string, work func() error) {
	load.group.Go(func() { load.do(kind, work) })
}

func (load *load) do(kind string, work func() error) {
	begun := time.Now()
	if err := work(); err != nil {
		load.fail(kind, begun, err)
		load.pause(failurePause)
	} else {
		load.count(kind)
	}
}

func (load *load) isOver() bool {
	select {
	case <-load.over:
		return true
	default:
		return false
	}
}

// Waits, at most until the end. Returns immediately afterwards.
func (load *load) pause(length time.Duration) {
	select {
	case <-load.over:
	case <-time.After(length):
	}
}

func (load *load) count(kind string) {
	load.mutex.Lock()
	defer load.mutex.Unlock()
	load.counts[kind]++
}

func (load *load) fail(kind string, begun time.Time, err error) {
	load.mutex.Lock()
	defer load.mutex.Unlock()
	load.failed++
	if len(load.failures) < mostPrinted {
		now := time.Now()
		load.failures = append(load.failures, fmt.Sprintf("%s, from %.3f s to %.3f s: %v",
			kind, begun.Sub(load.begun).Seconds(), now.Sub(load.begun).Seconds(), err))
	}
}

type report struct {
	Counts map[string]int `json:"counts"`
	Failed int            `json:"failed"`
}

func (load *load) report() report {
	load.mutex.Lock()
	defer load.mutex.Unlock()
	counts := make(map[string]int, len(load.counts))
	for kind, count := range load.counts {
		counts[kind] = count
	}
	return report{counts, load.failed}
}

func (load *load) printFailures() {
	load.mutex.Lock()
	defer load.mutex.Unlock()
	for _, failure := range load.failures {
		fmt.Println(failure)
	}
	fmt.Println()
}

// Completes all exchanges. Returns the failures since the start.
func (load *load) end() error {
	close(load.over)
	load.group.Wait()
	report := load.report()
	for kind, count := range report.Counts {
		fmt.Printf("%s: %d\n", kind, count)
	}
	if report.Failed == 0 {
		return nil
	}
	load.printFailures()
	return errors.New(fmt.Sprint(report.Failed, " exchanges failed"))
}
