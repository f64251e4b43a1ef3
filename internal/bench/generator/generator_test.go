// SPDX-License-Identifier: Apache-2.0
package generator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/wait"
)

func TestMissingProgram(t *testing.T) {
	_, err := Start(t.Context(), Place{Bin: t.TempDir(), Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "'make build' builds it") {
		t.Error(err)
	}
}

// The error has the last lines that a program wrote before it ended.
func TestProgramThatEnds(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho \"no CPU: $*\"\nexit 2\n"
	if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Place{Bin: bin, Dir: t.TempDir(), RoundTripCPU: 3})
	for _, want := range []string{"corelane-gen: has ended: exit status 2", "no CPU: --socket /",
		"--cpu 0 --round-trip-cpu 3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: has no %q", err, want)
		}
	}
}

func start(t *testing.T) *Generator {
	t.Helper()
	bin := filepath.Dir(os.Getenv("CORELANED"))
	if os.Geteuid() != 0 || bin == "." {
		t.Skip("needs root and CORELANED, with corelane-gen beside it")
	}
	if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
		t.Skip(err)
	}
	g, err := Start(t.Context(), Place{Bin: bin, Dir: t.TempDir(), RoundTripCPU: -1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// header of UDP over IPv4 between port 1 and port 2 of 10.0.0.1 and 10.0.0.2.
var header = []byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00" +
	"\x45\x00\x00\x32\x00\x00\x40\x00\x40\x11\x26\xb7\x0a\x00\x00\x01\x0a\x00\x00\x02" +
	"\x00\x01\x00\x02\x00\x1e\x00\x00")

// pair of ports that are connected to each other.
func pair(t *testing.T) *apiv1.GeneratorProfile {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "memif.sock")
	port := func(name string, server bool) *apiv1.GeneratorPort {
		return &apiv1.GeneratorPort{Name: name,
			Device: &apiv1.GeneratorPort_Memif{Memif: &apiv1.GeneratorMemif{Socket: socket, Server: server}}}
	}
	return &apiv1.GeneratorProfile{
		Ports: []*apiv1.GeneratorPort{port("a", true), port("b", false)},
		Streams: []*apiv1.GeneratorStream{{Name: "a->b", TxPort: "a", RxPort: "b", Header: header, InnerOffset: 14,
			Sizes: []uint32{64}}},
	}
}

func TestTrial(t *testing.T) {
	g := start(t)
	if err := g.Configure(t.Context(), pair(t)); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitUp(t.Context(), wait.Patience); err != nil {
		t.Fatal(err)
	}
	windows, sent := 0, uint64(0)
	stopped := make(chan error, 1)
	total, err := g.Run(t.Context(), &apiv1.GeneratorTrial{DurationMs: 3600000, WindowMs: 50, PacketsPerSecond: 10000,
		DrainMs: uint32(wait.Patience.Milliseconds())}, func(w *apiv1.GeneratorWindow) {
		before := windows >= 3 && sent > 0
		windows++
		sent += w.Sent
		if enough := windows >= 3 && sent > 0; enough && !before { // it goes on until it is stopped
			go func() { stopped <- g.Stop(t.Context()) }()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if windows < 3 || total.Sent < sent || total.Received != total.Sent ||
		total.Corrupt+total.Misplaced+total.WrongHeader > 0 {
		t.Errorf("%d windows with %d frames, %v", windows, sent, total)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestTrialThatIsGivenUp(t *testing.T) {
	g := start(t)
	defer g.Close()
	if err := g.Configure(t.Context(), pair(t)); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitUp(t.Context(), wait.Patience); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := g.Run(ctx, &apiv1.GeneratorTrial{DurationMs: 60000, WindowMs: 50, PacketsPerSecond: 1000},
		func(*apiv1.GeneratorWindow) {
			cancel(enough)
		})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
	// The generator accepts a new trial as soon as it has noticed the end of the old one.
	var last error
	if err := wait.Patiently(t.Context(), func() (bool, error) {
		_, last = g.Run(t.Context(), &apiv1.GeneratorTrial{Packets: 10, PacketsPerSecond: 1000}, nil)
		return last == nil, nil
	}); err != nil {
		t.Error(last)
	}
}

func TestRefusedAndDown(t *testing.T) {
	g := start(t)
	p := pair(t)
	p.Streams[0].Sizes = []uint32{20}
	if err := g.Configure(t.Context(), p); err == nil ||
		!strings.Contains(err.Error(), "the generator: stream.sizes '20'") {
		t.Error(err)
	}
	p = pair(t)
	p.Ports[0].GetMemif().Socket += "2" // nobody connects to that
	if err := g.Configure(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitUp(t.Context(), 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "port a (/") {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := g.Configure(t.Context(), p); err == nil || !strings.Contains(err.Error(), "corelane-gen: has ended") {
		t.Error(err)
	}
}
