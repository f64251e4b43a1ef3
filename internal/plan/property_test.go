// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// dice makes choices from the bytes of a random generator or a fuzzer. When they are used up it returns 0.
type dice struct{ bytes []byte }

func (d *dice) below(n int) int {
	if n <= 1 || len(d.bytes) == 0 {
		return 0
	}
	v := int(d.bytes[0])
	d.bytes = d.bytes[1:]
	return v % n
}

func (d *dice) one(in int) bool { return d.below(in) == in-1 }

// subset returns a few CPUs of a set, and rarely one that is not in it.
func (d *dice) subset(of cpuset.Set, most int) cpuset.Set {
	var ids []int
	all := of.IDs()
	for range 1 + d.below(most) {
		ids = append(ids, all[(d.below(256)*3+d.below(256))%len(all)])
	}
	if d.one(16) {
		ids = append(ids, d.below(500))
	}
	return cpuset.Of(ids...)
}

// machine makes a random machine, sometimes with contradictions.
func (d *dice) machine() *topology.Machine {
	m := &topology.Machine{Hostname: "random"}
	nodes, perNode, threads := 1+d.below(4), 1+d.below(12), 1+d.below(3)
	caches, interleaved, hole := 1+d.below(3), d.one(2), d.below(5)
	cores := nodes * perNode
	id := func(core, thread int) int { return (core + thread*cores) + hole*((core+thread*cores)/7) }
	for core := range cores {
		node := core / perNode
		if interleaved {
			node = core % nodes
		}
		var siblings, l3 []int
		for t := range threads {
			siblings = append(siblings, id(core, t))
			for c := range cores {
				if c/caches == core/caches {
					l3 = append(l3, id(c, t))
				}
			}
		}
		for t := range threads {
			c := topology.CPU{ID: id(core, t), Online: !d.one(12), Socket: node, Core: core, Node: node,
				Siblings: cpuset.Of(siblings...), L3: cpuset.Of(l3...)}
			if d.one(20) {
				c.Siblings, c.L3 = cpuset.Of(c.ID), cpuset.Set{}
			}
			if d.one(60) {
				c.Siblings, c.Node, c.Core = cpuset.Of(c.ID, d.below(100)), -1, -1
			}
			m.CPUs = append(m.CPUs, c)
		}
	}
	slices.SortFunc(m.CPUs, func(a, b topology.CPU) int { return a.ID - b.ID })
	for n := range nodes {
		m.Nodes = append(m.Nodes, topology.Node{ID: n, MemoryKiB: int64(d.below(3)) << 24,
			Distances: []int{10, 20 + d.below(4), 30}})
	}
	d.surroundings(m, nodes)
	return m
}

// surroundings adds threads, interrupts and other parts to a machine.
func (d *dice) surroundings(m *topology.Machine, nodes int) {
	var all []int
	for _, c := range m.CPUs {
		all = append(all, c.ID)
	}
	set := cpuset.Of(all...)
	for i := range d.below(3) {
		m.NICs = append(m.NICs, topology.NIC{Address: fmt.Sprintf("0000:%02x:00.0", i),
			Interface: fmt.Sprintf("eth%d", i), Node: d.below(nodes+1) - 1, IRQs: []int{100 + i}})
		m.IRQs = append(m.IRQs, topology.IRQ{Number: 100 + i,
			Managed: d.one(3), Effective: d.subset(set, 2), Counts: []int64{int64(d.below(9)), 5, 0, 100}})
	}
	if d.one(4) {
		m.Kernel.Isolated = d.subset(set, 9)
	}
	if d.one(6) {
		m.Container = true
		m.Cgroups.Groups = []topology.Cgroup{{Path: "/", Effective: d.subset(set, 12),
			QuotaUS: int64(d.below(9)) * 50000, PeriodUS: 100000}}
	}
	if d.one(4) {
		m.Guests = []topology.Guest{{Name: "g", PID: 1, VCPUs: []cpuset.Set{d.subset(set, 4)},
			Vhost: make([]topology.Thread, d.below(9))}}
	}
}

func (d *dice) request(m *topology.Machine) Request {
	w := Request{Forwarding: d.below(8), Guests: d.below(20), ShareCores: d.one(3), AllowOverlap: d.one(4),
		Boot: d.one(2)}
	if d.one(3) {
		w.IsolatedRx = w.Forwarding
	}
	w.HostPath, w.Service, w.Emulator, w.Housekeeping = max(0, d.below(4)-2), d.below(4), max(0, d.below(5)-2),
		max(0, d.below(6)-3)
	var all []int
	for _, c := range m.CPUs {
		all = append(all, c.ID)
	}
	for _, n := range m.NICs {
		if d.one(2) {
			w.NICs = append(w.NICs, n.Address)
		}
	}
	for _, x := range w.all() {
		if d.one(12) {
			*x.count, *x.fixed = 0, d.subset(cpuset.Of(all...), 6)
		}
	}
	if d.one(10) {
		w.Hugepages = []HugepageRequest{{Node: d.below(4) - 1, KiB: 1048576, Pages: d.below(9)}}
	}
	return w
}

// check makes a plan, checks it, and reports whether the request could be met.
func check(t *testing.T, m *topology.Machine, w Request) bool {
	t.Helper()
	p, err := Make(m, w)
	again, err2 := Make(m, w)
	if !reflect.DeepEqual(p, again) || fmt.Sprint(err) != fmt.Sprint(err2) {
		t.Fatalf("not the same twice:\n%+v\n%+v\n%v\n%v", p, again, err, err2)
	}
	if err != nil {
		if !input.Is(err) {
			t.Fatalf("%+v: %v", w, err)
		}
		return false
	}
	for _, x := range Validate(m, p) {
		t.Fatalf("%+v\n%s\n%s\n%s", w, x, Layout(m), text(p))
	}
	checkNumbers(t, p, w)
	checkIsolation(t, p)
	file, err := Format(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse("plan.json", file)
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	if second, _ := Format(back); string(second) != string(file) {
		t.Fatalf("the plan differs after Save and Load:\n%s\n%s", file, second)
	}
	if err := back.Fits(m); err != nil {
		t.Fatal(err)
	}
	return true
}

// checkNumbers checks that each role has the requested number of CPUs.
func checkNumbers(t *testing.T, p *Plan, w Request) {
	t.Helper()
	for _, x := range w.all() {
		have := p.Of(x.role)
		switch {
		case x.role == Housekeeping && x.fixed.Empty(), x.role == Emulator && *x.count == 0 && x.fixed.Empty():
		case !x.fixed.Empty() && !have.Equal(*x.fixed), x.fixed.Empty() && have.Len() != *x.count:
			t.Fatalf("%s: %d asked, fixed %s, has %s\n%s", x.role, *x.count, x.fixed, have, text(p))
		}
	}
}

// checkIsolation checks the purpose of isolation without the code that decides it: no other thread runs on a worker's
// or guest's CPU, and the scheduler balances the CPUs of threads that share them.
func checkIsolation(t *testing.T, p *Plan) {
	t.Helper()
	host := p.Of(Housekeeping)
	quiet := p.Of(Forwarding, IsolatedRx, HostPath, Guests, Idle)
	switch {
	case host.Empty():
		if !p.Isolated.Empty() || p.IRQs.Empty() {
			t.Fatal(text(p))
		}
		return
	case !quiet.Within(p.Isolated), p.Isolated.Overlaps(host.Or(p.Of(Emulator)).Or(p.IRQs)), p.IRQs.Empty():
		t.Fatal(text(p))
	}
	for _, set := range []cpuset.Set{p.ServiceCPUs(), p.ControlCPUs(), p.EmulatorCPUs()} {
		if set.Empty() || set.Overlaps(quiet) || set.Len() > 1 && set.Overlaps(p.Isolated) {
			t.Fatalf("%s\n%s", set, text(p))
		}
	}
}

func TestRandomPlans(t *testing.T) {
	made, tried := 0, 0
	rounds.Seeds(t, 600, 3000, func(seed uint64) {
		tried++
		d := &dice{make([]byte, 1024)}
		r := rand.New(rand.NewPCG(seed, 6))
		for i := range d.bytes {
			d.bytes[i] = byte(r.Uint32())
		}
		m := d.machine()
		if check(t, m, d.request(m)) {
			made++
		}
	})
	if tried > 1 && made < tried/4 {
		t.Errorf("only %d of %d requests could be met: too few for this test", made, tried)
	}
}

// Each described machine, including those with contradictions, with requests from modest to impossible.
func TestDescribedMachines(t *testing.T) {
	for _, name := range topologytest.Names() {
		m := topologytest.Machine(t, name)
		for n := range 8 {
			w := Request{Forwarding: 1 + n, IsolatedRx: n % 2 * (1 + n), HostPath: n % 3, Service: n % 4, Guests: 3 * n,
				ShareCores: n%3 == 1, AllowOverlap: n > 5}
			if made := check(t, m, w); !made && n == 0 && name != "one-cpu" {
				_, err := Make(m, w)
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func FuzzMake(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 9, 1, 0, 0, 0, 4, 3, 2, 1})
	f.Add([]byte("the quick brown fox jumps over the lazy dog, twice or more often"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		d := &dice{bytes}
		m := d.machine()
		check(t, m, d.request(m))
	})
}

// For each role alone, the largest possible number is accepted and one more is refused.
func TestRefusedIsImpossible(t *testing.T) {
	m := fresh(t)
	for field, most := range map[string]int{"forwarding": 18, "host_path": 18, "service": 36, "guests": 36,
		"emulator": 36, "housekeeping": 10} {
		for _, n := range []int{most, most + 1} {
			var w Request
			for _, x := range w.all() {
				if x.field == field {
					*x.count = n
				}
			}
			if _, err := Make(m, w); (err == nil) != (n == most) {
				t.Errorf("%s %d: %v", field, n, err)
			}
		}
	}
}
