// SPDX-License-Identifier: Apache-2.0
package draw

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

var update = flag.Bool("update", false, "rewrite the expected files")

func everyMachine() []string { return append(topologytest.Names(), "vm-cgroup-v1") }

// Each machine's summary and map match testdata.
func TestExpected(t *testing.T) {
	for _, name := range everyMachine() {
		m := topologytest.Machine(t, name)
		got := Summary(m) + "\n" + Text(m, FromMachine(m), 100, false)
		file := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v, got\n%s", name, err, got)
		}
	}
}

// Each CPU is in the map once, and no line is wider than the terminal unless one core is.
func TestMapHasAll(t *testing.T) {
	for _, name := range everyMachine() {
		m := topologytest.Machine(t, name)
		marks := FromMachine(m)
		for _, width := range []int{1, 40, 80, 250} {
			text := Text(m, marks, width, false)
			body := text[:strings.Index(text, "\n\n")]
			found := map[string]int{}
			bare := strings.NewReplacer("[", " ", "]", " ", "(", " ", ")", " ", "{", " ", "}", " ").Replace(body)
			for text := range strings.FieldsSeq(bare) {
				found[text]++
			}
			for _, c := range m.CPUs {
				if n := found[cell(c.ID, marks)]; n != 1 {
					t.Errorf("%s: CPU %d is %d times in\n%s", name, c.ID, n, body)
				}
			}
			for line := range strings.Lines(body) {
				if strings.Contains(line, "[") && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > max(width,
					20) {
					t.Errorf("%s: width %d: %q", name, width, line)
				}
			}
		}
	}
}

func TestColor(t *testing.T) {
	m := topologytest.Machine(t, "xeon-4210")
	marks := FromMachine(m)
	plain, colored := Text(m, marks, 100, false), Text(m, marks, 100, true)
	if strings.Contains(plain, "\x1b") || !strings.Contains(colored, "\x1b[48;5;114m") {
		t.Errorf("%q", colored)
	}
}

func TestSVG(t *testing.T) {
	for _, name := range everyMachine() {
		m := topologytest.Machine(t, name)
		m.Hostname = "<b>&"
		text := SVG(m, FromMachine(m))
		in := xml.NewDecoder(strings.NewReader(text))
		for {
			if _, err := in.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, text)
			}
		}
		if n := strings.Count(text, "<title>CPU "); n != len(m.CPUs) {
			t.Errorf("%s: %d of %d CPUs", name, n, len(m.CPUs))
		}
	}
}

func TestPlan(t *testing.T) {
	m := topologytest.Machine(t, "holes")
	p := &plan.Plan{Topology: topology.Fingerprint(m), CPUs: []plan.CPU{
		{ID: 0, Role: plan.Housekeeping}, {ID: 1, Role: plan.Forwarding}, {ID: 3, Role: plan.Guests}}}
	marks, err := FromPlan(m, p)
	if err != nil || marks[0].Letter != 'H' || marks[1].Letter != 'F' || marks[2] != unknown || marks[3] != offline {
		t.Errorf("%v %v", marks, err)
	}
	for _, cpu := range []plan.CPU{{ID: 77, Role: plan.Forwarding}, {ID: 1, Role: "cook"}} {
		p.CPUs = []plan.CPU{cpu}
		if _, err := FromPlan(m, p); err == nil {
			t.Errorf("%v is not an error", cpu)
		}
	}
	if _, err := FromPlan(topologytest.Machine(t, "vm"), p); err == nil ||
		!strings.Contains(err.Error(), "not for guest: ") {
		t.Error(err)
	}
}

// vCPUs on CPUs that take interrupts are marked.
func TestRunningFacts(t *testing.T) {
	m := topologytest.Machine(t, "odd-even-16")
	if got := Interrupted(m).String(); got != "0,2,4,6,8,10,12,14" {
		t.Error(got)
	}
	m = topologytest.Machine(t, "partition")
	marks := FromMachine(m)
	if marks[2] != isolated || marks[0] != irqs || marks[1] != host {
		t.Error(marks[2], marks[0], marks[1])
	}
	m.IRQs[0].Counts[2] = 1000
	if marks = FromMachine(m); marks[2] != disturb {
		t.Error(marks[2])
	}
	var letters bytes.Buffer
	seen := map[byte]string{}
	for _, mark := range legend {
		if other, twice := seen[mark.Letter]; twice && other != mark.Name && mark.Letter != 'G' {
			letters.WriteByte(mark.Letter)
		}
		seen[mark.Letter] = mark.Name
	}
	if letters.Len() > 0 {
		t.Errorf("letters %s have two meanings", letters.String())
	}
}

// A node that has only memory.
func TestNodeWithoutCPUs(t *testing.T) {
	s := topologytest.Describe(t, "xeon-4210")
	s.Nodes = append(s.Nodes, topologytest.Node{ID: 2, MemoryGiB: 96})
	if text := Summary(s.Machine(t)); !strings.Contains(text, "2: no CPUs, 96 GiB") {
		t.Error(text)
	}
}
