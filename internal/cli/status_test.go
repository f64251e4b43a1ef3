// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api/apitest"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// On a terminal of 80 columns no line of the status and of a table is wider, unless it is asked for.
func TestEightyColumns(t *testing.T) {
	s := fixture(t)
	for _, command := range []string{"status", "port list", "worker list", "route list --vrf red", "drops", "graph",
		"event list", "rule list", "nat list", "nexthop list"} {
		lines := onTerminal(t, s, command)
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s: %q", command, line)
			}
		}
		if len(lines) < 2 {
			t.Errorf("%s: %q", command, lines)
		}
	}
	for _, line := range onTerminal(t, s, "port list -o wide") {
		if utf8.RuneCountInString(line) < 100 {
			t.Errorf("wide: %q", line)
		}
	}
	if wide := onTerminal(t, s, "port list -o wide"); len(wide) != 4 {
		t.Errorf("wide: a line per port, and the heads: %q", wide)
	}
}

// onTerminal runs a command on a terminal of 80 columns, and returns its lines.
func onTerminal(t *testing.T, s *apitest.Server, command string) (lines []string) {
	ptm, pts := terminal(t, 24)
	var errs bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- New(pts, &errs, Dial).Run(context.Background(),
			append([]string{"--socket", s.Socket}, strings.Fields(command)...))
		_ = pts.Close()
	}()
	for in := bufio.NewScanner(ptm); in.Scan(); { // ends once nobody has the other end open
		lines = append(lines, strings.TrimRight(in.Text(), "\r"))
	}
	if code := <-done; code != 0 {
		t.Errorf("%s: exit code %d, %s", command, code, errs.String())
	}
	return lines
}

// Long lines of `corelane status` go on below their text where a screen ends; without a screen they stay whole.
func TestStatusLine(t *testing.T) {
	const text = "longest turn 112.3 ms (Flows.Count 111.9 ms); above 100 ms: 17, and 1232 that waited for a CPU"
	for columns, want := range map[int]string{
		0: "master    " + text + "\n",
		80: "master    longest turn 112.3 ms (Flows.Count 111.9 ms); above 100 ms: 17, and\n" +
			"          1232 that waited for a CPU\n",
		200: "master    " + text + "\n",
	} {
		var b strings.Builder
		statusLine(&b, columns, "master", text)
		if b.String() != want {
			t.Errorf("%d columns:\n%s", columns, b.String())
		}
	}
}

func TestStatusWait(t *testing.T) {
	s := fixture(t)
	r := run(s, "", "status", "--wait", "0s")
	if r.code != 1 || !strings.Contains(r.stderr, "no peer: vm2") || r.stdout != "" {
		t.Error(r)
	}
	looks := 0
	s.Refuse = func(string, proto.Message) error {
		if looks++; looks == 20 {
			s.Ports.Put("vm2", &apiv1.Port{Name: "vm2", Disabled: true})
		}
		return nil
	}
	if r := run(s, "", "status", "--wait", "10m"); r.code != 0 || r.stderr != "" || r.stdout != "" {
		t.Error(r)
	}
	over := make(chan struct{})
	s.Refuse = func(string, proto.Message) error { <-over; return nil }
	r = run(s, "", "status", "--wait", "100ms") // it has answered the greeting, and then hangs
	close(over)
	if r.code == 0 || !strings.Contains(r.stderr, "after 100ms: corelaned does not answer") {
		t.Error(r)
	}
	var stderr bytes.Buffer
	code := New(io.Discard, &stderr, Dial).Run(t.Context(),
		[]string{"--socket", t.TempDir() + "/none", "status", "--wait", "300ms"})
	if text := stderr.String(); code != 2 || !strings.Contains(text, "after 300ms: corelaned does not answer") {
		t.Error(code, text)
	}
}

// Of several workers each shows its longest loops only; of one all are shown.
func TestLongestLoops(t *testing.T) {
	s := fixture(t)
	for i := range uint64(8) {
		s.Latencies[0].Longest = append(s.Latencies[0].Longest, &apiv1.LongLoop{TimeNs: 1e18 + i, Ns: 1e9 * (1 + i%4)})
	}
	all, one := run(s, "", "worker", "latency").stdout, run(s, "", "worker", "latency", "0").stdout
	if !strings.Contains(all, "... 6 more: corelane worker latency 0") || strings.Count(all, "4000 ms") != 2 {
		t.Error(all)
	}
	if strings.Contains(one, "more:") || strings.Count(one, "1000 ms") != 2 {
		t.Error(one)
	}
}

// Sentences of a list have a line each; a few words share one.
func TestDetailOfLists(t *testing.T) {
	var d detail
	steps := []string{"rule 5 of list web allows it", "meter gold, which port vm1 has, limits it",
		"it leaves by port vm2"}
	d.message((&apiv1.FlowExplanation{Steps: steps}).ProtoReflect(), "", "")
	if text := d.out.String(); !strings.Contains(text, "steps:\n  - rule 5 of list web allows it\n  - meter gold, ") {
		t.Error(text)
	}
	d = detail{}
	d.message((&apiv1.Port{Gateways: []string{"10.1.0.1/24", "10.2.0.1/24"}}).ProtoReflect(), "", "")
	if text := d.out.String(); !strings.Contains(text, "gateways: 10.1.0.1/24, 10.2.0.1/24\n") {
		t.Error(text)
	}
}
