// SPDX-License-Identifier: Apache-2.0
package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/plan"
	"github.com/corelane/corelane/internal/topology"
	"github.com/corelane/corelane/internal/topology/topologytest"
)

func find(t *testing.T, findings []Finding, id string) Finding {
	t.Helper()
	for _, f := range findings {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no finding %s", id)
	return Finding{}
}

// said returns the whole text of a finding.
func said(f Finding) string {
	text := f.Verdict.String() + " " + f.Title
	for _, i := range f.Evidence {
		text += "\n" + i.Verdict.String() + " " + i.Subject + ": " + i.Text
	}
	return text + "\n" + strings.Join(f.Fix, "\n")
}

func TestFullPasses(t *testing.T) {
	for _, f := range Check(full(), fieldPlan()) {
		if f.Verdict != Pass {
			t.Errorf("%s: %s", f.ID, said(f))
		}
		if len(f.Fix) > 0 || f.Why == "" || f.Source == "" || len(f.Evidence) == 0 {
			t.Errorf("%s: a PASS with %q, why %q, source %q, %d items", f.ID, f.Fix, f.Why, f.Source, len(f.Evidence))
		}
	}
	// Without a plan only workers on both siblings of a core are reported, which a plan would have permitted.
	for _, f := range Check(full(), nil) {
		if f.Verdict > Unknown && f.ID != "place.siblings" {
			t.Errorf("without a plan: %s: %s", f.ID, said(f))
		}
	}
}

// Each line breaks one thing on the good machine, and names the check that must find it and a part of its text.
func TestBroken(t *testing.T) {
	type mutation struct {
		id, want string
		verdict  Verdict
		change   func(m *topology.Machine, p *plan.Plan)
	}
	worker := func(m *topology.Machine) *topology.Thread { return &m.Threads[1] } // lcore-slave-10 on CPU 1
	thread := func(allowed string) topology.Thread {
		return topology.Thread{TID: 4242, PID: 4242, Name: "hog", Process: "hog", Allowed: set(allowed),
			LastCPU: set(allowed).First(), Cgroup: "/user.slice"}
	}
	cmdline := func(from, to string) func(*topology.Machine, *plan.Plan) {
		return func(m *topology.Machine, _ *plan.Plan) {
			m.Kernel.Cmdline = strings.ReplaceAll(m.Kernel.Cmdline, from, to)
		}
	}
	guest := func(m *topology.Machine) *topology.Guest {
		m.Guests = []topology.Guest{{Name: "vm1", PID: 9000, Source: "libvirt", VCPUs: []cpuset.Set{set("6"), set("7")},
			Emulator: set("0,20"), Nodes: []int{0}, Queues: []int{2},
			Vhost: []topology.Thread{{TID: 9001, PID: 9001, Name: "vhost-9000", Kernel: true, Allowed: set("20"),
				LastCPU: 20}}}}
		m.Load.CPUs[0].Softirqs = map[string]int64{"NET_RX": 50000}
		return &m.Guests[0]
	}
	for _, c := range []mutation{
		{"isolation.state", "partial isolation", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Kernel.Isolated = set("6-9,11-19,26-29,31-39")
		}},
		{"isolation.state", "no isolation", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Kernel.Isolated, m.Services = cpuset.Set{}, topology.Services{}
		}},
		{"isolation.state", "data plane's own threads", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Threads[0].Allowed = set("1-5")
		}},
		{"isolation.state", "unpinned threads used 0.5 s", Fail, func(m *topology.Machine, _ *plan.Plan) {
			h := thread("0-39")
			h.LastCPU = 3
			m.Threads, m.Load.Threads[4242] = append(m.Threads, h), 50
		}},
		{"isolation.intent", "/proc/irq: permission denied", Unknown, func(m *topology.Machine, _ *plan.Plan) {
			m.Unread = []topology.Unread{{Path: "/proc/irq", Why: "permission denied"}}
		}},
		{"plan.roles", "CPU 1 has two workers", Fail, func(_ *topology.Machine, p *plan.Plan) { p.Workers[1].CPU = 1 }},
		{"plan.roles", "workers' CPUs 1-2 take interrupts", Fail, func(_ *topology.Machine,
			p *plan.Plan) {
			p.IRQs = set("0-2")
		}},
		{"plan.machine", "CPUs 39 of the plan are offline", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.CPUs[39].Online = false
		}},
		{"plan.machine", "this machine is other", Warn, func(m *topology.Machine,
			_ *plan.Plan) {
			m.Hostname = "other"
		}},
		{"boot.isolcpus", "the plan isolates CPUs", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Kernel.Isolated = set("2-9")
		}},
		{"boot.isolcpus", "is not a CPU or range", Fail, cmdline("isolcpus=1-9", "isolcpus=1-x")},
		{"boot.consistent", "rcu_nocbs=1-8,11-19,21-29,31-39 differs", Fail, cmdline("rcu_nocbs=1-9", "rcu_nocbs=1-8")},
		{"boot.consistent", "tuned.non_isolcpus=40100403", Fail, cmdline("40100401", "40100403")},
		{"boot.nohz_full", "not in effect with kernel", Warn, func(m *topology.Machine,
			_ *plan.Plan) {
			m.Kernel.NohzFull = cpuset.Set{}
		}},
		{"boot.nohz_full", "have the tick", Warn, func(m *topology.Machine, p *plan.Plan) {
			cmdline("nohz_full=", "x=")(m, p)
			m.Kernel.NohzFull = cpuset.Set{}
		}},
		{"boot.rcu_nocbs", "CPUs 1 of workers run RCU", Warn, func(m *topology.Machine, p *plan.Plan) {
			cmdline("rcu_nocbs=1-9", "rcu_nocbs=2-9")(m, p)
			m.Kernel.NohzFull = set("2-9,11-19,21-29,31-39")
		}},
		{"boot.rcu_nocbs", "rcuop/1", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Threads = append(m.Threads, topology.Thread{TID: 77, PID: 77, Name: "rcuop/1", Kernel: true,
				Allowed: set("0-39")})
		}},
		{"boot.watchdog", "echo 0 > /proc/sys/kernel/nmi_watchdog", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Knobs.NMIWatchdog = "1"
		}},
		{"boot.irqaffinity", "echo 40100401 > /proc/irq/default_smp_affinity", Warn, func(m *topology.Machine,
			_ *plan.Plan) {
			m.Knobs.DefaultIRQAffinity = set("0-39")
		}},
		{"boot.managed_irq", "managed irq 50 nvme0q1 goes to CPU 1", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.IRQs = append(m.IRQs, topology.IRQ{Number: 50, Name: "nvme0q1", Managed: true, Affinity: set("0,1"),
				Effective: set("1")})
		}},
		{"place.first_core", "CPUs 20 of the first core", Fail, func(_ *topology.Machine, p *plan.Plan) {
			p.Workers[0].CPU = 20
		}},
		{"place.siblings", "have a worker each", Warn, func(_ *topology.Machine,
			p *plan.Plan) {
			p.Request.ShareCores = false
		}},
		{"place.siblings", "belongs to a guest", Warn, func(_ *topology.Machine,
			p *plan.Plan) {
			p.Workers = p.Workers[:1]
			p.CPUs[21].Role = plan.Guests
		}},
		{"place.online", "echo 1 > /sys/devices/system/cpu/cpu2/online", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.CPUs[2].Online = false
		}},
		{"place.housekeeping", "node 0 has workers (CPUs 1-4,21-24), but no CPU", Warn, func(_ *topology.Machine,
			p *plan.Plan) {
			p.CPUs[0].Role, p.CPUs[20].Role = plan.Idle, plan.Idle
		}},
		{"place.numa", "all workers are on other nodes", Fail, func(m *topology.Machine,
			_ *plan.Plan) {
			m.NICs[0].Node = 1
		}},
		{"place.numa", "not known", Unknown, func(m *topology.Machine, _ *plan.Plan) { m.NICs[0].Node = -1 }},
		{"threads.workers", "2 CPUs instead of one", Fail, func(m *topology.Machine, _ *plan.Plan) {
			worker(m).Allowed = set("1,2")
		}},
		{"threads.workers", "not a worker's CPU in the plan", Fail, func(m *topology.Machine, _ *plan.Plan) {
			worker(m).Allowed, worker(m).Process, worker(m).Name = set("7"), "corelaned", "pmd-fwd-0"
		}},
		{"threads.workers", "no worker runs on CPUs 1", Fail, func(m *topology.Machine, _ *plan.Plan) {
			worker(m).Name = "idle"
		}},
		{"threads.foreign", "hog (tid 4242, pid 4242) may run on CPUs 3", Fail,
			func(m *topology.Machine, _ *plan.Plan) {
				m.Threads = append(m.Threads,
					thread("3"))
			}},
		{"threads.foreign", "taskset -pc 0,10,20,30 4242", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Threads = append(m.Threads, thread("3"))
		}},
		{"threads.foreign", "may run on CPUs 0-39", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Threads = append(m.Threads, thread("0-39"))
		}},
		{"threads.foreign", "no thread could be read", Unknown, func(m *topology.Machine, _ *plan.Plan) {
			m.Threads = nil
		}},
		{"threads.kernel", "kernel thread khugepaged", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Threads = append(m.Threads, topology.Thread{TID: 60, PID: 60, Name: "khugepaged", Kernel: true,
				Allowed: set("0-39")})
		}},
		{"threads.own", "corelaned --service-cpus 5,25", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Threads[0].Allowed = set("1-5")
		}},
		{"threads.stacked", "2 threads may use these CPUs", Fail, func(m *topology.Machine, _ *plan.Plan) {
			a, b := thread("6-9"), thread("6-9")
			b.TID = 4243
			m.Threads = append(m.Threads, a, b)
		}},
		{"threads.stacked", "all of these CPUs are isolated", Warn, func(m *topology.Machine,
			_ *plan.Plan) {
			m.Threads = append(m.Threads, thread("6-9"))
		}},
		{"load.worker", "steal 10.0 %", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Load.CPUs[1].Steal, m.Load.CPUs[1].Idle = 10, 89
		}},
		{"load.worker", "could not be read", Unknown, func(m *topology.Machine, _ *plan.Plan) { m.Load = nil }},
		{"irq.affinity", "echo 0,10,20,30 > /proc/irq/40/smp_affinity_list", Fail,
			func(m *topology.Machine, _ *plan.Plan) {
				m.IRQs[0].Affinity, m.IRQs[0].Effective = set("0-9"), set("3")
			}},
		{"irq.affinity", "may move to a worker's CPU", Warn, func(m *topology.Machine,
			_ *plan.Plan) {
			m.IRQs[0].Affinity = set("0-9")
		}},
		{"irq.counts", "CPU 1: 40 em1-TxRx-0 900.0/s", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Load.CPUs[1].Interrupts = map[string]int64{"40 em1-TxRx-0": 900, "LOC": 1}
		}},
		{"softirq.counts", "NET_RX 900.0/s", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Load.CPUs[1].Softirqs = map[string]int64{"NET_RX": 900}
		}},
		{"net.rps", "echo 1 > /sys/class/net/em1/queues/rx-0/rps_cpus", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Interfaces[0].RPS[0] = set("0,1")
		}},
		{"net.xps", "em1, queue tx-0: CPUs 1", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Interfaces[0].XPS[0] = set("1")
		}},
		{"workqueue.mask", "echo 40100401 >", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Knobs.WorkqueueMask = set("0-39")
		}},
		{"cgroup.partition", "isolated invalid (Cpu list in cpuset.cpus not exclusive)", Fail,
			func(m *topology.Machine, _ *plan.Plan) {
				m.Cgroups = topology.Cgroups{Version: 2, Groups: []topology.Cgroup{{Path: "/corelane.slice",
					Partition: "isolated invalid (Cpu list in cpuset.cpus not exclusive)"}}}
			}},
		{"cgroup.cpus", "its workers need CPUs 1-4,21-24 too", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Cgroups.Groups = []topology.Cgroup{{Path: "/docker", Effective: set("0,10")}}
		}},
		{"cgroup.quota", "echo -1 > /sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", Fail,
			func(m *topology.Machine, _ *plan.Plan) {
				m.Cgroups.Groups = []topology.Cgroup{{Path: "/docker", QuotaUS: 50000, PeriodUS: 100000, Throttled: 7}}
			}},
		{"tuned.variables", "isolated_cores=2-9, but the plan", Fail, func(m *topology.Machine,
			_ *plan.Plan) {
			m.Services.TunedVariables["isolated_cores"] = "2-9"
		}},
		{"tuned.isolcpus", "neither in isolcpus nor in a cgroup partition", Warn,
			func(m *topology.Machine, _ *plan.Plan) {
				m.Kernel.Isolated = cpuset.Set{}
			}},
		{"tuned.isolcpus", "was not booted with the arguments", Warn, func(m *topology.Machine,
			_ *plan.Plan) {
			m.Kernel.NohzFull = cpuset.Set{}
		}},
		{"tuned.blacklist", "worker rte-worker-11", Fail, func(m *topology.Machine, _ *plan.Plan) {
			worker(m).Name = "rte-worker-11"
		}},
		{"systemd.affinity", "CPUs 1 that should be isolated", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Services.SystemdAffinity = set("0-1")
		}},
		{"systemd.affinity", "not set", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Services.SystemdAffinity, m.Kernel.Isolated = cpuset.Set{}, cpuset.Set{}
		}},
		{"vrouter.cpu_list", "CPU_LIST=0x01", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Services.VRouter["CPU_LIST"] = "0x01"
		}},
		// a partition alone: irqbalance does not see it
		{"irqbalance.bans", "do not include workers' CPUs 1-4,21-24", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Services.Irqbalance, m.Kernel.Isolated, m.Kernel.NohzFull = true, cpuset.Set{}, cpuset.Set{}
			m.Cgroups = topology.Cgroups{Version: 2,
				Groups: []topology.Cgroup{{Path: "/corelane.slice", Partition: "isolated",
					Effective: set("1-9,11-19,21-29,31-39")}}}
		}},
		{"nova.sets", "vcpu_pin_set=4-9 includes workers' CPUs 4", Fail, func(m *topology.Machine,
			_ *plan.Plan) {
			m.Services.Nova["vcpu_pin_set"] = "4-9"
		}},
		{"nova.power", "go offline", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Services.Nova = map[string]string{"cpu_power_management": "True", "cpu_dedicated_set": "6-9"}
		}},
		{"nova.power", "includes workers' CPUs 4", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Services.Nova = map[string]string{"cpu_power_management": "True", "cpu_dedicated_set": "4-9"}
		}},
		{"kubelet.reserved", "pods may get workers' CPUs 1-4,21-24", Fail, func(m *topology.Machine, _ *plan.Plan) {
			m.Services.Kubelet = map[string]string{"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,10"}
		}},
		{"guests.vcpus", "virsh vcpupin vm1 1 26", Fail, func(m *topology.Machine, _ *plan.Plan) {
			guest(m).VCPUs[1] = set("4")
		}},
		{"guests.vcpus", "some of them isolated", Warn, func(m *topology.Machine, _ *plan.Plan) {
			guest(m).
				VCPUs[1] = set("6-9")
		}},
		{"guests.emulator", "virsh emulatorpin vm1 10,20,30", Fail, func(m *topology.Machine, _ *plan.Plan) {
			guest(m).Emulator = set("0-4")
		}},
		{"guests.emulator", "iothread 1: may run on CPUs 6-7 only", Fail, func(m *topology.Machine,
			_ *plan.Plan) {
			guest(m).IOThread = []cpuset.Set{set("6-7")}
		}},
		{"guests.vhost", "serve the network's interrupts", Fail, func(m *topology.Machine, _ *plan.Plan) {
			guest(m).Vhost[0].Allowed = set("0")
		}},
		{"guests.vhost", "virsh emulatorpin vm1 10,20,30", Fail, func(m *topology.Machine, _ *plan.Plan) {
			guest(m).Vhost[0].Allowed = set("0")
		}},
		{"guests.numa", "memory on nodes 1, vCPUs on nodes 0", Warn, func(m *topology.Machine, _ *plan.Plan) {
			guest(m).Nodes = []int{1}
		}},
		{"guests.queues", "1 queue for 2 vCPUs", Warn, func(m *topology.Machine, _ *plan.Plan) {
			guest(m).Queues = []int{1}
		}},
		{"memory.hugepages", "no hugepages", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Nodes[0].Hugepages = []topology.Hugepages{{KiB: 2048}}
		}},
		{"memory.hugepages", "16 pages of 1048576 kB, but the plan wants 32", Fail, func(_ *topology.Machine,
			p *plan.Plan) {
			p.Hugepages = []plan.HugepageRequest{{Node: -1, KiB: 1048576, Pages: 32}}
		}},
		{"knobs.thp", "echo never >", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Knobs.THP = "[always] madvise never"
		}},
		{"knobs.ksm", "echo 0 > /sys/kernel/mm/ksm/run", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Knobs.KSM = "1"
		}},
		{"knobs.numa_balancing", "is 1", Warn, func(m *topology.Machine, _ *plan.Plan) { m.Knobs.NUMABalancing = "1" }},
		{"knobs.rt_throttling", "echo -1 >", Fail, func(m *topology.Machine, _ *plan.Plan) {
			worker(m).Policy = "fifo"
		}},
		{"knobs.vmstat", "is 1", Warn, func(m *topology.Machine, _ *plan.Plan) { m.Knobs.StatInterval = "1" }},
		{"knobs.vmstat", "not readable", Unknown, func(m *topology.Machine, _ *plan.Plan) {
			m.Knobs.StatInterval = ""
		}},
		{"knobs.governor", "CPU 2: governor powersave", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.CPUs[2].Governor = "powersave"
		}},
		{"knobs.clocksource", "is hpet", Warn, func(m *topology.Machine, _ *plan.Plan) {
			m.Knobs.Clocksource = "hpet"
		}},
	} {
		m, p := full(), fieldPlan()
		c.change(m, p)
		f := find(t, Check(m, p), c.id)
		if f.Verdict != c.verdict || !strings.Contains(said(f), c.want) {
			t.Errorf("%s is %s, want %s with '%s':\n%s", c.id, f.Verdict, c.verdict, c.want, said(f))
		}
		if f.Verdict > Unknown && len(f.Fix) == 0 && !strings.Contains(said(f), "steal") {
			t.Errorf("%s: no fix for %s", c.id, said(f))
		}
		delete(untested, c.id)
	}
	for id := range untested {
		t.Errorf("no mutation breaks %s", id)
	}
}

// untested lists the checks that TestBroken does not break.
var untested = func() map[string]bool {
	ids := map[string]bool{}
	for _, r := range rules() {
		ids[r.id] = true
	}
	return ids
}()

// TestGuestsPass: a guest without problems.
func TestGuestsPass(t *testing.T) {
	m := full()
	m.Guests = []topology.Guest{{Name: "vm1", PID: 9000, Source: "libvirt", VCPUs: []cpuset.Set{set("6"), set("7")},
		Emulator: set("20"), Nodes: []int{0}, Queues: []int{2},
		Vhost: []topology.Thread{{TID: 9001, PID: 9001, Name: "vhost-9000", Kernel: true, Allowed: set("20"),
			LastCPU: 20}}}}
	m.Load.CPUs[0].Softirqs = map[string]int64{"NET_RX": 50000}
	for _, f := range Check(m, fieldPlan()) {
		if f.Verdict != Pass {
			t.Errorf("%s: %s", f.ID, said(f))
		}
	}
}

// TestContainer: in a container no command changes what belongs to its host.
func TestContainer(t *testing.T) {
	for _, name := range []string{"container", "container-host"} {
		for _, f := range Check(topologytest.Machine(t, name), nil) {
			for _, command := range f.Fix {
				if strings.Contains(command, " > /proc/") || strings.Contains(command, " > /sys/") {
					t.Errorf("%s: %s: %s", name, f.ID, command)
				}
			}
		}
	}
}

// TestGuestsWithoutPlan: what is wrong with guests and with Nova's sets fails without a plan, too.
func TestGuestsWithoutPlan(t *testing.T) {
	for _, c := range []struct{ machine, id, want string }{
		{"odd-even-16", "guests.vcpus", "vCPU 8: is pinned to CPU 2, like bigip-virtio, vCPU 1"},
		{"odd-even-16", "guests.vcpus", "virsh setvcpus bigip-virtio 8 --config"},
		{"odd-even-16", "guests.emulator", "virsh emulatorpin bigip-virtio 1,3,5,7,9,11,13,15"},
		{"odd-even-16", "guests.vhost", "virsh emulatorpin bigip-virtio 1,3,5,7,9,11,13,15"},
		{"nova", "guests.emulator", "virsh emulatorpin g1 1-3,17-31,33-35,49-63"},
		{"nova", "nova.sets", "CPUs 16-31,48-63 are not isolated"},
		{"nova", "nova.sets", "CPUs 4-5,36-37 are isolated, but no program uses them"},
		{"nova", "nova.sets", "compute cpu_dedicated_set 6-15,38-47 "},
	} {
		f := find(t, Check(topologytest.Machine(t, c.machine), nil), c.id)
		if f.Verdict != Fail || !strings.Contains(said(f), c.want) {
			t.Errorf("%s: no '%s' in\n%s", c.machine, c.want, said(f))
		}
	}
}

// TestNovaWithPlan: the commands give Nova the plan's CPUs, no more and no fewer.
func TestNovaWithPlan(t *testing.T) {
	m := topologytest.Machine(t, "nova")
	p, err := plan.Make(m, plan.Request{Forwarding: 4, Service: 2, Guests: 24, NICs: []string{"0000:17:00.0"}})
	if err != nil {
		t.Fatal(err)
	}
	f := find(t, Check(m, p), "nova.sets")
	for name, cpus := range map[string]cpuset.Set{"cpu_dedicated_set": p.Of(plan.Guests),
		"cpu_shared_set": p.EmulatorCPUs()} {
		want := fmt.Sprintf("crudini --set /etc/nova/nova.conf compute %s %s ", name, cpus)
		if f.Verdict != Fail || !strings.Contains(said(f), want) {
			t.Errorf("no '%s' in\n%s", want, said(f))
		}
	}
	m.Services.Nova = map[string]string{"cpu_dedicated_set": p.Of(plan.Guests).String(),
		"cpu_shared_set": p.EmulatorCPUs().String()}
	if f := find(t, Check(m, p), "nova.sets"); f.Verdict != Pass {
		t.Error(said(f))
	}
	m.Services.Kubelet = map[string]string{"cpuManagerPolicy": "static",
		"reservedSystemCPUs": p.Of(plan.Forwarding, plan.Housekeeping).String()}
	f = find(t, Check(m, p), "kubelet.reserved")
	if want := `"` + m.Online().Without(p.Of(plan.Guests)).String() + `"`; !strings.Contains(said(f), want) {
		t.Errorf("no %s in\n%s", want, said(f))
	}
}

// TestFieldPartial: partial isolation of that host is recognised, with a plan and without.
func TestFieldPartial(t *testing.T) {
	for _, p := range []*plan.Plan{fieldPlan(), nil} {
		f := find(t, Check(partial(), p), "isolation.state")
		for _, want := range []string{"partial isolation", "TuneD keeps threads off",
			"workers' CPUs 1-4,21-24 are left out", "7 service and control threads",
			"4 threads of other programs", "worker CPU 2", "dockerd", "14 CPUs left", "of which 8 forward", "0.165"} {
			if f.Verdict != Fail || !strings.Contains(said(f), want) {
				t.Errorf("plan %t: no '%s' in\n%s", p != nil, want, said(f))
			}
		}
	}
}

// TestNothingIntended: a host without a data plane and without isolation.
func TestNothingIntended(t *testing.T) {
	m := xeon()
	if in := IntentOf(m, nil); !in.None() {
		t.Errorf("%+v", in)
	}
	if f := find(t, Check(m, nil), "isolation.intent"); f.Verdict != Unknown {
		t.Error(said(f))
	}
}

// TestPaired: receive and forwarding workers may share a core.
func TestPaired(t *testing.T) {
	m, p := full(), fieldPlan()
	p.Request.ShareCores = false
	for i := range p.Workers {
		if w := &p.Workers[i]; w.CPU >= 20 {
			w.Role, w.Target = plan.IsolatedRx, i-4
			p.CPUs[w.CPU].Role = plan.IsolatedRx
		}
	}
	if f := find(t, Check(m, p), "place.siblings"); f.Verdict != Pass ||
		!strings.Contains(said(f), "receive and forward for each other") {
		t.Error(said(f))
	}
}

func FuzzLists(f *testing.F) {
	for _, s := range []string{"managed_irq,domain,1-N", "4-12,^8", "0-3,^x", "all", "N-N"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := full()
		m.Kernel.Args, m.Kernel.Cmdline = nil, "isolcpus="+text+" nohz_full="+text
		m.Services.Nova["vcpu_pin_set"] = text
		m.Services.TunedVariables["isolated_cores"] = text
		m.Services.VRouter["CPU_LIST"] = text
		m.Services.Kubelet = map[string]string{"cpuManagerPolicy": "static", "reservedSystemCPUs": text}
		if len(Check(m, fieldPlan())) != len(rules()) {
			t.Error("a rule is missing")
		}
	})
}
