// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"fmt"
	"slices"

	"github.com/corelane/corelane/internal/cpuset"
)

// ownThreads checks the router's threads that do not forward.
func (c *checker) ownThreads() {
	isolated := c.cpus(Isolcpus)
	for _, use := range []Use{Service, Control} {
		if set, claim := c.Of(use); claim != nil && set.Len() > 1 && set.Within(isolated) && c.Dpvs == nil {
			c.find(Warning, claim.where(), "a CPU that is not isolated, or one CPU",
				"the kernel does not balance isolated CPUs: all of these threads may stay on one CPU",
				"%s threads may run on several isolated CPUs: %s", use, set)
		}
	}
}

// hostThreads checks the CPUs of the host's services, of interrupts and of pods.
func (c *checker) hostThreads() {
	workers, guests := c.workers(), c.cpus(Guests)
	for _, use := range []Use{HostAffinity, IRQAffinity} {
		set, claim := c.Of(use)
		what := map[Use]string{HostAffinity: "the host's services", IRQAffinity: "interrupts"}[use]
		if both := set.And(workers); !both.Empty() {
			c.find(Wrong, claim.where(), claim.Key+" without "+both.String(), "each of them interrupts a worker",
				"%s go to workers' CPU %s, according to %s", what, both,
				claim.Key)
		}
		if both := set.And(guests.Without(workers)); !both.Empty() {
			c.find(Warning, claim.where(), claim.Key+" without "+both.String(), "each of them interrupts a vCPU",
				"%s go to guests' CPU %s, according to %s", what, both,
				claim.Key)
		}
	}
	for _, k := range []struct {
		use  Use
		what string
	}{{Banned, "irqbalance may send interrupts to"}, {Reserved, "the kubelet may give pods"}} {
		if set, claim := c.Of(k.use); claim != nil && !workers.Within(set) {
			c.find(Wrong, claim.where(), fmt.Sprintf("%s with %s", claim.Key, set.Or(workers)),
				"each of them interrupts a worker", "%s workers' CPU %s", k.what, workers.Without(set))
		}
	}
	if p := c.setting("cpuManagerPolicy"); p != nil && p.Value != "static" {
		c.find(Warning, p.where(), "cpuManagerPolicy: static", "all pods share all CPUs, including workers' CPUs",
			"cpuManagerPolicy is '%s'", p.Value)
	}
	if _, claim := c.Of(Reserved); claim != nil {
		if o := c.setting("strict-cpu-reservation"); o == nil || o.Value != "true" {
			c.find(Warning, claim.where(), `strict-cpu-reservation: "true"`,
				"pods without exclusive CPUs may run on reserved CPUs, including workers' CPUs (the option exists "+
					"since Kubernetes 1.32)",
				"reservedSystemCPUs is set without strict-cpu-reservation")
		}
	}
}

// vRouter checks settings of vRouter's container and charm.
func (c *checker) vRouter() {
	forwarding, claim := c.Of(Forwarding)
	own := claim != nil && slices.Contains(coreLists, claim.Key)
	template := c.has("tripleo") && c.setting("ovs") == nil && c.setting("KernelArgs") != nil
	if !own && !template {
		return
	}
	if own && forwarding.Len() < 2 {
		c.find(Wrong, claim.where(), "two CPUs or more", "vRouter needs at least two to start",
			"%s has %d forwarding CPU", claim.Key, forwarding.Len())
	}
	severity := Warning // another file may set it
	if own && (claim.Key == "CPU_CORE_MASK" || claim.Key == "dpdk-coremask") {
		severity = Wrong
	}
	where := ""
	if own {
		where = claim.where()
	} else if args := c.setting("KernelArgs"); args != nil {
		where = args.File
	}
	for _, k := range []struct {
		use  Use
		key  string
		what string
	}{{Service, "SERVICE_CORE_MASK", "service threads"}, {Control, "DPDK_CTRL_THREAD_MASK", "DPDK's control threads"}} {
		if _, said := c.Of(k.use); said == nil {
			c.find(severity, where, k.key+", CPUs of no worker", "they may then run on every CPU and preempt a worker",
				"the CPUs of %s are not set", k.what)
		}
	}
	if y := c.setting("yield"); y == nil && own {
		c.find(Note, where, "--yield_option 0", "workers call sched_yield() whenever there is no packet: it costs a "+
			"system call and lets other threads run",
			"yield_option is not set; the default is 1")
	} else if y != nil && y.Value != "0" && y.Value != "" {
		c.find(Warning, y.where(), "--yield_option 0",
			"workers call sched_yield() whenever there is no packet: it costs a system call and lets other threads "+
				"run", "yield_option is %s", y.Value)
	}
}

func (c *checker) nova() {
	old, dedicated := c.setting("vcpu_pin_set"), c.setting("cpu_dedicated_set")
	switch {
	case old != nil && dedicated != nil:
		c.find(Wrong, old.where(), "cpu_dedicated_set alone", "Nova refuses to start with both",
			"both vcpu_pin_set and cpu_dedicated_set are set")
	case old != nil:
		c.find(Note, old.where(), "cpu_dedicated_set and cpu_shared_set",
			"it is the option before Train and does not set CPUs for emulator threads",
			"vcpu_pin_set is deprecated")
	}
}

// guest checks a domain of libvirt.
func (c *checker) guest() {
	g := c.Guest
	if g == nil {
		return
	}
	by := map[int]int{}
	isolated := c.cpus(Isolcpus)
	for n := range min(max(g.VCPUs, 0), 4096) {
		set, pinned := g.Pinned[n]
		where := place(g.File, g.PinLine[n])
		switch {
		case !pinned && len(g.Pinned) > 0:
			c.find(Warning, g.File, "one vcpupin per vCPU", "it may run on any CPU", "vCPU %d is not pinned", n)
		case set.Len() > 1 && !set.And(isolated).Empty():
			c.find(Wrong, where, "one CPU", "the kernel does not balance isolated CPUs: several vCPUs may stay on "+
				"one CPU",
				"vCPU %d may run on several isolated CPUs: %s", n, set)
		case set.Len() == 1:
			if other, twice := by[set.First()]; twice {
				c.find(Wrong, where, "one CPU per vCPU", "they preempt each other",
					"vCPUs %d and %d are both on CPU %s", other, n, set)
			}
			by[set.First()] = n
		}
	}
	if _, said := c.Of(Emulator); said == nil && len(g.Pinned) > 0 {
		c.find(Warning, g.File, "<emulatorpin cpuset='...'/>, CPUs that take no interrupts",
			"emulator and vhost threads then run on the CPUs of all vCPUs; a guest received 8.58 "+
				"instead of 2.72 Gb/s after its vhost threads were moved off CPUs with softirqs",
			"emulatorpin is missing")
	}
}

// memory checks hugepages.
func (c *checker) memory() {
	if len(c.Hugepages) == 0 {
		if c.has("kernel", "grub", "tripleo") {
			c.find(Warning, "", "default_hugepagesz=1G hugepagesz=1G hugepages=N",
				"pages of 1 GiB can rarely be allocated after boot, and guests of a user-space router need their "+
					"memory in hugepages", "no hugepages are reserved at boot")
		}
		return
	}
	total, gigantic, nodes := 0, 0, 1
	for _, h := range c.Hugepages {
		total += h.Pages * (h.KiB / 1024)
		if h.KiB == 1048576 {
			gigantic += h.Pages
		}
	}
	if c.m != nil {
		nodes = max(1, len(c.m.Nodes))
	}
	if need := 1024 * nodes; total < need && c.has("tripleo", "kolla", "container", "juju") {
		c.find(Wrong, "", "hugepages", "vRouter takes 1024 MB on each node, and guests need more",
			"%d MB in hugepages are too few", total)
	}
	if s := c.setting("vm.nr_hugepages"); s != nil && gigantic > 0 && s.Value != fmt.Sprint(gigantic) {
		c.find(Warning, s.where(), fmt.Sprintf("value: %d", gigantic),
			"the setting concerns pages of the default size: it releases pages reserved at boot, or requests pages "+
				"that do not exist",
			"vm.nr_hugepages is %s, but hugepages= has %d pages of 1 GiB", s.Value, gigantic)
	}
}

// cpuText returns "CPU 3" or "CPUs 3,5".
func cpuText(s cpuset.Set) string {
	if s.Len() == 1 {
		return "CPU " + s.String()
	}
	return "CPUs " + s.String()
}
