// SPDX-License-Identifier: Apache-2.0
package topologytest

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
)

var machines = map[string]func() *Spec{
	"xeon-4210":   xeon4210,
	"no-smt-20":   noSMT20,
	"odd-even-16": oddEven16,
	"epyc-nps4":   epycNPS4,
	"four-socket": fourSocket,
	"one-cpu":     oneCPU,
	"holes":       holes,
	"vm":          vm,
	"dual-384":    dual384,

	"hybrid": hybrid,
	"nova":   nova,

	"container":         container,
	"container-host":    containerHost,
	"partition":         partition,
	"partition-invalid": partitionInvalid,
	"cpuset-v1":         cpusetV1,
}

func two(n int) []Node {
	return []Node{{ID: 0, MemoryGiB: n, Distances: []int{10, 21}}, {ID: 1, MemoryGiB: n, Distances: []int{21, 10}}}
}

func same(_, core int) int { return core }

const xeonCmdline = "BOOT_IMAGE=/boot/vmlinuz-3.10.0-1062.9.1.el7.x86_64 " +
	"root=UUID=228c59ea-82f0-4ee8-9d03-5620e5f0fafb ro console=tty0 " +
	"console=ttyS0,115200n8 crashkernel=auto rhgb quiet iommu=pt intel_iommu=on isolcpus=1-9,11-19,21-29,31-39 " +
	"default_hugepagesz=1GB " +
	"hugepagesz=1G hugepages=128 hugepagesz=2M hugepages=2048 skew_tick=1 nohz=on nohz_full=1-9,11-19,21-29,31-39 " +
	"rcu_nocbs=1-9,11-19,21-29,31-39 tuned.non_isolcpus=40100401 intel_pstate=disable nosoftlockup"

// xeon4210 is the 2x10-core host of contrail-specs, fully partitioned: CPUs 0-9,20-29 on node 0, a sibling is 20
// higher.
func xeon4210() *Spec {
	s := &Spec{
		Hostname: "compute-0", Release: "3.10.0-1062.9.1.el7.x86_64", Model: "Intel(R) Xeon(R) Silver 4210 CPU @ " +
			"2.20GHz", Cmdline: xeonCmdline,
		CPUs:     grid(2, 1, 10, 2, func(s, _, c, t int) int { return s*10 + c + t*20 }, same),
		Nodes:    two(192),
		HostCPUs: cpuset.Of(0, 10, 20, 30),
		NICs: []NIC{
			{Address: "0000:3b:00.0", Driver: "vfio-pci", Vendor: "0x8086", Device: "0x158b", Node: 0},
			{Address: "0000:af:00.0", Driver: "ixgbe", Interface: "eno1", Vendor: "0x8086", Device: "0x10fb", Node: 1,
				Queues: 4, IRQ: 60, At: []int{0, 10, 20, 30}, Count: 5000},
		},
		Files: map[string]string{
			"etc/tuned/active_profile": "cpu-partitioning",
			"etc/tuned/cpu-partitioning-variables.conf": "# Examples:\n# isolated_cores=2,4-7\n" +
				"isolated_cores=1-9,11-19,21-29,31-39",
			"usr/lib/tuned/cpu-partitioning/tuned.conf": cpuPartitioning,
			"usr/lib/tuned/network-latency/tuned.conf":  "[main]\nsummary=Low latency\n",
			"etc/systemd/system.conf":                   "[Manager]\n#LogLevel=info\nCPUAffinity=0 10 20 30",
			"etc/sysconfig/network-scripts/ifcfg-vhost0": "DEVICE=vhost0\nONBOOT=yes\nDRIVER=uio_pci_generic\n" +
				"CPU_LIST=1,2,3,4,21,22,23,24",
			"etc/nova/nova.conf": "[DEFAULT]\nvcpu_pin_set=6-9,11-19,25-29,31-39\n" +
				"[database]\nconnection=mysql://nova:secret@db/nova",
			"proc/sys/kernel/numa_balancing":             "0",
			"proc/sys/kernel/nmi_watchdog":               "0",
			"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
		},
	}
	s.Files["sys/devices/virtual/workqueue/cpumask"] = s.HostCPUs.MaskWords()
	for i := range s.Nodes {
		s.Nodes[i].Pages = map[int][2]int{1048576: {64, 40}, 2048: {1024, 1024}}
	}
	s.Threads = append(vrouter(4000, 1, 2, 3, 4), Thread{TID: 950, PID: 950, Name: "tuned", Allowed: s.HostCPUs,
		Cgroup: "/system.slice/tuned.service"})
	return s
}

// The relevant parts of TuneD's profile, with the values of its documentation.
const cpuPartitioning = `[main]
summary=Optimize for CPU partitioning
include=network-latency

[variables]
include=/etc/tuned/cpu-partitioning-variables.conf

[scheduler]
isolated_cores=${isolated_cores}
ps_blacklist=.*pmd.*;.*PMD.*;^DPDK;.*qemu-kvm.*;^contrail-vroute$;^lcore-slave-.*;^rte_mp_handle$;^rte_mp_async$;^eal-intr-thread$
`

// vrouter returns the threads of a vRouter. Its forwarding threads are on cpus; the others may run on the first CPUs.
func vrouter(pid int, cpus ...int) []Thread {
	others := cpuset.Of(0, 10, 20, 30)
	all := []Thread{{TID: pid, PID: pid, Name: "contrail-vroute", Allowed: others}}
	for i, name := range []string{"eal-intr-thread", "rte_mp_handle", "rte_mp_async"} {
		all = append(all, Thread{TID: pid + 1 + i, PID: pid, Name: name, Allowed: others})
	}
	for i, cpu := range cpus {
		all = append(all, Thread{TID: pid + 10 + i, PID: pid, Name: fmt.Sprintf("lcore-slave-%d", 10+i),
			Allowed: cpuset.Of(cpu), CPU: cpu, Ticks: 900000})
	}
	return all
}

// noSMT20 is the 20-core host of DPVS's Worker-Performance-Tuning.md, without siblings and with a gap in its core ids.
func noSMT20() *Spec {
	return &Spec{
		Hostname: "dpvs-0", Release: "4.18.0-80.el8.x86_64", Model: "Intel(R) Xeon(R) CPU E5-2650 v3 @ 2.30GHz",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet",
		CPUs: grid(2, 1, 10, 1, func(s, _, c, _ int) int { return s*10 + c },
			func(_, c int) int { return []int{0, 1, 2, 3, 4, 8, 9, 10, 11, 12}[c] }),
		Nodes: two(32),
		NICs: []NIC{
			{Address: "0000:04:00.0", Driver: "ixgbe", Interface: "eth0", Vendor: "0x8086", Device: "0x10fb",
				Node: 0, Queues: 8, IRQ: 50, At: []int{0, 1, 2, 3}, Count: 900},
			{Address: "0000:04:00.1", Driver: "ixgbe", Interface: "eth1", Vendor: "0x8086", Device: "0x10fb",
				Node: 0, Queues: 8, IRQ: 60, At: []int{4, 5, 6, 7}, Count: 900},
		},
		Files: map[string]string{"sys/devices/system/cpu/smt/control": "notsupported"},
	}
}

// oddEven16 is the 16-CPU host of "KVM vhost performance tuning to enhance ADC VE throughput" (2017): even CPUs are
// node 0, odd ones node 1. Its guest's vCPUs and vhost threads share node 0 with the interrupts of both ports.
func oddEven16() *Spec {
	even := cpuset.Of(0, 2, 4, 6, 8, 10, 12, 14)
	return &Spec{
		Hostname: "r710", Release: "3.13.0-24-generic", Model: "Intel(R) Xeon(R) CPU X5560 @ 2.80GHz",
		Cmdline: "BOOT_IMAGE=/vmlinuz-3.13.0-24-generic ro quiet",
		CPUs:    grid(2, 1, 4, 2, func(s, _, c, t int) int { return 2*c + s + 8*t }, same),
		Nodes: []Node{{ID: 0, MemoryGiB: 36, Distances: []int{10, 20}},
			{ID: 1, MemoryGiB: 36, Distances: []int{20, 10}}},
		NICs: []NIC{
			{Address: "0000:04:00.0", Driver: "ixgbe", Interface: "enp4s0f0", Vendor: "0x8086", Device: "0x10fb",
				Node: 0, Queues: 8, IRQ: 70, At: even.IDs(), Count: 2_000_000},
			{Address: "0000:04:00.1", Driver: "ixgbe", Interface: "enp4s0f1", Vendor: "0x8086", Device: "0x10fb",
				Node: 0, Queues: 8, IRQ: 80, At: even.IDs(), Count: 1_900_000},
		},
		Threads: bigip(even),
		Files: map[string]string{
			"etc/libvirt/qemu/bigip-virtio.xml": bigipXML,
			"proc/23329/cmdline": "qemu-system-x86_64\x00-enable-kvm\x00-name\x00" +
				"bigip-virtio\x00-S\x00-m\x0031357",
		},
	}
}

var bigipPins = []int{0, 2, 4, 6, 8, 10, 12, 14, 2, 4}

func bigip(emulator cpuset.Set) []Thread {
	const pid = 23329
	all := []Thread{{TID: pid, PID: pid, Name: "qemu-system-x86", Allowed: emulator}}
	for i, cpu := range bigipPins {
		all = append(all, Thread{TID: 23341 + i, PID: pid, Name: fmt.Sprintf("CPU %d/KVM", i), Allowed: cpuset.Of(cpu),
			CPU: cpu, Ticks: 90000})
	}
	for i := range 8 {
		tid := 23332 + i
		all = append(all, Thread{TID: tid, PID: tid, Name: fmt.Sprintf("vhost-%d", pid), Kernel: true,
			Allowed: emulator, CPU: 2 * i, Ticks: 6000})
	}
	return all
}

const bigipXML = `<domain type='kvm'>
  <name>bigip-virtio</name>
  <uuid>9e2e8a0e-7d2c-4b6a-9d47-0c1b1f5a2f10</uuid>
  <vcpu placement='static'>10</vcpu>
  <cputune>
    <vcpupin vcpu='0' cpuset='0'/> <vcpupin vcpu='1' cpuset='2'/> <vcpupin vcpu='2' cpuset='4'/> <vcpupin vcpu='3' cpuset='6'/>
    <vcpupin vcpu='4' cpuset='8'/> <vcpupin vcpu='5' cpuset='10'/> <vcpupin vcpu='6' cpuset='12'/> <vcpupin vcpu='7' cpuset='14'/>
    <vcpupin vcpu='8' cpuset='2'/> <vcpupin vcpu='9' cpuset='4'/>
    <emulatorpin cpuset='0,2,4,6,8,10,12,14'/>
  </cputune>
  <numatune><memory mode='strict' nodeset='0'/></numatune>
  <devices>
    <disk type='file'><source file='/var/lib/libvirt/images/bigip.qcow2'/></disk>
    <interface type='bridge'><mac address='52:54:00:55:47:05'/><source bridge='br0'/><model type='virtio'/></interface>
    <interface type='direct'><source dev='enp4s0f0' mode='vepa'/><model type='virtio'/><driver name='vhost' queues='4'/></interface>
    <interface type='direct'><source dev='enp4s0f1' mode='vepa'/><model type='virtio'/><driver name='vhost' queues='4'/></interface>
    <graphics type='vnc' port='-1' passwd='hunter2'/>
  </devices>
</domain>`

// epycNPS4 is an AMD EPYC 7543 in NPS4: four nodes per socket, two caches (CCX) of four cores in each, a sibling is 64
// higher.
func epycNPS4() *Spec {
	s := &Spec{
		Hostname: "epyc", Release: "6.8.0-45-generic", Model: "AMD EPYC 7543 32-Core Processor",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet amd_iommu=on iommu=pt",
		CPUs: grid(2, 4, 8, 2, func(s, n, c, t int) int {
			return s*32 + n*8 + c + t*64
		}, func(n, c int) int { return n*8 + c }),
		NICs: []NIC{
			{Address: "0000:41:00.0", Driver: "mlx5_core", Interface: "ens1f0np0", Vendor: "0x15b3", Device: "0x101d",
				Node: 1, Queues: 8, IRQ: 200, At: []int{8, 9, 10, 11, 12, 13, 14, 15}, Count: 100},
		},
	}
	for i := range s.CPUs {
		s.CPUs[i].L3 = s.CPUs[i].Socket*8 + s.CPUs[i].Core/4
	}
	for n := range 8 {
		d := make([]int, 8)
		for to := range 8 {
			d[to] = map[bool]int{true: 12, false: 32}[n/4 == to/4]
		}
		d[n] = 10
		s.Nodes = append(s.Nodes, Node{ID: n, MemoryGiB: 64, Distances: d})
	}
	return s
}

// fourSocket has four sockets of 18 cores with siblings.
func fourSocket() *Spec {
	s := &Spec{
		Hostname: "quad", Release: "5.14.0-427.el9.x86_64", Model: "Intel(R) Xeon(R) Gold 6254 CPU @ 3.10GHz",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet",
		CPUs:    grid(4, 1, 18, 2, func(s, _, c, t int) int { return s*18 + c + t*72 }, same),
		NICs:    []NIC{{Address: "0000:d8:00.0", Driver: "vfio-pci", Vendor: "0x15b3", Device: "0x1017", Node: 3}},
	}
	for n := range 4 {
		d := []int{21, 21, 21, 21}
		d[n] = 10
		s.Nodes = append(s.Nodes, Node{ID: n, MemoryGiB: 96, Distances: d})
	}
	return s
}

// oneCPU has one core with one CPU.
func oneCPU() *Spec {
	return &Spec{
		Hostname: "single", Release: "6.1.0-18-amd64", Model: "Intel(R) Celeron(R) CPU", Cmdline: "ro quiet",
		CPUs: []CPU{{}}, Nodes: []Node{{MemoryGiB: 2, Distances: []int{10}}},
		NICs: []NIC{{Address: "0000:01:00.0", Driver: "igc", Interface: "eth0", Vendor: "0x8086", Device: "0x15f3",
			Node: -1, Queues: 2, IRQ: 30, At: []int{0}, Count: 10}},
	}
}

// holes has two sockets of 4 cores with siblings and gaps in their numbers (the sockets could hold more), two offline
// CPUs, and one missing sibling.
func holes() *Spec {
	s := &Spec{
		Hostname: "holes", Release: "5.15.0-100-generic", Model: "Intel(R) Xeon(R) E-2278G",
		Cmdline: "ro quiet maxcpus=12",
		CPUs:    grid(2, 1, 4, 2, func(s, _, c, t int) int { return s*100 + c + t*8 }, same),
		Nodes: []Node{{ID: 0, MemoryGiB: 8, Distances: []int{10, 20}},
			{ID: 2, MemoryGiB: 8, Distances: []int{20, 10}}},
		NICs: []NIC{{Address: "0000:02:00.0", Driver: "ice", Interface: "eth0", Vendor: "0x8086", Device: "0x1592",
			Node: 2, Queues: 2, IRQ: 90, At: []int{100, 101}, Count: 10}},
	}
	for i := range s.CPUs {
		c := &s.CPUs[i]
		c.Node = c.Socket * 2 // node 1 does not exist
		c.Offline = c.ID == 3 || c.ID == 11 || c.ID == 109
	}
	return s
}

// vm is a virtual machine of 8 CPUs on KVM, without NUMA, caches or frequency, with a virtio NIC.
func vm() *Spec {
	s := &Spec{
		Hostname: "guest", Release: "6.1.0-18-cloud-amd64", Model: "QEMU Virtual CPU version 2.5+",
		Cmdline: "root=/dev/vda1 ro console=ttyS0",
		CPUs:    grid(8, 1, 1, 1, func(s, _, _, _ int) int { return s }, same),
		Nodes:   []Node{{MemoryGiB: 16}},
		NICs: []NIC{{Address: "0000:00:03.0", Driver: "virtio-pci", Vendor: "0x1af4", Device: "0x1000",
			Node: -1, Queues: 3, IRQ: 24, At: []int{0, 1, 2}, Count: 40}},
		Files: map[string]string{
			"sys/class/dmi/id/sys_vendor": "QEMU", "sys/class/dmi/id/product_name": "Standard PC (Q35 + ICH9, 2009)",
			"sys/bus/pci/devices/0000:00:03.0/virtio0/net/eth0/ifindex": "2",
			"sys/class/net/eth0/queues/rx-0/rps_cpus":                   "00",
			"sys/class/net/eth0/queues/tx-0/tx_timeout":                 "0",
		},
		Without: []string{"sys/devices/system/node", "sys/bus/pci/devices/0000:00:03.0/current_link_speed",
			"sys/bus/pci/devices/0000:00:03.0/current_link_width"},
	}
	for i := range 8 {
		s.CPUs[i].Node = 0
		dir := fmt.Sprintf("%s/cpu%d/", cpuDir, i)
		s.Without = append(s.Without, dir+"cache", dir+"cpufreq", dir+"node0")
	}
	return s
}

// dual384 has two sockets of 96 cores with siblings: 384 CPUs.
func dual384() *Spec {
	s := &Spec{
		Hostname: "dense", Release: "6.12.0-55.el10.x86_64", Model: "AMD EPYC 9654 96-Core Processor",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet",
		CPUs:    grid(2, 1, 96, 2, func(s, _, c, t int) int { return s*96 + c + t*192 }, same),
		Nodes:   two(768),
		NICs: []NIC{{Address: "0000:c1:00.0", Driver: "mlx5_core", Interface: "eth0", Vendor: "0x15b3",
			Device: "0x1021", Node: 1, Queues: 64, IRQ: 1000,
			At: cpuset.Range(96, 159).IDs(), Count: 1234567}},
	}
	for i := range s.CPUs {
		s.CPUs[i].L3 = s.CPUs[i].Socket*12 + s.CPUs[i].Core/8
	}
	return s
}

// container is a container's view of an 8-CPU host: a quota of 2.5 CPUs, CPUs 2-5, no nodes in /sys, some files denied.
func container() *Spec {
	cpus := cpuset.Range(2, 5)
	s := &Spec{
		Hostname: "7f3a1c", Release: "6.8.0-45-generic", Model: "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet",
		CPUs:    grid(1, 1, 4, 2, func(_, _, c, t int) int { return 2*c + t }, same), OwnPIDs: true,
		Threads: []Thread{
			{TID: 1, PID: 1, Name: "corelaned", Allowed: cpus, CPU: 2},
			{TID: 7, PID: 1, Name: "pmd-fwd-0", Allowed: cpus, CPU: 3},
		},
		Files: map[string]string{
			"run/.containerenv": "", "proc/meminfo": "MemTotal:       16384000 kB",
			"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids", "sys/fs/cgroup/cpu.max": "250000 100000",
			"sys/fs/cgroup/cpu.stat": "usage_usec 3350671\nnr_periods 4000\nnr_throttled 1234\n" +
				"throttled_usec 99",
			"sys/fs/cgroup/cpuset.cpus.effective": "2-5", "sys/fs/cgroup/cpuset.cpus": "",
		},
		Without: []string{"sys/devices/system/node", "sys/bus", "proc/irq/0"},
		Denied: []string{"proc/interrupts", "sys/devices/virtual/workqueue/cpumask", "sys/kernel/mm/ksm/run",
			"proc/irq"},
	}
	return s
}

// partition is a host with cgroup version 2. Its workers have an isolated partition with CPUs 2-5 and their siblings.
func partition() *Spec {
	own, host := cpuset.Of(2, 3, 4, 5, 10, 11, 12, 13), cpuset.Of(0, 1, 6, 7, 8, 9, 14, 15)
	return &Spec{
		Hostname: "partition", Release: "6.12.0-55.el10.x86_64", Model: "Intel(R) Xeon(R) Gold 6334 CPU @ 3.60GHz",
		Cmdline: "BOOT_IMAGE=/vmlinuz ro quiet",
		CPUs:    grid(1, 1, 8, 2, func(_, _, c, t int) int { return c + 8*t }, same),
		Nodes:   []Node{{MemoryGiB: 64, Distances: []int{10}}}, HostCPUs: host,
		Threads: []Thread{
			{TID: 2000, PID: 2000, Name: "corelaned", Allowed: host, Cgroup: "/system.slice/corelaned.service"},
			{TID: 2001, PID: 2000, Name: "pmd-fwd-0", Allowed: cpuset.Of(2), CPU: 2, Cgroup: "/corelane.slice"},
		},
		Files: map[string]string{
			"sys/fs/cgroup/cgroup.controllers":                   "cpuset cpu io memory pids",
			"sys/fs/cgroup/cpuset.cpus.isolated":                 own.String(),
			"sys/fs/cgroup/cpuset.cpus.effective":                host.String(),
			"sys/fs/cgroup/system.slice/cpuset.cpus":             host.String(),
			"sys/fs/cgroup/system.slice/cpuset.cpus.effective":   host.String(),
			"sys/fs/cgroup/system.slice/cpuset.cpus.partition":   "member",
			"sys/fs/cgroup/system.slice/sshd.service/cpu.max":    "max 100000",
			"sys/fs/cgroup/corelane.slice/cpuset.cpus":           own.String(),
			"sys/fs/cgroup/corelane.slice/cpuset.cpus.exclusive": own.String(),
			"sys/fs/cgroup/corelane.slice/cpuset.cpus.effective": own.String(),
			"sys/fs/cgroup/corelane.slice/cpuset.cpus.partition": "isolated",
			"sys/fs/cgroup/user.slice/user-0.slice/cpu.max":      "50000 100000",
		},
	}
}

// partitionInvalid is the same host after another group was also given CPU 5.
func partitionInvalid() *Spec {
	s := partition()
	s.Hostname = "partition-invalid"
	s.Files["sys/fs/cgroup/corelane.slice/cpuset.cpus.partition"] = "isolated invalid (Cpu list in cpuset.cpus not " +
		"exclusive)"
	s.Files["sys/fs/cgroup/cpuset.cpus.isolated"] = ""
	s.Files["sys/fs/cgroup/cpuset.cpus.effective"] = "0-15"
	s.Files["sys/fs/cgroup/system.slice/cpuset.cpus"] = "0-1,5-9,14-15"
	return s
}

// cpusetV1 is a host with cgroup version 1: a cpuset for guests and a quota elsewhere.
func cpusetV1() *Spec {
	s := partition()
	s.Hostname, s.Release = "cpuset-v1", "4.18.0-553.el8_10.x86_64"
	const root = "sys/fs/cgroup/"
	s.Files = map[string]string{
		root + "cpuset/cgroup.procs": "1", root + "cpuset/cpuset.cpus": "0-15",
		root + "cpuset/cpuset.effective_cpus":               "0-15",
		root + "cpuset/machine.slice/cpuset.cpus":           "2-5,10-13",
		root + "cpuset/machine.slice/cpuset.effective_cpus": "2-5,10-13",
		root + "cpuset/system.slice/cpuset.cpus":            "", root + "cpuset/system.slice/cpuset.effective_cpus": "",
		root + "cpu/cgroup.procs": "1", root + "cpu/cpu.cfs_quota_us": "-1",
		root + "cpu/machine.slice/cpu.cfs_quota_us": "400000", root + "cpu/machine.slice/cpu.cfs_period_us": "100000",
		root + "cpu/machine.slice/cpu.stat": "nr_periods 10\nnr_throttled 3\nthrottled_time 7",
		"proc/2000/task/2001/cgroup":        "5:cpuset:/machine.slice\n3:cpu,cpuacct:/\n0::/",
		"proc/2000/task/2000/cgroup":        "5:cpuset:/\n3:cpu,cpuacct:/",
	}
	return s
}
