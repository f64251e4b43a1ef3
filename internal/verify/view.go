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

// view is what all rules share: the machine, what is intended, and a few things that several of them ask.
type view struct {
	m        *topology.Machine
	p        *plan.Plan // may be nil
	in       *Intent
	online   cpuset.Set
	isolated cpuset.Set   // now, from the scheduler's balancing
	own      map[int]bool // PIDs that have a worker
	guests   map[int]bool // PIDs of guests
}

func newView(m *topology.Machine, p *plan.Plan) *view {
	v := &view{m: m, p: p, in: IntentOf(m, p), online: online(m), isolated: isolatedNow(m), own: map[int]bool{}, guests: map[int]bool{}}
	for i := range m.Threads {
		if isWorker(&m.Threads[i]) {
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

// Names of polling threads: corelaned and OVS (pmd-), DPDK's lcores by release (lcore-slave, lcore-worker, rte-worker, dpdk-worker),
// VPP, grout.
var workerNames = regexp.MustCompile(`^(pmd-|lcore-(slave|worker)-\d|rte-worker-?\d|dpdk-worker-?\d|vpp_wk_\d|grout:w\d)`)

// isWorker says whether a thread polls. In contrail-vrouter-dpdk the lcores below 10 serve (timer, packet 0, netlink, vhost-user),
// and those from 10 on forward.
func isWorker(t *topology.Thread) bool {
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

// describe is a thread with all that finds it again.
func describe(t *topology.Thread) string {
	text := fmt.Sprintf("%s (tid %d, pid %d) may run on CPUs %s, ran last on %d", threadName(t), t.TID, t.PID, t.Allowed, t.LastCPU)
	if t.Kernel {
		text = fmt.Sprintf("kernel thread %s (%d) may run on CPUs %s, ran last on %d", t.Name, t.TID, t.Allowed, t.LastCPU)
	}
	if t.Policy != "" && t.Policy != "other" {
		text += ", " + t.Policy
	}
	if t.Cgroup != "" && t.Cgroup != "/" {
		text += ", cgroup " + t.Cgroup
	}
	return text
}

// busy is the clock ticks that a thread ran: in the span of the load, or since its start.
func (v *view) busy(t *topology.Thread) int64 {
	if v.m.Load != nil && v.m.Load.Threads != nil {
		return v.m.Load.Threads[t.TID]
	}
	return t.CPUTicks
}

func (v *view) cpu(id int) *topology.CPU {
	for i := range v.m.CPUs {
		if v.m.CPUs[i].ID == id {
			return &v.m.CPUs[i]
		}
	}
	return nil
}

// args are the values of a kernel argument, in their order.
func (v *view) args(name string) []string {
	var values []string
	for _, word := range strings.Fields(v.m.Kernel.Cmdline) {
		if n, value, _ := strings.Cut(word, "="); n == name {
			values = append(values, value)
		}
	}
	return values
}

func (v *view) hasArg(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return v.args(n) != nil })
}

// cpuArg is the CPUs of an argument without its flags: isolcpus=managed_irq,domain,1-9. The last one counts, as for the kernel.
func (v *view) cpuArg(name string) (set cpuset.Set, flags []string, given bool, err error) {
	values := v.args(name)
	if values == nil {
		return
	}
	var list []string
	for part := range strings.SplitSeq(values[len(values)-1], ",") {
		if part != "" && part[0] >= 'a' && part[0] <= 'z' && part != "all" {
			flags = append(flags, part)
		} else {
			list = append(list, part)
		}
	}
	text := strings.Join(list, ",")
	if text == "all" {
		return v.online, flags, true, nil
	}
	set, err = parseBootList(text, v.online)
	return set, flags, true, err
}

// parseBootList reads what the kernel takes at boot: as a list, with N for the last CPU (kernel-parameters.rst, CPU lists).
func parseBootList(text string, online cpuset.Set) (cpuset.Set, error) {
	ids := online.IDs()
	if len(ids) > 0 {
		text = strings.ReplaceAll(text, "N", strconv.Itoa(ids[len(ids)-1]))
	}
	return cpuset.Parse(text)
}

// home is where a thread that is in the way should run instead.
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

func siblingsOf(v *view, cpus cpuset.Set) cpuset.Set {
	var all cpuset.Set
	for _, id := range cpus.IDs() {
		if c := v.cpu(id); c != nil {
			all = all.Or(c.Siblings)
		}
	}
	return all.Without(cpus)
}
