// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// machine compares the claims with the machine.
func (c *checker) machine() {
	var ids []int
	for _, cpu := range c.m.CPUs {
		if cpu.Online {
			ids = append(ids, cpu.ID)
		}
	}
	online := cpuset.Of(ids...)
	for i := range c.Claims {
		k := &c.Claims[i]
		if missing := k.CPUs.Without(online); !missing.Empty() {
			severity := Warning
			if slices.Contains(roles, k.Use) {
				severity = Wrong
			}
			c.find(severity, k.where(), "CPUs of "+online.String(),
				"threads for these CPUs do not start, or run elsewhere", "%s: %s missing or offline", k.Key,
				cpuText(missing)+" "+isAre(missing))
		}
	}
	c.siblings()
	c.nodes()
	c.pairs()
	c.machineMemory()
	c.release()
}

func isAre(s cpuset.Set) string {
	if s.Len() == 1 {
		return "is"
	}
	return "are"
}

// roleOf returns the role of a CPU, or an empty string.
func (c *checker) roleOf(cpu int) Use {
	for _, use := range roles {
		if c.cpus(use).Has(cpu) {
			return use
		}
	}
	isolated, said := c.Of(Isolcpus)
	if c.cpus(HostAffinity).Has(cpu) || said != nil && !isolated.Has(cpu) {
		return HostAffinity
	}
	return ""
}

// siblings checks the siblings of a core: only a receiver and its worker should share one.
func (c *checker) siblings() {
	split := map[string]cpuset.Set{}
	var order []string
	for _, cpu := range c.m.CPUs {
		if !cpu.Online || cpu.Siblings.First() != cpu.ID {
			continue
		}
		for _, other := range cpu.Siblings.IDs()[1:] {
			a, b := c.roleOf(cpu.ID), c.roleOf(other)
			if a == "" || b == "" || a == b && a != Forwarding || isPair(a, b) {
				continue
			}
			key := fmt.Sprintf("%s and %s", a, b)
			if a == b {
				key = "two workers"
			}
			if split[key].Empty() {
				order = append(order, key)
			}
			split[key] = split[key].Or(cpuset.Of(cpu.ID, other))
		}
	}
	for _, key := range order {
		severity := Warning
		if key == "two workers" {
			severity = Note
		}
		c.find(severity, "", "both threads of a core for one role, or one of them idle",
			"the threads of a core share its execution units: load on one slows the other down",
			"cores are shared by %s: %s", key, cpuText(split[key]))
	}
	if first := c.siblingsOf(0).Without(cpuset.Of(0)).And(c.workers()); !first.Empty() {
		c.find(Warning, "", "another core", "the first core has the host's own work",
			"a worker is on %s, which shares the first core with CPU 0", cpuText(first))
	}
}

func isPair(a, b Use) bool {
	own := []Use{Service, Control, Emulator, HostAffinity}
	return a == Forwarding && b == IsolatedRx || a == IsolatedRx && b == Forwarding ||
		slices.Contains(own, a) && slices.Contains(own, b)
}

func (c *checker) siblingsOf(id int) cpuset.Set {
	for _, cpu := range c.m.CPUs {
		if cpu.ID == id {
			return cpu.Siblings
		}
	}
	return cpuset.Set{}
}

// nodes checks that workers are on their NIC's node. Workers poll the NICs that are bound to a user-space driver.
func (c *checker) nodes() {
	for _, nic := range c.m.NICs {
		if !slices.Contains([]string{"vfio-pci", "uio_pci_generic", "igb_uio"}, nic.Driver) || nic.Node < 0 {
			continue
		}
		var far []int
		for _, cpu := range c.m.CPUs {
			if cpu.Node != nic.Node && c.cpus(Forwarding, IsolatedRx).Has(cpu.ID) {
				far = append(far, cpu.ID)
			}
		}
		if len(far) > 0 {
			c.find(Warning, "", fmt.Sprintf("CPUs of node %d", nic.Node),
				"every packet crosses the link between sockets", "workers on %s are not on node %d of %s",
				cpuText(cpuset.Of(far...)), nic.Node, nic.Address)
		}
	}
}

// pairs checks that isolated receivers are on the node of the worker for which they receive.
func (c *checker) pairs() {
	d := c.Dpvs
	if d == nil || !d.Command {
		return
	}
	nodes := map[int]int{}
	for _, cpu := range c.m.CPUs {
		nodes[cpu.ID] = cpu.Node
	}
	for _, b := range d.Blocks {
		for _, p := range b.Ports {
			for _, lcore := range p.IsolRx {
				from, to := d.Lcores[lcore], d.Lcores[b.Lcore]
				if from.Empty() || to.Empty() || nodes[from.First()] == nodes[to.First()] {
					continue
				}
				c.find(Warning, place(d.File, p.Line), fmt.Sprintf("a CPU of node %d", nodes[to.First()]),
					"every packet crosses the link between sockets", "worker %s is on CPU %d of node %d, and "+
						"receives by CPU %d of node %d", b.Name, to.First(), nodes[to.First()], from.First(),
					nodes[from.First()])
			}
		}
	}
}

func (c *checker) machineMemory() {
	asked, all := map[int]int64{}, int64(0)
	for _, h := range c.Hugepages {
		asked[h.Node] += int64(h.Pages) * int64(h.KiB)
	}
	for _, n := range c.m.Nodes {
		all += n.MemoryKiB
		if n.MemoryKiB > 0 && asked[n.ID] > n.MemoryKiB {
			c.find(Wrong, "", "fewer pages", "the kernel reserves what it can and does not report the rest",
				"node %d has %d MB, less than the requested hugepages", n.ID, n.MemoryKiB/1024)
		}
	}
	if all > 0 && asked[-1] > all {
		c.find(Wrong, "", "fewer pages", "the kernel reserves what it can and does not report the rest",
			"the machine has %d MB, less than the requested hugepages", all/1024)
	}
}

// release finds arguments that the machine's kernel does not know. Distributions may have backported them.
func (c *checker) release() {
	var major, minor int
	if n, _ := fmt.Sscanf(c.m.Kernel.Release, "%d.%d", &major, &minor); n != 2 {
		return
	}
	before := func(a, b int) bool { return major < a || major == a && minor < b }
	if f := c.setting("isolcpus flags"); f != nil && before(5, 6) && strings.Contains(f.Value, "managed_irq") &&
		!strings.Contains(c.m.Kernel.Release, ".el8") {
		c.find(Wrong, f.where(), "isolcpus=CPUS without flags",
			"an unknown flag makes the kernel ignore the whole argument",
			"Linux %s does not know isolcpus=managed_irq, which exists since 5.6", c.m.Kernel.Release)
	}
	if h := c.setting("hugepages by node"); h != nil && before(5, 16) {
		c.find(Warning, h.where(), "hugepages=N", "no pages are reserved then",
			"Linux %s does not know hugepages= by node, which exists since 5.16", c.m.Kernel.Release)
	}
}
