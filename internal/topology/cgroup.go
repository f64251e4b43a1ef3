// SPDX-License-Identifier: Apache-2.0
package topology

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
)

const cgroupDir = "sys/fs/cgroup"

// cgroups reads the groups with settings about CPUs (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst).
func (r *reader) cgroups() {
	c := &r.m.Cgroups
	if len(r.list(cgroupDir, "cgroup.controllers", maybe)) > 0 {
		c.Version = 2
		c.Isolated, _ = value(r, cgroupDir+"/cpuset.cpus.isolated", maybe, cpuset.Parse) // since Linux 6.7
		r.walk(cgroupDir, "/", r.group2)
		return
	}
	for _, controller := range []string{"cpuset", "cpu"} {
		if len(r.list(path.Join(cgroupDir, controller), "cgroup.procs", maybe)) > 0 {
			c.Version = 1
		}
	}
	switch {
	case c.Version == 1:
		r.groups1()
	case len(r.list(cgroupDir, "[a-z]*", maybe)) > 0:
		r.trouble(cgroupDir, "has neither version 2 nor the controllers cpuset and cpu of version 1")
	}
}

// walk calls one for a group and each group below it.
func (r *reader) walk(root, group string, one func(group string)) {
	one(group)
	all, err := r.tree.List(path.Join(root, group))
	if err != nil {
		if !missing(err) {
			r.trouble(path.Join(root, group), "%s", reason(err))
		}
		return
	}
	for _, e := range all {
		if e.Dir {
			r.walk(root, path.Join(group, e.Name), one)
		}
	}
}

func (r *reader) group2(group string) {
	dir := path.Join(cgroupDir, group) + "/"
	g := Cgroup{Path: group}
	g.CPUs, _ = value(r, dir+"cpuset.cpus", maybe, cpuset.Parse)
	g.Effective, _ = value(r, dir+"cpuset.cpus.effective", maybe, cpuset.Parse)
	g.Exclusive, _ = value(r, dir+"cpuset.cpus.exclusive", maybe, cpuset.Parse) // since Linux 6.7
	g.Partition, _ = r.text(dir+"cpuset.cpus.partition", maybe)
	if q, ok := value(r, dir+"cpu.max", maybe, parseCPUMax); ok {
		g.QuotaUS, g.PeriodUS = q[0], q[1]
	}
	g.Throttled, _ = value(r, dir+"cpu.stat", maybe, throttled)
	r.addGroup(g)
}

// groups1 reads version 1, where cpuset and cpu have separate hierarchies.
func (r *reader) groups1() {
	r.walk(path.Join(cgroupDir, "cpuset"), "/", func(group string) {
		dir := path.Join(cgroupDir, "cpuset", group) + "/"
		g := Cgroup{Path: group}
		g.CPUs, _ = value(r, dir+"cpuset.cpus", maybe, cpuset.Parse)
		g.Effective, _ = value(r, dir+"cpuset.effective_cpus", maybe, cpuset.Parse)
		r.addGroup(g)
	})
	r.walk(path.Join(cgroupDir, "cpu"), "/", func(group string) {
		dir := path.Join(cgroupDir, "cpu", group) + "/"
		quota, ok := value(r, dir+"cpu.cfs_quota_us", maybe, large)
		if !ok || quota <= 0 {
			return
		}
		g := Cgroup{Path: group, QuotaUS: quota}
		g.PeriodUS, _ = value(r, dir+"cpu.cfs_period_us", needed, large)
		g.Throttled, _ = value(r, dir+"cpu.stat", maybe, throttled)
		for i := range r.m.Cgroups.Groups {
			if old := &r.m.Cgroups.Groups[i]; old.Path == group {
				old.QuotaUS, old.PeriodUS, old.Throttled = g.QuotaUS, g.PeriodUS, g.Throttled
				return
			}
		}
		r.addGroup(g)
	})
}

// addGroup keeps the root, and groups that restrict or reserve CPUs.
func (r *reader) addGroup(g Cgroup) {
	plain := g.Partition == "" || g.Partition == "member"
	if g.Path != "/" && plain && g.CPUs.Empty() && g.Exclusive.Empty() && g.QuotaUS == 0 && g.Throttled == 0 {
		return
	}
	r.m.Cgroups.Groups = append(r.m.Cgroups.Groups, g)
}

// parseCPUMax parses cpu.max: quota and period in us; no quota ("max") gives 0, 0.
func parseCPUMax(text string) (q [2]int64, err error) {
	words := strings.Fields(text)
	if len(words) != 2 {
		return q, fmt.Errorf("'%s' is not a quota and a period", text)
	}
	if words[0] == "max" {
		return q, nil
	}
	for i, word := range words {
		if q[i], err = large(word); err != nil || q[i] <= 0 {
			return [2]int64{}, errors.New("'" + text + "' is not a quota and a period")
		}
	}
	return q, nil
}

func throttled(text string) (int64, error) {
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "nr_throttled "); ok {
			return large(strings.TrimSpace(n))
		}
	}
	return 0, nil // a group without the cpu controller
}
