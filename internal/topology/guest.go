// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// guests finds virtual machines: those of libvirt, and other running QEMU processes.
func (r *reader) guests() {
	known := map[string]int{} // name -> index in Guests
	for _, dir := range []string{"etc/libvirt/qemu", "run/libvirt/qemu"} {
		for _, file := range r.list(dir, "*.xml", maybe) {
			d, ok := value(r, dir+"/"+file, maybe, parseDomain)
			if !ok {
				continue
			}
			g, err := d.guest()
			if err != nil {
				r.trouble(dir+"/"+file, "%v", err)
				continue
			}
			if at, twice := known[g.Name]; twice { // prefer the running one
				r.m.Guests[at] = g
				continue
			}
			known[g.Name] = len(r.m.Guests)
			r.m.Guests = append(r.m.Guests, g)
		}
	}
	for pid, threads := range r.qemus() {
		r.running(pid, threads, known)
	}
	if r.m.Container { // others may be its host's: their processes cannot be told from those of other containers
		r.m.Guests = slices.DeleteFunc(r.m.Guests, func(g Guest) bool { return g.PID == 0 })
	}
	sortGuests(r.m.Guests)
}

// qemus returns the threads of each process that runs a virtual machine.
func (r *reader) qemus() map[int][]*Thread {
	all := map[int][]*Thread{}
	for i := range r.m.Threads {
		t := &r.m.Threads[i]
		if !t.Kernel && (strings.HasPrefix(t.Process, "qemu-") || t.Process == "kvm") {
			all[t.PID] = append(all[t.PID], t)
		}
	}
	return all
}

// running merges a QEMU process into libvirt's description. The real affinities of its threads replace libvirt's.
func (r *reader) running(pid int, threads []*Thread, known map[string]int) {
	line, ok := r.text(fmt.Sprintf("proc/%d/cmdline", pid), maybe)
	if !ok {
		return // it ended
	}
	q := parseQEMU(line)
	if q.name == "" {
		q.name = fmt.Sprintf("qemu-%d", pid)
	}
	g := Guest{Name: q.name, Source: "qemu", Queues: q.queues}
	if at, ok := known[q.name]; ok {
		g = r.m.Guests[at]
	}
	g.PID = pid
	g.threads(threads)
	g.Vhost = r.vhost(pid)
	if len(g.VCPUs) == 0 {
		r.trouble(fmt.Sprintf("proc/%d/task", pid),
			"guest '%s' has no threads 'CPU n/KVM': QEMU runs without -name debug-threads=on", g.Name)
	}
	if at, ok := known[q.name]; ok {
		r.m.Guests[at] = g
		return
	}
	known[g.Name] = len(r.m.Guests)
	r.m.Guests = append(r.m.Guests, g)
}

// threads reads the affinities of a QEMU process' threads, which are named "CPU 0/KVM" and "IO iothread1".
func (g *Guest) threads(threads []*Thread) {
	vcpus := map[int]cpuset.Set{}
	var io []cpuset.Set
	for _, t := range threads {
		var n int
		switch {
		case t.TID == t.PID:
			g.Emulator = t.Allowed
		case strings.HasPrefix(t.Name, "CPU "):
			if _, err := fmt.Sscanf(t.Name, "CPU %d/", &n); err == nil && n >= 0 && n < maxThreads {
				vcpus[n] = t.Allowed
			}
		case strings.HasPrefix(t.Name, "IO "):
			io = append(io, t.Allowed)
		}
	}
	for n, set := range vcpus {
		for len(g.VCPUs) <= n {
			g.VCPUs = append(g.VCPUs, cpuset.Set{})
		}
		g.VCPUs[n] = set
	}
	if len(io) > 0 {
		g.IOThread = io
	}
}

// vhost finds the vhost threads of a guest: kernel threads before Linux 6.4, threads of the QEMU process since.
func (r *reader) vhost(pid int) []Thread {
	var all []Thread
	for i := range r.m.Threads {
		if r.m.Threads[i].Name == fmt.Sprintf("vhost-%d", pid) {
			all = append(all, r.m.Threads[i])
		}
	}
	return all
}
