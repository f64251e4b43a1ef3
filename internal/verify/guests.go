// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

const (
	groupGuest = "Guests"
	vhostCase  = "KVM vhost performance tuning to enhance ADC VE throughput (2017)"
)

var guestRules = []rule{
	{id: "guests.vcpus", group: groupGuest, title: "Each vCPU is pinned to one CPU, and not to a worker's",
		check:  checkVCPUs,
		source: "libvirt, domain XML: cputune vcpupin",
		why: "A vCPU on a worker's CPU takes half of its time; a vCPU with several isolated CPUs is not balanced " +
			"between them."},
	{id: "guests.emulator", group: groupGuest, title: "Emulator and I/O threads keep off workers and vCPUs",
		check:  checkEmulator,
		source: "libvirt, domain XML: emulatorpin, iothreadpin",
		why: "These threads wake for each timer and disk request, and run on all CPUs of the guest's vCPUs " +
			"unless they are pinned."},
	{id: "guests.vhost", group: groupGuest, title: "vhost and emulator threads keep off CPUs of interrupts",
		check:  checkVhost,
		source: vhostCase,
		why: "Softirqs of a network device preempt threads: a vhost thread on such a CPU gets only the time that " +
			"they leave."},
	{id: "guests.numa", group: groupGuest, title: "A guest's CPUs and memory are on one node",
		check:  checkGuestNUMA,
		source: "libvirt, domain XML: numatune",
		why:    "Every packet is copied to or from the guest's memory; between nodes this halves the rate, about."},
	{id: "guests.queues", group: groupGuest, title: "Guests with several vCPUs have several queues",
		check:  checkQueues,
		source: "libvirt, domain XML: driver queues=",
		why:    "One queue is polled by one worker and one vCPU only, even when others are idle."},
}

func (v *view) noGuests(r *result) {
	if len(r.items) == 0 {
		r.pass("%d guests", len(v.m.Guests))
	}
}

func checkVCPUs(v *view, r *result) {
	for _, g := range v.m.Guests {
		for n, cpus := range g.VCPUs {
			pin := ""
			if free := v.in.Guests.Or(cpus).Without(v.in.Workers); !free.Empty() {
				pin = fmt.Sprintf("virsh vcpupin %s %d %d   # or another single CPU of guests", g.Name, n, free.First())
			}
			switch bad := cpus.And(v.in.Workers); {
			case !bad.Empty():
				r.fail("%s, vCPU %d: may run on CPUs %s, which include workers' CPUs %s", g.Name, n, cpus, bad).
					about("guest %s vcpu %d", g.Name, n).Command = pin
			case cpus.Len() > 1 && cpus.Overlaps(v.isolated):
				r.warn("%s, vCPU %d: may run on %d CPUs (%s), some of them isolated", g.Name, n, cpus.Len(), cpus).
					about("guest %s vcpu %d", g.Name, n).Command = pin
			}
		}
	}
	v.noGuests(r)
}

func checkEmulator(v *view, r *result) {
	for _, g := range v.m.Guests {
		var vcpus cpuset.Set
		for _, cpus := range g.VCPUs {
			vcpus = vcpus.Or(cpus)
		}
		v.judgeEmulator(r, g.Name, "emulator", fmt.Sprintf("virsh emulatorpin %s %s", g.Name, v.in.Emulator),
			g.Emulator, vcpus)
		for n, cpus := range g.IOThread {
			v.judgeEmulator(r, g.Name, fmt.Sprintf("iothread %d", n+1),
				fmt.Sprintf("virsh iothreadpin %s %d %s", g.Name, n+1, v.in.Emulator), cpus, vcpus)
		}
	}
	v.noGuests(r)
}

func (v *view) judgeEmulator(r *result, guest, what, command string, cpus, vcpus cpuset.Set) {
	if bad := cpus.And(v.in.Workers); !bad.Empty() {
		r.fail("%s, %s: may run on CPUs %s, which include workers' CPUs %s", guest, what, cpus, bad).
			about("guest %s %s", guest, what).Command = command
	} else if cpus.Len() > 1 && cpus.Overlaps(vcpus) && vcpus.Overlaps(v.in.Guests) {
		r.warn("%s, %s: may run on CPUs %s, which include CPUs %s of its vCPUs", guest, what, cpus, cpus.And(vcpus)).
			about("guest %s %s", guest, what).Command = command
	}
}

// interruptCPUs returns the CPUs that serve interrupts and softirqs of network devices. With counters these are the
// CPUs that took more than a tenth of the busiest CPU's interrupts; without, the CPUs to which the interrupts go.
func (v *view) interruptCPUs() cpuset.Set {
	var ids []int
	if l := v.m.Load; l != nil {
		var most int64
		for i := range l.CPUs {
			most = max(most, l.CPUs[i].Softirqs["NET_RX"])
		}
		for i := range l.CPUs {
			if n := l.CPUs[i].Softirqs["NET_RX"]; n > most/10 && float64(n) > 100*l.Seconds {
				ids = append(ids, l.CPUs[i].CPU)
			}
		}
		return cpuset.Of(ids...)
	}
	network := map[int]bool{}
	for _, nic := range v.m.NICs {
		for _, n := range nic.IRQs {
			network[n] = nic.Interface != ""
		}
	}
	var goes cpuset.Set
	for _, q := range v.m.IRQs {
		if network[q.Number] {
			goes = goes.Or(q.Effective)
		}
	}
	return goes
}

func checkVhost(v *view, r *result) {
	busy := v.interruptCPUs()
	away := v.in.Emulator.Without(busy)
	for _, g := range v.m.Guests {
		for i := range g.Vhost {
			t := &g.Vhost[i]
			if bad := t.Allowed.And(v.in.Workers); !bad.Empty() && !t.Fixed {
				r.fail("%s: %s; CPUs %s belong to workers", g.Name, describe(t), bad).thread(t, v.in.Emulator)
			} else if t.Allowed.Within(busy) || busy.Has(t.LastCPU) {
				item := r.warn("%s: %s; CPUs %s serve the network's interrupts", g.Name, describe(t), busy).thread(t,
					cpuset.Set{})
				v.moveVhost(item, g, t, away, busy)
			}
		}
		if len(g.Vhost) == 0 && !g.Emulator.Empty() && g.Emulator.Within(busy) {
			r.warn("%s: its emulator threads may run on CPUs %s, which serve the network's interrupts", g.Name,
				g.Emulator).about("guest %s emulator", g.Name)
		}
	}
	if len(r.items) == 0 {
		r.pass("CPUs with the network's interrupts and softirqs: %s", orNone(busy))
	}
}

// moveVhost proposes CPUs without interrupts: those of emulator threads, else any that guests and workers do not use.
func (v *view) moveVhost(i *Item, g topology.Guest, t *topology.Thread, away, busy cpuset.Set) {
	if away.Empty() {
		var vcpus cpuset.Set
		for _, cpus := range g.VCPUs {
			vcpus = vcpus.Or(cpus)
		}
		away = v.online.Without(busy).Without(vcpus).Without(v.in.Workers)
	}
	if i.thread(t, away); !away.Empty() && g.Source == "libvirt" {
		i.Command = fmt.Sprintf("virsh emulatorpin %s %s   # permanently, for all emulator threads", g.Name, away)
	}
}

func checkGuestNUMA(v *view, r *result) {
	for _, g := range v.m.Guests {
		nodes := map[int]bool{}
		for _, cpus := range g.VCPUs {
			for _, n := range v.m.Nodes {
				if cpus.Overlaps(n.CPUs) {
					nodes[n.ID] = true
				}
			}
		}
		far := false
		for _, n := range g.Nodes {
			far = far || !nodes[n]
		}
		if far || len(nodes) > 1 && len(g.Nodes) > 0 {
			r.warn("%s: memory on nodes %s, vCPUs on nodes %s", g.Name, cpuset.Of(g.Nodes...), setOf(nodes)).Command =
				fmt.Sprintf("virsh numatune %s --mode strict --nodeset %s --config   # takes effect at its next start",
					g.Name, setOf(nodes))
		}
	}
	v.noGuests(r)
}

func setOf(ids map[int]bool) cpuset.Set {
	var list []int
	for id := range ids {
		list = append(list, id)
	}
	return cpuset.Of(list...)
}

func checkQueues(v *view, r *result) {
	for _, g := range v.m.Guests {
		for n, queues := range g.Queues {
			if queues <= 1 && len(g.VCPUs) > 1 {
				r.warn("%s: network device %d has 1 queue for %d vCPUs", g.Name, n, len(g.VCPUs)).Command =
					fmt.Sprintf("virsh edit %s   # <driver queues='%d'/>; then in the guest: ethtool -L IFACE "+
						"combined %[2]d", g.Name, len(g.VCPUs))
			}
		}
	}
	v.noGuests(r)
}

var memoryRules = []rule{
	{id: "memory.hugepages", group: "Memory", title: "Each node with workers has hugepages", workers: true,
		check:  checkHugepages,
		source: "Documentation/admin-guide/mm/hugetlbpage.rst",
		why: "Packet memory on another node makes each packet cross between sockets; without hugepages packets " +
			"cause TLB misses."},
}

func checkHugepages(v *view, r *result) {
	for _, n := range v.m.Nodes {
		if n.CPUs.Overlaps(v.in.Workers) {
			v.judgeNode(r, n)
		}
	}
}

func (v *view) judgeNode(r *result, n topology.Node) {
	var have []string
	total := 0
	for _, h := range n.Hugepages {
		total += h.Total
		have = append(have, fmt.Sprintf("%d of %d kB, %d free", h.Total, h.KiB, h.Free))
	}
	if v.p != nil {
		for _, want := range v.p.Hugepages {
			if want.Node != n.ID && want.Node != -1 {
				continue
			}
			got := 0
			for _, h := range n.Hugepages {
				if h.KiB == want.KiB {
					got = h.Total
				}
			}
			if got < want.Pages {
				r.fail("node %d: has %d pages of %d kB, but the plan wants %d", n.ID, got, want.KiB, want.Pages).
					about("hugepages node %d", n.ID).
					write(fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%dkB/nr_hugepages", n.ID,
						want.KiB), fmt.Sprint(want.Pages))
			}
		}
	}
	if len(n.Hugepages) > 0 && total == 0 {
		r.warn("node %d has workers and no hugepages", n.ID).Command =
			fmt.Sprintf("echo 512 > /sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages", n.ID)
		return
	}
	if len(n.Hugepages) == 0 {
		r.unknown("nothing is known about hugepages of node %d", n.ID)
		return
	}
	r.pass("node %d: %s", n.ID, strings.Join(have, "; "))
}
