// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
	"github.com/corelane/corelane/internal/verify"
)

// On every described machine a plan is applied, found in effect when the machine is read again, and rolled back to the
// byte.
func TestMachines(t *testing.T) {
	for _, name := range topologytest.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, m := topologytest.Dir(t, name), topologytest.Machine(t, name)
			p, err := plan.Make(m, plan.Request{Forwarding: 1})
			if name == "one-cpu" && input.Is(err) {
				return // the planner refuses: nothing can be isolated there
			}
			if err != nil {
				t.Fatal(err)
			}
			before, dir := snapshot(t, root), t.TempDir()
			o := Options{Cgroups: true}
			changes := Changes(m, p, o)
			if len(changes) == 0 {
				t.Fatal("nothing to change on a machine that nobody has partitioned")
			}
			site := Site{Root: root, Dir: dir, Report: func(o Outcome) {
				if o.Result == Failed || o.Result == Refused && o.Text != errNotInKernel.Error() {
					t.Errorf("%s: %s %s", o.What(), o.Result, o.Text)
				}
			}}
			files, _ := Lasting(m, p)
			more, err := Place(root, "/", files)
			if err != nil || len(more) == 0 {
				t.Fatalf("%d files for the next boot, %v", len(more), err)
			}
			if err := site.Carry(context.Background(), m, p, o, more); err != nil {
				t.Fatal(err)
			}
			after, err := topology.Read(root)
			if err != nil {
				t.Fatal(err)
			}
			if !m.Container { // TestContainerChangesOnlyItsThreads
				checkMachine(t, after, p)
			}
			for _, c := range Changes(after, p, o) {
				if c.Kind != Note && c.Kind != Join && c.Bundle == "" && c.Kind != Service &&
					c.Path != "sys/fs/cgroup/cpuset/cpuset.sched_load_balance" &&
					!strings.Contains(c.Path, "writeback") {
					t.Errorf("still to do: %+v", c)
				}
			}
			if err := site.Rollback(context.Background()); err != nil {
				t.Fatal(err)
			}
			if diff := differences(before, snapshot(t, root)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// checkMachine checks the result on its own, without Changes.
func checkMachine(t *testing.T, m *topology.Machine, p *plan.Plan) {
	t.Helper()
	var ids []int
	for _, c := range m.CPUs {
		if c.Online {
			ids = append(ids, c.ID)
		}
	}
	online := cpuset.Of(ids...)
	for _, th := range m.Threads {
		_, worker := workerID(th.Name)
		guest := strings.HasSuffix(th.Name, "/KVM")
		worker = worker || verify.IsWorker(&th) // another router chooses the CPUs of its workers
		if !th.Fixed && !worker && !guest && th.Process != daemon && th.Allowed.And(online).Overlaps(p.Isolated) &&
			!th.Allowed.Within(p.EmulatorCPUs()) {
			t.Errorf("thread %s (%d) of %s may run on %s", th.Name, th.TID, th.Process, th.Allowed)
		}
	}
	for _, irq := range m.IRQs {
		if !irq.Managed && irq.Affinity.Overlaps(p.Isolated) {
			t.Errorf("IRQ %d may go to %s", irq.Number, irq.Affinity)
		}
	}
	if m.Knobs.WorkqueueMask.Overlaps(p.Isolated) {
		t.Errorf("workqueues may use %s", m.Knobs.WorkqueueMask)
	}
}

// The changes for a plan of two workers, each with a reason and a command.
func TestChanges(t *testing.T) {
	_, m, p := fourCPUs(t, 1)
	got := map[string]string{}
	for _, c := range Changes(m, p, Options{Cgroups: true, Self: 40}) {
		got[c.What()] = fmt.Sprintf("%s>%s", c.Old, c.New)
		if c.Why == "" || c.When == "" || c.Kind == Write && c.ByHand == "" {
			t.Errorf("%s: no reason, no moment or no command: %+v", c.What(), c)
		}
	}
	for what, want := range map[string]string{
		"thread systemd (1)":                          "0-3>0-1",
		"thread qemu-kvm (60)":                        "0-3>0-1",
		"thread CPU 0/KVM (61)":                       "2-3>0-1",
		"thread vhost-60 (70)":                        "0-3>0-1",
		"worker 1 (thread 52)":                        "1>3",
		"1 kernel threads of CPU 3":                   "3>",
		"IRQ 24 eth0-rx-0":                            "0-3>0-1",
		"IRQ 25 eth0-rx-1":                            "3>0-1",
		"IRQ 26 nvme0q3":                              "3>0-1",
		"irqbalance":                                  ">2-3",
		"cgroup of process systemd (1)":               "sys/fs/cgroup/cpuset>/sys/fs/cgroup/cpuset/corelane-host",
		"/sys/class/net/eth0/queues/rx-0/rps_cpus":    "f>3",
		"/sys/class/net/eth0/queues/tx-0/xps_cpus":    "c>0",
		"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never>madvise",
		"/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "16>64",
		"thread corelaned (50) of corelaned":                                     "0-3>0-1",
	} {
		if got[what] != want {
			t.Errorf("%s: %q, not %q", what, got[what], want)
		}
	}
	for _, what := range []string{"thread sshd (40)", "worker 0 (thread 51)", "IRQ 27 eth1",
		"/sys/class/net/eth0/queues/rx-1/rps_cpus", "cgroup of process qemu-kvm (60)",
		"cgroup of process corelaned (50)", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"} {
		if change, found := got[what]; found {
			t.Errorf("%s: %s, which is already right or belongs to others", what, change)
		}
	}
}

// Spared threads are not moved; a plan that isolates nothing changes nothing.
func TestSpareAndNothing(t *testing.T) {
	_, m, p := fourCPUs(t, 2)
	for _, c := range Changes(m, p, Options{Spare: func(th topology.Thread) bool {
		return th.Process == "sshd"
	}, Cgroups: true}) {
		if c.PID == 40 {
			t.Errorf("spared and moved: %+v", c)
		}
	}
	p.Isolated = cpuset.Set{}
	if list := Changes(m, p, Options{Cgroups: true}); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// A partition that the kernel reports as invalid is refused, and its group with everything in it is undone.
func TestInvalidPartition(t *testing.T) {
	root, m, p := fourCPUs(t, 2)
	dir := t.TempDir()
	changes := Changes(m, p, Options{Cgroups: true})
	last := &changes[len(changes)-1]
	if last.Bundle != "partition" || last.New != "isolated" {
		t.Fatalf("the last change is %+v", *last)
	}
	last.Kind = "invalid" // a change that cannot be made, as if the kernel had refused it
	var refused string
	before := snapshot(t, root)
	err := apply(root, changes, dir, func(o Outcome) {
		if o.Result == Refused {
			refused = o.What()
		}
	})
	if err != nil || refused == "" {
		t.Fatalf("%v, refused: %q", err, refused)
	}
	after := snapshot(t, root)
	for name, text := range before {
		if strings.Contains(name, "cgroup") && after[name] != text {
			t.Errorf("%s: %q became %q", name, text, after[name])
		}
	}
	for name := range after {
		if strings.Contains(name, workerGroup) {
			t.Errorf("%s was left", name)
		}
	}
	if err := rollback(root, dir, nil); err != nil {
		t.Fatal(err)
	}
	if diff := differences(before, snapshot(t, root)); diff != "" {
		t.Error(diff)
	}
}

// A partition that lost its CPUs to a hotplug stays invalid when they are back: it is made valid again.
func TestPartitionAgain(t *testing.T) {
	_, m, p := fourCPUs(t, 2)
	group := "/system.slice/corelaned.service/" + workerGroup
	for i := range m.Threads {
		if _, is := workerID(m.Threads[i].Name); is {
			m.Threads[i].Cgroup = group
		}
	}
	for _, state := range []string{"isolated", "isolated invalid (No cpu available due to hotplug)"} {
		m.Cgroups.Groups = []topology.Cgroup{{Path: group, Partition: state}}
		at := slices.IndexFunc(Changes(m, p, Options{Cgroups: true}), func(c Change) bool {
			return c.Path == mountV2+group+"/cpuset.cpus.partition" && c.New == "isolated"
		})
		if (at >= 0) != strings.Contains(state, "invalid") {
			t.Errorf("%s: change %d", state, at)
		}
	}
}

// The groups above a partition keep the CPUs that were theirs alone before, such as those of service threads.
func TestPartitionKeepsExclusiveCPUs(t *testing.T) {
	_, m, p := fourCPUs(t, 2)
	m.Cgroups.Groups = []topology.Cgroup{{Path: "/system.slice", Exclusive: cpuset.Of(1)}}
	own := cpuset.Set{}
	for _, w := range p.Workers {
		own = own.Or(cpuset.Of(w.CPU))
	}
	for group, want := range map[string]cpuset.Set{"/system.slice": own.Or(cpuset.Of(1)),
		"/system.slice/corelaned.service": own, "/system.slice/corelaned.service/" + workerGroup: own} {
		at := slices.IndexFunc(Changes(m, p, Options{Cgroups: true}), func(c Change) bool {
			return c.Path == mountV2+group+"/cpuset.cpus.exclusive" && c.New == want.String()
		})
		if at < 0 || own.Has(1) {
			t.Errorf("%s: %s, workers %s", group, want, own)
		}
	}
}
