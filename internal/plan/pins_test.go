// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// pinned returns a guest whose vCPUs have these CPUs.
func pinned(name string, pid int, lists ...string) topology.Guest {
	g := topology.Guest{Name: name, PID: pid, Source: "libvirt"}
	for _, list := range lists {
		g.VCPUs = append(g.VCPUs, set(list))
	}
	return g
}

func TestPins(t *testing.T) {
	for _, test := range []struct {
		name   string
		cpus   string
		guests []topology.Guest
		want   string
	}{
		{"all right", "6-9,26-29", []topology.Guest{pinned("a", 1, "6", "26")}, "[[{6 true} {26 true}]]"},
		{"two lost their core: siblings together", "7-9,27-29",
			[]topology.Guest{pinned("a", 1, "6", "26", "9", "29")}, "[[{7 false} {27 false} {9 true} {29 true}]]"},
		{"a free sibling of its own core first", "7-9,27-29", []topology.Guest{pinned("a", 1, "6", "9")},
			"[[{29 false} {9 true}]]"},
		{"stacked", "6-7,26-27", []topology.Guest{pinned("a", 1, "6", "6")}, "[[{6 true} {26 false}]]"},
		{"stopped guests come last", "6-7,26-27", []topology.Guest{pinned("a", 0, "6"), pinned("b", 1, "6")},
			"[[{7 false}] [{6 true}]]"},
		{"none left", "6", []topology.Guest{pinned("a", 1, "6", "7")}, "[[{6 true} {-1 false}]]"},
		{"unpinned: all", "6-7,26-27", []topology.Guest{pinned("a", 1, "0-39", "0-39")}, "[[{6 false} {26 false}]]"},
		{"unpinned: or none", "6", []topology.Guest{pinned("a", 1, "0-39", "0-39")}, "[[{-1 false} {-1 false}]]"},
		{"the node of its memory", "6-7,16-17", []topology.Guest{{Name: "a", PID: 1, Nodes: []int{1},
			VCPUs: []cpuset.Set{set("0")}}}, "[[{16 false}]]"},
	} {
		m := fresh(t)
		m.Guests = test.guests
		if got := fmt.Sprint(Pins(m, set(test.cpus))); got != test.want {
			t.Errorf("%s: %s, not %s", test.name, got, test.want)
		}
	}
}
