// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// checker collects what is wrong with a reading.
type checker struct {
	*Reading
	m   *topology.Machine // nil: the machine is not known
	out []Finding
}

// Check says what is wrong, the worst first. m may be nil; then CPUs, cores, nodes and memory are not compared.
func Check(r *Reading, m *topology.Machine) []Finding {
	c := &checker{r, m, slices.Clone(r.Findings)}
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

// Bad says whether something is wrong rather than doubtful.
func Bad(list []Finding) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Severity == Wrong })
}

func (c *checker) find(severity Severity, where, instead, why, what string, args ...any) {
	c.out = append(c.out, Finding{severity, where, fmt.Sprintf(what, args...), why, instead})
}

func (c *checker) workers() cpuset.Set { return c.cpus(Forwarding, IsolatedRx, HostPath) }

// roles of threads: no CPU has two, but service and control threads may share theirs.
var roles = []Use{Forwarding, IsolatedRx, HostPath, Service, Control, Guests, Emulator}

func (c *checker) overlaps() {
	for i, a := range roles {
		for _, b := range roles[i+1:] {
			left, first := c.Of(a)
			right, second := c.Of(b)
			both := left.And(right)
			if both.Empty() || a == Service && b == Control || a == Service && b == Emulator || a == Control && b == Emulator {
				continue
			}
			c.find(Wrong, second.where(), fmt.Sprintf("%s without %s", second.Key, both), why(a, b),
				"CPU %s is both for %s (%s) and for %s (%s)", both, a, first.Key, b, second.Key)
		}
	}
}

func why(a, b Use) string {
	switch {
	case a == Guests && b == Emulator:
		return "emulator and vhost threads take the time of vCPUs; Nova refuses sets that overlap"
	case b == Guests:
		return "a vCPU and a thread of the router take each other's time: packets wait and are lost"
	}
	return "a worker polls all the time: whoever shares its CPU interrupts it, and packets are lost meanwhile"
}

// fieldReport is why half an isolation is worse than none.
const fieldReport = "what is kept off isolated CPUs crowds onto the others: a field report has 2.256 Mpps per core without isolation, 0.165 with half of it, 2.294 with all"

// isolation compares who polls with what is isolated.
func (c *checker) isolation() {
	isolated, claim := c.Of(Isolcpus)
	workers, guests := c.workers(), c.cpus(Guests)
	switch {
	case claim == nil:
		c.noIsolation(workers)
		return
	case workers.Empty() && !guests.Empty() && isolated.Within(guests):
		c.find(Wrong, claim.where(), "isolate the router's CPUs too", fieldReport, "only CPUs of guests are isolated (%s), none of the router", isolated)
	case !workers.Within(isolated):
		out := workers.Without(isolated)
		c.find(Wrong, claim.where(), fmt.Sprintf("%s with %s", claim.Key, isolated.Or(out)), fieldReport, "workers' CPU %s is not isolated, but %s is", out, isolated)
	}
	if own := c.cpus(Service, Control); !own.Empty() && !own.Within(isolated) && own.Overlaps(isolated) {
		c.find(Warning, claim.where(), "", "threads that may run on both kinds of CPUs stay where they started", "CPUs of service and control threads are isolated in part: %s is, %s is not",
			own.And(isolated), own.Without(isolated))
	}
	spare := isolated.Without(workers).Without(guests).Without(c.cpus(Service, Control, Emulator))
	if !spare.Empty() && !workers.Empty() && !guests.Empty() {
		c.find(Note, claim.where(), "give them to guests or to the host", "nobody can use them", "CPU %s is isolated and nobody's", spare)
	}
}

func (c *checker) noIsolation(workers cpuset.Set) {
	part, claim := c.Of(IsolcpusPart)
	switch {
	case claim != nil:
		c.find(Warning, claim.where(), "isolcpus=managed_irq,domain,"+part.String(), "with flags but without 'domain' the scheduler still puts threads there, unless a partition of cgroup v2 takes the CPUs",
			"isolcpus= leaves CPU %s to the scheduler", part)
	case c.has("kernel", "grub", "tripleo", "juju") && (!workers.Empty() || !c.cpus(Guests).Empty()):
		c.find(Warning, "", "isolcpus=managed_irq,domain,CPUS, or a partition of cgroup v2", "the scheduler puts other threads onto workers' CPUs", "no CPU is isolated")
	}
}

// noTick: the timer tick and RCU callbacks on CPUs that poll. TuneD's profile adds both arguments for its isolated cores.
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
		{NohzFull, "the timer interrupts a worker up to 1000 times a second"},
		{RcuNocbs, "the kernel runs other CPUs' clean-up work on workers' CPUs"},
	} {
		if set, said := c.Of(k.use); said == nil {
			c.find(Warning, claim.where(), fmt.Sprintf("%s=%s", k.use, isolated), k.why, "%s= is missing", k.use)
		} else if missing := polled.Without(set); !missing.Empty() {
			c.find(Warning, said.where(), fmt.Sprintf("%s=%s", k.use, set.Or(missing)), k.why, "%s= does not have CPU %s", k.use, missing)
		}
	}
}

// tuned compares TuneD's cores with the kernel's.
func (c *checker) tuned() {
	cores, claim := c.Of(TunedIsolated)
	profile := c.setting("TunedProfileName")
	if claim == nil {
		if profile != nil && profile.Value == "cpu-partitioning" {
			c.find(Wrong, profile.where(), "IsolCpusList", "TuneD then takes all CPUs but one per socket, whatever the router and guests have", "TunedProfileName without IsolCpusList")
		}
		return
	}
	if c.has("tripleo") && profile == nil {
		c.find(Warning, claim.where(), `TunedProfileName: "cpu-partitioning"`, "without a profile nobody reads the list", "%s without TunedProfileName", claim.Key)
	}
	kernel, said := c.Of(Isolcpus, IsolcpusPart)
	switch {
	case said == nil:
		c.find(Warning, claim.where(), "isolcpus="+cores.String()+", or no_balance_cores", "TuneD moves threads away from these cores once, but makes no isolcpus= of the list: the scheduler may put others there",
			"%s %s without isolcpus=", claim.Key, cores)
	case said.Key != "no_balance_cores" && !kernel.Equal(cores):
		c.find(Wrong, claim.where(), fmt.Sprintf("one list in both: %s", kernel.Or(cores)), "CPUs of one list only are isolated by half: "+fieldReport,
			"%s is %s, but %s is %s", claim.Key, cores, said.Key, kernel)
	}
}

func (c *checker) firstCPU() {
	workers := c.workers()
	if !workers.Has(0) {
		return
	}
	claim := c.whoHas(0, Forwarding, IsolatedRx, HostPath)
	c.find(Wrong, claim.where(), "another CPU", "CPU 0 takes the boot's interrupts, timekeeping and much of the kernel's work, and cannot be isolated from all of it",
		"CPU 0 is a worker's, by %s", claim.Key)
}

// whoHas is the first claim with a CPU.
func (c *checker) whoHas(cpu int, uses ...Use) *Claim {
	for i := range c.Claims {
		if k := &c.Claims[i]; k.CPUs.Has(cpu) && slices.Contains(uses, k.Use) {
			return k
		}
	}
	return &Claim{}
}
