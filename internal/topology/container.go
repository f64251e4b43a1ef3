// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

// containerID is the part of a cgroup's path that Docker, containerd, CRI-O and Podman name after a container.
var containerID = regexp.MustCompile(`^/(?:.*/)?[^/]*[0-9a-f]{64}[^/]*`)

// container decides whether the files are a container's view, and leaves out the threads that it sees but that belong
// to its host or to other containers. The cgroups must have been read.
func (r *reader) container() {
	m := r.m
	own, _ := value(r, "proc/self/cgroup", maybe, func(text string) (string, error) { return parseCgroup(text), nil })
	if m.Container = r.inContainer(own); !m.Container {
		return
	}
	m.Group = r.containerGroup(own)
	if s, ok := value(r, "proc/self/status", maybe, parseStatus); ok {
		m.Allowed = s.allowed
	}
	r.ownGroups()
	var mine []Thread
	for i := range m.Threads {
		if m.Owns(&m.Threads[i]) {
			mine = append(mine, m.Threads[i])
		}
	}
	if left := len(m.Threads) - len(mine); left > 0 {
		r.trouble("proc", "%d threads of the host or of other containers are left out", left)
	}
	m.Threads = mine
}

// inContainer looks for what no container hides. Without kthreadd the process IDs are a container's own. A container
// with the host's process IDs has another PID or cgroup namespace, or a group with its ID. The files that mark a
// container's image count only where the first process has another root, or if there are no processes at all: machines
// can also be booted from such images.
func (r *reader) inContainer(own string) bool {
	kthreadd := r.thread2()
	if kthreadd == nil && len(r.m.Threads) > 0 {
		return true
	}
	marked := slices.ContainsFunc([]string{".dockerenv", "run/.containerenv", "run/systemd/container"},
		func(mark string) bool { _, ok := r.text(mark, maybe); return ok })
	switch {
	case kthreadd == nil:
		return marked
	case kthreadd.Kernel && r.namespaceIsNot("pid:[4026531836]"), r.namespaceIsNot("cgroup:[4026531835]"):
		return true
	}
	return outside(kthreadd.Cgroup) || containerID.MatchString(own) || marked && r.otherRoot()
}

// namespaceIsNot reports whether this program is in another namespace than the kernel's first one, whose inode is
// PROC_*_INIT_INO of include/linux/proc_ns.h.
func (r *reader) namespaceIsNot(first string) bool {
	kind, _, _ := strings.Cut(first, ":")
	to, err := r.tree.Link("proc/self/ns/" + kind)
	return err == nil && path.Base(to) != first
}

// otherRoot reports whether this program has another root directory than the first process.
func (r *reader) otherRoot() bool {
	mine, err := r.tree.Read("proc/self/mountinfo")
	first, err2 := r.tree.Read("proc/1/mountinfo") // not for everybody
	return err == nil && err2 == nil && rootMount(mine) != rootMount(first)
}

// rootMount returns the line of mountinfo (proc_pid_mountinfo(5)) about the root directory: the device, and the
// directory in its filesystem.
func rootMount(text string) string {
	found := ""
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/" {
			found = "0 0 " + strings.Join(f[2:5], " ") + "\n" // a later one hides it
		}
	}
	return found
}

// thread2 returns kthreadd, the ancestor of all kernel threads, or nil.
func (r *reader) thread2() *Thread {
	for i := range r.m.Threads {
		if t := &r.m.Threads[i]; t.TID == 2 && t.Name == "kthreadd" {
			return t
		}
	}
	return nil
}

// containerGroup returns the cgroup that holds all threads of the container, or "" if that is not known: the one with
// its ID, the root of its cgroup namespace, with process IDs of its own that of the first process and this one, and
// otherwise that of this process.
func (r *reader) containerGroup(own string) string {
	if id := containerID.FindString(own); id != "" || own == "" {
		return id
	}
	if outside(own) {
		return own
	}
	first := ""
	for i := range r.m.Threads {
		t := &r.m.Threads[i]
		if outside(t.Cgroup) {
			return "/"
		}
		if t.TID == 1 && r.thread2() == nil {
			first = t.Cgroup
		}
	}
	for first != "" && !within(own, first) {
		first = path.Dir(first)
	}
	if first != "" {
		return first
	}
	return own
}

// outside reports whether a cgroup is not below the root of this program's cgroup namespace (cgroup_namespaces(7)).
func outside(group string) bool { return group == "/.." || strings.HasPrefix(group, "/../") }

// within reports whether a cgroup is another one or below it.
func within(group, above string) bool {
	below := strings.HasPrefix(group, strings.TrimSuffix(above, "/")+"/")
	return group == above || below && (above != "/" || !outside(group))
}

// ownGroups leaves out the cgroups that are neither the container's nor above it. The root of the whole hierarchy,
// which alone has no cpuset.cpus, is not that of a container: its groups have other paths there.
func (r *reader) ownGroups() {
	m := r.m
	_, none := r.tree.Read(cgroupDir + "/cpuset.cpus")
	_, root := r.tree.Read(cgroupDir + "/cpuset.cpus.effective")
	foreign := m.Group == "/" && m.Cgroups.Version == 2 && missing(none) && root == nil
	m.Cgroups.Groups = slices.DeleteFunc(m.Cgroups.Groups, func(g Cgroup) bool {
		return m.Group != "" && (foreign || !within(g.Path, m.Group) && !within(m.Group, g.Path))
	})
}

// Owns reports whether a thread belongs to this machine or container. A thread of another container, or of a
// container's host, may be visible, but it is not ours to move. Without its cgroup a thread is known by its CPUs: none
// has a CPU that its container may not use.
func (m *Machine) Owns(t *Thread) bool {
	switch {
	case !m.Container:
		return true
	case m.Group != "":
		return within(t.Cgroup, m.Group)
	}
	return !outside(t.Cgroup) && t.Allowed.And(m.Online()).Within(m.Usable())
}

// Usable returns the online CPUs that programs may use: in a container those of its cgroup, and if that is not known
// those of this program or of the first process.
func (m *Machine) Usable() cpuset.Set {
	online := m.Online()
	if !m.Container {
		return online
	}
	if own := m.groupCPUs().And(online); !own.Empty() {
		return own
	}
	if own := m.Allowed.And(online); !own.Empty() {
		return own
	}
	for i := range m.Threads {
		if own := m.Threads[i].Allowed.And(online); m.Threads[i].TID == 1 && !own.Empty() {
			return own
		}
	}
	return online
}

// groupCPUs returns the CPUs of the container's cgroup and of the partitions in it, or those of the nearest group above
// it that has any.
func (m *Machine) groupCPUs() cpuset.Set {
	home, nearest, cpus := m.Group, "", cpuset.Set{}
	if home == "" {
		home = "/"
	}
	for _, g := range m.Cgroups.Groups {
		if within(home, g.Path) && len(g.Path) > len(nearest) && !g.Effective.Empty() {
			nearest, cpus = g.Path, g.Effective
		}
	}
	for _, g := range m.Cgroups.Groups {
		if within(g.Path, home) && !cpus.Empty() {
			cpus = cpus.Or(g.Effective)
		}
	}
	return cpus
}
