// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/corelane/corelane/internal/api/apitest"
	"github.com/corelane/corelane/internal/cli/screen"
)

// topScreen is a top that has looked twice, one second apart.
func topScreen(t *testing.T, s *apitest.Server) (tea.Model, *app) {
	t.Helper()
	a := &New(io.Discard, io.Discard, Dial).app
	a.socket, a.interval = s.Socket, time.Second
	t.Cleanup(func() { _ = a.client.Close() })
	var m tea.Model = newTop(context.Background(), a)
	m, _ = m.Update(tea.WindowSizeMsg{Width: 200, Height: 40})
	first := looks(t, m)
	m, _ = m.Update(first)
	s.Lock()
	w, _ := s.Workers.Get(1)
	w.State.Packets += 5000
	w.State.BusyCycles += 10000000
	w.State.Drops[0].Packets += 70
	s.Unlock()
	second := looks(t, m)
	second.at = first.at.Add(time.Second)
	m, _ = m.Update(second)
	return m, a
}

func looks(t *testing.T, m tea.Model) topLooked {
	t.Helper()
	looked, ok := m.(top).look()().(topLooked)
	if !ok {
		t.Fatal("it does not look")
	}
	return looked
}

func press(m tea.Model, keys ...string) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	for _, key := range keys {
		msg := tea.KeyPressMsg{Code: rune(key[0]), Text: key}
		switch key {
		case "up":
			msg = tea.KeyPressMsg{Code: tea.KeyUp}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		}
		m, cmd = m.Update(msg)
	}
	return m, cmd
}

func rows(view string) string {
	var found []string
	view, _, _ = strings.Cut(view, "\nworker ")
	for _, line := range strings.Split(view, "\n") {
		if f := regexp.MustCompile(`^(>| )  +(\d+) `).FindStringSubmatch(line); f != nil {
			found = append(found, strings.TrimSpace(f[1]+f[2]))
		}
	}
	return strings.Join(found, " ")
}

// Rates of the interval, and below them the selected worker.
func TestTopView(t *testing.T) {
	m, _ := topScreen(t, fixture(t))
	m, _ = press(m, "down")
	m, _ = m.Update(looks(t, m))
	m, _ = press(m, "up")
	view := m.View().Content
	for _, want := range []string{"corelane worker top", "2 workers  every 1s  by id", "PACKETS/S",
		"worker 0 (pmd-fwd-0, thread 0)", "fab0 queue 0: 2000 packets, 5 waiting", "dropped ip4_no_route: 3", topKeys} {
		if !strings.Contains(view, want) {
			t.Errorf("no %q in\n%s", want, view)
		}
	}
	if n := strings.Count(view, "\n") + 1; n != 40 {
		t.Errorf("%d lines", n)
	}
}

func TestTopRatesAndDetails(t *testing.T) {
	m, _ := topScreen(t, fixture(t))
	m, _ = press(m, "j")
	view := m.View().Content
	if rows(view) != "0 >1" || !regexp.MustCompile(`>  +1 .* 5000 `).MatchString(view) ||
		!strings.Contains(view, "dropped ip4_no_route: 73 (70/s)") {
		t.Error(view)
	}
	look := looks(t, m)
	if look.loops.GetWorker() != 1 {
		t.Error("looks at worker", look.loops.GetWorker())
	}
	m, _ = m.Update(look)
	if view := m.View().Content; !strings.Contains(view, "without rseq it is unknown") {
		t.Error(view)
	}
}

func TestTopSorts(t *testing.T) {
	m, _ := topScreen(t, fixture(t))
	for _, want := range []string{">0 1", "1 >0", "1 >0", ">0 1", ">0 1"} { // id, busy, packets, p99 (equal), id
		if got := rows(m.View().Content); got != want {
			t.Errorf("%s instead of %s, by %s", got, want, topOrders[m.(top).order])
		}
		m, _ = press(m, "s")
	}
	m, _ = press(m, "up", "up", "down", "down", "down")
	if got := rows(m.View().Content); got != "1 >0" {
		t.Error(got)
	}
}

func TestTopKeys(t *testing.T) {
	m, a := topScreen(t, fixture(t))
	m, cmd := press(m, " ")
	if cmd != nil || !strings.Contains(m.View().Content, "paused") {
		t.Error("not paused")
	}
	if m, cmd := m.Update(topTick{m.(top).round}); cmd != nil {
		t.Error("looks while paused", m)
	}
	m, cmd = press(m, " ")
	if cmd == nil {
		t.Error("still paused")
	}
	m, _ = press(m, "+")
	if a.interval != 2*time.Second {
		t.Error(a.interval)
	}
	if _, cmd := m.Update(topTick{0}); cmd != nil {
		t.Error("an old tick counts")
	}
	for range 10 {
		m, _ = press(m, "-")
	}
	if a.interval != screen.LeastInterval {
		t.Error(a.interval)
	}
	if _, cmd = press(m, "q"); cmd == nil || cmd() != tea.Quit() {
		t.Error("does not end")
	}
}

func TestTopResets(t *testing.T) {
	s := fixture(t)
	m, _ := topScreen(t, s)
	_, cmd := press(m, "r")
	cmd()
	s.Lock()
	defer s.Unlock()
	if last := s.Calls[len(s.Calls)-1]; last != `Workers.ResetLatency {"one_worker":true}` {
		t.Error(last)
	}
}

// A worker is removed, then all workers, then the daemon ends.
func TestTopLosses(t *testing.T) {
	s := fixture(t)
	m, _ := topScreen(t, s)
	s.Lock()
	s.Workers.Delete(0)
	s.Unlock()
	m, _ = m.Update(looks(t, m))
	if got := rows(m.View().Content); got != ">1" {
		t.Error(got)
	}
	m, cmd := m.Update(topLooked{err: io.ErrUnexpectedEOF})
	if !strings.Contains(m.View().Content, "unexpected EOF") || cmd == nil || m.(top).fatal != nil {
		t.Error(m.View().Content)
	}
	m, _ = m.Update(topLooked{at: time.Now()})
	m, _ = press(m, "up", "down")
	if !strings.Contains(m.View().Content, "0 workers") {
		t.Error(m.View().Content)
	}
	m, cmd = newTop(context.Background(), m.(top).a).Update(topLooked{err: io.ErrUnexpectedEOF})
	if m.(top).fatal == nil || cmd() != tea.Quit() {
		t.Error("goes on without a daemon that was never there")
	}
}

func TestTopSmallScreen(t *testing.T) {
	m, _ := topScreen(t, fixture(t))
	m, _ = m.Update(tea.WindowSizeMsg{Width: 30, Height: 5})
	lines := strings.Split(m.View().Content, "\n")
	if len(lines) != 5 {
		t.Error(lines)
	}
	for _, l := range lines {
		if len([]rune(l)) > 30 {
			t.Error(l)
		}
	}
}

// The whole command on a terminal.
func TestTopOnTerminal(t *testing.T) {
	s := fixture(t)
	ptm, pts := terminal(t, 24)
	keys, press := io.Pipe()
	var errs bytes.Buffer
	c := New(pts, &errs, Dial)
	c.stdin = keys
	done := make(chan int)
	go func() { done <- c.Run(context.Background(), []string{"--socket", s.Socket, "worker", "top"}) }()
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), "PACKETS/S") {
		n, err := ptm.Read(buf)
		if err != nil {
			t.Fatal(err, seen.String())
		}
		seen.Write(buf[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, ptm) }()
	if _, err := press.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 0 {
		t.Error(code, errs.String())
	}
	if !strings.Contains(seen.String(), "\x1b[?1049h") {
		t.Error("not a screen of its own")
	}
}

func TestTopPlain(t *testing.T) {
	s := fixture(t)
	got := watch(t, s, 2, func(n int) {
		s.Lock()
		defer s.Unlock()
		w, _ := s.Workers.Get(0)
		w.State.Packets += 1000
	}, "worker", "top", "--plain", "--interval=500ms")
	if strings.Contains(got, "\x1b") || strings.Count(got, "PACKETS/S") != 2 ||
		!regexp.MustCompile(`(?m)^ 0 .* yield +[12]\d{3} `).MatchString(got) {
		t.Error(got)
	}
}

func TestTopJSON(t *testing.T) {
	got := watch(t, fixture(t), 1, func(int) {}, "worker", "top", "-o", "json", "--interval=500ms")
	if strings.Count(got, `"system_calls":"900"`) != 2 {
		t.Error(got)
	}
}

func TestTopWithoutDaemon(t *testing.T) {
	_, pts := terminal(t, 24)
	c := New(pts, io.Discard, Dial)
	c.stdin = strings.NewReader("")
	var errs bytes.Buffer
	c.stderr = &errs
	if code := c.Run(context.Background(), []string{"--socket", t.TempDir() + "/none", "worker", "top"}); code != 2 ||
		errs.Len() == 0 {
		t.Error(code, errs.String())
	}
}
