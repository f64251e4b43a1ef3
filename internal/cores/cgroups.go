// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/verify"
)

// Names of the cgroups that Apply creates.
const (
	hostGroup   = "corelane-host"
	workerGroup = "corelane-workers"
)

// cgroups enforces what an affinity does not: a program may change its own affinity, but only within its cpuset.
func (d *decider) cgroups() {
	switch {
	case !d.o.Cgroups:
	case d.cpusetV1():
		d.version1()
	case d.m.Cgroups.Version == 2:
		d.version2()
	default:
		d.affinityOnly("no cpuset hierarchy is mounted")
	}
}

func (d *decider) affinityOnly(because string) {
	d.add(Change{Kind: Note, Name: "cpusets", When: Now, Why: because +
		": threads are moved by affinity only; a program can set its own affinity again, and new programs can start " +
		"there"})
}

// cpusetV1 reports whether cpusets are version 1, even if the other controllers are version 2.
func (d *decider) cpusetV1() bool { return d.m.Cgroups.Version == 1 }

// version1 moves the processes of the root cpuset into a cpuset of the host, and stops load balancing in the root.
// Processes of other cpusets (containers, guests) stay there: whoever created those manages them.
func (d *decider) version1() {
	group := mountV1 + "/" + hostGroup
	add := func(c Change) {
		c.Optional, c.Bundle = true, "cpuset"
		d.add(c)
	}
	mems := make([]string, 0, len(d.m.Nodes))
	for _, n := range d.m.Nodes {
		if n.MemoryKiB > 0 {
			mems = append(mems, strconv.Itoa(n.ID))
		}
	}
	const why = "a program in this cpuset cannot run on polling CPUs, nor can the programs that it starts"
	add(Change{Kind: Group, Path: group, Why: why, ByHand: "mkdir /" + group})
	add(Change{Kind: Write, Path: group + "/cpuset.mems", New: strings.Join(mems, ","), Form: List,
		Why: "a cpuset without memory nodes accepts no process"})
	add(Change{Kind: Write, Path: group + "/cpuset.cpus", New: d.open.Or(d.workersIn("/" + hostGroup)).String(),
		Form: List, Why: why})
	for _, t := range d.joiners() {
		d.add(Change{Kind: Join, Path: group, PID: t.PID, Name: t.Name, Old: mountV1, New: "/" + group, Optional: true,
			Needs: "cpuset", Why: why, ByHand: fmt.Sprintf("echo %d > /%s/cgroup.procs", t.PID, group)})
	}
	if d.p.Of(plan.Guests).Empty() { // without balancing, vCPUs that share several CPUs would not be spread over them
		d.add(Change{Kind: Write, Path: mountV1 + "/cpuset.sched_load_balance", Old: "1", New: "0", Optional: true,
			Needs: "cpuset",
			Why: "the scheduler balances load on all CPUs, including polling ones; isolcpus=domain stops that " +
				"at boot"})
	}
}

// workersIn returns the CPUs of the workers in a cgroup: corelaned may have been started by a program of the host.
func (d *decider) workersIn(group string) (cpus cpuset.Set) {
	for _, t := range d.m.Threads {
		if t.Cgroup != group && !strings.HasPrefix(t.Cgroup, group+"/") || !verify.IsWorker(&t) {
			continue
		}
		if cpu, planned := d.planned(t); planned {
			cpus = cpus.Or(cpu)
		} else {
			cpus = cpus.Or(t.Allowed.And(d.on))
		}
	}
	return cpus
}

// planned returns the CPU that the plan gives to a worker of corelaned.
func (d *decider) planned(t topology.Thread) (cpus cpuset.Set, is bool) {
	id, worker := workerID(t.Name)
	for _, w := range d.p.Workers {
		if worker && t.Process == daemon && w.ID == id {
			return cpuset.Of(w.CPU), true
		}
	}
	return cpus, false
}

// joiners are the processes of the root cpuset that belong to the host. Those of another router, which pins its workers
// itself, stay there.
func (d *decider) joiners() []topology.Thread {
	spared, list := map[int]bool{}, []topology.Thread{}
	for _, t := range d.m.Threads {
		foreign := t.Cgroup != "/" || t.Kernel || t.Fixed || t.Process == daemon || t.PID == d.o.Self ||
			verify.IsWorker(&t) && t.Allowed.Len() == 1
		spared[t.PID] = spared[t.PID] || foreign || d.o.Spare != nil && d.o.Spare(t)
	}
	for _, g := range d.m.Guests {
		spared[g.PID] = true
	}
	for pid := range d.left {
		spared[pid] = true
	}
	for _, t := range d.m.Threads {
		if t.TID == t.PID && !spared[t.PID] {
			list = append(list, t)
		}
	}
	return list
}

// version2 makes an isolated partition of the workers' CPUs: a threaded group below the group in which corelaned runs.
// The partition ends with the service, so that a restarted corelaned can use its CPUs. Linux 6.7 and later support such
// remote partitions (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.exclusive).
func (d *decider) version2() {
	var workers []topology.Thread
	for _, t := range d.m.Threads {
		if _, is := workerID(t.Name); is && t.Process == daemon {
			workers = append(workers, t)
		}
	}
	if len(workers) == 0 {
		d.affinityOnly("corelaned is not running, and a partition needs its running workers")
		return
	}
	home := path.Join(mountV2, workers[0].Cgroup)
	if home == mountV2 || path.Base(home) == workerGroup {
		if home == mountV2 {
			d.affinityOnly("corelaned runs in the root cgroup, not in its own")
		} else {
			d.again(home)
		}
		return
	}
	d.partition(home, workers)
}

// again makes a partition valid that has lost its CPUs, to a hotplug for example: it stays invalid when they are back.
func (d *decider) again(group string) {
	for _, g := range d.m.Cgroups.Groups {
		if path.Join(mountV2, g.Path) == group && strings.Contains(g.Partition, "invalid") {
			d.add(Change{Kind: Write, Path: group + "/cpuset.cpus.partition", Old: g.Partition, New: "isolated",
				When: Now, Optional: true, Why: "the partition became invalid when its CPUs went offline, and does " +
					"not become valid again by itself"})
		}
	}
}

func (d *decider) partition(home string, workers []topology.Thread) {
	const bundle = "partition"
	group := home + "/" + workerGroup
	own := d.workersIn(strings.TrimPrefix(group, mountV2))
	for _, w := range d.p.Workers {
		own = own.Or(cpuset.Of(w.CPU))
	}
	list := own.String()
	add := func(c Change) {
		c.Optional, c.Bundle = true, bundle
		if c.Why == "" {
			c.Why = "the kernel keeps all other threads off the CPUs of an isolated partition and does not balance them"
		}
		d.add(c)
	}
	for _, at := range ancestors(home) {
		add(Change{Kind: Write, Path: at + "/cgroup.subtree_control", New: "+cpuset", Form: Controller})
	}
	for _, t := range workers { // those that were started elsewhere need room in this group
		if cpu, planned := d.planned(t); planned {
			t.Cgroup = strings.TrimPrefix(home, mountV2)
			d.room(t, cpu)
		}
	}
	add(Change{Kind: Group, Path: group, ByHand: "mkdir /" + group})
	add(Change{Kind: Write, Path: group + "/cgroup.type", New: "threaded"})
	add(Change{Kind: Write, Path: home + "/cgroup.subtree_control", New: "+cpuset", Form: Controller})
	for _, at := range append(ancestors(home)[1:], home) {
		all := d.exclusive(at).Or(own)
		add(Change{Kind: Write, Path: at + "/cpuset.cpus.exclusive", New: all.String(), Form: List})
	}
	add(Change{Kind: Write, Path: group + "/cpuset.cpus.exclusive", New: list, Form: List})
	add(Change{Kind: Write, Path: group + "/cpuset.cpus", New: list, Form: List})
	for _, t := range workers {
		if _, planned := d.planned(t); !planned {
			continue // its CPU is not one of the partition
		}
		add(Change{Kind: Join, Path: group, PID: t.PID, TID: t.TID, Name: t.Name, Old: t.Cgroup, New: "/" + group,
			ByHand: fmt.Sprintf("echo %d > /%s/cgroup.threads", t.TID, group)})
	}
	add(Change{Kind: Write, Path: group + "/cpuset.cpus.partition", Old: "member", New: "isolated"})
}

// exclusive returns the CPUs that a group has for itself already. They stay its own: at boot
// corelane-partitions.service gives those of the service threads to corelane.slice, beside those of the workers.
func (d *decider) exclusive(group string) cpuset.Set {
	for _, g := range d.m.Cgroups.Groups {
		if path.Join(mountV2, g.Path) == group {
			return g.Exclusive
		}
	}
	return cpuset.Set{}
}

// ancestors returns the groups above a group, the root of the hierarchy first.
func ancestors(group string) []string {
	var list []string
	for at := path.Dir(group); strings.HasPrefix(at, mountV2); at = path.Dir(at) {
		list = append([]string{at}, list...)
	}
	return list
}
