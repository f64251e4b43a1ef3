// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corelane/corelane/internal/api/apitest"
	"github.com/corelane/corelane/internal/cli/screen"
)

// blocks collects output and calls after for each table that is complete.
type blocks struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	n     int
	after func(n int)
}

func (b *blocks) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.buf.Write(p)
	if string(p) != "\n" {
		b.n++
		b.after(b.n)
	}
	return n, err
}

func watch(t *testing.T, s *apitest.Server, rounds int, change func(n int), args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out := &blocks{}
	out.after = func(n int) {
		if change(n); n == rounds {
			cancel()
		}
	}
	var errs bytes.Buffer
	if code := New(out, &errs, Dial).Run(ctx, append([]string{"--socket", s.Socket}, args...)); code != 0 {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	return out.buf.String()
}

// Counters become rates per second, and quotients those of the interval; other values stay.
func TestWatchRates(t *testing.T) {
	s := fixture(t)
	got := watch(t, s, 2, func(int) {
		s.Lock()
		defer s.Unlock()
		s.Nodes[0].Packets += 1000
		s.Nodes[0].Cycles += 30000
		s.Nodes[0].Calls += 500
	}, "graph", "--watch=500ms")
	tables := strings.Split(got, "\n\n")
	if len(tables) != 2 || !strings.HasPrefix(tables[0], "NODE") || !strings.Contains(tables[0], "PACKETS/S  CALLS/S") {
		t.Fatal(got)
	}
	// 1000 packets within half a second, give or take a busy machine.
	row := regexp.MustCompile(`(?m)^port_rx +(1[0-9]{3}|20[0-9]{2}) +(?:[5-9][0-9]{2}|1[0-9]{3}) +2\.0 +60\.0 +30\.0$`)
	if !row.MatchString(tables[1]) {
		t.Errorf("second round:\n%s", tables[1])
	}
	if !strings.Contains(tables[1], "drop               0        0             -            -              -") {
		t.Errorf("nodes at rest:\n%s", tables[1])
	}
}

func TestWatchShow(t *testing.T) {
	s := fixture(t)
	got := watch(t, s, 2, func(int) {
		s.Lock()
		defer s.Unlock()
		p, _ := s.Ports.Get("vm1")
		p.State.Counters.RxPackets += 1000
	}, "port", "show", "vm1", "--watch=0.5")
	if !regexp.MustCompile(`rx_packets: 1500 packets, [12]\d{3}/s\n`).MatchString(got) {
		t.Error(got)
	}
}

// --watch waits for a daemon that has ended.
func TestWatchRestart(t *testing.T) {
	s := fixture(t)
	gone := make(chan struct{})
	got := watch(t, s, 6, func(n int) {
		if n == 1 {
			go func() {
				s.Restart(t)
				close(gone)
			}()
		}
	}, "vrf", "list", "--watch=200ms")
	<-gone
	if !strings.HasSuffix(got, "aa\n") {
		t.Error(got)
	}
}

func TestWatchBadInterval(t *testing.T) {
	s := fixture(t)
	for _, interval := range []string{"0", "10ms", "-1s", "often"} {
		r := run(s, "", "vrf", "list", "--watch="+interval)
		if r.code != 2 || !strings.HasPrefix(r.stderr, "--watch: '"+interval+"' is not an interval of 100ms or more; "+
			"valid: 500ms") {
			t.Errorf("%s: %+v", interval, r)
		}
	}
}

// On a terminal each round is drawn over the last one, cut to the screen's height.
func TestRedraw(t *testing.T) {
	ptm, pts := terminal(t, 4)
	if !isTerminal(pts) {
		t.Fatal("not a terminal")
	}
	if err := screen.Redraw(pts, "one"+strings.Repeat(".", 100)+"\ntwo\nthree\nfour\nfive\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 200)
	n, err := ptm.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	want := "\x1b[Hone" + strings.Repeat(".", 77) + "\x1b[K\r\ntwo\x1b[K\r\n... 3 more lines\x1b[K\r\n\x1b[J"
	if got := string(buf[:n]); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// terminal opens a pseudo-terminal of some height.
func terminal(t *testing.T, height uint16) (ptm, pts *os.File) {
	t.Helper()
	ptm, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	t.Cleanup(func() { _ = ptm.Close() })
	fd := int(ptm.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: 80})
	}
	if err == nil {
		pts, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pts.Close() })
	return ptm, pts
}

// A terminal that answers nothing, such as a serial console, gets the output at once and is never asked for anything.
// A package that asks does so when the program starts, so the command is a process of its own: this test again.
func TestTerminalIsNotQueried(t *testing.T) {
	const asProcess = "CORELANE_TEST_PROCESS"
	if os.Getenv(asProcess) != "" {
		os.Exit(New(os.Stdout, os.Stderr, Dial).Run(context.Background(), []string{"--version"}))
	}
	ptm, pts := terminal(t, 24)
	cmd := exec.Command(os.Args[0], "-test.run=^TestTerminalIsNotQueried$")
	cmd.Env = append(os.Environ(), asProcess+"=1", "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pts, pts, pts
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	_ = pts.Close()
	seen, _ := io.ReadAll(ptm) // ends with EIO once nobody has the other end open
	if got := string(seen); !strings.Contains(got, "version devel") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
