// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/rounds"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
	"github.com/corelane/corelane/internal/verify"
)

// In random trees of cpusets with several workers, each step of apply can be made where the steps before it have left
// the machine, and none takes a CPU from a worker.
func TestCPUsetsOfSeveralWorkers(t *testing.T) {
	t.Parallel()
	rounds.Seeds(t, 150, 2000, func(seed uint64) {
		d := rand.New(rand.NewPCG(seed, 31))
		s := topologytest.Random(seed)
		s.Threads = slices.DeleteFunc(s.Threads, func(th topologytest.Thread) bool { return th.PID == 2000 })
		m := s.Machine(t)
		workers := 2 + d.IntN(4)
		p, err := plan.Make(m, plan.Request{Forwarding: workers})
		if err != nil {
			return // the machine is too small
		}
		m.Cgroups.Version = 1 + d.IntN(2)
		c := cpusets{m: m, sets: map[string]cpuset.Set{}}
		c.grow(d, d.IntN(2) == 0)
		c.start(d, workers+d.IntN(2))
		for _, change := range Changes(m, p, Options{Cgroups: true}) {
			if err := c.make(change); err != nil {
				t.Errorf("seed %d: %s: %s > %s: %v", seed, change.What(), change.Old, change.New, err)
			}
		}
		for _, th := range c.workers() {
			if id, _ := workerID(th.Name); id < workers && th.Allowed.First() != p.Workers[id].CPU {
				t.Errorf("seed %d: worker %d is on CPU %s, not %d", seed, id, th.Allowed, p.Workers[id].CPU)
			}
		}
		c.verify(t, seed)
	})
}

// cpusets is a machine with a tree of cpusets, which behaves like a kernel.
type cpusets struct {
	m    *topology.Machine
	sets map[string]cpuset.Set // by path of the group; an empty one is that of the group above
}

// grow makes groups, each with some of the CPUs of the one above it.
func (c *cpusets) grow(d *rand.Rand, named bool) {
	above := c.m.Online()
	at := "/"
	for depth := range 1 + d.IntN(3) {
		name := string(rune('a' + depth))
		if named && depth == 0 && c.m.Cgroups.Version == 1 {
			name = hostGroup
		}
		if named && depth == 2 {
			name = workerGroup
		}
		at = path.Join(at, name)
		if d.IntN(4) == 0 && c.m.Cgroups.Version == 2 {
			c.sets[at] = cpuset.Set{}
			continue
		}
		ids := above.IDs()
		d.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		above = cpuset.Of(ids[:min(len(ids), 7+d.IntN(6))]...)
		c.sets[at] = above
		c.m.Cgroups.Groups = append(c.m.Cgroups.Groups, topology.Cgroup{Path: at, CPUs: above, Effective: above})
	}
}

// start starts corelaned in the innermost group, and its workers there or in groups above it, on CPUs of these groups.
func (c *cpusets) start(d *rand.Rand, workers int) {
	groups := []string{}
	for at := range c.sets {
		groups = append(groups, at)
	}
	slices.Sort(groups) // each is below the one before it
	in := func(at string, tid int, name string, few int) {
		ids := c.allowed(at).IDs()
		d.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		cpus := cpuset.Of(ids[:min(few, len(ids))]...)
		c.m.Threads = append(c.m.Threads, topology.Thread{PID: 2000, TID: tid, Name: name, Process: daemon,
			Allowed: cpus, LastCPU: cpus.First(), Cgroup: at})
	}
	in(groups[len(groups)-1], 2000, daemon, 100)
	for n := range workers {
		in(groups[len(groups)-1-d.IntN(min(2, len(groups)))], 2001+n, fmt.Sprintf("pmd-fwd-%d", n), 1)
	}
}

// allowed returns the CPUs of a thread in a group.
func (c *cpusets) allowed(at string) cpuset.Set {
	cpus := c.m.Online()
	for ; at != "/" && at != "."; at = path.Dir(at) {
		if own := c.sets[at]; !own.Empty() {
			cpus = cpus.And(own)
		}
	}
	return cpus
}

func (c *cpusets) workers() (list []*topology.Thread) {
	for i := range c.m.Threads {
		if t := &c.m.Threads[i]; t.PID == 2000 && t.TID != 2000 {
			list = append(list, t)
		}
	}
	return list
}

// make makes a change. The error says what the kernel would refuse, or which worker has lost its CPU.
func (c *cpusets) make(change Change) error {
	mount := mountV2
	if c.m.Cgroups.Version == 1 {
		mount = mountV1
	}
	at := strings.TrimPrefix(change.Path, mount)
	switch change.Kind {
	case Write:
		group, is := strings.CutSuffix(at, "/cpuset.cpus")
		if !is {
			return nil
		}
		if above := c.allowed(path.Dir(group)); c.m.Cgroups.Version == 1 && !set(change.New).Within(above) {
			return fmt.Errorf("the group above has CPUs %s", above)
		}
		c.sets[group] = set(change.New)
	case Worker:
		for _, t := range c.workers() {
			if t.TID == change.TID {
				t.Allowed = set(change.New)
			}
		}
	case Join:
		for _, t := range c.workers() {
			if t.TID == change.TID || change.TID == 0 && t.PID == change.PID {
				t.Cgroup = at
			}
		}
	}
	for _, t := range c.workers() {
		if has := c.allowed(t.Cgroup); !t.Allowed.Within(has) {
			return fmt.Errorf("%s on CPU %s is in %s, which has CPUs %s", t.Name, t.Allowed, t.Cgroup, has)
		}
	}
	return nil
}

// verify checks that the groups satisfy verify, too.
func (c *cpusets) verify(t *testing.T, seed uint64) {
	t.Helper()
	for i := range c.m.Cgroups.Groups {
		g := &c.m.Cgroups.Groups[i]
		g.CPUs, g.Effective = c.sets[g.Path], c.allowed(g.Path)
	}
	for _, f := range verify.Check(c.m, nil) {
		if f.ID == "cgroup.cpus" && f.Verdict != verify.Pass {
			t.Errorf("seed %d: %+v", seed, f.Evidence)
		}
	}
}

// The commands of verify for one cgroup leave it with the CPUs of all workers, in whichever groups below it they are.
func TestVerifyWritesCPUsetOnce(t *testing.T) {
	rounds.Seeds(t, 50, 500, func(seed uint64) {
		d := rand.New(rand.NewPCG(seed, 37))
		_, m, _ := fourCPUs(t, 1+d.IntN(2))
		m.Cgroups.Groups = append(m.Cgroups.Groups, topology.Cgroup{Path: "/up", CPUs: set("0"), Effective: set("0")})
		need := cpuset.Set{}
		for i := range m.Threads {
			if th := &m.Threads[i]; verify.IsWorker(th) {
				th.Cgroup = []string{"/up", "/up/a", "/up/b"}[d.IntN(3)]
				need = need.Or(th.Allowed)
			}
		}
		got := cpuset.Set{}
		for _, f := range verify.Check(m, nil) {
			if f.ID == "cgroup.cpus" {
				for _, command := range f.Fix {
					got = set(strings.Fields(command)[1]) // the last one remains
				}
			}
		}
		if !need.Within(got) {
			t.Errorf("seed %d: the cpuset ends with CPUs %s, and its workers are on %s", seed, got, need)
		}
	})
}
