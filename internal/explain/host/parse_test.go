// SPDX-License-Identifier: Apache-2.0
package host

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

const interrupts = `            CPU0       CPU2
  24:          1          0  IO-APIC   5-edge      ACPI:Ged
  36:         10     132775  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 LOC:     264456     277665   Local timer interrupts
 ERR:          7
`

const stat = `cpu  10 20 30 40 50 60 70 80 0 0
cpu0 1 2 3 4 5 6 7 8 0 0
cpu2 11 12 13 14 15 16 17 18 0 0
intr 5 1 2
`

const taskStat = `101 (a (b) c) S 1 101 101 0 -1 2129984 7 0 9 0 30 40 0 0 20 0 4 0 11 1 1 1 1 1 1 1 1 1 1 1 1 1 1 17 3 0 0 0 0 0`

// tree writes files below a root.
func tree(t *testing.T, files map[string]string) Root {
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Root(root)
}

func machine(t *testing.T) Root {
	return tree(t, map[string]string{
		"proc/stat": stat, "proc/interrupts": interrupts, "proc/softirqs": "  CPU0 CPU2\nNET_RX: 5 6\n",
		"proc/101/task/101/stat": taskStat, "proc/101/task/101/schedstat": "100 200 3",
		"proc/101/cgroup": "1:cpu:/a/b\n4:cpuset:/cs",
		"proc/101/status": "Name:\ta (b) c\nTgid:\t101\nPPid:\t1\nUid:\t0 0 0 0\nCpus_allowed_list:\t0,2",
		"proc/101/stat":   taskStat, "proc/101/cmdline": "a\x00-x", "proc/1/comm": "init",
		"sys/fs/cgroup/cpu/a/b/cpu.stat":         "nr_periods 1\nnr_throttled 0\nthrottled_time 0",
		"sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us": "100000",
		"sys/fs/cgroup/cpu/a/cpu.stat":         "nr_periods 10\nnr_throttled 4\nthrottled_time 5000",
		"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
		"sys/class/net/eth0/queues/rx-0/rps_cpus": "4", "sys/class/net/eth1/queues/rx-0/rps_cpus": "1",
		"sys/devices/system/cpu/online": "0,2",
		"proc/irq/36/smp_affinity_list": "0,2", "proc/irq/36/effective_affinity_list": "2"})
}

func TestTake(t *testing.T) {
	r := machine(t)
	s := r.Take(101, []int{101})
	if len(s.Unread) != 0 || len(s.CPUs) != 2 || s.Tasks[101].PID != 101 || s.Waited[101] != 200 ||
		s.Softirqs[0].Counts[2] != 6 {
		t.Errorf("%+v", s)
	}
	none := []Cgroup{{Path: "/a/b"}, {Path: "/a"}}
	if c := CgroupBetween(none, s.Cgroups); c.Path != "/a" || c.QuotaUS != 50000 || c.Throttled != 4 ||
		c.ThrottledNS != 5000 || c.Dir != "/sys/fs/cgroup/cpu/a" {
		t.Errorf("the quota of the parent group: %+v", c)
	}
	thread, ok := r.Thread(101)
	if !ok || thread.Allowed.String() != "0,2" || thread.Cgroup != "/cs" || thread.Command != "a -x" ||
		thread.Parent != "init" || !thread.Kernel {
		t.Errorf("%+v", thread)
	}
	if _, ok := r.Thread(999); ok {
		t.Error("found a thread that does not exist")
	}
	if q := r.RPS(2); len(q) != 1 || q[0] != "eth0/rx-0" {
		t.Errorf("%v", q)
	}
	if a, e := r.IRQAffinity(36); a.String() != "0,2" || e.String() != "2" || r.Online().String() != "0,2" {
		t.Error(a, e)
	}
}

// A machine without any file is not an error: the snapshot lists what could not be read.
func TestTakeOfNothing(t *testing.T) {
	s := Root(t.TempDir()).Take(1, []int{1})
	if len(s.Unread) < 5 {
		t.Errorf("%v", s.Unread)
	}
}

func TestVersion2(t *testing.T) {
	r := tree(t, map[string]string{"proc/7/cgroup": "0::/g",
		"sys/fs/cgroup/g/cpu.stat": "usage_usec 5\nnr_periods 3\nnr_throttled 2\nthrottled_usec 9",
		"sys/fs/cgroup/g/cpu.max":  "20000 100000"})
	groups, err := r.cgroups(7)
	if err != nil || len(groups) != 1 {
		t.Fatal(groups, err)
	}
	if c := groups[0]; c.QuotaUS != 20000 || c.ThrottledNS != 9000 || c.Version != 2 || c.Dir != "/sys/fs/cgroup/g" {
		t.Errorf("%+v, %v", c, err)
	}
	r = tree(t, map[string]string{"proc/7/cgroup": "0::/g", "sys/fs/cgroup/g/cpu.stat": "",
		"sys/fs/cgroup/g/cpu.max": "max 100000"})
	groups, err = r.cgroups(7)
	if c := groups[0]; err != nil || c.QuotaUS != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Of several groups with a quota the one is named that was throttled, and the shares are those of the process's own.
func TestThrottledAbove(t *testing.T) {
	files := map[string]string{"proc/7/cgroup": "0::/a/b", "sys/fs/cgroup/a/b/cpu.weight": "1"}
	for _, dir := range []string{"/a", "/a/b"} {
		files["sys/fs/cgroup"+dir+"/cpu.stat"] = "nr_periods 9\nnr_throttled 0\nthrottled_usec 0"
		files["sys/fs/cgroup"+dir+"/cpu.max"] = "50000 100000"
	}
	before, err := tree(t, files).cgroups(7)
	files["sys/fs/cgroup/a/cpu.stat"] = "nr_periods 19\nnr_throttled 4\nthrottled_usec 70"
	after, err2 := tree(t, files).cgroups(7)
	c := CgroupBetween(before, after)
	if err := errors.Join(err, err2); err != nil || c.Path != "/a" || c.Periods != 10 || c.ThrottledNS != 70000 ||
		c.Shares != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if c := CgroupBetween(before, before); c.Path != "/a/b" || c.Throttled != 0 {
		t.Errorf("%+v", c)
	}
}

func TestCpuset(t *testing.T) {
	r := tree(t, map[string]string{"proc/7/cgroup": "0::/a", "sys/fs/cgroup/a/cpuset.cpus.effective": "2-3",
		"proc/8/cgroup": "4:cpuset:/b", "sys/fs/cgroup/cpuset/b/cpuset.effective_cpus": "0",
		"proc/9/cgroup": "0::/", "sys/fs/cgroup/cpuset.cpus.effective": "0-3"})
	for pid, want := range map[int]string{7: "/sys/fs/cgroup/a/cpuset.cpus 2-3",
		8: "/sys/fs/cgroup/cpuset/b/cpuset.cpus 0", 9: " ", 10: " "} {
		if file, cpus := r.Cpuset(pid); file+" "+cpus.String() != want {
			t.Errorf("%d: %s %s, not %s", pid, file, cpus, want)
		}
	}
}

func TestBetween(t *testing.T) {
	if d := TicksBetween(map[int]Ticks{1: {User: 1, Steal: 2}},
		map[int]Ticks{1: {User: 5, Steal: 9}}); d[1].User != 4 || d[1].Steal != 7 {
		t.Errorf("%+v", d)
	}
	tasks := TasksBetween(map[int]Task{1: {Name: "a", Ticks: 5}, 2: {Name: "b", Ticks: 5}, 3: {Name: "c", Ticks: 3}},
		map[int]Task{1: {Name: "a", Ticks: 9}, 2: {Name: "b", Ticks: 5}, 3: {Name: "new", Ticks: 2}})
	if len(tasks) != 2 || tasks[1].Ticks != 4 || tasks[3].Ticks != 2 {
		t.Errorf("%+v", tasks)
	}
	if FaultNS() <= 0 {
		t.Error("a page fault costs nothing")
	}
}
