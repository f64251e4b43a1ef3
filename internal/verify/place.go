// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

const (
	groupPlace = "Choice of CPUs"
	dpvsAdvice = "DPVS, worker performance tuning: how to choose CPU cores"
)

var placeRules = []rule{
	{id: "place.first_core", group: groupPlace, title: "Workers are not on the first core or its sibling",
		workers: true, check: checkFirstCore,
		source: dpvsAdvice,
		fixes: []string{"{make}   # chooses " +
			"other CPUs"},
		why: "The kernel boots and keeps time on CPU 0 and runs there what has no other CPU; it cannot be " +
			"isolated entirely."},
	{id: "place.siblings", group: groupPlace, title: "Workers do not share a core with others", workers: true,
		check:  checkSiblings,
		source: dpvsAdvice,
		fixes: []string{"{make}   " +
			"# keeps siblings idle, or pairs receive and forwarding workers"},
		why: "Siblings share one core's execution units and first-level caches: a busy sibling costs a third to a " +
			"half of a worker's rate."},
	{id: "place.online", group: groupPlace, title: "Workers' CPUs are online", workers: true,
		check:  checkOnline,
		source: "Documentation/core-api/cpu_hotplug.rst",
		why:    "A thread whose CPU goes offline is moved to another CPU and stays there when its CPU comes back."},
	{id: "place.housekeeping", group: groupPlace, title: "The host keeps enough CPUs",
		check:  checkHousekeeping,
		source: vrouterSpec,
		fixes: []string{"{make}   # or with fewer " +
			"workers or guests"},
		why: "Kernel threads, interrupts and the control plane need a CPU on each node, or they run on workers' " +
			"CPUs or far from their memory."},
	{id: "place.numa", group: groupPlace, title: "Workers are on the node of their network device", workers: true,
		check:  checkNUMA,
		source: "DPDK, getting started guide for Linux: performance",
		fixes: []string{"{make}   # " +
			"prefers the device's node"},
		why: "Packets of a device on another node cross the link between sockets twice; more workers there do " +
			"not raise the rate."},
}

func checkFirstCore(v *view, r *result) {
	first := cpuset.Of(0)
	if c := v.cpu(0); c != nil && !c.Siblings.Empty() {
		first = c.Siblings
	}
	if bad := first.And(v.in.Workers); !bad.Empty() {
		r.fail("%s: on CPUs %s of the first core (%s)", v.names(bad), bad, first)
		return
	}
	r.pass("the first core has CPUs %s, workers use CPUs %s", first, v.in.Workers)
}

func (v *view) names(cpus cpuset.Set) string {
	text := ""
	for _, id := range cpus.IDs() {
		if name := v.in.workerByCPU[id]; name != "" {
			text += ifText(text != "", ", ") + name
		}
	}
	if text == "" {
		return "workers"
	}
	return text
}

func checkSiblings(v *view, r *result) {
	if v.m.Knobs.SMT == "off" || v.m.Knobs.SMT == "forceoff" || v.m.Knobs.SMT == "notsupported" {
		r.pass("SMT is %s", v.m.Knobs.SMT)
		return
	}
	free := true
	for _, id := range v.in.Workers.IDs() {
		c := v.cpu(id)
		if c == nil || c.Siblings.Empty() {
			r.unknown("the siblings of CPU %d are not known", id)
			continue
		}
		for _, s := range c.Siblings.And(v.online).Without(cpuset.Of(id)).IDs() {
			free = false
			v.judgeSibling(r, id, s)
		}
	}
	if free && len(r.items) == 0 {
		r.pass("no worker's CPU has an online sibling")
	}
}

// judgeSibling reports how a worker's sibling is used.
func (v *view) judgeSibling(r *result, worker, sibling int) {
	partner, paired := v.in.boundPartner[worker]
	both := cpuset.Of(worker, sibling)
	switch {
	case paired && partner == sibling:
		r.pass("CPUs %d and %d of one core receive and forward for each other", worker, sibling)
	case v.in.Workers.Has(sibling) && v.in.ShareCores:
		r.pass("CPUs %s of one core have a worker each, as the plan's request permits", both)
	case v.in.Workers.Has(sibling) && sibling > worker:
		r.warn("CPUs %s of one core have a worker each: %s", both, v.names(both))
	case v.in.Workers.Has(sibling):
	case v.in.Guests.Has(sibling):
		r.warn("CPU %d, sibling of %s on CPU %d, belongs to a guest", sibling, v.names(cpuset.Of(worker)), worker)
	case v.in.Host.Has(sibling) && !v.in.Isolated.Has(sibling):
		load := ""
		if share, known := v.busyShare(sibling); known {
			load = " and was " + percent(share) + " busy"
		}
		r.warn("CPU %d, sibling of %s on CPU %d, belongs to the host%s", sibling, v.names(cpuset.Of(worker)), worker,
			load)
	default:
		r.pass("CPU %d, sibling of CPU %d, is kept free", sibling, worker)
	}
}

func checkOnline(v *view, r *result) {
	if gone := v.in.Workers.Without(v.online); !gone.Empty() {
		for _, id := range gone.IDs() {
			i := r.fail("CPU %d of %s is offline or does not exist", id, v.names(cpuset.Of(id))).about("cpu %d", id)
			if v.cpu(id) != nil && !v.m.Container {
				i.Command = "echo 1 > /sys/devices/system/cpu/cpu" + orNone(id) + "/online"
			}
		}
		return
	}
	r.pass("online: CPUs %s", v.online)
}

func checkHousekeeping(v *view, r *result) {
	if v.in.Host.And(v.online).Empty() {
		r.fail("no CPU is left for the host")
		return
	}
	for _, n := range v.m.Nodes {
		here := n.CPUs.And(v.online)
		switch host := here.And(v.in.Host); {
		case here.Empty():
		case host.Empty() && here.Overlaps(v.in.Workers):
			r.warn("node %d has workers (CPUs %s), but no CPU of the host", n.ID, here.And(v.in.Workers))
		default:
			r.pass("node %d: the host has CPUs %s", n.ID, orNone(host))
		}
	}
	if len(r.items) == 0 {
		r.pass("the host has CPUs %s", v.in.Host)
	}
}

func checkNUMA(v *view, r *result) {
	if len(v.m.Nodes) < 2 {
		r.pass("the machine has one node")
		return
	}
	polled := 0
	for _, nic := range v.m.NICs {
		if !polledDriver(nic.Driver) {
			continue
		}
		polled++
		if nic.Node < 0 {
			r.unknown("the node of %s is not known", nic.Address)
			continue
		}
		near := v.nearest(nic.Node)
		at := fmt.Sprintf("%s (%s) is on node %d", nic.Address, nic.Driver, nic.Node)
		if near.ID != nic.Node {
			at += fmt.Sprintf(", which has no CPU for workers, and nearest to node %d", near.ID)
		}
		if far := v.in.Workers.Without(near.CPUs); !near.CPUs.Overlaps(v.in.Workers) {
			r.fail("%s, but all workers are on other nodes: CPUs %s", at, far)
		} else if !far.Empty() {
			r.warn("%s; workers on other nodes: CPUs %s", at, far)
		} else {
			r.pass("%s, like the workers", at)
		}
	}
	if polled == 0 {
		r.pass("no network device is bound to a driver for polling")
	}
}

// nearest returns the node that is nearest to another and has workers, or room for them: the host keeps a core.
func (v *view) nearest(node int) topology.Node {
	best := topology.Node{ID: node}
	for _, n := range v.m.Nodes {
		cpus := n.CPUs.And(v.online)
		if cpus.Empty() || !cpus.Overlaps(v.in.Workers) && cpus.Within(v.siblings(cpuset.Of(cpus.First()))) {
			continue
		}
		if best.CPUs.Empty() || v.m.Distance(node, n.ID) < v.m.Distance(node, best.ID) {
			best = n
		}
	}
	return best
}

// polledDriver reports whether a PCI device is bound to a driver for polling programs.
func polledDriver(name string) bool {
	return name == "vfio-pci" || name == "uio_pci_generic" || name == "igb_uio"
}
