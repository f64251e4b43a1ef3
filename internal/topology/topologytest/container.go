// SPDX-License-Identifier: Apache-2.0
package topologytest

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// The ways in which a container sees processes and cgroups.
const (
	ownPIDs     = iota // only its own processes
	sharedPIDs         // those of the other containers of its pod, too
	hostPIDs           // the host's, in a cgroup namespace of its own
	hostCgroups        // the host's processes and the host's cgroups
	marked             // the same, in a group whose name says nothing: the image is marked, and the root is another
	onlyCPUs           // the host's processes without kernel threads, and no cgroups of them
	views
)

// Names of what does not belong to a random container begin with this word, and its threads have numbers from
// AlienTID on.
const (
	Alien    = "alien"
	AlienTID = 700_000
)

// RandomContainer describes what a random container sees of a random machine: its own data plane and guests, which are
// often configured badly, and processes, guests and settings of its host and of other containers. It returns the CPUs
// that the container may use, too.
func RandomContainer(seed uint64) (*Spec, cpuset.Set) {
	d := dice{rand.New(rand.NewPCG(seed, 71))}
	s, all := d.hardware(fmt.Sprintf("container-%d", seed))
	s.OwnPIDs, s.Links = true, map[string]string{}
	own := d.cpusOfContainer(s, all)
	c := view{dice: d, s: s, all: all, own: own, kind: d.IntN(views),
		id: fmt.Sprintf("%064x", seed*0x9e3779b97f4a7c15)}
	d.dataPlane(s, own)
	for g := range d.IntN(3) {
		d.guest(s, own, g)
	}
	d.services(s, own)
	c.processes()
	c.cgroups()
	c.namespaces()
	if c.kind == onlyCPUs && all.Equal(own) {
		return s, own // nothing would tell threads of others from its own
	}
	if c.kind > sharedPIDs {
		c.host()
	}
	if c.kind != ownPIDs {
		c.neighbor()
	}
	return s, own
}

// cpusOfContainer returns at least four whole cores, or all.
func (d dice) cpusOfContainer(s *Spec, all cpuset.Set) cpuset.Set {
	if d.one(5) {
		return all
	}
	var own cpuset.Set
	order := d.Perm(len(s.CPUs))
	for n := 0; n < len(order) && (n < 8 || own.Len() < 8 || d.one(2)); n++ {
		at := s.CPUs[order[n]]
		for _, c := range s.CPUs {
			if c.Core == at.Core && c.Socket == at.Socket {
				own = own.Or(cpuset.Of(c.ID))
			}
		}
	}
	return own
}

type view struct {
	dice
	s        *Spec
	all, own cpuset.Set
	kind     int
	id       string
}

// home returns the path of the container's cgroup.
func (c *view) home() string {
	switch c.kind {
	case hostCgroups:
		return "/system.slice/docker-" + c.id + ".scope"
	case marked:
		return "/machine.slice/router.service"
	}
	return "/"
}

// group returns the path of another cgroup, as this container sees it.
func (c *view) group(path string) string {
	switch c.kind {
	case hostPIDs:
		return "/../.." + path
	case sharedPIDs:
		return "/.." + path
	case onlyCPUs:
		return "/"
	}
	return path
}

// processes puts the threads so far into the container's cgroup, and adds its first process.
func (c *view) processes() {
	pid := 1
	if c.kind > sharedPIDs && c.kind != onlyCPUs {
		pid = 3000
	}
	c.s.Threads = append(c.s.Threads, Thread{TID: pid, PID: pid, Name: "entrypoint", Allowed: c.own,
		CPU: c.own.First()})
	for i := range c.s.Threads {
		if t := &c.s.Threads[i]; t.Cgroup == "" || c.kind == marked || c.kind == hostCgroups {
			t.Cgroup = strings.TrimSuffix(c.home(), "/") + strings.TrimSuffix(t.Cgroup, "/")
		}
	}
}

// cgroups writes the container's own hierarchy, or where its group is not the root the host's.
func (c *view) cgroups() {
	const root = "sys/fs/cgroup"
	delete(c.s.Files, root+"/cpuset.cpus.effective")
	c.s.Files[root+"/cgroup.controllers"] = "cpuset cpu io memory pids"
	home := root + strings.TrimSuffix(c.home(), "/")
	c.s.Files[home+"/cpuset.cpus"] = c.own.String()
	c.s.Files[home+"/cpuset.cpus.effective"] = c.own.String()
	if home != root {
		c.s.Files[root+"/cpuset.cpus.effective"] = c.all.String()
		c.s.Files[root+"/system.slice/"+Alien+".service/cpuset.cpus"] = c.all.String()
		c.s.Files[root+"/system.slice/"+Alien+".service/cpuset.cpus.partition"] = "isolated invalid (" + Alien + ")"
	}
}

// namespaces writes what a program of the container reads of itself.
func (c *view) namespaces() {
	if c.kind == onlyCPUs {
		return
	}
	c.s.Files["proc/self/cgroup"] = "0::" + c.home()
	first := map[string]string{"pid": "pid:[4026531836]", "cgroup": "cgroup:[4026531835]"}
	other := map[string]string{"pid": "pid:[4026532519]", "cgroup": "cgroup:[4026532520]"}
	if c.one(2) {
		for kind, own := range map[string]bool{"pid": c.kind <= sharedPIDs, "cgroup": c.kind <= hostPIDs} {
			c.s.Links["proc/self/ns/"+kind] = map[bool]string{true: other[kind], false: first[kind]}[own]
		}
	}
	const mine, hosts = "700 650 0:55 / / rw - overlay overlay rw\n701 700 0:60 / /proc rw - proc proc rw",
		"22 1 8:2 / / rw shared:1 - ext4 /dev/sda2 rw\n23 22 0:21 / /proc rw - proc proc rw"
	if c.kind == marked || c.one(2) {
		c.s.Files["proc/self/mountinfo"] = mine
		c.s.Files["proc/1/mountinfo"] = map[bool]string{true: mine, false: hosts}[c.kind <= sharedPIDs]
	}
	if c.kind == marked || c.one(2) {
		c.s.Files[".dockerenv"] = ""
	}
}

// host adds processes of the host: its first one, kernel threads, and a program that may run anywhere.
func (c *view) host() {
	add := func(t Thread) {
		t.Foreign, t.PID, t.CPU, t.Ticks = true, t.TID, t.Allowed.First(), 900
		c.s.Threads = append(c.s.Threads, t)
	}
	anywhere := c.foreignCPUs()
	if c.kind != onlyCPUs {
		add(Thread{TID: 1, Name: Alien + "-init", Allowed: anywhere, Cgroup: c.group("/init.scope")})
		add(Thread{TID: 2, Name: "kthreadd", Kernel: true, Allowed: c.all, Cgroup: c.group("/")})
		for n, id := range c.all.IDs() {
			add(Thread{TID: AlienTID + n, Name: fmt.Sprintf(Alien+"/%d", id), Kernel: true, Fixed: c.one(2),
				Allowed: cpuset.Of(id), Cgroup: c.group("/")})
		}
	}
	for n := range 1 + c.IntN(3) {
		add(Thread{TID: AlienTID + 100 + n, Name: Alien + "d", Allowed: c.foreignCPUs(),
			Cgroup: c.group("/system.slice/" + Alien + ".service")})
	}
	add(Thread{TID: AlienTID + 110, Name: "irqbalance", Allowed: anywhere,
		Cgroup: c.group("/system.slice/irqbalance.service")})
}

// foreignCPUs returns CPUs of a thread of others. Where only its CPUs tell that it is not ours, some are not.
func (c *view) foreignCPUs() cpuset.Set {
	if c.kind == onlyCPUs {
		return c.some(c.all, 4).Or(c.some(c.all.Without(c.own), 2))
	}
	return c.some(c.all, c.all.Len())
}

// neighbor adds another container with a data plane, and another guest, of which one may be defined here, too.
func (c *view) neighbor() {
	from := len(c.s.Threads)
	group := c.group("/system.slice/docker-" + strings.Repeat("f", 64) + ".scope")
	if c.kind == sharedPIDs {
		group = c.group("/" + strings.Repeat("f", 64))
	}
	const router, guest = AlienTID + 200, AlienTID + 300
	add := func(pid, tid int, name string) {
		c.s.Threads = append(c.s.Threads, Thread{TID: tid, PID: pid, Name: name, Allowed: c.foreignCPUs(),
			Cgroup: group, Ticks: 900})
	}
	add(router, router, "corelaned")
	add(router, router+1, "pmd-fwd-0")
	add(guest, guest, "qemu-kvm")
	for n := range 1 + c.IntN(4) {
		add(guest, guest+1+n, fmt.Sprintf("CPU %d/KVM", n))
	}
	add(guest+90, guest+90, fmt.Sprintf("vhost-%d", guest))
	for i := from; i < len(c.s.Threads); i++ {
		t := &c.s.Threads[i]
		if t.Foreign, t.CPU = true, t.Allowed.First(); t.Name == "pmd-fwd-0" || strings.HasPrefix(t.Name, "CPU ") {
			if c.one(2) && c.kind != onlyCPUs {
				t.Allowed = c.some(c.own, 1) // the same CPUs as ours
			} else if c.kind == onlyCPUs {
				t.Allowed = c.some(c.all.Without(c.own), 1)
			}
			t.CPU = t.Allowed.First()
		}
	}
	c.s.Files[fmt.Sprintf("proc/%d/cmdline", guest)] = "qemu-kvm\x00-name\x00guest=" + Alien + "-vm,debug-threads=on"
	for _, name := range []string{Alien + "-vm", Alien + "-off"} {
		if c.one(2) { // the host's directory is mounted
			c.s.Files["etc/libvirt/qemu/"+name+".xml"] = "<domain type='kvm'><name>" + name + "</name><vcpu>2</vcpu>" +
				"<cputune><vcpupin vcpu='0' cpuset='" + c.some(c.own, 1).String() + "'/></cputune></domain>"
		}
	}
}
