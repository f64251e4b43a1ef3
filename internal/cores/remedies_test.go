// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"cmp"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
	"github.com/corelane/corelane/internal/verify"
)

// Whatever a remedy prints makes its check pass once it is run: verify, run all commands, verify again.
func TestRemedies(t *testing.T) {
	t.Parallel()
	for _, name := range append(topologytest.Names(), captured) {
		for _, planned := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/plan=%t", name, planned), func(t *testing.T) {
				t.Parallel()
				if name == captured {
					remedies(t, unpack(t, name), planned)
				} else {
					remedies(t, topologytest.Dir(t, name), planned)
				}
			})
		}
	}
}

// The same on random machines, whose configuration is worse than that of any real one.
func TestRemediesOfRandomMachines(t *testing.T) {
	t.Parallel()
	rounds.Seeds(t, 60, 200, func(seed uint64) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			remedies(t, topologytest.Random(seed).Dir(t), seed%2 == 1)
		})
	})
}

// captured is the archive of a real machine.
const captured = "vm-cgroup-v1"

// unpack returns a directory with the files of a captured machine.
func unpack(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", topologytest.Archive(t, name), "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func remedies(t *testing.T, root string, planned bool) {
	t.Helper()
	s := &shell{host: host{root: root}, state: t.TempDir()}
	m := s.look(t)
	if planned {
		if p, err := plan.Make(m, request(m)); err == nil {
			s.plan = p
		} else {
			return // the machine is too small
		}
	}
	before := verify.Check(m, s.plan)
	script := s.script(before)
	for round := 0; round < 2 && len(script) > 0; round++ {
		for _, line := range script {
			if err := s.run(line); err != nil {
				t.Errorf("$ %s\n%v", line, err)
			}
		}
		if script = nil; s.remade { // a new plan may choose other CPUs: it is verified, too
			s.remade, script = false, s.script(verify.Check(s.look(t), s.plan))
		}
	}
	after := verify.Check(s.look(t), s.plan)
	for i, f := range after {
		was := "new"
		if at := slices.IndexFunc(before, func(b verify.Finding) bool { return b.ID == f.ID }); at >= 0 {
			was = before[at].Verdict.String()
		}
		switch {
		case f.Verdict == verify.Fail && !hosts(m, &f, was, s.other), f.Verdict == verify.Warn && len(f.Fix) > 0,
			f.Verdict == verify.Warn && was == "PASS" && !s.other:
			text := ""
			for _, e := range f.Evidence {
				text += "\n\t" + e.Verdict.String() + " " + e.Text
			}
			t.Errorf("%s is %s, was %s:%s\n\t$ %s", f.ID, f.Verdict, was, text, strings.Join(after[i].Fix, "\n\t$ "))
		}
	}
}

// hosts reports whether a check of a container FAILs because of what only its host can change: there is no command, and
// it FAILed before, or a new plan has other CPUs.
func hosts(m *topology.Machine, f *verify.Finding, was string, other bool) bool {
	return m.Container && strings.Contains(f.Why, "Only the host") && len(f.Fix) == 0 && (was == "FAIL" || other)
}

func (s *shell) look(t *testing.T) *topology.Machine {
	t.Helper()
	m, err := topology.Read(s.root)
	if err != nil {
		t.Fatal(err)
	}
	s.known = m
	return m
}

// script returns the commands of all findings: a new plan first, and last its application, which ends in a boot.
func (s *shell) script(findings []verify.Finding) []string {
	var plans, lines, last []string
	for _, f := range findings {
		if f.Verdict <= verify.Unknown {
			continue
		}
		for _, line := range f.Fix {
			switch {
			case strings.HasPrefix(line, "corelane plan make"):
				plans = append(plans, line)
			case strings.HasPrefix(line, "corelane cores apply"):
				last = append(last[:0], line)
			default:
				lines = append(lines, line)
			}
		}
	}
	slices.SortStableFunc(plans, func(a, b string) int { // better CPUs rather than those of now
		return cmp.Compare(strings.Count(b, "-cpus"), strings.Count(a, "-cpus"))
	})
	if len(plans) > 0 {
		plans = plans[len(plans)-1:]
	}
	return slices.Concat(plans, lines, last)
}
