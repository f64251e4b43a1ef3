// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// view holds what all rules share: the machine, the intent, and some sets that several rules need.
type view struct {
	m        *topology.Machine
	p        *plan.Plan // may be nil
	in       *Intent
	online   cpuset.Set   // in a container only its own
	isolated cpuset.Set   // CPUs that the scheduler does not balance now
	own      map[int]bool // PIDs of processes with workers
	guests   map[int]bool // PIDs of guests
}

func newView(m *topology.Machine, p *plan.Plan, in *Intent) *view {
	v := &view{m: m, p: p, in: in, online: m.Usable(), isolated: isolatedNow(m), own: map[int]bool{},
		guests: map[int]bool{}}
	for i := range m.Threads {
		if IsWorker(&m.Threads[i]) {
			v.own[m.Threads[i].PID] = true
		}
	}
	for _, g := range m.Guests {
		if g.PID != 0 {
			v.guests[g.PID] = true
		}
	}
	return v
}

// Names of polling threads: corelaned and OVS (pmd-), DPDK's lcores by release (lcore-slave, lcore-worker, rte-worker,
// dpdk-worker), VPP, grout.
var workerNames = regexp.MustCompile(`^(pmd-|lcore-(slave|worker)-\d|rte-worker-?\d|` +
	`dpdk-worker-?\d|vpp_wk_\d|grout:w\d)`)

// IsWorker reports whether a thread polls. In contrail-vrouter-dpdk the lcores below 10 are service threads (timer,
// packet 0, netlink, vhost-user), and those from 10 on forward.
func IsWorker(t *topology.Thread) bool {
	if t.Kernel || !workerNames.MatchString(t.Name) {
		return false
	}
	if strings.HasPrefix(t.Process, "contrail-vrout") {
		n, err := strconv.Atoi(t.Name[strings.LastIndex(t.Name, "-")+1:])
		return err == nil && n >= 10
	}
	return true
}

func threadName(t *topology.Thread) string {
	if t.Process == "" || t.Process == t.Name {
		return t.Name
	}
	return t.Name + " of " + t.Process
}

// describe returns a text that identifies a thread and says where it may run.
func describe(t *topology.Thread) string {
	text := fmt.Sprintf("%s (tid %d, pid %d) may run on CPUs %s, last ran on %d", threadName(t), t.TID, t.PID,
		t.Allowed, t.LastCPU)
	if t.Kernel {
		text = fmt.Sprintf("kernel thread %s (%d) may run on CPUs %s, last ran on %d", t.Name, t.TID, t.Allowed,
			t.LastCPU)
	}
	if t.Policy != "" && t.Policy != "other" {
		text += ", " + t.Policy
	}
	if t.Cgroup != "" && t.Cgroup != "/" {
		text += ", cgroup " + t.Cgroup
	}
	return text
}

// busy returns the clock ticks that a thread ran: in the span of the load, or since its start.
func (v *view) busy(t *topology.Thread) int64 {
	if v.m.Load != nil && v.m.Load.Threads != nil {
		return v.m.Load.Threads[t.TID]
	}
	return t.CPUTicks
}

func (v *view) cpu(id int) *topology.CPU { return v.m.CPU(id) }

func (v *view) hasArg(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return v.m.Kernel.All(n) != nil })
}

// cpuArg parses a kernel argument that is a list of CPUs.
func (v *view) cpuArg(name string) (topology.CPUArgument, error) {
	return v.m.Kernel.CPUArg(name, v.last())
}

func (v *view) last() int {
	if len(v.m.CPUs) == 0 {
		return -1
	}
	return v.m.LastCPU()
}

// list parses a CPU list in TuneD's syntax, which is the kernel's.
func (v *view) list(text string) (cpuset.Set, error) { return cpuset.ParseKernel(text, v.last()) }

// home returns the CPUs on which a thread that is in the way should run instead.
func (v *view) home(t *topology.Thread) cpuset.Set {
	switch {
	case v.own[t.PID]:
		return v.in.Service
	case v.guests[t.PID]:
		return v.in.Emulator
	}
	if rest := t.Allowed.And(v.in.Host); !rest.Empty() {
		return rest
	}
	return v.in.Host
}
