// SPDX-License-Identifier: Apache-2.0

// Package topology reads a machine: its CPUs, memory, network devices, interrupts, guests, threads, and the settings
// that decide how the kernel uses them. It reads below a root directory, "/" or a captured machine, and changes
// nothing.
package topology

import (
	"fmt"

	"github.com/corelane/corelane/internal/cpuset"
)

// Machine is the result of reading a machine. It is plain data: code that decides works on it and reads no files.
type Machine struct {
	Hostname   string      `json:"hostname"`
	Kernel     Kernel      `json:"kernel"`
	Virtual    string      `json:"virtual,omitempty"`   // hypervisor according to /sys or DMI: "kvm"; empty: none known
	Container  bool        `json:"container,omitempty"` // the files are a container's view
	Group      string      `json:"group,omitempty"`     // cgroup of the whole container; empty: not known
	Allowed    cpuset.Set  `json:"allowed,omitzero"`    // CPUs of this program in a container; empty: not known
	CPUs       []CPU       `json:"cpus"`                // by id, including offline CPUs
	Nodes      []Node      `json:"nodes"`               // by id; a machine without NUMA has one node
	NICs       []NIC       `json:"nics,omitempty"`
	IRQs       []IRQ       `json:"irqs,omitempty"`
	Interfaces []Interface `json:"interfaces,omitempty"` // the kernel's network interfaces with their queues
	Guests     []Guest     `json:"guests,omitempty"`
	Threads    []Thread    `json:"threads,omitempty"` // of all processes that are ours, and of the kernel
	Cgroups    Cgroups     `json:"cgroups"`
	Services   Services    `json:"services"`
	Knobs      Knobs       `json:"knobs"`
	Load       *Load       `json:"load,omitempty"`   // nil: not read
	Unread     []Unread    `json:"unread,omitempty"` // files that were missing or malformed
}

// Unread is a file that could not be read or parsed.
type Unread struct {
	Path string `json:"path"` // below the root
	Why  string `json:"why"`
}

// Kernel is the kernel's release and command line.
type Kernel struct {
	Release string     `json:"release"`
	Cmdline string     `json:"cmdline"`
	Args    []Argument `json:"-"` // arguments of Cmdline in their order
	// The arguments' effect, from /sys/devices/system/cpu.
	Isolated cpuset.Set `json:"isolated"` // by isolcpus= at boot, not by cgroup partitions
	NohzFull cpuset.Set `json:"nohz_full"`
}

// Argument of the kernel: name[=value].
type Argument struct{ Name, Value string }

// CPU is a logical CPU of the kernel.
type CPU struct {
	ID       int        `json:"id"`
	Online   bool       `json:"online"`
	Socket   int        `json:"socket"`   // physical_package_id; -1 unknown
	Die      int        `json:"die"`      // -1 unknown
	Core     int        `json:"core"`     // core_id: unique only with socket and die; -1 unknown
	Node     int        `json:"node"`     // NUMA node; 0 on a machine without NUMA, -1: in no node
	Siblings cpuset.Set `json:"siblings"` // CPUs of the same core, itself included
	L2       cpuset.Set `json:"l2"`       // CPUs that share the cache; empty: unknown
	L3       cpuset.Set `json:"l3"`
	Model    string     `json:"model,omitempty"`
	Governor string     `json:"governor,omitempty"`
	// The speed, see Speeds; 0 or empty: the machine does not say.
	Type        string `json:"type,omitempty"` // of a hybrid Intel CPU: performance, efficient, low-power
	MaxKHz      int    `json:"max_khz,omitempty"`
	BaseKHz     int    `json:"base_khz,omitempty"`     // guaranteed clock
	Capacity    int    `json:"capacity,omitempty"`     // by the kernel's scheduler: 1024 is the fastest CPU
	HighestPerf int    `json:"highest_perf,omitempty"` // by the firmware's CPPC, on a scale of its own
}

// Node is a NUMA node.
type Node struct {
	ID        int         `json:"id"`
	CPUs      cpuset.Set  `json:"cpus"`
	MemoryKiB int64       `json:"memory_kib"`
	Hugepages []Hugepages `json:"hugepages,omitempty"`
	Distances []int       `json:"distances,omitempty"` // to the nodes in their order; 10 = itself
}

// Hugepages of one size on one node.
type Hugepages struct {
	KiB   int `json:"kib"`
	Total int `json:"total"`
	Free  int `json:"free"`
}

// NIC is a network device on the PCI bus, with any driver.
type NIC struct {
	Address   string `json:"address"` // 0000:3b:00.0
	Node      int    `json:"node"`    // -1 unknown
	Vendor    string `json:"vendor"`  // 0x8086
	Device    string `json:"device"`
	Driver    string `json:"driver,omitempty"` // vfio-pci, mlx5_core, ...
	Interface string `json:"interface,omitempty"`
	RxQueues  int    `json:"rx_queues,omitempty"`
	TxQueues  int    `json:"tx_queues,omitempty"`
	IRQs      []int  `json:"irqs,omitempty"`
	LinkSpeed string `json:"link_speed,omitempty"` // PCIe, as in /sys
	LinkWidth int    `json:"link_width,omitempty"`
}

// Interface is a network interface of the kernel.
type Interface struct {
	Name string       `json:"name"`
	RPS  []cpuset.Set `json:"rps,omitempty"` // by receive queue; empty set: the CPU that took the interrupt
	XPS  []cpuset.Set `json:"xps,omitempty"`
}

// IRQ is an interrupt line.
type IRQ struct {
	Number    int        `json:"number"`
	Name      string     `json:"name"`              // the driver's name for it
	Affinity  cpuset.Set `json:"affinity"`          // CPUs to which it may go
	Effective cpuset.Set `json:"effective"`         // CPUs to which it goes; empty: not known
	Managed   bool       `json:"managed,omitempty"` // the kernel sets its affinity and refuses changes
	Counts    []int64    `json:"counts,omitempty"`  // by online CPU, in the order of Machine.CPUs
}

// Guest is a virtual machine.
type Guest struct {
	Name     string       `json:"name"`
	PID      int          `json:"pid,omitempty"` // 0: defined, but not running
	Source   string       `json:"source"`        // "libvirt", "qemu"
	VCPUs    []cpuset.Set `json:"vcpus"`         // by vCPU: CPUs on which it may run
	Emulator cpuset.Set   `json:"emulator"`      // CPUs of its other threads
	IOThread []cpuset.Set `json:"iothreads,omitempty"`
	Vhost    []Thread     `json:"vhost,omitempty"`  // its threads vhost-PID
	Nodes    []int        `json:"nodes,omitempty"`  // of its memory
	Queues   []int        `json:"queues,omitempty"` // of each network device
}

// Thread is a thread of a process or of the kernel.
type Thread struct {
	TID         int        `json:"tid"`
	PID         int        `json:"pid"`
	Name        string     `json:"name"`    // comm of the thread
	Process     string     `json:"process"` // comm of the process
	Kernel      bool       `json:"kernel,omitempty"`
	Allowed     cpuset.Set `json:"allowed"`
	LastCPU     int        `json:"last_cpu"`
	Policy      string     `json:"policy,omitempty"`    // other, fifo, rr, batch, idle, deadline
	Priority    int        `json:"priority,omitempty"`  // real-time only
	Fixed       bool       `json:"fixed,omitempty"`     // PF_NO_SETAFFINITY: it cannot be moved
	Cgroup      string     `json:"cgroup,omitempty"`    // path in the cpuset hierarchy, or in the unified one
	CPUTicks    int64      `json:"cpu_ticks,omitempty"` // user and system time so far, in clock ticks
	Involuntary int64      `json:"involuntary_switches,omitempty"`
}

// Cgroups describes the machine's control groups.
type Cgroups struct {
	Version  int        `json:"version"`  // 1, 2, or 0: none found
	Isolated cpuset.Set `json:"isolated"` // cpuset.cpus.isolated of version 2, since Linux 6.7
	Groups   []Cgroup   `json:"groups,omitempty"`
}

// Cgroup is a control group with settings about CPUs.
type Cgroup struct {
	Path      string     `json:"path"` // "/", "/system.slice"
	CPUs      cpuset.Set `json:"cpus"` // requested (cpuset.cpus)
	Effective cpuset.Set `json:"effective"`
	Exclusive cpuset.Set `json:"exclusive,omitempty"` // cpuset.cpus.exclusive
	Partition string     `json:"partition,omitempty"` // as read: "member", "isolated", "isolated invalid (reason)"
	QuotaUS   int64      `json:"quota_us,omitempty"`  // cpu.max, 0: none
	PeriodUS  int64      `json:"period_us,omitempty"`
	Throttled int64      `json:"throttled,omitempty"` // nr_throttled of cpu.stat
}

// Services holds the settings of programs that move threads and interrupts.
type Services struct {
	Tuned           string            `json:"tuned,omitempty"`           // active profile; empty: not installed or none
	TunedVariables  map[string]string `json:"tuned_variables,omitempty"` // of PROFILE-variables.conf
	TunedBlacklist  []string          `json:"tuned_blacklist,omitempty"` // ps_blacklist: expressions of names
	Irqbalance      bool              `json:"irqbalance,omitempty"`      // it is running
	IrqbalanceBans  cpuset.Set        `json:"irqbalance_bans"`           // banned CPUs of its settings
	SystemdAffinity cpuset.Set        `json:"systemd_affinity"`          // CPUAffinity= of the manager; empty: none
	Kubelet         map[string]string `json:"kubelet,omitempty"`         // cpuManagerPolicy, reservedSystemCPUs, ...
	// cpu_dedicated_set, cpu_shared_set, vcpu_pin_set, cpu_power_management
	Nova map[string]string `json:"nova,omitempty"`
	// of a Contrail/TF vRouter: CPU_LIST, CPU_CORE_MASK, SERVICE_CORE_MASK, ...
	VRouter map[string]string `json:"vrouter,omitempty"`
}

// Knobs are kernel settings that move work to CPUs or slow them down. A string is as read; empty: unknown.
type Knobs struct {
	WorkqueueMask      cpuset.Set `json:"workqueue_mask"`
	DefaultIRQAffinity cpuset.Set `json:"default_irq_affinity"`
	THP                string     `json:"thp,omitempty"` // always, madvise, never
	KSM                string     `json:"ksm,omitempty"` // 0, 1, 2
	NUMABalancing      string     `json:"numa_balancing,omitempty"`
	NMIWatchdog        string     `json:"nmi_watchdog,omitempty"`
	RTRuntimeUS        string     `json:"rt_runtime_us,omitempty"`
	TimerMigration     string     `json:"timer_migration,omitempty"`
	StatInterval       string     `json:"stat_interval,omitempty"`
	SMT                string     `json:"smt,omitempty"` // on, off, forceoff, notsupported
	Clocksource        string     `json:"clocksource,omitempty"`
}

// PagesFile returns the file, without the first slash, that holds the number of a node's hugepages of a size. A machine
// without nodes has one file for each size.
func (m *Machine) PagesFile(node, kib int) string {
	dir := fmt.Sprintf("sys/devices/system/node/node%d", node)
	for _, u := range m.Unread {
		if u.Path == "/sys/devices/system/node" {
			dir = "sys/kernel/mm"
		}
	}
	return fmt.Sprintf("%s/hugepages/hugepages-%dkB/nr_hugepages", dir, kib)
}
