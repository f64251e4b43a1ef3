// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/verify"
)

const daemon = "corelaned"

// threads moves each thread to the CPUs that the plan gives to its kind. Threads that cannot move are counted and
// named.
func (d *decider) threads() {
	guests := map[int]bool{}
	for _, g := range d.m.Guests {
		guests[g.PID] = g.PID != 0
	}
	d.pins, d.rest = plan.Pins(d.m, d.p.Of(plan.Guests).And(d.on)), d.p.Of(plan.Guests)
	for _, pins := range d.pins {
		for _, pin := range pins {
			if pin.CPU >= 0 {
				d.rest = d.rest.Without(cpuset.Of(pin.CPU))
			}
		}
	}
	fixed := map[int][]string{}
	d.left, d.cpusets = map[int][]topology.Thread{}, map[string]cpuset.Set{}
	d.named = namedGuests(d.m)
	for _, t := range d.m.Threads {
		if t.TID == 1 {
			d.init = t.Allowed.And(d.on)
		}
	}
	for _, t := range d.m.Threads {
		on := t.Allowed.And(d.on)
		switch {
		case t.PID == d.o.Self && d.o.Self != 0, d.o.Spare != nil && d.o.Spare(t):
		case t.Fixed:
			if stuck := on.And(d.off); stuck.Len() == 1 && on.Len() == 1 {
				fixed[stuck.First()] = append(fixed[stuck.First()], t.Name)
			}
		case t.Process == daemon:
			d.own(t, on)
		case verify.IsWorker(&t) && t.Allowed.Len() == 1:
			d.foreignWorker(t, on)
		case strings.HasPrefix(t.Name, "vhost-"):
			d.move(t, on, d.p.EmulatorCPUs(),
				"a vhost thread copies a guest's packets and preempts whatever polls on its CPU")
		case guests[t.PID]:
			d.guest(t, on)
		default:
			d.other(t, on)
		}
	}
	d.stuck(fixed)
	d.leave()
}

// namedGuests returns the processes of the virtual machines whose threads for vCPUs have names.
func namedGuests(m *topology.Machine) map[int]bool {
	named := map[int]bool{}
	for _, t := range m.Threads {
		named[t.PID] = named[t.PID] || isVCPU(t)
	}
	return named
}

// isVCPU reports whether a thread has QEMU's name for one of a vCPU: "CPU 0/KVM".
func isVCPU(t topology.Thread) bool { return strings.HasSuffix(t.Name, "/KVM") }

// leave reports the threads that are left where they are, those of a process in one line.
func (d *decider) leave() {
	for _, pid := range slices.Sorted(maps.Keys(d.left)) {
		threads, names, cpus := d.left[pid], []string{}, cpuset.Set{}
		for _, t := range threads {
			names, cpus = append(names, fmt.Sprintf("%s (%d)", t.Name, t.TID)), cpus.Or(t.Allowed.And(d.on))
		}
		d.add(Change{Kind: Note, Name: fmt.Sprintf("threads of %s (%d)", threads[0].Process, pid), Old: cpus.String(),
			When: Now, Why: "they may run on CPUs of the plan's guests only, as the vCPUs of a virtual machine that " +
				"is not recognised do, and are left there: " + words(names),
			ByHand: fmt.Sprintf("taskset -pc %s %d, if they are in the way", d.host, threads[0].TID)})
	}
}

// move moves a thread to CPUs that the plan gives to its kind.
func (d *decider) move(t topology.Thread, on, to cpuset.Set, why string) {
	if to = to.And(d.on); to.Empty() || on.Within(to) {
		return
	}
	d.add(affinity(t, to, why))
}

func affinity(t topology.Thread, to cpuset.Set, why string) Change {
	return Change{Kind: Affinity, PID: t.PID, TID: t.TID, Name: t.Name, Old: t.Allowed.String(), New: to.String(),
		Why: why, Optional: true, ByHand: fmt.Sprintf("taskset -pc %s %d", to, t.TID)}
}

// own handles a thread of corelaned. The daemon undoes changes of its threads' affinity, so it has to move them itself.
func (d *decider) own(t topology.Thread, on cpuset.Set) {
	worker, is := workerID(t.Name)
	if !is {
		service, control := d.p.ServiceCPUs().And(d.on), d.p.ControlCPUs().And(d.on)
		to := service
		if t.PID != t.TID && !strings.HasPrefix(t.Name, "svc-") && !strings.HasPrefix(t.Name, "vhost") {
			to = control
		}
		if !on.Within(to) && !to.Empty() {
			d.add(Change{Kind: Note, Name: fmt.Sprintf("thread %s (%d) of %s", t.Name, t.TID, daemon),
				Old: t.Allowed.String(), New: to.String(), When: Restart,
				Why: "corelaned keeps its threads on the CPUs that its options name",
				ByHand: fmt.Sprintf("start it with --service-cpus %s --control-cpus %s (CORELANED_OPTIONS in "+
					"/etc/default/corelane)", service, control)})
		}
		return
	}
	to, planned := d.planned(t)
	if !planned {
		d.add(Change{Kind: Note, Name: fmt.Sprintf("worker %d", worker), Old: t.Allowed.String(), When: Now,
			Why: "the plan does not contain this worker", ByHand: fmt.Sprintf("corelane worker del %d", worker)})
		return
	}
	if !to.Within(d.on) {
		d.add(Change{Kind: Note, Name: fmt.Sprintf("worker %d", worker), Old: t.Allowed.String(), New: to.String(),
			When: Now, Why: "this CPU is offline, or only the host can give it to this container",
			ByHand: "make a plan again: corelane plan make"})
		return
	}
	if d.room(t, to); !on.Equal(to) {
		d.add(Change{Kind: Worker, PID: t.PID, TID: t.TID, Name: t.Name, Worker: worker, Old: t.Allowed.String(),
			New: to.String(), Why: "the plan gives this worker another CPU",
			ByHand: fmt.Sprintf("corelane worker set %d --cpu %s", worker, to)})
	}
}

// foreignWorker handles a polling thread of another router, which alone can move it for good.
func (d *decider) foreignWorker(t topology.Thread, on cpuset.Set) {
	workers := d.p.Of(plan.Forwarding, plan.IsolatedRx, plan.HostPath).And(d.on)
	if !on.Within(workers) && !workers.Empty() {
		d.add(Change{Kind: Note, Name: fmt.Sprintf("worker %s (%d) of %s", t.Name, t.TID, t.Process),
			Old: t.Allowed.String(), New: workers.String(), When: Restart,
			Why:    "its program chooses its CPU; elsewhere it would not forward",
			ByHand: "set its CPUs in the settings of its program: corelane plan export"})
	}
}

// room adds a worker's CPU to the cpusets that hold its thread: the kernel lets no thread leave them. Those of a
// container are its host's.
func (d *decider) room(t topology.Thread, to cpuset.Set) {
	if inContainer(d.m, d.p) {
		return
	}
	mount := mountV2
	if d.cpusetV1() {
		mount = mountV1
	}
	for _, g := range d.m.Cgroups.Groups { // a group comes before those in it
		inside := g.Path == t.Cgroup || strings.HasPrefix(t.Cgroup, strings.TrimSuffix(g.Path, "/")+"/")
		path := mount + g.Path + "/cpuset.cpus"
		cpus, written := d.cpusets[path]
		if !written {
			cpus = g.CPUs
		}
		if g.Path != "/" && inside && !cpus.Empty() && !to.Within(cpus) {
			d.write(path, cpus, cpus.Or(to), Change{Optional: true,
				Why: "a worker can only move to a CPU of its cpuset"})
		}
	}
}

// write adds a write of the CPUs of a cpuset, and keeps them for those who write it later.
func (d *decider) write(path string, from, to cpuset.Set, c Change) {
	c.Kind, c.Path, c.Old, c.New, c.Form = Write, path, from.String(), to.String(), List
	d.add(c)
	d.cpusets[path] = to
}

// workerID returns the worker's number from its thread's name: pmd-fwd-3, pmd-rx-3, pmd-host-3.
func workerID(name string) (int, bool) {
	rest, found := strings.CutPrefix(name, "pmd-")
	_, digits, found2 := strings.Cut(rest, "-")
	id, err := strconv.Atoi(digits)
	return id, found && found2 && err == nil
}

// guest handles a thread of a virtual machine. Each vCPU gets one CPU of the plan's guests, as plan.Pins says; one that
// has such a CPU keeps it. Without enough CPUs vCPUs share those that no other vCPU is pinned to.
func (d *decider) guest(t topology.Thread, on cpuset.Set) {
	switch {
	case isVCPU(t):
	case !d.named[t.PID] && t.PID != t.TID && d.confined(t, on):
		return // it may be a vCPU: QEMU runs without -name debug-threads=on
	default:
		d.move(t, on, d.p.EmulatorCPUs(), "QEMU's other threads must not run on polling CPUs or on the CPUs of vCPUs")
		return
	}
	g, n, pin := d.pin(t)
	rest := d.rest.And(d.on)
	switch near := on.And(rest); {
	case pin.Kept:
	case pin.CPU >= 0:
		c := affinity(t, cpuset.Of(pin.CPU), "the plan has these CPUs for guests' vCPUs, one for each")
		if g.Source == "libvirt" {
			c.ByHand = fmt.Sprintf("virsh vcpupin %s %d %d", g.Name, n, pin.CPU)
		}
		d.add(c)
	case !near.Empty():
		d.move(t, on, near, "the plan has these CPUs for guests' vCPUs")
	case !rest.Empty():
		d.move(t, on, rest, "the plan has these CPUs for guests' vCPUs")
	case on.Within(d.p.Of(plan.Guests)):
		d.unpinned(t, on)
	default:
		d.unpinned(t, on)
		d.other(t, on)
	}
}

// pin returns the guest of a vCPU's thread, the number of the vCPU, and the CPU that it should have.
func (d *decider) pin(t topology.Thread) (g topology.Guest, vcpu int, pin plan.Pin) {
	if _, err := fmt.Sscanf(t.Name, "CPU %d/", &vcpu); err != nil {
		vcpu = -1
	}
	for i, g := range d.m.Guests {
		if g.PID == t.PID && vcpu >= 0 && vcpu < len(d.pins[i]) {
			return g, vcpu, d.pins[i][vcpu]
		}
	}
	return g, vcpu, plan.Pin{CPU: -1}
}

// unpinned reports a vCPU for which the plan has no CPU.
func (d *decider) unpinned(t topology.Thread, on cpuset.Set) {
	d.add(Change{Kind: Note, Name: fmt.Sprintf("thread %s (%d) of a guest", t.Name, t.TID), Old: on.String(),
		Why:    fmt.Sprintf("the plan has %d CPUs for vCPUs, and others have them all", d.p.Of(plan.Guests).Len()),
		ByHand: "make a plan with more CPUs for guests, or move the guest to another host"})
}

// other handles all other threads: it removes the isolated CPUs from their affinity. What somebody has put on guests'
// CPUs stays there: it may be a virtual machine or a container that is not recognised.
func (d *decider) other(t topology.Thread, on cpuset.Set) {
	if !on.Overlaps(d.off) || d.confined(t, on) {
		return
	}
	why := "the thread may run on a polling CPU and preempt the worker"
	to := on.Without(d.off)
	if to.Empty() && !t.Kernel && !isVCPU(t) {
		to = on.And(d.p.Of(plan.Guests))
	}
	if to.Empty() {
		to, why = d.host, "the thread may run only on CPUs that the plan isolates"
	}
	d.add(affinity(t, to, why))
}

// confined reports whether somebody has put a program's thread on guests' CPUs, and then leaves it there. The CPUs of
// the first process are nobody's choice for a thread: all programs inherit them.
func (d *decider) confined(t topology.Thread, on cpuset.Set) bool {
	if t.Kernel || on.Empty() || !on.Within(d.p.Of(plan.Guests)) || on.Equal(d.init) {
		return false
	}
	d.left[t.PID] = append(d.left[t.PID], t)
	return true
}

// stuck reports the threads that the kernel does not let move: those that every CPU has in one line.
func (d *decider) stuck(fixed map[int][]string) {
	cpus, n := map[string][]int{}, map[string]int{} // by the names of the threads, without their CPU
	for _, cpu := range d.off.IDs() {
		names := fixed[cpu]
		if len(names) == 0 {
			continue
		}
		for i, name := range names {
			names[i] = strings.Replace(name, "/"+strconv.Itoa(cpu), "/N", 1)
		}
		slices.Sort(names)
		all := words(names)
		cpus[all], n[all] = append(cpus[all], cpu), len(names)
	}
	for _, all := range slices.Sorted(maps.Keys(cpus)) {
		list := cpuset.Of(cpus[all]...)
		each := ""
		if list.Len() > 1 {
			each = " each"
		}
		d.add(Change{Kind: Note, Name: fmt.Sprintf("%d kernel threads%s of CPU %s", n[all], each, list),
			Old: list.String(), When: Now, Why: "every CPU has such threads and they cannot move; they run when " +
				"their CPU has work for them: " + all})
	}
}
