// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
)

// ownThreads: the router's threads that do not forward.
func (c *checker) ownThreads() {
	isolated := c.cpus(Isolcpus)
	for _, use := range []Use{Service, Control} {
		if set, claim := c.Of(use); claim != nil && set.Len() > 1 && set.Within(isolated) && c.Dpvs == nil {
			c.find(Warning, claim.where(), "a CPU that is not isolated, or one CPU", "the kernel does not balance isolated CPUs: all these threads may stay on one of them",
				"%s threads may choose among isolated CPUs %s", use, set)
		}
	}
}

// hostThreads: where the host was sent to, and what it was told to keep off.
func (c *checker) hostThreads() {
	workers, guests := c.workers(), c.cpus(Guests)
	for _, use := range []Use{HostAffinity, IRQAffinity} {
		set, claim := c.Of(use)
		what := map[Use]string{HostAffinity: "the host's services", IRQAffinity: "interrupts"}[use]
		if both := set.And(workers); !both.Empty() {
			c.find(Wrong, claim.where(), claim.Key+" without "+both.String(), "each of them interrupts a worker", "%s are sent to workers' CPU %s by %s", what, both, claim.Key)
		}
		if both := set.And(guests.Without(workers)); !both.Empty() {
			c.find(Warning, claim.where(), claim.Key+" without "+both.String(), "each of them interrupts a vCPU", "%s are sent to guests' CPU %s by %s", what, both, claim.Key)
		}
	}
	for _, k := range []struct {
		use  Use
		what string
	}{{Banned, "irqbalance may send interrupts to"}, {Reserved, "the kubelet may give pods"}} {
		if set, claim := c.Of(k.use); claim != nil && !workers.Within(set) {
			c.find(Wrong, claim.where(), fmt.Sprintf("%s with %s", claim.Key, set.Or(workers)), "each of them interrupts a worker", "%s workers' CPU %s", k.what, workers.Without(set))
		}
	}
	if p := c.setting("cpuManagerPolicy"); p != nil && p.Value != "static" {
		c.find(Warning, p.where(), "cpuManagerPolicy: static", "all pods share all CPUs, workers' too", "cpuManagerPolicy is '%s'", p.Value)
	}
	if _, claim := c.Of(Reserved); claim != nil {
		if o := c.setting("strict-cpu-reservation"); o == nil || o.Value != "true" {
			c.find(Warning, claim.where(), `strict-cpu-reservation: "true"`, "pods without CPUs of their own may run on reserved CPUs, workers' too (the option exists from Kubernetes 1.32)",
				"reservedSystemCPUs without strict reservation")
		}
	}
}

// vRouter: what its container and charm do with what they are told.
func (c *checker) vRouter() {
	forwarding, claim := c.Of(Forwarding)
	own := claim != nil && (claim.Key == "CPU_CORE_MASK" || claim.Key == "dpdk-coremask" || claim.Key == "CPU_LIST" || claim.Key == "cpu_list")
	template := c.has("tripleo") && c.setting("ovs") == nil && c.setting("KernelArgs") != nil
	if !own && !template {
		return
	}
	if own && forwarding.Len() < 2 {
		c.find(Wrong, claim.where(), "two CPUs or more", "vRouter does not start with less than two", "%s has %d forwarding CPU", claim.Key, forwarding.Len())
	}
	severity := Warning // the other file may say it
	if own && (claim.Key == "CPU_CORE_MASK" || claim.Key == "dpdk-coremask") {
		severity = Wrong
	}
	where := c.firstWhere()
	for _, k := range []struct {
		use  Use
		key  string
		what string
	}{{Service, "SERVICE_CORE_MASK", "service threads"}, {Control, "DPDK_CTRL_THREAD_MASK", "DPDK's control threads"}} {
		if _, said := c.Of(k.use); said == nil {
			c.find(severity, where, k.key+", CPUs of no worker", "they may then run on every CPU, workers' too, and take the time of one", "nothing says where %s run", k.what)
		}
	}
	if y := c.setting("yield"); y == nil && own {
		c.find(Note, where, "--yield_option 0", "workers call sched_yield() whenever there is no packet: a system call, and a chance for others to take the CPU", "yield_option is not said: 1")
	} else if y != nil && y.Value != "0" && y.Value != "" {
		c.find(Warning, y.where(), "--yield_option 0", "workers call sched_yield() whenever there is no packet: a system call, and a chance for others to take the CPU", "yield_option is %s", y.Value)
	}
}

func (c *checker) firstWhere() string {
	if len(c.Claims) == 0 {
		return ""
	}
	return c.Claims[0].File
}

func (c *checker) nova() {
	old, dedicated := c.setting("vcpu_pin_set"), c.setting("cpu_dedicated_set")
	switch {
	case old != nil && dedicated != nil:
		c.find(Wrong, old.where(), "cpu_dedicated_set alone", "Nova refuses to start with both", "vcpu_pin_set and cpu_dedicated_set are both given")
	case old != nil:
		c.find(Note, old.where(), "cpu_dedicated_set and cpu_shared_set", "it is the old name, before Train; emulator threads have no CPUs of their own with it", "vcpu_pin_set is deprecated")
	}
}

// guest is one domain of libvirt.
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
			c.find(Warning, g.File, "a vcpupin for each", "it runs wherever the host lets it", "vCPU %d is not pinned", n)
		case set.Len() > 1 && !set.And(isolated).Empty():
			c.find(Wrong, where, "one CPU", "the kernel does not balance isolated CPUs: vCPUs stay where they started, several on one CPU", "vCPU %d may choose among isolated CPUs %s", n, set)
		case set.Len() == 1:
			if other, twice := by[set.First()]; twice {
				c.find(Wrong, where, "a CPU for each", "they take each other's time", "vCPUs %d and %d are both on CPU %s", other, n, set)
			}
			by[set.First()] = n
		}
	}
	if _, said := c.Of(Emulator); said == nil && len(g.Pinned) > 0 {
		c.find(Warning, g.File, "<emulatorpin cpuset='...'/>, CPUs that take no interrupts", "emulator and vhost threads run on the CPUs of all vCPUs then; moved away from CPUs with softirqs, vhost threads carried 8.58 instead of 2.72 Gb/s in a field report",
			"emulatorpin is missing")
	}
}

// memory in hugepages.
func (c *checker) memory() {
	if len(c.Hugepages) == 0 {
		if c.has("kernel", "grub", "tripleo") {
			c.find(Warning, "", "default_hugepagesz=1G hugepagesz=1G hugepages=N", "pages of 1 GiB can hardly be had after boot, and guests of a router in user space need their memory in hugepages", "no hugepages are reserved at boot")
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
		c.find(Wrong, "", "hugepages", "vRouter takes 1024 MB on each node, and guests need theirs", "%d MB in hugepages are too few", total)
	}
	if s := c.setting("vm.nr_hugepages"); s != nil && gigantic > 0 && s.Value != fmt.Sprint(gigantic) {
		c.find(Warning, s.where(), fmt.Sprintf("value: %d", gigantic), "the setting is for pages of the default size and takes back what the kernel reserved at boot, or asks for what is not there",
			"vm.nr_hugepages is %s, but hugepages= has %d pages of 1 GiB", s.Value, gigantic)
	}
}

// cpuText is "CPU 3" or "CPUs 3,5".
func cpuText(s cpuset.Set) string {
	if s.Len() == 1 {
		return "CPU " + s.String()
	}
	return "CPUs " + s.String()
}
