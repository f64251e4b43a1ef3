// SPDX-License-Identifier: Apache-2.0
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/topology"
)

// Version of the plan's format.
const Version = 1

// Make gives each CPU a role. A request that cannot be met is an error of package input; contradictions are reported
// together.
func Make(m *topology.Machine, request Request) (*Plan, error) {
	k, err := decide(m, request)
	if err != nil {
		return nil, withHints(m, request, err)
	}
	p := k.plan()
	p.Request = request
	p.Warnings = k.warnings(p)
	p.Alternatives = k.alternatives(m)
	return p, nil
}

// maker builds a plan. It places the roles first that suffer most from a bad place.
type maker struct {
	*view
	w       Request
	role    map[int]Role
	why     map[int]string
	workers []Worker
	homes   []int          // nodes of the network devices, in their order; host path and services use the first
	rank    map[int][2]int // rank of a cache domain among those of its node
	spare   []*core        // the host's cores whose CPUs may be used as a last resort
	single  bool           // the machine's only CPU does everything
}

// decide gives each CPU its role.
func decide(m *topology.Machine, request Request) (*maker, error) {
	v := newView(m)
	if v.usable.Empty() {
		return nil, input.Errorf("machine", "a machine or container with CPUs", "no usable CPU was found")
	}
	w, err := v.normal(request)
	if err != nil {
		return nil, err
	}
	k := &maker{view: v, w: w, role: map[int]Role{}, why: map[int]string{}, rank: map[int][2]int{}}
	k.findHomes()
	for _, x := range w.all() {
		for _, id := range x.fixed.IDs() {
			k.give(id, x.role, fmt.Sprintf("chosen by %s", fixedField(x)))
		}
	}
	for _, step := range []func() error{k.quota, k.housekeeping, k.rankDomains, k.placeForwarding, k.placeHostPath,
		k.placeService, k.placeGuests, k.placeEmulators} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	k.rest()
	return k, nil
}

func (k *maker) give(id int, role Role, why string) {
	k.role[id], k.why[id] = role, why
}

// free returns the CPUs of a core that have no role.
func (k *maker) free(c *core) []int {
	return slices.DeleteFunc(c.cpus.IDs(), func(id int) bool { return k.role[id] != "" })
}

// has reports whether a CPU of the core has one of the roles.
func (k *maker) has(c *core, match func(Role) bool) bool {
	return slices.ContainsFunc(c.cpus.IDs(), func(id int) bool { return k.role[id] != "" && match(k.role[id]) })
}

// findHomes finds the nodes on which to begin: those of the network devices or, where these have no usable CPUs, the
// nearest to them. Without a known device it is the first node.
func (k *maker) findHomes() {
	for _, name := range k.w.NICs {
		if n, _ := k.nic(name); k.known(n.Node) {
			k.homes = append(k.homes, slices.MinFunc(k.nodes, func(a, b int) int {
				return k.m.Distance(n.Node, a) - k.m.Distance(n.Node, b)
			}))
		}
	}
	if len(k.homes) == 0 {
		k.homes = k.nodes[:1]
	}
}

// housekeeping keeps the first core of each node for the host, or the requested number of cores.
func (k *maker) housekeeping() error {
	if !k.w.HousekeepingCPUs.Empty() {
		return nil
	}
	kept := 0
	for _, node := range k.nodes {
		cores := slices.DeleteFunc(k.of(node), func(c *core) bool { return len(k.free(c)) < c.cpus.Len() })
		slices.SortStableFunc(cores, func(a, b *core) int { return k.hostFirst(a) - k.hostFirst(b) })
		if len(cores) < k.w.Housekeeping {
			return k.short("housekeeping", "core", k.w.Housekeeping, len(cores),
				fmt.Sprintf("%s on node %d", k.given(), node))
		}
		for _, c := range cores[:min(len(cores), max(1, k.w.Housekeeping))] {
			k.keep(c)
			kept++
		}
	}
	if kept == 0 && !k.w.AllowOverlap {
		return input.Errorf("housekeeping", "at least one CPU, or allow_overlap",
			"no CPU is left for the host %s", k.given())
	}
	return nil
}

// hostFirst ranks cores for the host: the machine's first core, then cores that were not isolated at boot, and among
// these the slower ones.
func (k *maker) hostFirst(c *core) int {
	switch {
	case c == k.first():
		return 0
	case !c.isolated:
		return c.kind()
	}
	return 1000
}

// keep gives a core to the host. Its siblings, or the only CPU, are a last resort on small machines.
func (k *maker) keep(c *core) {
	for i, id := range c.cpus.IDs() {
		switch {
		case k.w.AllowOverlap && (i > 0 || k.usable.Len() == 1 && k.w.Forwarding == 1):
			k.single = k.single || i == 0
			k.spare = append(k.spare, &core{cpus: cpuset.Of(id), node: c.node, domain: c.domain})
		case i == 0 && c == k.first():
			k.give(id, Housekeeping, "first core of the machine: it has interrupts and kernel threads that cannot move")
		case i == 0 && k.m.Container:
			k.give(id, Housekeeping, "for all other threads of this container")
		case i == 0:
			k.give(id, Housekeeping, fmt.Sprintf("node %d: its kernel threads and the host's programs need a core",
				c.node))
		default:
			k.give(id, Housekeeping, "sibling of a CPU of the host: the host gets whole cores")
		}
	}
}

// given says which CPUs are already assigned ("after housekeeping 0,20"), for an error about too few CPUs.
func (k *maker) given() string {
	ids := map[Role][]int{}
	idle := []int{}
	for _, c := range k.cores {
		for _, id := range c.cpus.IDs() {
			if r := k.role[id]; r != "" {
				ids[r] = append(ids[r], id)
			} else if k.has(c, Role.worker) {
				idle = append(idle, id)
			}
		}
	}
	var parts []string
	for _, r := range []Role{Housekeeping, Forwarding, IsolatedRx, HostPath, Service, Guests, Emulator} {
		if len(ids[r]) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", r, cpuset.Of(ids[r]...)))
		}
	}
	if len(idle) > 0 {
		parts = append(parts, fmt.Sprintf("siblings of workers %s", cpuset.Of(idle...)))
	}
	if len(parts) == 0 {
		return "before any other role"
	}
	return "after " + strings.Join(parts, ", ")
}

// shortage is the error of a role that wants more CPUs than are left.
type shortage struct{ missing *input.Error }

func (s shortage) Error() string { return s.missing.Error() }
func (s shortage) Unwrap() error { return s.missing }

// short returns the error of a role that wants more units than were found.
func (k *maker) short(field, unit string, asked, found int, before string) error {
	left, valid := fmt.Sprintf("%d %ss are", found, unit), fmt.Sprintf("at most %d", found)
	switch found {
	case 0:
		left, valid = "no "+unit+" is", "0"
	case 1:
		left = "1 " + unit + " is"
	}
	return shortage{&input.Error{Field: field, Text: fmt.Sprintf("%d requested, but %s left %s", asked, left,
		before), Valid: valid}}
}

// plan returns the finished plan.
func (k *maker) plan() *Plan {
	p := &Plan{Version: Version, Machine: k.m.Hostname, Container: k.m.Container,
		Topology: topology.Fingerprint(k.m), Layout: Layout(k.m), Hugepages: slices.Clone(k.w.Hugepages)}
	for _, id := range k.usable.IDs() {
		p.CPUs = append(p.CPUs, CPU{id, k.role[id], k.why[id]})
	}
	p.Workers = k.workers
	p.Isolated = isolatedOf(p)
	p.IRQs = k.interrupts(p)
	return p
}

// isolatedOf returns the CPUs to isolate. The scheduler does not balance isolated CPUs, so each of their threads must
// have one CPU: CPUs of emulator threads and more than two service CPUs are not isolated.
func isolatedOf(p *Plan) cpuset.Set {
	own := p.Of(Forwarding, IsolatedRx, HostPath, Guests, Idle)
	if service := p.Of(Service); service.Len() <= 2 {
		own = own.Or(service)
	}
	if p.Of(Housekeeping).Empty() {
		return cpuset.Set{} // the host needs a CPU
	}
	return own
}

// interrupts returns the CPUs for interrupts: those of the host. If emulator threads share them, interrupts get the
// first half, beginning at the network device's node.
func (k *maker) interrupts(p *Plan) cpuset.Set {
	host := p.Of(Housekeeping)
	if host.Empty() {
		return k.usable
	}
	if k.w.Guests == 0 || !p.Of(Emulator).Empty() {
		return host
	}
	var mine []*core
	for _, c := range k.near(k.homes[0]) {
		if c.cpus.Overlaps(host) && !k.isSpare(c.cpus.First()) {
			mine = append(mine, c)
		}
	}
	var set cpuset.Set
	for _, c := range mine[:(len(mine)+1)/2] {
		set = set.Or(c.cpus.And(host))
	}
	return set
}
