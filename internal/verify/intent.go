// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Intent says who should use which CPUs.
type Intent struct {
	From         string // its source, as text for people
	File         string // of the plan, for commands; empty: not known
	Planned      bool   // from a plan, not from the running machine
	Workers      cpuset.Set
	Isolated     cpuset.Set // the host must keep off these: workers' CPUs, and with a plan guests' CPUs
	Host         cpuset.Set // for everything else
	Service      cpuset.Set // for the data plane's other threads
	IRQs         cpuset.Set
	Guests       cpuset.Set
	Emulator     cpuset.Set
	ShareCores   bool
	workerByCPU  map[int]string // name of the worker on a CPU
	boundPartner map[int]int    // CPU of an isolated-rx worker to that of its forwarding worker, and back
}

// None reports whether neither the plan nor the machine names a CPU that should be kept free.
func (in *Intent) None() bool { return in.Workers.Empty() && in.Isolated.Empty() }

// IntentOf returns the plan's intent. Without a plan it derives the intent from the machine: the CPUs to which the data
// plane's workers are pinned, the CPUs that the kernel isolates, and the settings of the services.
func IntentOf(m *topology.Machine, p *plan.Plan) *Intent {
	if p != nil {
		return planned(m, p)
	}
	in := &Intent{workerByCPU: map[int]string{}, boundPartner: map[int]int{}}
	for _, t := range m.Threads {
		if IsWorker(&t) && t.Allowed.Len() == 1 {
			in.Workers = in.Workers.Or(t.Allowed)
			in.workerByCPU[t.Allowed.First()] = threadName(&t)
		}
	}
	in.From = fmt.Sprintf("the polling threads of this machine (CPUs %s)", in.Workers)
	if cpus, err := cpuset.Parse(m.Services.VRouter["CPU_LIST"]); err == nil && in.Workers.Empty() && !cpus.Empty() {
		in.Workers, in.From = cpus, fmt.Sprintf("CPU_LIST of ifcfg-vhost0 (CPUs %s), as no data plane is running", cpus)
	}
	isolated := isolatedNow(m).And(m.Usable())
	if in.Workers.Empty() {
		in.From = fmt.Sprintf("the CPUs that the kernel isolates (%s), as no data plane is running", orNone(isolated))
	}
	in.Isolated = isolated.Or(in.Workers)
	in.Host = m.Usable().Without(in.Isolated)
	in.Service, in.IRQs, in.Emulator = in.Host, in.Host, in.Host
	for _, g := range m.Guests {
		for _, cpus := range g.VCPUs {
			in.Guests = in.Guests.Or(cpus)
		}
	}
	in.Guests = in.Guests.And(in.Isolated).Without(in.Workers)
	return in
}

func planned(m *topology.Machine, p *plan.Plan) *Intent {
	in := &Intent{
		From: fmt.Sprintf("the plan of %s", p.Machine), Planned: true,
		Isolated: p.Isolated, Host: p.Of(plan.Housekeeping), Service: p.ServiceCPUs().Or(p.ControlCPUs()), IRQs: p.IRQs,
		Guests: p.Of(plan.Guests), Emulator: p.EmulatorCPUs(),
		ShareCores: p.Request.ShareCores, workerByCPU: map[int]string{}, boundPartner: map[int]int{},
	}
	cpuOf := map[int]int{}
	for _, w := range p.Workers {
		in.Workers = in.Workers.Or(cpuset.Of(w.CPU))
		in.workerByCPU[w.CPU] = fmt.Sprintf("worker %d (%s)", w.ID, w.Role)
		cpuOf[w.ID] = w.CPU
	}
	for _, w := range p.Workers {
		if fed, ok := cpuOf[w.Target]; ok && w.Role == plan.IsolatedRx {
			in.boundPartner[w.CPU], in.boundPartner[fed] = fed, w.CPU
		}
	}
	if m.Container { // the plan may be its host's
		own := m.Usable()
		for _, cpus := range []*cpuset.Set{&in.Workers, &in.Isolated, &in.Host, &in.Service, &in.IRQs, &in.Guests,
			&in.Emulator} {
			*cpus = cpus.And(own)
		}
	}
	if in.Host.Empty() {
		in.Host = m.Usable().Without(in.Isolated).Without(in.Workers)
	}
	return in
}

// isolatedNow returns the CPUs that the scheduler does not balance, because of isolcpus or of a valid partition.
func isolatedNow(m *topology.Machine) cpuset.Set { return m.Kernel.Isolated.Or(partitioned(m)) }

// partitioned returns the CPUs of valid isolated cgroup v2 partitions (cgroup-v2.rst, cpuset.cpus.partition).
func partitioned(m *topology.Machine) cpuset.Set {
	all := m.Cgroups.Isolated
	for _, g := range m.Cgroups.Groups {
		if g.Partition == "isolated" {
			all = all.Or(g.Effective)
		}
	}
	return all
}
