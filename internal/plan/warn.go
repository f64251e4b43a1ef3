// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology"
)

// limits returns the CPU quotas that apply to the data plane, in CPUs: in a container its own, on a host those of the
// groups in which corelaned runs.
func limits(m *topology.Machine) map[string]float64 {
	found := map[string]float64{}
	inside := func(group string) bool { return m.Container && group == "/" }
	if !m.Container {
		paths := map[string]bool{}
		for _, t := range m.Threads {
			for dir := t.Cgroup; t.Process == "corelaned" && strings.HasPrefix(dir, "/") &&
				dir != "/"; dir = path.Dir(dir) {
				paths[dir] = true
			}
		}
		inside = func(group string) bool { return paths[group] }
	}
	for _, g := range m.Cgroups.Groups {
		if g.QuotaUS > 0 && g.PeriodUS > 0 && inside(g.Path) {
			found[g.Path] = float64(g.QuotaUS) / float64(g.PeriodUS)
		}
	}
	return found
}

// quota refuses workers that would use up a quota, because the kernel would stop them for the rest of each period.
func (k *maker) quota() error {
	workers := k.w.Forwarding + k.w.IsolatedRx + k.w.HostPath
	for _, group := range slices.Sorted(maps.Keys(limits(k.m))) {
		cpus := limits(k.m)[group]
		if workers == 0 || float64(workers) < cpus {
			continue
		}
		most := int(cpus)
		if float64(most) == cpus {
			most--
		}
		return input.Errorf("forwarding", fmt.Sprintf("at most %d workers, or cpu.max of the group set to max",
			max(0, most)),
			"%d workers poll all the time and need more than the quota of %.2g CPUs of cgroup %s, which other "+
				"threads share", workers, cpus, group)
	}
	return nil
}

// notes collects warnings.
type notes []string

func (n *notes) when(cond bool, format string, args ...any) {
	if cond {
		*n = append(*n, fmt.Sprintf(format, args...))
	}
}

// warnings lists the problems of a plan that can still be used.
func (k *maker) warnings(p *Plan) []string {
	var n notes
	k.warnMachine(&n)
	k.warnPlaces(&n, p)
	k.warnSpeed(&n, p)
	k.warnShared(&n, p)
	k.warnBoot(&n, p)
	k.warnNow(&n, p)
	k.warnHugepages(&n)
	return n
}

func (k *maker) warnMachine(n *notes) {
	n.when(k.m.Virtual != "", "this is a virtual machine (%s): only its host knows on which cores its CPUs run and "+
		"what else runs there; "+
		"pin its vCPUs on the host", k.m.Virtual)
	n.when(k.m.Container, "this is a container: only the host can keep interrupts, kernel threads and other "+
		"programs off its CPUs")
	n.when(k.unsure, "the siblings of some CPUs are unknown: each is planned as a core of its own, which may be wrong")
	k.warnUnread(n)
	for _, group := range slices.Sorted(maps.Keys(limits(k.m))) {
		n.when(true, "cgroup %s has a quota of %.2g CPUs: when it is used up, the kernel stops workers for the rest "+
			"of the period; set its cpu.max to max",
			group, limits(k.m)[group])
	}
	var foreign cpuset.Set
	for _, c := range k.cores {
		foreign = foreign.Or(c.foreign)
	}
	n.when(!foreign.Empty(), "siblings of CPUs of this plan may not be used (CPU %s): other programs there slow "+
		"these cores down", foreign)
	var offline []int
	for _, c := range k.m.CPUs {
		if !c.Online {
			offline = append(offline, c.ID)
		}
	}
	n.when(len(offline) > 0, "CPU %s is offline and not in the plan: if it is brought online, the scheduler uses it "+
		"for any thread", cpuset.Of(offline...))
}

// warnUnread reports files on which the plan depends and that were missing or malformed.
func (k *maker) warnUnread(n *notes) {
	var why []string
	for _, u := range k.m.Unread {
		if strings.HasPrefix(u.Path, "/sys/devices/system/") || strings.HasPrefix(u.Path, "/sys/bus/pci/") {
			why = append(why, u.Path+" "+u.Why)
		}
	}
	if more := len(why) - 3; more > 0 {
		why = append(why[:3], fmt.Sprintf("and %d more, see 'corelane topology'", more))
	}
	n.when(len(why) > 0, "the positions of CPUs and devices are uncertain: %s", strings.Join(why, "; "))
}

// warnPlaces reports workers that are far from the network device, and what that costs.
func (k *maker) warnPlaces(n *notes, p *Plan) {
	workers := k.w.Forwarding + k.w.IsolatedRx + k.w.HostPath
	for _, name := range k.w.NICs {
		nic, _ := k.nic(name)
		n.when(!k.known(nic.Node) && len(k.nodes) > 1, "the node of %s is unknown (%d): the plan assumes node %d, and "+
			"half of all packets may cross the link between nodes", name, nic.Node, k.homes[0])
		n.when(k.known(nic.Node) && !slices.Contains(k.nodes, nic.Node) && workers > 0, "%s is on node %d, which has "+
			"no CPU for workers: each of its packets crosses the link between nodes", name, nic.Node)
	}
	n.when(len(k.w.NICs) == 0 && len(k.nodes) > 1 && workers > 0, "no network device was named (nics): workers begin "+
		"on node %d, which is right "+
		"only for a device on that node; valid: %s", k.homes[0], k.nicNames())
	for _, node := range k.nodes {
		if slices.Contains(k.homes, node) {
			continue
		}
		far := p.Of(Forwarding, IsolatedRx, HostPath).And(k.onNode(node))
		n.when(!far.Empty(), "workers on CPU %s are on node %d, the network device is on node %d: each of their "+
			"packets crosses the link between nodes (%s)", far, node, k.device(), k.distanceText(k.device(), node))
	}
	k.warnGuests(n, p)
}

// warnSpeed reports workers and guests whose CPUs differ in speed.
func (k *maker) warnSpeed(n *notes, p *Plan) {
	kinds := func(role Role) (slow cpuset.Set, all map[int]bool) {
		all = map[int]bool{}
		for _, id := range p.Of(role).IDs() {
			c := k.byCPU[id]
			all[c.kind()] = true
			if c.speed.Slow {
				slow = slow.Or(cpuset.Of(id))
			}
		}
		return slow, all
	}
	slow, all := kinds(Forwarding)
	n.when(len(all) > 1, "forwarding workers on CPU %s have slower cores than the others, but equal shares of the "+
		"packets: they lose packets first, while the others have time left", slow)
	n.when(len(all) == 1 && !slow.Empty(), "all forwarding workers have slower cores (CPU %s)", slow)
	slow, all = kinds(Guests)
	n.when(len(all) > 1, "guests have CPUs of different speed, and CPU %s is slower: give all vCPUs of a guest CPUs "+
		"of one kind", slow)
}

// device returns the node of the first network device, or the node that is assumed for it.
func (k *maker) device() int {
	for _, name := range k.w.NICs {
		if n, _ := k.nic(name); k.known(n.Node) {
			return n.Node
		}
	}
	return k.homes[0]
}

// warnGuests reports guests that are far from the workers or the device that carry their packets.
func (k *maker) warnGuests(n *notes, p *Plan) {
	var near cpuset.Set
	for _, node := range k.homes {
		near = near.Or(k.onNode(node))
	}
	for _, w := range p.Workers {
		near = near.Or(k.onNode(w.Node))
	}
	far := p.Of(Guests).Without(near)
	if len(p.Workers) > 0 {
		n.when(!far.Empty(), "guests on CPU %s have no worker on their node: all their packets cross the link "+
			"between nodes", far)
	} else {
		n.when(!far.Empty() && len(k.w.NICs) > 0,
			"guests on CPU %s are not on the node of the network device: all their packets cross the link "+
				"between nodes", far)
	}
	vhost := 0
	for _, g := range k.m.Guests {
		vhost += len(g.Vhost)
	}
	own := p.Of(Emulator)
	n.when(k.w.Guests > 0 && k.w.Forwarding == 0 && own.Len() > 0 && vhost > own.Len(),
		"%d vhost threads of the kernel share %d CPUs: under full load "+
			"they wait for each other", vhost, own.Len())
}

func (k *maker) distanceText(from, to int) string {
	d := k.m.Distance(from, to)
	if d == 255 {
		return "distance unknown"
	}
	return fmt.Sprintf("distance %d instead of 10", d)
}

func (k *maker) onNode(node int) cpuset.Set {
	var set cpuset.Set
	for _, c := range k.of(node) {
		set = set.Or(c.cpus)
	}
	return set
}

// warnShared reports roles that share CPUs or cores, but should not.
func (k *maker) warnShared(n *notes, p *Plan) {
	host := p.Of(Housekeeping)
	n.when(host.Empty(), "no CPU is left for the host: interrupts, kernel threads and services run on the workers' "+
		"CPUs and delay packets")
	for _, c := range k.cores {
		workers := c.cpus.And(p.Of(Forwarding, IsolatedRx, HostPath))
		others := c.cpus.And(p.Of(Housekeeping, Service, Guests, Emulator))
		n.when(!workers.Empty() && !others.Empty(), "CPU %s polls on the same core as CPU %s (%s): each slows the "+
			"other down", workers,
			others, p.roleOf(others.First()))
	}
	shared := len(p.Of(Guests).IDs()) > 0 && p.Of(Emulator).Empty() && !host.Empty()
	n.when(shared && p.EmulatorCPUs().Overlaps(p.IRQs),
		"guests' emulator and vhost threads share CPU %s with interrupts: no other CPU is left", p.EmulatorCPUs())
	n.when(shared && !p.EmulatorCPUs().Overlaps(p.IRQs), "no CPU is left for guests' emulator and vhost threads: "+
		"they share the host's CPU %s, "+
		"and interrupts go to CPU %s only", p.EmulatorCPUs(), p.IRQs)
	n.when(p.Of(Service).Len() > 2, "service and control threads have more than two CPUs (%s): these are not "+
		"isolated, because threads that share CPUs "+
		"need load balancing", p.Of(Service))
	for _, node := range k.nodes {
		n.when(!host.Empty() && !k.onNode(node).Overlaps(host),
			"node %d has no housekeeping CPU: its kernel threads and the interrupts of its "+
				"devices go to another node", node)
	}
}

// warnBoot reports differences between the plan and the kernel arguments of this boot.
func (k *maker) warnBoot(n *notes, p *Plan) {
	boot := k.m.Kernel.Isolated
	if boot.Empty() {
		return
	}
	n.when(!p.Isolated.Within(boot), "CPU %s should be isolated, but was not at boot (isolcpus=%s): until a boot "+
		"with the plan's arguments, only a "+
		"cgroup partition keeps other threads off", p.Isolated.Without(boot), boot)
	stray := boot.And(k.usable).Without(p.Isolated)
	n.when(!stray.Empty(), "CPU %s was isolated at boot, but the plan gives it to the host: the scheduler does not "+
		"balance load onto it "+
		"until a boot with the plan's arguments", stray)
}

// warnNow reports what on the running machine conflicts with the plan.
func (k *maker) warnNow(n *notes, p *Plan) {
	polling := p.Of(Forwarding, IsolatedRx, HostPath)
	var managed []string
	for _, irq := range k.m.IRQs {
		if irq.Managed && !irq.Effective.Empty() && irq.Effective.Within(polling) {
			managed = append(managed, fmt.Sprint(irq.Number))
		}
	}
	n.when(len(managed) > 0, "interrupts %s are on workers' CPUs and cannot be moved (managed): give their device "+
		"fewer "+
		"queues, or boot with isolcpus=managed_irq,...", strings.Join(managed, ","))
	for _, g := range k.m.Guests {
		var pinned cpuset.Set
		for _, v := range g.VCPUs {
			pinned = pinned.Or(v)
		}
		wrong := pinned.And(p.Of(Forwarding, IsolatedRx, HostPath, Service, Housekeeping, Emulator))
		n.when(!wrong.Empty() && g.PID != 0, "guest %s may run its vCPUs on CPU %s, which the plan gives to other "+
			"roles: pin its vCPUs again", g.Name, wrong)
	}
}

func (k *maker) warnHugepages(n *notes) {
	for _, node := range k.nodes {
		has := slices.ContainsFunc(k.w.Hugepages, func(h HugepageRequest) bool {
			return h.Node == -1 || h.Node == node
		})
		known := false
		for _, x := range k.m.Nodes {
			if x.ID == node {
				known = x.MemoryKiB > 0 || len(x.Hugepages) > 0
				has = has || slices.ContainsFunc(x.Hugepages, func(h topology.Hugepages) bool { return h.Total > 0 })
			}
		}
		polls := slices.ContainsFunc(k.workers, func(w Worker) bool { return w.Node == node })
		n.when(polls && known && !has, "node %d has workers, but no hugepages are present or requested: packets and "+
			"tables use ordinary pages or "+
			"another node's memory", node)
	}
}
