// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology"
)

// roleRequest is the number and the fixed CPUs of a role.
type roleRequest struct {
	role  Role
	field string
	count *int
	fixed *cpuset.Set
}

// all returns the requests by role. The number for housekeeping counts cores per node.
func (w *Request) all() []roleRequest {
	return []roleRequest{
		{Forwarding, "forwarding", &w.Forwarding, &w.ForwardingCPUs},
		{IsolatedRx, "isolated_rx", &w.IsolatedRx, &w.IsolatedRxCPUs},
		{HostPath, "host_path", &w.HostPath, &w.HostPathCPUs},
		{Service, "service", &w.Service, &w.ServiceCPUs},
		{Guests, "guests", &w.Guests, &w.GuestCPUs},
		{Emulator, "emulator", &w.Emulator, &w.EmulatorCPUs},
		{Housekeeping, "housekeeping", &w.Housekeeping, &w.HousekeepingCPUs},
	}
}

// faults collects errors of a request, one per line.
type faults []error

func (f *faults) add(field, valid, format string, args ...any) {
	*f = append(*f, input.Errorf(field, valid, format, args...))
}

func (f faults) err() error { return errors.Join(f...) }

// normal checks a request against a machine and sets the numbers of roles with fixed sets.
func (v *view) normal(w Request) (Request, error) {
	var f faults
	asked := false
	for _, x := range w.all() {
		asked = asked || *x.count > 0 || !x.fixed.Empty()
		f.count(x)
		v.checkFixed(&f, x)
	}
	if !asked && len(f) == 0 {
		f.add("request", "at least one of forwarding, guests, service, housekeeping, ...", "the request is empty")
	}
	v.checkApart(&f, w)
	if w.IsolatedRx != 0 && w.IsolatedRx != w.Forwarding {
		f.add("isolated_rx", fmt.Sprintf("0 or %d, one for each forwarding worker", w.Forwarding),
			"%d requested for %d forwarding workers",
			w.IsolatedRx, w.Forwarding)
	}
	for _, name := range w.NICs {
		if _, found := v.nic(name); !found {
			f.add("nics", v.nicNames(), "'%s' is not a network device of this machine", name)
		}
	}
	v.checkHugepages(&f, w.Hugepages)
	return w, f.err()
}

func (f *faults) count(x roleRequest) {
	switch {
	case *x.count < 0: // too many are refused where the CPUs are given out: only there is known how many are left
		f.add(x.field, "0 or more", "%d is negative", *x.count)
	case x.fixed.Empty() || x.role == Housekeeping && *x.count == 0:
	case x.role == Housekeeping:
		f.add(x.field, "one of them", "%d cores per node and the fixed CPUs %s exclude each other", *x.count, x.fixed)
	case *x.count != 0 && *x.count != x.fixed.Len():
		f.add(x.field, fmt.Sprintf("%d, or nothing", x.fixed.Len()), "%d requested, but %s has %s", *x.count,
			fixedField(x), x.fixed)
	default:
		*x.count = x.fixed.Len()
	}
}

// checkFixed reports CPUs of a fixed set that cannot be used.
func (v *view) checkFixed(f *faults, x roleRequest) {
	var unknown, offline []int
	for _, id := range x.fixed.Without(v.online).IDs() {
		if _, known := v.cpu[id]; known {
			offline = append(offline, id)
		} else {
			unknown = append(unknown, id)
		}
	}
	for _, bad := range []struct {
		cpus cpuset.Set
		why  string
	}{
		{cpuset.Of(unknown...), "this machine has no"},
		{cpuset.Of(offline...), "offline:"},
		{x.fixed.And(v.online).Without(v.usable), "this container may not use"},
	} {
		if !bad.cpus.Empty() {
			f.add(fixedField(x), "CPUs of "+v.usable.String(), "%s CPU %s", bad.why, bad.cpus)
		}
	}
}

func fixedField(x roleRequest) string {
	if x.role == Guests {
		return "guest_cpus"
	}
	return x.field + "_cpus"
}

// checkApart reports conflicts between fixed sets: a CPU in two sets, siblings, the first core.
func (v *view) checkApart(f *faults, w Request) {
	list := w.all()
	for i, a := range list {
		for _, b := range list[i+1:] {
			if both := a.fixed.And(*b.fixed); !both.Empty() {
				f.add(fixedField(a), "each CPU in one set", "CPU %s is also in %s", both, fixedField(b))
			}
		}
		if !w.AllowOverlap {
			v.checkFirst(f, a)
		}
	}
	if w.AllowOverlap {
		return
	}
	owner := map[int]roleRequest{}
	for _, x := range list {
		for _, id := range x.fixed.IDs() {
			if _, twice := owner[id]; !twice {
				owner[id] = x
			}
		}
	}
	for _, c := range v.cores {
		v.checkCore(f, w, c, owner)
	}
}

// checkFirst keeps the machine's first core for housekeeping.
func (v *view) checkFirst(f *faults, x roleRequest) {
	first := v.first()
	switch {
	case first == nil || x.fixed.Empty():
	case x.role == Housekeeping && !x.fixed.Overlaps(first.cpus):
		f.add(fixedField(x), "a set with "+first.cpus.String(),
			"the first core (CPU %s) is missing, but it has kernel "+
				"work that cannot move", first.cpus)
	case x.role != Housekeeping && x.fixed.Overlaps(first.cpus):
		f.add(fixedField(x), "other CPUs, or allow_overlap",
			"CPU %s is on the first core, which has kernel work that cannot move",
			x.fixed.And(first.cpus))
	}
}

// checkCore reports a fixed worker that would share its core with another role.
func (v *view) checkCore(f *faults, w Request, c *core, owner map[int]roleRequest) {
	ids := slices.DeleteFunc(c.cpus.IDs(), func(id int) bool { return owner[id].count == nil })
	for i, id := range ids {
		for _, other := range ids[i+1:] {
			a, b := owner[id], owner[other]
			if mayShare(a.role, b.role, w.ShareCores) {
				continue
			}
			valid := "one of them on another core"
			if a.role.worker() && b.role.worker() {
				valid += ", or share_cores"
			}
			f.add(fixedField(a), valid, "CPU %d shares its core with CPU %d of %s", id, other, fixedField(b))
		}
	}
}

// worker reports whether CPUs of the role poll all the time.
func (r Role) worker() bool { return r == Forwarding || r == IsolatedRx || r == HostPath }

// mayShare reports whether two roles may be siblings.
func mayShare(a, b Role, shareCores bool) bool {
	switch {
	case !a.worker() && !b.worker():
		return true
	case a == Idle || b == Idle:
		return true
	case !a.worker() || !b.worker():
		return false
	}
	return shareCores || (a == Forwarding) != (b == Forwarding) && (a == IsolatedRx || b == IsolatedRx)
}

func (v *view) nicNames() string {
	var names []string
	for _, n := range v.m.NICs {
		name := n.Address
		if n.Interface != "" {
			name += " (" + n.Interface + ")"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none, no network device was found on this machine"
	}
	return strings.Join(names, ", ")
}

// checkHugepages compares requested hugepages with the memory of the nodes.
func (v *view) checkHugepages(f *faults, list []HugepageRequest) {
	var nodes []string
	used := map[int]int64{}
	for _, n := range v.m.Nodes {
		nodes = append(nodes, fmt.Sprint(n.ID))
	}
	for i, h := range list {
		field := fmt.Sprintf("hugepages[%d]", i)
		known := h.Node == -1
		for _, n := range v.m.Nodes {
			if h.Node == -1 || h.Node == n.ID {
				known = true
				used[n.ID] += int64(min(max(h.KiB, 0), 1<<24)) * int64(min(max(h.Pages, 0), 1<<32))
			}
		}
		if !known {
			f.add(field, strings.Join(nodes, ", ")+", or -1 for each", "this machine has no node %d", h.Node)
		}
		if sizes := v.m.PageSizes(); !slices.Contains(sizes, h.KiB) {
			f.add(field, topology.PageSizeTexts(sizes), "this machine has no hugepages of %d KiB", h.KiB)
		}
		if h.Pages < 1 {
			f.add(field, "1 or more", "%d pages", h.Pages)
		}
	}
	for _, n := range v.m.Nodes {
		if n.MemoryKiB > 0 && used[n.ID] >= n.MemoryKiB {
			f.add("hugepages", fmt.Sprintf("less than %d MiB", n.MemoryKiB>>10),
				"%d MiB requested on node %d, which has %d MiB",
				used[n.ID]>>10, n.ID, n.MemoryKiB>>10)
		}
	}
}
