// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"maps"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

const (
	groupCgroup = "Control groups"
	cgroupV2    = "Documentation/admin-guide/cgroup-v2.rst"
)

var cgroupRules = []rule{
	{id: "cgroup.partition", group: groupCgroup, title: "Partitions are valid when read back",
		check:  checkPartition,
		source: cgroupV2 + ": cpuset.cpus.partition",
		fixes:  []string{"corelane cores apply {plan}   # creates the partition again"},
		why: "Writing 'isolated' succeeds even when the kernel cannot isolate: reading back then gives 'isolated " +
			"invalid' and the reason."},
	{id: "cgroup.cpus", group: groupCgroup, title: "The data plane's group has its CPUs",
		check: checkGroupCPUs, workers: true,
		source: cgroupV2 + ": cpuset.cpus.effective",
		why: "A thread runs only on its group's CPUs: a worker whose CPU is not in the group is moved, whatever " +
			"its affinity was."},
	{id: "cgroup.quota", group: groupCgroup, title: "No CPU quota on the data plane",
		check:  checkQuota,
		source: "Documentation/scheduler/sched-bwc.rst",
		why:    "A polling thread uses up its quota and is then stopped for the rest of each period, usually 100 ms."},
}

func checkPartition(v *view, r *result) {
	if v.m.Cgroups.Version != 2 {
		r.pass("partitions need cgroup v2, which is not in use; only isolcpus isolates CPUs")
		return
	}
	for _, g := range v.m.Cgroups.Groups {
		switch {
		case g.Partition == "" || g.Partition == "member":
		case strings.Contains(g.Partition, "invalid"):
			r.fail("%s: cpuset.cpus.partition is '%s', cpuset.cpus %s, effective %s", g.Path, g.Partition,
				orNone(g.CPUs), orNone(g.Effective)).about("cgroup %s", g.Path).
				write("/sys/fs/cgroup"+g.Path+"/cpuset.cpus.partition", "member")
		default:
			r.pass("%s: cpuset.cpus.partition is '%s' with CPUs %s", g.Path, g.Partition, g.Effective)
		}
	}
	if len(r.items) == 0 {
		r.pass("no partition")
	}
}

// groupsOf returns a group and its ancestors, the nearest first.
func (v *view) groupsOf(path string) []topology.Cgroup {
	var found []topology.Cgroup
	for path != "" {
		for _, g := range v.m.Cgroups.Groups {
			if g.Path == path {
				found = append(found, g)
			}
		}
		if path == "/" {
			break
		}
		if path = path[:strings.LastIndex(path, "/")]; path == "" {
			path = "/"
		}
	}
	return found
}

// workerGroups returns the groups of workers, each once.
func (v *view) workerGroups() map[string]cpuset.Set {
	groups := map[string]cpuset.Set{}
	for i := range v.m.Threads {
		t := &v.m.Threads[i]
		if IsWorker(t) && strings.HasPrefix(t.Cgroup, "/") {
			groups[t.Cgroup] = groups[t.Cgroup].Or(t.Allowed)
		}
	}
	return groups
}

func checkGroupCPUs(v *view, r *result) {
	nearest, need := map[string]topology.Cgroup{}, map[string]cpuset.Set{} // by path: the workers of all groups below
	for path, workers := range v.workerGroups() {
		if groups := v.groupsOf(path); len(groups) > 0 && !groups[0].Effective.Empty() {
			at := groups[0].Path
			nearest[at], need[at] = groups[0], need[at].Or(workers)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(need)) {
		has, workers := nearest[at].Effective, need[at]
		if missing := v.in.Workers.And(workers).Without(has); !missing.Empty() {
			r.fail("%s may use CPUs %s; its workers need CPUs %s too", at, has, missing).about("cgroup %s", at).
				write("/sys/fs/cgroup"+ifText(v.m.Cgroups.Version == 1, "/cpuset")+at+"/cpuset.cpus",
					has.Or(workers).String())
		} else {
			r.pass("%s may use CPUs %s", at, has)
		}
	}
	if len(r.items) == 0 {
		r.pass("no group limits the workers")
	}
}

func checkQuota(v *view, r *result) {
	for path := range v.workerGroups() {
		for _, g := range v.groupsOf(path) {
			if g.QuotaUS <= 0 {
				continue
			}
			i := r.fail("%s: limited to %d us in each %d us, throttled %d times", g.Path, g.QuotaUS, g.PeriodUS,
				g.Throttled).about("quota %s", g.Path)
			if v.m.Cgroups.Version == 2 {
				i.write("/sys/fs/cgroup"+g.Path+"/cpu.max", "max")
			} else {
				i.write("/sys/fs/cgroup/cpu"+g.Path+"/cpu.cfs_quota_us", "-1")
			}
		}
	}
	if len(r.items) == 0 {
		r.pass("no group of the workers has a CPU quota")
	}
}
