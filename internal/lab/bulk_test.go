// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"testing"
)

// Each path is in a lab, and each target compares paths that are measured.
func TestBulkPaths(t *testing.T) {
	names := map[string]bool{}
	for _, p := range BulkPaths() {
		names[p.Name] = names[p.Name] || p.MTU == bulkMTU
		topology, err := Find(p.lab)
		if err != nil {
			t.Fatal(err)
		}
		path, address := p.of(&Lab{Topology: topology})
		if path.From.Name() == path.To.Name() || address == path.From.Address(IPv4) || address == "" {
			t.Errorf("%s: from %s to %s (%s)", p.Name, path.From.Name(), path.To.Name(), address)
		}
		if int(path.From.Network.MTU) != p.MTU {
			t.Errorf("%s: the network has an MTU of %d", p.Name, path.From.Network.MTU)
		}
	}
	for _, target := range BulkTargets() {
		if !names[target.Of] || !names[target.To] {
			t.Errorf("%s is compared with %s", target.Of, target.To)
		}
	}
}

func TestBulkCompare(t *testing.T) {
	row := func(name string, connections int, back bool, rates ...float64) BulkRow {
		r := BulkRow{BulkPath: BulkPath{Name: name, MTU: bulkMTU}, Connections: connections, Back: back}
		for _, rate := range rates {
			r.Samples = append(r.Samples, BulkSample{Rate: Rate{BitsPerSecond: rate}})
		}
		return r
	}
	r := BulkReport{Rows: []BulkRow{row("tap to tap", 8, false, 90, 90, 90), row("tap to tap", 1, true, 90, 90, 90),
		row("tap to tap", 1, false, 10, 30, 20), row("kernel bridge", 1, false, 40, 40, 40)}}
	list := r.Compare()
	if len(list) != 1 || list[0].Of != "tap to tap" || list[0].Ratio.Median != 0.5 || list[0].Ratio.Low != 0.25 ||
		list[0].Ratio.High != 0.75 {
		t.Errorf("%+v", list)
	}
	r.Rows[3].Error = "no answer"
	if list = r.Compare(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
