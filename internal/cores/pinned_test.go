// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
	"github.com/corelane/corelane/internal/verify"
)

// The vCPUs of Cloud Hypervisor on a host of Nova: they are pinned well, and apply does not know them.
func TestOtherHypervisor(t *testing.T) {
	m := topologytest.Machine(t, "nova")
	p, err := plan.Make(m, plan.Request{Forwarding: 2, GuestCPUs: set("8-15,40-47")})
	if err != nil {
		t.Fatal(err)
	}
	stranger := func(tid int, name, cpus string) {
		m.Threads = append(m.Threads, topology.Thread{PID: 7000, TID: tid, Name: name, Process: "cloud-hyperviso",
			Allowed: set(cpus), LastCPU: set(cpus).First()})
	}
	stranger(7000, "cloud-hyperviso", "0-3,8-15")
	for n, cpu := range []string{"10", "42", "11", "43"} {
		stranger(7001+n, fmt.Sprintf("vcpu%d", n), cpu)
	}
	moved, said := "", ""
	for _, c := range Changes(m, p, Options{Cgroups: true}) {
		switch {
		case c.PID == 7000:
			moved += fmt.Sprintf("%d: %s > %s\n", c.TID, c.Old, c.New)
		case c.Kind == Note && strings.Contains(c.Name, "cloud-hyperviso"):
			said += c.Name + " " + c.Old + " " + c.Why
		}
	}
	if moved != "7000: 0-3,8-15 > 0-3\n" {
		t.Errorf("moved:\n%s", moved)
	}
	for _, want := range []string{"threads of cloud-hyperviso (7000)", "10-11,42-43", "vcpu0 (7001)", "vcpu3 (7004)"} {
		if !strings.Contains(said, want) {
			t.Errorf("no '%s' in: %s", want, said)
		}
	}
}

// QEMU names its threads only if it is told to. One that is pinned like a vCPU stays where it is.
func TestGuestWithoutNames(t *testing.T) {
	s := topologytest.Describe(t, "nova")
	for i := range s.Threads {
		s.Threads[i].Name = "qemu-kvm"
	}
	m := s.Machine(t)
	p, err := plan.Make(m, plan.Request{Forwarding: 2, GuestCPUs: set("8-15,40-47")})
	if err != nil {
		t.Fatal(err)
	}
	notes := 0
	for _, c := range Changes(m, p, Options{Cgroups: true}) {
		if c.PID == 5000 && c.TID != 5000 {
			t.Errorf("%s moves to CPUs %s", c.What(), c.New)
		}
		notes += strings.Count(c.Name, "threads of qemu-kvm (5000)")
	}
	if notes != 1 {
		t.Errorf("%d notes", notes)
	}
}

// Whatever the name of a program's thread, its process and its cgroup: if somebody has put it on guests' CPUs, it stays
// there and is named. If it may run elsewhere, it loses the isolated CPUs only.
func TestThreadsOfStrangers(t *testing.T) {
	t.Parallel()
	rounds.Seeds(t, 100, 1000, func(seed uint64) {
		d := rand.New(rand.NewPCG(seed, 23))
		m := topologytest.Random(seed).Machine(t)
		w := request(m)
		w.Guests += 1 + d.IntN(4)
		w.Boot = false
		p, err := plan.Make(m, w)
		if err != nil {
			return // the machine is too small
		}
		m.Cgroups.Version = d.IntN(3)
		strangers := d.IntN(30)
		for n := range strangers {
			m.Threads = append(m.Threads, stranger(d, m, p, 9000+n, 9000+n-d.IntN(1+n%5)))
		}
		checkStrangers(t, seed, m, p)
	})
}

// stranger returns a thread with a name that nobody knows.
func stranger(d *rand.Rand, m *topology.Machine, p *plan.Plan, tid, pid int) topology.Thread {
	names := []string{"vcpu0", "fc_vcpu 0", "crosvm_vcpu1", "kvm-vcpu", "CPU 0", "vmm", "qemu-system-x86", "a b/c"}
	processes := []string{"cloud-hyperviso", "firecracker", "crosvm", "qemu-kvm", "kvm", "pod", "vpp_main"} // by PID
	letters := make([]byte, 1+d.IntN(15))
	for i := range letters {
		letters[i] = byte('a' + d.IntN(26))
	}
	from := p.Of(plan.Guests)
	switch d.IntN(4) {
	case 0:
		from = m.Online()
	case 1:
		from = p.Isolated
	}
	ids := from.IDs()
	d.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	cpus := cpuset.Of(ids[:1+d.IntN(min(3, len(ids)))]...)
	return topology.Thread{TID: tid, PID: pid, Name: append(names, string(letters))[d.IntN(len(names)+1)],
		Process: processes[pid%len(processes)], Allowed: cpus, LastCPU: cpus.First(),
		Cgroup: []string{"/", "/machine.slice", "/kubepods/pod7"}[d.IntN(3)]}
}

// checkStrangers checks the changes of threads from 9000 on.
func checkStrangers(t *testing.T, seed uint64, m *topology.Machine, p *plan.Plan) {
	t.Helper()
	guests, moved, joined, notes := p.Of(plan.Guests), map[int]cpuset.Set{}, map[int]bool{}, ""
	for _, c := range Changes(m, p, Options{Cgroups: true}) {
		switch c.Kind {
		case Affinity:
			moved[c.TID] = set(c.New)
		case Join:
			joined[c.PID] = true
		case Note:
			notes += c.Name + "\n"
		}
	}
	if len(p.Isolated.IDs()) == 0 {
		return
	}
	for _, th := range m.Threads {
		if th.TID < 9000 || verify.IsWorker(&th) {
			continue
		}
		to, is := moved[th.TID]
		switch {
		case th.Allowed.Within(guests):
			if is || joined[th.PID] || !strings.Contains(notes, fmt.Sprintf("threads of %s (%d)", th.Process, th.PID)) {
				t.Errorf("seed %d: %s (%d) of %s was put on guests' CPUs %s: moved to '%s', joined %t, notes:\n%s",
					seed, th.Name, th.TID, th.Process, th.Allowed, to, joined[th.PID], notes)
			}
		case !th.Allowed.Overlaps(p.Isolated):
			if is {
				t.Errorf("seed %d: %s (%d) moves to %s without need", seed, th.Name, th.TID, to)
			}
		case !is || to.Overlaps(p.Isolated.Without(guests)) || to.Overlaps(guests) && !to.Within(th.Allowed):
			t.Errorf("seed %d: %s (%d) on %s moves to '%s'; isolated %s, guests %s", seed, th.Name, th.TID, th.Allowed,
				to, p.Isolated, guests)
		}
	}
}
