// SPDX-License-Identifier: Apache-2.0
package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// unread lists what could not be read, one per line.
func unread(m *topology.Machine) string {
	var lines []string
	for _, u := range m.Unread {
		lines = append(lines, u.Path+" "+u.Why)
	}
	return strings.Join(lines, "\n")
}

// equal compares what was found, as text, with what is wanted.
func equal(t *testing.T, what string, got any, want string) {
	t.Helper()
	if fmt.Sprint(got) != want {
		t.Errorf("%s: %v, want %s", what, got, want)
	}
}

func TestXeon(t *testing.T) {
	m := topologytest.Machine(t, "xeon-4210")
	equal(t, "unread", unread(m), "")
	equal(t, "host", m.Hostname+" "+m.Kernel.Release, "compute-0 3.10.0-1062.9.1.el7.x86_64")
	equal(t, "CPUs", len(m.CPUs), "40")
	equal(t, "nodes", fmt.Sprint(m.Nodes[0].CPUs, " ", m.Nodes[1].CPUs), "0-9,20-29 10-19,30-39")
	equal(t, "siblings", m.CPU(31).Siblings, "11,31")
	equal(t, "caches", fmt.Sprint(m.CPU(31).L2, " ", m.CPU(31).L3), "11,31 10-19,30-39")
	equal(t, "isolated", fmt.Sprint(m.Kernel.Isolated, " ", m.Kernel.NohzFull),
		"1-9,11-19,21-29,31-39 1-9,11-19,21-29,31-39")
	equal(t, "NIC", fmt.Sprint(m.NICs[0]), "{0000:3b:00.0 0 0x8086 0x158b vfio-pci  0 0 [] 8.0 GT/s PCIe 8}")
	equal(t, "NIC", fmt.Sprint(m.NICs[1]), "{0000:af:00.0 1 0x8086 0x10fb ixgbe eno1 4 4 [60 61 62 63] 8.0 GT/s "+
		"PCIe 8}")
	equal(t, "tuned", m.Services.Tuned+" "+m.Services.TunedVariables["isolated_cores"],
		"cpu-partitioning 1-9,11-19,21-29,31-39")
	equal(t, "spares", len(m.Services.TunedBlacklist), "9")
	equal(t, "systemd", m.Services.SystemdAffinity, "0,10,20,30")
	equal(t, "nova", m.Services.Nova, "map[vcpu_pin_set:6-9,11-19,25-29,31-39]")
	equal(t, "vrouter", m.Services.VRouter, "map[CPU_LIST:1,2,3,4,21,22,23,24]")
	equal(t, "workqueues", m.Knobs.WorkqueueMask, "0,10,20,30")
	equal(t, "hugepages", m.Nodes[1].Hugepages, "[{1048576 64 40} {2048 1024 1024}]")
}
