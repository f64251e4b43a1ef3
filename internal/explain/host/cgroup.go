// SPDX-License-Identifier: Apache-2.0
package host

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/procfs"
)

// Cgroup is the control group that limits the CPU time of a process: of its own and those above it that have a quota,
// the one that was throttled most.
type Cgroup struct {
	Path        string `json:"path"`     // "/machine.slice/router"
	Dir         string `json:"dir"`      // directory of its files, below the root
	Version     int    `json:"version"`  // 1 or 2, 0: none
	QuotaUS     int64  `json:"quota_us"` // per period; 0: no limit
	PeriodUS    int64  `json:"period_us"`
	Periods     int64  `json:"periods"`      // cpu.stat nr_periods
	Throttled   int64  `json:"throttled"`    // nr_throttled
	ThrottledNS int64  `json:"throttled_ns"` // summed over its CPUs
	Shares      int64  `json:"shares"`       // cpu.shares of its own group (usually 1024) or cpu.weight (usually 100)
}

// cgroups returns the control groups of a process: its own first, then those above it that have a quota.
func (r Root) cgroups(pid int) (out []Cgroup, err error) {
	text, err := r.proc().Read(fmt.Sprintf("proc/%d/cgroup", pid))
	if err != nil {
		return nil, err
	}
	path, version := procfs.ParseCgroup(text, "cpu")
	if version == 0 && text != "" {
		return nil, fmt.Errorf("/proc/%d/cgroup names no group that limits CPU time", pid)
	}
	for at := path; ; at = filepath.Dir(at) {
		if c := r.limits(at, version); c.QuotaUS > 0 || at == path {
			out = append(out, c)
		}
		if at == "/" || at == "." {
			return out, nil
		}
	}
}

// Cpuset returns the file with the CPUs of a process's control group, and these; "": there is none.
func (r Root) Cpuset(pid int) (file string, cpus cpuset.Set) {
	text, err := r.proc().Read(fmt.Sprintf("proc/%d/cgroup", pid))
	if err != nil {
		return "", cpus
	}
	path, version := procfs.ParseCgroup(text, "cpuset")
	dir := filepath.Join("/sys/fs/cgroup", path)
	effective := "cpuset.cpus.effective"
	if version == 1 {
		dir, effective = filepath.Join("/sys/fs/cgroup/cpuset", path), "cpuset.effective_cpus"
	}
	list, err := r.text(dir, effective)
	if err != nil || path == "/" {
		return "", cpus
	}
	cpus, _ = cpuset.Parse(list)
	return filepath.Join(dir, "cpuset.cpus"), cpus
}

// Frozen returns the file that thaws the control group of a process, and what to write to it; "": it is not frozen.
func (r Root) Frozen(pid int) (file, thaw string) {
	text, err := r.proc().Read(fmt.Sprintf("proc/%d/cgroup", pid))
	if err != nil {
		return "", ""
	}
	for _, h := range []struct{ mount, controller, file, frozen, thaw string }{
		{"/sys/fs/cgroup/freezer", "freezer", "freezer.self_freezing", "1", "THAWED"},
		{"/sys/fs/cgroup", "", "cgroup.freeze", "1", "0"},
		{"/sys/fs/cgroup/unified", "", "cgroup.freeze", "1", "0"},
	} {
		path, _ := procfs.ParseCgroup(text, h.controller)
		for at := path; at != "/" && at != "." && at != ""; at = filepath.Dir(at) {
			if state, err := r.text(h.mount, at, h.file); err == nil && state == h.frozen {
				return filepath.Join(h.mount, at, strings.Replace(h.file, "self_freezing", "state", 1)), h.thaw
			}
		}
	}
	return "", ""
}

func (r Root) limits(path string, version int) Cgroup {
	c := Cgroup{Path: path, Version: version}
	mounts := []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
	if version == 1 {
		mounts = []string{"sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"}
	}
	for _, m := range mounts {
		dir := filepath.Join("/", m, path)
		stat, err := r.text(dir, "cpu.stat")
		if err != nil {
			continue
		}
		c.Dir = dir
		keys := parseKeys(stat)
		c.Periods, c.Throttled = count(keys["nr_periods"]), count(keys["nr_throttled"])
		c.ThrottledNS = count(keys["throttled_time"]) + 1000*count(keys["throttled_usec"])
		r.quota(&c)
		for _, file := range []string{"cpu.shares", "cpu.weight"} { // version 1 or 2
			if text, err := r.text(dir, file); err == nil {
				c.Shares = count(text)
			}
		}
		return c
	}
	return c
}

func (r Root) quota(c *Cgroup) {
	if c.Version == 1 {
		quota, err := r.text(c.Dir, "cpu.cfs_quota_us")
		period, _ := r.text(c.Dir, "cpu.cfs_period_us")
		if err == nil {
			c.QuotaUS, c.PeriodUS = max(0, count(quota)), count(period)
		}
		return
	}
	text, err := r.text(c.Dir, "cpu.max")
	if f := strings.Fields(text); err == nil && len(f) == 2 {
		c.QuotaUS, c.PeriodUS = count(f[0]), count(f[1]) // "max" is not a number: no limit
	}
}

func count(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// RPS returns the receive queues of the kernel's interfaces that steer packets to a CPU: "lo/rx-0".
func (r Root) RPS(cpu int) (queues []string) {
	paths, _ := fs.Glob(rootFS(r), "sys/class/net/*/queues/rx-*/rps_cpus") // the pattern is well formed
	for _, p := range paths {
		mask, err := r.text(p)
		if err != nil || !maskHas(mask, cpu) {
			continue
		}
		f := strings.Split(p, "/")
		queues = append(queues, f[3]+"/"+f[5])
	}
	return queues
}
