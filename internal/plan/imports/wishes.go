// SPDX-License-Identifier: Apache-2.0
package imports

import (
	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/plan"
)

// Wishes are what the files say as fixed choices for a planner. CPUs that two roles want are an error: only who wrote them knows
// whose they are.
func (r *Reading) Wishes() (plan.Wishes, error) {
	w := plan.Wishes{Boot: !r.cpus(Isolcpus).Empty(), Hugepages: r.Hugepages}
	service := r.cpus(Service, Control)
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
		for _, other := range []cpuset.Set{w.ForwardingCPUs, w.IsolatedRxCPUs, w.HostPathCPUs, w.GuestCPUs, w.ServiceCPUs, w.EmulatorCPUs} {
			if both := k.cpus.And(other); !both.Empty() {
				return w, input.Errorf("--wishes-out", "files in which each CPU has one role", "CPU %s has two roles, one is %s", both, k.name)
			}
		}
		*k.to = k.cpus
	}
	if w.ForwardingCPUs.Empty() {
		return w, input.Errorf("--wishes-out", "also the file that names the workers: common_vrouter.env, ifcfg-vhost0, ...", "the files do not say which CPUs forward")
	}
	return w, nil
}
