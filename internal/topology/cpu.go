// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

const cpuDir = "sys/devices/system/cpu" // Documentation/ABI/testing/sysfs-devices-system-cpu

// cpus reads all CPUs that the machine has, online or not.
func (r *reader) cpus() error {
	info := r.cpuinfo()
	present := r.present(info)
	if present.Empty() {
		return errors.New("no CPU was found, neither in " + cpuDir + " nor in proc/cpuinfo")
	}
	online := r.online(present)
	for _, id := range present.IDs() {
		c := CPU{ID: id, Online: online.Has(id), Socket: -1, Die: -1, Core: -1, Siblings: cpuset.Of(id),
			Model: info[id].Model}
		if c.Online {
			r.place(&c)
			r.caches(&c)
		}
		r.speed(&c)
		c.Governor, _ = r.text(fmt.Sprintf("%s/cpu%d/cpufreq/scaling_governor", cpuDir, id), maybe)
		r.m.CPUs = append(r.m.CPUs, c)
	}
	r.coreTypes()
	r.checkSiblings()
	r.virtual(info)
	return nil
}

// present finds the CPUs, and notes where its sources contradict each other. A CPU that has a directory but is not
// present is an empty slot for hotplug.
func (r *reader) present(info map[int]procfs.Processor) cpuset.Set {
	dirs := cpuset.Of(r.numbered(cpuDir, "cpu", needed)...)
	set, ok := value(r, cpuDir+"/present", needed, cpuset.Parse)
	switch {
	case ok && !dirs.Empty():
		if odd := set.Without(dirs); !odd.Empty() {
			r.trouble(cpuDir+"/present", "has CPUs %s, which have no directory: they are left out", odd)
		}
		return set.And(dirs)
	case ok:
		return set
	case !dirs.Empty():
		return dirs
	}
	var ids []int
	for id := range info {
		ids = append(ids, id)
	}
	return cpuset.Of(ids...)
}

func (r *reader) online(present cpuset.Set) cpuset.Set {
	online, ok := value(r, cpuDir+"/online", needed, cpuset.Parse)
	if ok && online.Overlaps(present) {
		if odd := online.Without(present); !odd.Empty() {
			r.trouble(cpuDir+"/online", "has CPUs %s, which are not present: they are left out", odd)
		}
		return online
	}
	if ok {
		r.trouble(cpuDir+"/online", "has none of the CPUs %s: all of them are taken as online", present)
	} else {
		r.trouble(cpuDir+"/online", "all CPUs %s are taken as online", present)
	}
	return present
}

// place reads the position of an online CPU: socket, die, core, siblings.
func (r *reader) place(c *CPU) {
	dir := fmt.Sprintf("%s/cpu%d/topology/", cpuDir, c.ID)
	id := func(name string, n need) int {
		if v, ok := value(r, dir+name, n, number); ok {
			return v
		}
		return -1
	}
	c.Socket, c.Core, c.Die = id("physical_package_id", needed), id("core_id", needed), id("die_id", maybe)
	set, ok := value(r, dir+"core_cpus_list", maybe, cpuset.Parse) // since Linux 5.3
	if !ok {
		set, ok = value(r, dir+"thread_siblings_list", needed, cpuset.Parse)
	}
	if ok && !set.Has(c.ID) {
		r.trouble(dir+"thread_siblings_list", "'%s' lacks CPU %d itself: this CPU is taken as alone on its core", set,
			c.ID)
	} else if ok {
		c.Siblings = set
	}
}

// caches reads which CPUs share the caches of levels 2 and 3.
func (r *reader) caches(c *CPU) {
	dir := fmt.Sprintf("%s/cpu%d/cache", cpuDir, c.ID)
	for _, i := range r.numbered(dir, "index", maybe) {
		level, ok := value(r, fmt.Sprintf("%s/index%d/level", dir, i), needed, number)
		if !ok || level < 2 || level > 3 {
			continue
		}
		set, ok := value(r, fmt.Sprintf("%s/index%d/shared_cpu_list", dir, i), needed, cpuset.Parse)
		switch {
		case !ok:
		case !set.Has(c.ID):
			r.trouble(fmt.Sprintf("%s/index%d/shared_cpu_list", dir, i), "'%s' lacks CPU %d itself", set, c.ID)
		case level == 2:
			c.L2 = set
		default:
			c.L3 = set
		}
	}
	if c.L2.Empty() && c.L3.Empty() {
		r.trouble(dir, "does not say which CPUs share caches")
	}
}

// checkSiblings finds cores whose CPUs report different siblings.
func (r *reader) checkSiblings() {
	by := r.m.byID()
	odd := map[int]bool{}
	for _, c := range r.m.CPUs {
		for _, id := range c.Siblings.IDs() {
			other := by[id]
			if other == nil || other.Online && !other.Siblings.Equal(c.Siblings) {
				r.trouble(fmt.Sprintf("%s/cpu%d/topology/thread_siblings_list", cpuDir, c.ID),
					"CPU %d has siblings %s, but CPU %d has others: it is taken as alone on its core", c.ID, c.Siblings,
					id)
				odd[c.ID] = true
				break
			}
		}
	}
	for i := range r.m.CPUs {
		if c := &r.m.CPUs[i]; odd[c.ID] {
			c.Siblings = cpuset.Of(c.ID)
		}
	}
}

func (m *Machine) byID() map[int]*CPU {
	by := map[int]*CPU{}
	for i := range m.CPUs {
		by[m.CPUs[i].ID] = &m.CPUs[i]
	}
	return by
}

// cpuinfo reads /proc/cpuinfo, by CPU.
func (r *reader) cpuinfo() map[int]procfs.Processor {
	text, _ := r.text("proc/cpuinfo", needed)
	all := map[int]procfs.Processor{}
	for _, p := range procfs.ParseCPUInfo(text) {
		all[p.ID] = p
	}
	return all
}

// virtual returns the hypervisor on which the machine runs, if any.
func (r *reader) virtual(info map[int]procfs.Processor) {
	vendor, _ := r.text("sys/class/dmi/id/sys_vendor", maybe)
	product, _ := r.text("sys/class/dmi/id/product_name", maybe)
	xen, _ := r.text("sys/hypervisor/type", maybe)
	r.m.Virtual = hypervisor(vendor, product, xen)
	if r.m.Virtual == "" && info[r.m.CPUs[0].ID].Hypervisor {
		r.m.Virtual = "unknown"
	}
}

// hypervisor maps DMI's vendor and product names to hypervisors, as systemd's detect-virt does.
func hypervisor(vendor, product, xen string) string {
	switch {
	case xen != "":
		return xen
	case vendor == "QEMU", product == "KVM", vendor == "OpenStack Foundation", vendor == "Red Hat" &&
		strings.Contains(product, "KVM"), vendor == "Amazon EC2" && !strings.HasSuffix(product, ".metal"),
		strings.HasPrefix(product, "Google Compute Engine"):
		return "kvm"
	case strings.HasPrefix(vendor, "VMware"):
		return "vmware"
	case vendor == "Microsoft Corporation" && product == "Virtual Machine":
		return "hyperv"
	case strings.HasPrefix(vendor, "innotek"):
		return "virtualbox"
	}
	return ""
}
