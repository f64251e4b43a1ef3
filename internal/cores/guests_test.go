// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

// A guest that is pinned well stays so: a vCPU whose CPU gets another role moves to one CPU that no other vCPU has,
// beside its sibling.
func TestPinnedGuestsStayPinned(t *testing.T) {
	m := topologytest.Machine(t, "nova")
	p, err := plan.Make(m, plan.Request{Forwarding: 4, ServiceCPUs: cpuset.Of(8, 40), Guests: 24,
		NICs: []string{"0000:17:00.0"}})
	if err != nil {
		t.Fatal(err)
	}
	now := map[int]cpuset.Set{5003: cpuset.Of(9), 5004: cpuset.Of(41)}
	for _, c := range Changes(m, p, Options{}) {
		if c.Kind == Affinity && c.PID == 5000 && c.TID > 5000 {
			now[c.TID] = set(c.New)
			if !strings.HasPrefix(c.ByHand, "virsh vcpupin g1 ") {
				t.Errorf("%s: by hand: %s", c.What(), c.ByHand)
			}
		}
	}
	var all cpuset.Set
	for tid := 5001; tid <= 5004; tid++ {
		cpus := now[tid]
		if cpus.Len() != 1 || !cpus.Within(p.Of(plan.Guests)) || cpus.Overlaps(all) {
			t.Errorf("thread %d: CPUs %s, others have %s", tid, cpus, all)
		}
		all = all.Or(cpus)
	}
	if first := m.CPU(now[5001].First()); !now[5002].Within(first.Siblings) {
		t.Errorf("vCPU 0 and 1 were on one core and are now on CPUs %s and %s", now[5001], now[5002])
	}
}

// A vCPU for which the plan has no CPU is reported. It gets no CPU of another vCPU.
func TestMoreVCPUsThanCPUs(t *testing.T) {
	m := topologytest.Machine(t, "odd-even-16")
	p, err := plan.Make(m, plan.Request{GuestCPUs: cpuset.Of(2, 4, 6, 10, 12, 14)})
	if err != nil {
		t.Fatal(err)
	}
	notes := 0
	for _, c := range Changes(m, p, Options{}) {
		switch {
		case c.Kind == Note && strings.Contains(c.Name, "/KVM"):
			notes++
		case c.Kind == Affinity && strings.HasSuffix(c.Name, "/KVM") && set(c.New).Overlaps(p.Of(plan.Guests)):
			t.Errorf("%s: %s", c.What(), c.New)
		}
	}
	if notes != 4 {
		t.Errorf("%d vCPUs without a CPU were reported, not 4", notes)
	}
}
