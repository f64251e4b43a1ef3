// SPDX-License-Identifier: Apache-2.0
package cores

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/procfs"
	"github.com/corelane/corelane/internal/topology"
)

// put writes files (path, content) below a root.
func put(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshot returns everything below a root: directories, and files with content and mode.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case d.Type() == fs.ModeSymlink:
			if text, err = os.Readlink(path); err != nil {
				return err
			}
		case !d.IsDir():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(b)
		}
		name, _ := filepath.Rel(root, path)
		all[name] = info.Mode().String() + " " + text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// differences lists the differences between two snapshots, one per line.
func differences(a, b map[string]string) string {
	var out strings.Builder
	for name, text := range a {
		if other, ok := b[name]; !ok || other != text {
			fmt.Fprintf(&out, "%s: %q became %q\n", name, text, other)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			fmt.Fprintf(&out, "%s is new\n", name)
		}
	}
	return out.String()
}

// task adds the files of a thread.
func task(files map[string]string, t topology.Thread) {
	dir := procfs.ThreadDir(t.PID, t.TID)
	flags := 0
	if t.Fixed {
		flags = 0x04000000 // PF_NO_SETAFFINITY
	}
	files[dir+"/stat"] = fmt.Sprintf("%d (%s) S 1 %d %d 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 %d%s\n", t.TID, t.Name, t.PID,
		t.PID, flags, 1000+t.TID, strings.Repeat(" 0", 30))
	files[dir+"/status"] = fmt.Sprintf("Name:\t%s\nState:\tS (sleeping)\nCpus_allowed_list:\t%s\nMems_allowed:\t1\n",
		t.Name, t.Allowed)
	files[dir+"/cgroup"] = "9:cpuset:" + t.Cgroup + "\n1:name=systemd:/\n0::" + t.Cgroup + "\n"
}

func set(list string) cpuset.Set {
	s, err := cpuset.Parse(list)
	if err != nil {
		panic(err)
	}
	return s
}

// fourCPUs returns a made-up machine with every kind of setting, as a file tree and as topology reads it, and a plan
// with two workers on CPUs 2 and 3.
func fourCPUs(t testing.TB, version int) (string, *topology.Machine, *plan.Plan) {
	m := &topology.Machine{Hostname: "four", Nodes: []topology.Node{{ID: 0, CPUs: set("0-3"), MemoryKiB: 1 << 20,
		Hugepages: []topology.Hugepages{{KiB: 2048, Total: 16}}}}}
	for id := range 4 {
		m.CPUs = append(m.CPUs, topology.CPU{ID: id, Online: true, Governor: "powersave"})
	}
	home := "/system.slice/corelaned.service"
	m.Cgroups.Version = version
	thread := func(tid, pid int, process, name, cpus, group string) {
		m.Threads = append(m.Threads, topology.Thread{TID: tid, PID: pid, Process: process, Name: name,
			Allowed: set(cpus), Cgroup: group})
	}
	thread(1, 1, "systemd", "systemd", "0-3", "/")
	thread(40, 40, "sshd", "sshd", "0-3", "/")
	thread(41, 40, "sshd", "ssh (2) x", "3", "/")
	thread(50, 50, daemon, daemon, "0-3", home)
	thread(51, 50, daemon, "pmd-fwd-0", "2", home)
	thread(52, 50, daemon, "pmd-fwd-1", "1", home)
	thread(60, 60, "qemu-kvm", "qemu-kvm", "0-3", "/machine.slice")
	thread(61, 60, "qemu-kvm", "CPU 0/KVM", "2-3", "/machine.slice")
	m.Guests = []topology.Guest{{Name: "vm", PID: 60}}
	thread(70, 70, "vhost-60", "vhost-60", "0-3", "/")
	m.Threads[len(m.Threads)-1].Kernel = true
	thread(71, 71, "migration/3", "migration/3", "3", "/")
	m.Threads[len(m.Threads)-1].Kernel, m.Threads[len(m.Threads)-1].Fixed = true, true
	m.IRQs = []topology.IRQ{{Number: 24, Name: "eth0-rx-0", Affinity: set("0-3")},
		{Number: 25, Name: "eth0-rx-1", Affinity: set("3")},
		{Number: 26, Name: "nvme0q3", Affinity: set("3"), Effective: set("3"), Managed: true},
		{Number: 27, Name: "eth1", Affinity: set("1")}}
	m.Interfaces = []topology.Interface{{Name: "eth0", RPS: []cpuset.Set{set("0-3"), set("")},
		XPS: []cpuset.Set{set("2-3")}}}
	m.Services.Irqbalance = true
	m.Knobs = topology.Knobs{WorkqueueMask: set("0-3"), DefaultIRQAffinity: set("0-3"), THP: "[always] madvise never",
		KSM: "1", NUMABalancing: "1", NMIWatchdog: "1", TimerMigration: "0", StatInterval: "1"}
	p := &plan.Plan{Version: 1, Isolated: set("2-3"), IRQs: set("0-1"),
		Workers: []plan.Worker{{ID: 0, Role: plan.Forwarding, CPU: 2},
			{ID: 1, Role: plan.Forwarding, CPU: 3}}, Hugepages: []plan.HugepageRequest{{Node: 0, KiB: 2048, Pages: 64}}}
	for id, role := range []plan.Role{plan.Housekeeping, plan.Housekeeping, plan.Forwarding, plan.Forwarding} {
		p.CPUs = append(p.CPUs, plan.CPU{ID: id, Role: role})
	}
	root := t.TempDir()
	put(t, root, treeOf(m))
	return root, m, p
}

// treeOf returns the files of a machine.
func treeOf(m *topology.Machine) map[string]string {
	files := map[string]string{
		"proc/sys/kernel/random/boot_id":                                        "b00\n",
		"sys/devices/virtual/workqueue/cpumask":                                 "f\n",
		"sys/devices/virtual/workqueue/writeback/cpumask":                       "f\n",
		"sys/kernel/mm/ksm/run":                                                 "1\n",
		"sys/kernel/mm/transparent_hugepage/enabled":                            "[always] madvise never\n",
		"proc/sys/kernel/numa_balancing":                                        "1\n",
		"proc/sys/kernel/nmi_watchdog":                                          "1\n",
		"proc/sys/kernel/timer_migration":                                       "0\n",
		"proc/sys/vm/stat_interval":                                             "1\n",
		"proc/irq/default_smp_affinity":                                         "f\n",
		"sys/class/net/eth0/queues/rx-0/rps_cpus":                               "f\n",
		"sys/class/net/eth0/queues/rx-1/rps_cpus":                               "0\n",
		"sys/class/net/eth0/queues/tx-0/xps_cpus":                               "c\n",
		"sys/fs/cgroup/cpuset/cpuset.sched_load_balance":                        "1\n",
		"sys/fs/cgroup/cgroup.subtree_control":                                  "cpu memory\n",
		"sys/fs/cgroup/system.slice/cgroup.subtree_control":                     "cpu\n",
		"sys/fs/cgroup/system.slice/cpuset.cpus.exclusive":                      "\n",
		"sys/fs/cgroup/system.slice/corelaned.service/cgroup.type":              "domain\n",
		"sys/fs/cgroup/system.slice/corelaned.service/cgroup.subtree_control":   "\n",
		"sys/fs/cgroup/system.slice/corelaned.service/cpuset.cpus.exclusive":    "\n",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "16\n",
	}
	for _, c := range m.CPUs {
		files[fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", c.ID)] = c.Governor + "\n"
	}
	for _, irq := range m.IRQs {
		files[fmt.Sprintf("proc/irq/%d/smp_affinity_list", irq.Number)] = irq.Affinity.String() + "\n"
	}
	for _, t := range m.Threads {
		task(files, t)
	}
	return files
}
