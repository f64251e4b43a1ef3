// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// checker collects the findings about a reading.
type checker struct {
	*Reading
	m   *topology.Machine // nil: the machine is not known
	out []Finding
}

// Check returns the findings, the worst first. With a nil m it does not compare CPUs, cores, nodes and memory.
func Check(r *Reading, m *topology.Machine) []Finding {
	r.unite()
	c := &checker{r, m, slices.Clone(r.Findings)}
	c.disagreements()
	c.overlaps()
	c.isolation()
	c.noTick()
	c.tuned()
	c.firstCPU()
	c.ownThreads()
	c.hostThreads()
	c.vRouter()
	c.nova()
	c.guest()
	c.memory()
	c.dpvs()
	if m != nil {
		c.machine()
	}
	rank := map[Severity]int{Wrong: 0, Warning: 1, Note: 2}
	slices.SortStableFunc(c.out, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return c.out
}

// Count returns the number of findings of a severity.
func Count(list []Finding, s Severity) int {
	n := 0
	for _, f := range list {
		if f.Severity == s {
			n++
		}
	}
	return n
}

func (c *checker) find(severity Severity, where, instead, why, what string, args ...any) {
	c.out = append(c.out, Finding{severity, where, printable(fmt.Sprintf(what, args...)), why, instead})
}

func (c *checker) workers() cpuset.Set { return c.cpus(Forwarding, IsolatedRx, HostPath) }

// roles finds CPUs with two roles of threads; service and control threads may share CPUs.
var roles = []Use{Forwarding, IsolatedRx, HostPath, Service, Control, Guests, Emulator}

func (c *checker) overlaps() {
	for i, a := range roles {
		for _, b := range roles[i+1:] {
			left, first := c.Of(a)
			right, second := c.Of(b)
			both := left.And(right)
			if both.Empty() || a == Service && b == Control || a == Service && b == Emulator ||
				a == Control && b == Emulator {
				continue
			}
			c.find(Wrong, second.where(), fmt.Sprintf("%s without %s", second.Key, both), why(a, b),
				"CPU %s is used for %s (%s) and for %s (%s)", both, a, first.Key, b, second.Key)
		}
	}
}

// disagreements finds files of one machine that give different CPUs for the same use. Other checks use their union.
func (c *checker) disagreements() {
	first := map[Use]*Claim{}
	for i := range c.Claims {
		k := &c.Claims[i]
		if slices.Contains([]Use{Guests, Emulator, IsolatedRx, HostPath, HostAffinity}, k.Use) ||
			k.Use == Forwarding && !slices.Contains(coreLists, k.Key) || k.Key == "no_balance_cores" || c.Dpvs != nil {
			continue // one list in several parts
		}
		if f := first[k.Use]; f == nil {
			first[k.Use] = k
		} else if f.File != k.File && !f.CPUs.Equal(k.CPUs) {
			c.find(Warning, k.where(), "one list in both", "only one of them takes effect, or each in part",
				"%s is %s, but %s in %s is %s", k.Key, k.CPUs, f.Key,
				f.where(), f.CPUs)
		}
	}
}

// coreLists are the settings that name vRouter's workers.
var coreLists = []string{"CPU_CORE_MASK", "CPU_LIST", "cpu_list", "dpdk-coremask"}

func why(a, b Use) string {
	switch {
	case a == Guests && b == Emulator:
		return "emulator and vhost threads take time from vCPUs; Nova refuses overlapping sets"
	case b == Guests:
		return "a vCPU and a thread of the router preempt each other: packets are delayed and lost"
	}
	return "a worker polls all the time: any other thread on its CPU interrupts it, and packets are lost"
}

// partialCost says why partial isolation is worse than none.
const partialCost = "threads that are kept off isolated CPUs crowd onto the others: a vRouter forwarded 2.256 Mpps " +
	"per core without isolation, 0.165 with partial and 2.294 with full isolation"

// isolation compares the polling CPUs with the isolated CPUs.
func (c *checker) isolation() {
	isolated, claim := c.Of(Isolcpus)
	workers, guests := c.workers(), c.cpus(Guests)
	switch {
	case claim == nil:
		c.noIsolation(workers)
		return
	case workers.Empty() && !guests.Empty() && isolated.Within(guests):
		c.find(Wrong, claim.where(), "isolate the router's CPUs too", partialCost,
			"only guests' CPUs are isolated (%s), and none of the router's", isolated)
	case !workers.Within(isolated):
		out := workers.Without(isolated)
		c.find(Wrong, claim.where(), fmt.Sprintf("%s with %s", claim.Key, isolated.Or(out)), partialCost,
			"workers' CPU %s is not isolated, but %s is", out, isolated)
	}
	if out := guests.Without(isolated); !out.Empty() && guests.Overlaps(isolated) {
		c.find(Wrong, claim.where(), fmt.Sprintf("%s with %s, or a set of guests without %s", claim.Key,
			isolated.Or(out), out), "the scheduler uses these CPUs for everything, and vCPUs there wait",
			"guests' CPU %s is not isolated, but %s is", out, guests.And(isolated))
	}
	if own := c.cpus(Service, Control); !own.Empty() && !own.Within(isolated) && own.Overlaps(isolated) {
		c.find(Warning, claim.where(), "", "threads that may run on isolated and other CPUs stay where they started",
			"the CPUs of service and control threads are isolated in part: %s is isolated, %s is not",
			own.And(isolated), own.Without(isolated))
	}
	spare := isolated.Without(workers).Without(guests).Without(c.cpus(Service, Control, Emulator))
	if !spare.Empty() && !workers.Empty() && !guests.Empty() {
		c.find(Note, claim.where(), "give them to guests or to the host", "no thread uses them",
			"CPU %s is isolated, but has no role", spare)
	}
}

func (c *checker) noIsolation(workers cpuset.Set) {
	part, claim := c.Of(IsolcpusPart)
	switch {
	case claim != nil:
		c.find(Warning, claim.where(), "isolcpus=managed_irq,domain,"+part.String(),
			"with flags but without 'domain' the scheduler still runs threads there, unless the CPUs are in a "+
				"cgroup v2 partition",
			"isolcpus= does not keep the scheduler off CPU %s", part)
	case c.has("kernel", "grub", "tripleo", "juju") && (!workers.Empty() || !c.cpus(Guests).Empty()):
		c.find(Warning, "", "isolcpus=managed_irq,domain,CPUS, or a partition of cgroup v2",
			"the scheduler runs other threads on workers' CPUs",
			"no CPU is isolated")
	}
}

// noTick finds polling CPUs with the timer tick or RCU callbacks. TuneD's profile adds both arguments for its
// isolated cores.
func (c *checker) noTick() {
	isolated, claim := c.Of(Isolcpus, IsolcpusPart)
	tuned := c.cpus(TunedIsolated)
	if claim == nil || !c.has("kernel", "grub", "tripleo", "juju") || isolated.Within(tuned) {
		return
	}
	polled := isolated
	if workers := c.workers(); !workers.Empty() {
		polled = workers
	}
	for _, k := range []struct {
		use Use
		why string
	}{
		{NohzFull, "the timer interrupts a worker up to 1000 times per second"},
		{RcuNocbs, "the kernel runs RCU callbacks on workers' CPUs"},
	} {
		if set, said := c.Of(k.use); said == nil {
			c.find(Warning, claim.where(), fmt.Sprintf("%s=%s", k.use, isolated), k.why, "%s= is missing", k.use)
		} else if missing := polled.Without(set); !missing.Empty() {
			c.find(Warning, said.where(), fmt.Sprintf("%s=%s", k.use, set.Or(missing)), k.why,
				"%s= does not include CPU %s", k.use, missing)
		}
	}
}

// tuned compares TuneD's cores with the kernel's.
func (c *checker) tuned() {
	cores, claim := c.Of(TunedIsolated)
	profile := c.setting("TunedProfileName")
	if claim == nil {
		if profile != nil && profile.Value == "cpu-partitioning" {
			c.find(Wrong, profile.where(), "IsolCpusList", "TuneD then isolates all CPUs but one per socket, "+
				"whatever the router and guests use",
				"TunedProfileName without IsolCpusList")
		}
		return
	}
	if c.has("tripleo") && profile == nil {
		c.find(Warning, claim.where(), `TunedProfileName: "cpu-partitioning"`,
			"without a profile the list has no effect", "%s without TunedProfileName", claim.Key)
	}
	kernel, said := c.Of(Isolcpus, IsolcpusPart)
	switch {
	case said == nil:
		c.find(Warning, claim.where(), "isolcpus="+cores.String()+", or no_balance_cores",
			"TuneD moves threads off these cores once, but does not set isolcpus=: the scheduler may run other "+
				"threads there",
			"%s %s without isolcpus=", claim.Key, cores)
	case said.Key != "no_balance_cores" && !kernel.Equal(cores):
		c.find(Wrong, claim.where(), fmt.Sprintf("one list in both: %s", kernel.Or(cores)),
			"CPUs that are in one list only are partly isolated: "+partialCost,
			"%s is %s, but %s is %s", claim.Key, cores, said.Key, kernel)
	}
}

func (c *checker) firstCPU() {
	workers := c.workers()
	if !workers.Has(0) {
		return
	}
	claim := c.whoHas(0, Forwarding, IsolatedRx, HostPath)
	c.find(Wrong, claim.where(), "another CPU",
		"CPU 0 has interrupts, timekeeping and other kernel work that cannot be moved off it",
		"a worker is on CPU 0, according to %s", claim.Key)
}

// whoHas returns the first claim of a CPU.
func (c *checker) whoHas(cpu int, uses ...Use) *Claim {
	for i := range c.Claims {
		if k := &c.Claims[i]; k.CPUs.Has(cpu) && slices.Contains(uses, k.Use) {
			return k
		}
	}
	return &Claim{}
}
