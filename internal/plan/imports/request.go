// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
)

// Request returns the roles of the files as fixed choices for the planner. A CPU with two roles is an error, because
// only the author of the files can resolve it.
func (r *Reading) Request(m *topology.Machine) (plan.Request, error) {
	w := plan.Request{Boot: !r.cpus(Isolcpus).Empty()}
	var err error
	if w.Hugepages, err = r.pagesByNode(m); err != nil {
		return w, err
	}
	service := r.cpus(Service, Control).Without(r.cpus(HostAffinity)) // CPUs of the host are shared with it
	guests := r.cpus(Guests)
	for _, k := range []struct {
		to   *cpuset.Set
		cpus cpuset.Set
		name string
	}{
		{&w.ForwardingCPUs, r.cpus(Forwarding), "forwarding"},
		{&w.IsolatedRxCPUs, r.cpus(IsolatedRx), "isolated receive"},
		{&w.HostPathCPUs, r.cpus(HostPath), "host path"},
		{&w.GuestCPUs, guests, "guests"},
		{&w.ServiceCPUs, service, "service"},
		{&w.EmulatorCPUs, r.cpus(Emulator).Without(r.cpus(HostAffinity)), "emulator"},
		{&w.HousekeepingCPUs, r.cpus(HostAffinity), "the host"},
	} {
		for _, other := range []cpuset.Set{w.ForwardingCPUs, w.IsolatedRxCPUs, w.HostPathCPUs, w.GuestCPUs,
			w.ServiceCPUs, w.EmulatorCPUs} {
			if both := k.cpus.And(other); !both.Empty() {
				return w, input.Errorf("--request-out", "files in which each CPU has one role",
					"CPU %s has two roles, one of them %s", both, k.name)
			}
		}
		*k.to = k.cpus
	}
	if w.ForwardingCPUs.Empty() {
		return w, input.Errorf("--request-out", "also the file that names the workers: common_vrouter.env, "+
			"ifcfg-vhost0, ...",
			"the files do not say which CPUs forward")
	}
	return w, nil
}

// pagesByNode spreads pages without a node evenly over the nodes, like the kernel at boot.
func (r *Reading) pagesByNode(m *topology.Machine) ([]plan.HugepageRequest, error) {
	var list []plan.HugepageRequest
	for _, h := range r.Hugepages {
		switch {
		case h.Node >= 0:
			list = append(list, h)
		case m == nil || len(m.Nodes) == 0:
			return nil, input.Errorf("--request-out", "--root with the machine",
				"hugepages=%d is for all nodes together, but the number of nodes is not known", h.Pages)
		default:
			for i, n := range m.Nodes {
				pages := h.Pages / len(m.Nodes)
				if i < h.Pages%len(m.Nodes) {
					pages++
				}
				list = append(list, plan.HugepageRequest{Node: n.ID, KiB: h.KiB, Pages: pages})
			}
		}
	}
	return list, nil
}
