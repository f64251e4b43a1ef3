// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// set parses a CPU list.
func set(text string) cpuset.Set {
	s, err := cpuset.Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// fresh returns the 2x10-core host before anything was isolated.
func fresh(t testing.TB) *topology.Machine {
	s := topologytest.Describe(t, "xeon-4210")
	s.Cmdline, s.HostCPUs = "BOOT_IMAGE=/boot/vmlinuz ro quiet", cpuset.Set{}
	return s.Machine(t)
}

// smtPair returns a machine with one core and two CPUs.
func smtPair(t testing.TB) *topology.Machine {
	s := topologytest.Describe(t, "one-cpu")
	s.CPUs = append(s.CPUs, topologytest.CPU{ID: 1})
	return s.Machine(t)
}

// container returns the view of a container on the 2x10-core host: eight CPUs with a quota of six.
func container(t testing.TB) *topology.Machine {
	m := fresh(t)
	m.Container = true
	m.Cgroups = topology.Cgroups{Version: 2,
		Groups: []topology.Cgroup{{Path: "/", Effective: set("4-7,24-27"), QuotaUS: 600000, PeriodUS: 100000}}}
	return m
}
