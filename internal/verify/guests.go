// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
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
		why:    "Every packet is copied to or from the guest's memory; between nodes, this about halves the rate."},
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
	pins, first := v.pins(), map[int]string{}
	for i, g := range v.m.Guests {
		for n, cpus := range g.VCPUs {
			if cpus.Len() == 1 && first[cpus.First()] == "" {
				first[cpus.First()] = fmt.Sprintf("%s, vCPU %d", g.Name, n)
			}
			v.judgeVCPU(r, g.Name, n, cpus, first)
			has := n < len(pins[i]) && pins[i][n].CPU >= 0
			if v.in.Planned && !one(cpus) && has && !r.about(vcpuSubject(g.Name, n)) {
				r.warn("%s, vCPU %d: may run on CPUs %s, and the plan has a CPU for it alone", g.Name, n, cpus).
					about("%s", vcpuSubject(g.Name, n))
			}
			if !r.about(vcpuSubject(g.Name, n)) {
				continue
			}
			item := &r.items[len(r.items)-1]
			if n >= len(pins[i]) {
				item.Command = fmt.Sprintf("virsh setvcpus %s %d --config   # no CPU is left for more; takes effect "+
					"at its next start", g.Name, len(pins[i]))
			} else if pin := pins[i][n]; pin.CPU >= 0 && !pin.Kept {
				item.Command = fmt.Sprintf("virsh vcpupin %s %d %d", g.Name, n, pin.CPU)
			}
		}
	}
	v.noGuests(r)
}

// about reports whether the last item is about a subject.
func (r *result) about(subject string) bool {
	return len(r.items) > 0 && r.items[len(r.items)-1].Subject == subject
}

func vcpuSubject(guest string, n int) string { return fmt.Sprintf("guest %s vcpu %d", guest, n) }

// judgeVCPU judges the CPUs of a vCPU. has names the first vCPU that is pinned to each CPU.
func (v *view) judgeVCPU(r *result, guest string, n int, cpus cpuset.Set, has map[int]string) {
	var i *Item
	switch bad := cpus.And(v.in.Workers); {
	case !bad.Empty():
		i = r.fail("%s, vCPU %d: may run on CPUs %s, which include workers' CPUs %s", guest, n, cpus, bad)
	case cpus.Len() == 1 && has[cpus.First()] != fmt.Sprintf("%s, vCPU %d", guest, n):
		i = r.fail("%s, vCPU %d: is pinned to CPU %s, like %s: each gets half of it", guest, n, cpus,
			has[cpus.First()])
	case v.in.Planned && !v.in.Guests.Empty() && !cpus.Within(v.in.Guests) && cpus.Len() == 1:
		i = r.warn("%s, vCPU %d: is pinned to CPU %s, which the plan gives to another role", guest, n, cpus)
	case cpus.Len() > 1 && cpus.Overlaps(v.isolated):
		i = r.warn("%s, vCPU %d: may run on %d CPUs (%s), some of them isolated", guest, n, cpus.Len(), cpus)
	default:
		return
	}
	i.about("%s", vcpuSubject(guest, n))
}

// pins proposes a CPU for each vCPU. Without a plan a guest whose memory is bound to nodes that are full gets fewer
// vCPUs than it has now.
func (v *view) pins() [][]plan.Pin {
	m := *v.m
	m.Guests = slices.Clone(m.Guests)
	for {
		pins, again := plan.Pins(&m, v.vcpuCPUs()), false
		for i := range m.Guests {
			g := &m.Guests[i]
			least := slices.ContainsFunc(pins[i], func(p plan.Pin) bool {
				return p.CPU < 0 || !v.in.Planned && !p.Kept && len(g.Nodes) > 0 && !v.onNodes(p.CPU, g.Nodes)
			})
			if least && len(g.VCPUs) > 1 && slices.ContainsFunc(g.VCPUs, one) {
				g.VCPUs, again = g.VCPUs[:len(g.VCPUs)-1], true
			}
		}
		if !again {
			return pins
		}
	}
}

func one(cpus cpuset.Set) bool { return cpus.Len() == 1 }

func (v *view) onNodes(cpu int, nodes []int) bool {
	c := v.cpu(cpu)
	return c != nil && slices.Contains(nodes, c.Node)
}

// vcpuCPUs returns the CPUs for vCPUs. With a plan they are the plan's CPUs for guests. Without one they are the CPUs
// that guests have now, and the isolated CPUs; if none are isolated, all CPUs except those of workers and of the first
// core.
func (v *view) vcpuCPUs() cpuset.Set {
	if v.in.Planned {
		return v.in.Guests.And(v.online)
	}
	var pinned cpuset.Set
	for _, g := range v.m.Guests {
		for _, cpus := range g.VCPUs {
			if cpus.Len() == 1 {
				pinned = pinned.Or(cpus)
			}
		}
	}
	more := v.isolated
	if more.Empty() {
		more = v.online.Without(v.siblings(cpuset.Of(v.online.First())))
	}
	return pinned.Or(more).And(v.online).Without(v.siblings(v.in.Workers))
}

// siblings returns CPUs with the other CPUs of their cores.
func (v *view) siblings(cpus cpuset.Set) cpuset.Set {
	all := cpus
	for _, id := range cpus.IDs() {
		if c := v.cpu(id); c != nil {
			all = all.Or(c.Siblings)
		}
	}
	return all
}

// sent returns the CPUs to which guests.vcpus sends vCPUs, by their subject.
func (v *view) sent() map[string]cpuset.Set {
	pins, vcpus, to := v.pins(), &result{}, map[string]cpuset.Set{}
	checkVCPUs(v, vcpus)
	for i, g := range v.m.Guests {
		for n := range g.VCPUs {
			for _, item := range vcpus.items {
				if item.Subject == vcpuSubject(g.Name, n) && strings.HasPrefix(item.Command, "virsh vcpupin") {
					to[item.Subject] = cpuset.Of(pins[i][n].CPU)
				}
			}
		}
	}
	return to
}

func checkEmulator(v *view, r *result) {
	sent := v.sent()
	for _, g := range v.m.Guests {
		e := emulator{guest: g.Name, home: v.emulatorHome()}
		for n, cpus := range g.VCPUs {
			if one(cpus) {
				e.pinned = e.pinned.Or(cpus)
			}
			e.coming = e.coming.Or(sent[vcpuSubject(g.Name, n)])
		}
		v.judgeEmulator(r, e, "emulator", fmt.Sprintf("virsh emulatorpin %s %s", g.Name, e.home), g.Emulator)
		for n, cpus := range g.IOThread {
			v.judgeEmulator(r, e, fmt.Sprintf("iothread %d", n+1),
				fmt.Sprintf("virsh iothreadpin %s %d %s", g.Name, n+1, e.home), cpus)
		}
	}
	v.noGuests(r)
}

// emulator is a guest as its other threads see it.
type emulator struct {
	guest  string
	pinned cpuset.Set // CPUs of its vCPUs that have one CPU
	coming cpuset.Set // CPUs to which guests.vcpus sends its vCPUs
	home   cpuset.Set // where the threads should run
}

func (v *view) judgeEmulator(r *result, e emulator, what, command string, cpus cpuset.Set) {
	var i *Item
	better := !e.home.Empty() && !e.home.Overlaps(e.pinned)
	if bad := cpus.And(v.in.Workers); !bad.Empty() {
		i = r.fail("%s, %s: may run on CPUs %s, which include workers' CPUs %s", e.guest, what, cpus, bad)
	} else if cpus.Within(e.pinned) && !cpus.Empty() && better {
		i = r.fail("%s, %s: may run on CPUs %s only, to which its vCPUs are pinned", e.guest, what, cpus)
	} else if cpus.Overlaps(e.pinned) {
		i = r.warn("%s, %s: may run on CPUs %s, which include CPUs %s of its vCPUs%s", e.guest, what, cpus,
			cpus.And(e.pinned), ifText(!better, "; no other CPU is left"))
	} else if cpus.Overlaps(e.coming) {
		i = r.warn("%s, %s: may run on CPUs %s, and its vCPUs move to CPUs %s", e.guest, what, cpus, e.coming)
	} else {
		return
	}
	if i.about("guest %s %s", e.guest, what); better || i.Verdict == Fail && !e.home.Empty() {
		i.Command = command
	}
}

// emulatorHome returns the CPUs for guests' other threads: those of the plan, or the host's, without vCPUs' CPUs, and
// if possible without those that serve interrupts.
func (v *view) emulatorHome() cpuset.Set {
	var vcpus cpuset.Set
	for _, g := range v.m.Guests {
		for _, cpus := range g.VCPUs {
			if one(cpus) {
				vcpus = vcpus.Or(cpus)
			}
		}
	}
	for _, cpus := range v.sent() {
		vcpus = vcpus.Or(cpus)
	}
	home := v.in.Emulator.And(v.online).Without(v.in.Workers)
	if !v.in.Planned {
		home = home.Without(vcpus)
	}
	if quiet := home.Without(v.interruptCPUs()); !quiet.Empty() {
		return quiet
	}
	return home
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
	away := v.emulatorHome()
	for _, g := range v.m.Guests {
		for i := range g.Vhost {
			t := &g.Vhost[i]
			item := (*Item)(nil)
			if bad := t.Allowed.And(v.in.Workers); !bad.Empty() && !t.Fixed {
				item = r.fail("%s: %s; CPUs %s belong to workers", g.Name, describe(t), bad)
			} else if t.Allowed.Within(busy) {
				item = r.fail("%s: %s; all of them serve the network's interrupts", g.Name, describe(t))
			} else if busy.Has(t.LastCPU) {
				item = r.warn("%s: %s; CPUs %s serve the network's interrupts", g.Name, describe(t), busy)
			} else {
				continue
			}
			if item.thread(t, away); !away.Empty() && g.Source == "libvirt" {
				item.Command = fmt.Sprintf("virsh emulatorpin %s %s   # permanently, for all emulator threads", g.Name,
					away)
			}
		}
		if len(g.Vhost) == 0 && !g.Emulator.Empty() && g.Emulator.Within(busy) {
			item := r.warn("%s: its emulator threads may run on CPUs %s, which serve the network's interrupts", g.Name,
				g.Emulator).about("guest %s emulator", g.Name)
			if !away.Within(busy) {
				item.Command = fmt.Sprintf("virsh emulatorpin %s %s", g.Name, away)
			}
		}
	}
	if len(r.items) == 0 {
		r.pass("CPUs with the network's interrupts and softirqs: %s", orNone(busy))
	}
}

func checkGuestNUMA(v *view, r *result) {
	pins, vcpus, sent, fewer := v.pins(), &result{}, v.sent(), map[string]bool{}
	checkVCPUs(v, vcpus)
	for _, i := range vcpus.items {
		if strings.HasPrefix(i.Command, "virsh setvcpus") {
			fewer[strings.Fields(i.Command)[2]] = true
		}
	}
	for i, g := range v.m.Guests {
		nodes, pinned := map[int]bool{}, len(g.VCPUs) > 0
		for vcpu, cpus := range g.VCPUs {
			if vcpu >= len(pins[i]) && fewer[g.Name] {
				continue // guests.vcpus removes it
			}
			if to, moved := sent[vcpuSubject(g.Name, vcpu)]; moved {
				cpus = to
			}
			pinned = pinned && one(cpus)
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
		switch {
		case far || len(nodes) > len(g.Nodes) && len(g.Nodes) > 0:
			r.warn("%s: memory on nodes %s, vCPUs on nodes %s", g.Name, cpuset.Of(g.Nodes...), setOf(nodes)).Command =
				fmt.Sprintf("virsh numatune %s --mode strict --nodeset %s --config   # takes effect at its next start",
					g.Name, setOf(nodes))
		case len(nodes) > 1 && pinned:
			r.warn("%s: its vCPUs are on nodes %s: half of its memory accesses cross between them, unless the guest "+
				"has NUMA cells of its own", g.Name, setOf(nodes))
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
