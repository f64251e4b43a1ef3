// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

const daemon = "corelaned"

// threads sends each thread where the plan has its kind. Those that nothing can move are counted and named.
func (d *decider) threads() {
	guests := map[int]bool{}
	for _, g := range d.m.Guests {
		guests[g.PID] = g.PID != 0
	}
	fixed := map[int][]string{}
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
		case strings.HasPrefix(t.Name, "vhost-"):
			d.move(t, on, d.p.EmulatorCPUs(), "it copies a guest's packets and takes the CPU from whatever polls there")
		case guests[t.PID]:
			d.guest(t, on)
		default:
			d.other(t, on)
		}
	}
	d.stuck(fixed)
}

// move is for threads that have CPUs of their own in the plan.
func (d *decider) move(t topology.Thread, on, to cpuset.Set, why string) {
	if to = to.And(d.on); to.Empty() || on.Within(to) {
		return
	}
	d.add(affinity(t, to, why))
}

func affinity(t topology.Thread, to cpuset.Set, why string) Change {
	return Change{Kind: Affinity, PID: t.PID, TID: t.TID, Name: t.Name, Old: t.Allowed.String(), New: to.String(), Why: why, Optional: true,
		ByHand: fmt.Sprintf("taskset -pc %s %d", to, t.TID)}
}

// own is a thread of corelaned. It moves its threads back to where it was told itself, so it has to be told.
func (d *decider) own(t topology.Thread, on cpuset.Set) {
	worker, is := workerID(t.Name)
	if !is {
		to := d.p.ServiceCPUs()
		if t.PID != t.TID && !strings.HasPrefix(t.Name, "svc-") && !strings.HasPrefix(t.Name, "vhost") {
			to = d.p.ControlCPUs()
		}
		if !on.Within(to) && !to.Empty() {
			d.add(Change{Kind: Note, Name: fmt.Sprintf("thread %s (%d) of %s", t.Name, t.TID, daemon), Old: t.Allowed.String(), New: to.String(), When: Restart,
				Why: "corelaned keeps its threads on the CPUs of its options",
				ByHand: fmt.Sprintf("start it with --service-cpus %s --control-cpus %s (CORELANED_OPTIONS in /etc/default/corelane)",
					d.p.ServiceCPUs(), d.p.ControlCPUs())})
		}
		return
	}
	at := slices.IndexFunc(d.p.Workers, func(w plan.Worker) bool { return w.ID == worker })
	if at < 0 {
		d.add(Change{Kind: Note, Name: fmt.Sprintf("worker %d", worker), Old: t.Allowed.String(), When: Now, Why: "the plan has no such worker",
			ByHand: fmt.Sprintf("corelane worker del %d", worker)})
		return
	}
	if to := cpuset.Of(d.p.Workers[at].CPU); !on.Equal(to) {
		d.add(Change{Kind: Worker, PID: t.PID, TID: t.TID, Name: t.Name, Worker: worker, Old: t.Allowed.String(), New: to.String(),
			Why: "the plan gives this worker that CPU alone", ByHand: fmt.Sprintf("corelane worker set %d --cpu %s", worker, to)})
	}
}

// workerID is that of a worker's thread: pmd-fwd-3, pmd-rx-3, pmd-host-3.
func workerID(name string) (int, bool) {
	rest, found := strings.CutPrefix(name, "pmd-")
	_, digits, found2 := strings.Cut(rest, "-")
	id, err := strconv.Atoi(digits)
	return id, found && found2 && err == nil
}

// guest is a thread of a virtual machine: a vCPU, or one of those beside them. Who pinned vCPUs to guests' CPUs is right.
func (d *decider) guest(t topology.Thread, on cpuset.Set) {
	cpus := d.p.Of(plan.Guests).And(d.on)
	switch {
	case !strings.HasSuffix(t.Name, "/KVM"): // QEMU's name for them: "CPU 0/KVM"
		d.move(t, on, d.p.EmulatorCPUs(), "QEMU's own work does not belong on CPUs that poll or that guests were promised")
	case cpus.Empty():
		d.other(t, on)
	case on.Within(cpus):
	case on.And(cpus).Empty():
		d.add(affinity(t, cpus, "vCPUs belong on the guests' CPUs"))
	default:
		d.add(affinity(t, on.And(cpus), "vCPUs belong on the guests' CPUs"))
	}
}

// other is everything else: it keeps what it has beside the CPUs that others shall keep off.
func (d *decider) other(t topology.Thread, on cpuset.Set) {
	if !on.Overlaps(d.off) {
		return
	}
	why := "it may run on a CPU that polls, and takes it from the worker when it does"
	to := on.Without(d.off)
	if to.Empty() {
		to, why = d.host, "it runs only on CPUs that the plan gives to others"
	}
	d.add(affinity(t, to, why))
}

// stuck says which threads stay.
func (d *decider) stuck(fixed map[int][]string) {
	for _, cpu := range d.off.IDs() {
		names := fixed[cpu]
		if len(names) == 0 {
			continue
		}
		slices.Sort(names)
		d.add(Change{Kind: Note, Name: fmt.Sprintf("%d kernel threads of CPU %d", len(names), cpu), Old: strconv.Itoa(cpu), When: Now,
			Why: "every CPU has them and the kernel does not let them move; they run when there is work for that CPU only: " + words(names)})
	}
}
