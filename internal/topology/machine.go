// SPDX-License-Identifier: Apache-2.0

// Package topology knows a machine: its CPUs, memory, network devices, interrupts, guests, threads and how its kernel was told
// to use them. Everything is read below a root directory, "/" or a captured machine, without changing anything.
package topology

import "github.com/corelane/corelane/internal/cpuset"

// Machine is what one look at a machine found. It is plain data: who decides gets it, and no file.
type Machine struct {
	Hostname   string      `json:"hostname"`
	Kernel     Kernel      `json:"kernel"`
	Virtual    string      `json:"virtual,omitempty"`   // hypervisor below, as /sys or DMI tell: "kvm"; empty: none known
	Container  bool        `json:"container,omitempty"` // what was read is a container's view
	CPUs       []CPU       `json:"cpus"`                // by id, also those that are offline
	Nodes      []Node      `json:"nodes"`               // by id; one without memory lists stands for a machine without NUMA
	NICs       []NIC       `json:"nics,omitempty"`
	IRQs       []IRQ       `json:"irqs,omitempty"`
	Interfaces []Interface `json:"interfaces,omitempty"` // the kernel's network interfaces with their queues
	Guests     []Guest     `json:"guests,omitempty"`
	Threads    []Thread    `json:"threads,omitempty"` // of all processes, kernel threads too
	Cgroups    Cgroups     `json:"cgroups"`
	Services   Services    `json:"services"`
	Knobs      Knobs       `json:"knobs"`
	Load       *Load       `json:"load,omitempty"`   // what CPUs did; nil: nobody looked
	Unread     []Unread    `json:"unread,omitempty"` // what is missing or made no sense, and so is not known
}

// Unread is a file that should tell something and did not.
type Unread struct {
	Path string `json:"path"` // below the root
	Why  string `json:"why"`
}

// Kernel is its release and how it was started.
type Kernel struct {
	Release string     `json:"release"`
	Cmdline string     `json:"cmdline"`
	Args    []Argument `json:"-"` // Cmdline in its order
	// What the kernel made of it, from /sys/devices/system/cpu.
	Isolated cpuset.Set `json:"isolated"` // isolcpus= at boot only, no cgroup partitions
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
	Core     int        `json:"core"`     // core_id: its own only together with socket and die; -1 unknown
	Node     int        `json:"node"`     // NUMA; 0 where the machine has none, -1 in none of those it has
	Siblings cpuset.Set `json:"siblings"` // of the same core, itself included
	L2       cpuset.Set `json:"l2"`       // that share the cache; empty: unknown
	L3       cpuset.Set `json:"l3"`
	Model    string     `json:"model,omitempty"`
	MaxKHz   int        `json:"max_khz,omitempty"`
	Governor string     `json:"governor,omitempty"`
}

// Node is a NUMA node.
type Node struct {
	ID        int         `json:"id"`
	CPUs      cpuset.Set  `json:"cpus"`
	MemoryKiB int64       `json:"memory_kib"`
	Hugepages []Hugepages `json:"hugepages,omitempty"`
	Distances []int       `json:"distances,omitempty"` // to nodes in their order, 10 = itself
}

// Hugepages of one size on one node.
type Hugepages struct {
	KiB   int `json:"kib"`
	Total int `json:"total"`
	Free  int `json:"free"`
}

// NIC is a network device on the PCI bus, whoever's driver it has.
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
	LinkSpeed string `json:"link_speed,omitempty"` // PCIe, as /sys has it
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
	Name      string     `json:"name"`              // what its driver calls it
	Affinity  cpuset.Set `json:"affinity"`          // where it may go
	Effective cpuset.Set `json:"effective"`         // where it goes; empty: the kernel does not tell
	Managed   bool       `json:"managed,omitempty"` // the kernel keeps its affinity, writing is refused
	Counts    []int64    `json:"counts,omitempty"`  // by CPU, in the order of Machine.CPUs that are online
}

// Guest is a virtual machine.
type Guest struct {
	Name     string       `json:"name"`
	PID      int          `json:"pid,omitempty"` // 0: defined, not running
	Source   string       `json:"source"`        // "libvirt", "qemu"
	VCPUs    []cpuset.Set `json:"vcpus"`         // by vCPU, where each may run
	Emulator cpuset.Set   `json:"emulator"`      // its other threads
	IOThread []cpuset.Set `json:"iothreads,omitempty"`
	Vhost    []Thread     `json:"vhost,omitempty"`  // kernel threads vhost-PID that serve it
	Nodes    []int        `json:"nodes,omitempty"`  // of its memory
	Queues   []int        `json:"queues,omitempty"` // of each network device
}

// Thread is a schedulable thing: of a process, or the kernel's.
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
	Fixed       bool       `json:"fixed,omitempty"`     // PF_NO_SETAFFINITY: the kernel keeps it where it is
	Cgroup      string     `json:"cgroup,omitempty"`    // path of the cpuset's, or the unified one
	CPUTicks    int64      `json:"cpu_ticks,omitempty"` // user and system time so far, in clock ticks
	Involuntary int64      `json:"involuntary_switches,omitempty"`
}

// Cgroups is how the machine groups its processes.
type Cgroups struct {
	Version  int        `json:"version"`  // 1, 2, or 0: none found
	Isolated cpuset.Set `json:"isolated"` // version 2: in isolated partitions (cpuset.cpus.isolated), empty before Linux 6.7
	Groups   []Cgroup   `json:"groups,omitempty"`
}

// Cgroup with something to say about CPUs.
type Cgroup struct {
	Path      string     `json:"path"` // "/", "/system.slice"
	CPUs      cpuset.Set `json:"cpus"` // asked for (cpuset.cpus)
	Effective cpuset.Set `json:"effective"`
	Exclusive cpuset.Set `json:"exclusive,omitempty"` // cpuset.cpus.exclusive
	Partition string     `json:"partition,omitempty"` // as read: "member", "isolated", "isolated invalid (reason)"
	QuotaUS   int64      `json:"quota_us,omitempty"`  // cpu.max, 0: none
	PeriodUS  int64      `json:"period_us,omitempty"`
	Throttled int64      `json:"throttled,omitempty"` // nr_throttled of cpu.stat
}

// Services are the programs of a host that move threads and interrupts, and what they were told.
type Services struct {
	Tuned           string            `json:"tuned,omitempty"`           // active profile; empty: not installed or none
	TunedVariables  map[string]string `json:"tuned_variables,omitempty"` // of cpu-partitioning-variables.conf, or realtime-
	TunedSpares     []string          `json:"tuned_spares,omitempty"`    // ps_blacklist: expressions of thread names that are left alone
	Irqbalance      bool              `json:"irqbalance,omitempty"`      // runs
	IrqbalanceBans  cpuset.Set        `json:"irqbalance_bans"`           // told it in its settings
	SystemdAffinity cpuset.Set        `json:"systemd_affinity"`          // CPUAffinity= of the manager; empty: none
	Kubelet         map[string]string `json:"kubelet,omitempty"`         // cpuManagerPolicy, reservedSystemCPUs, ...
	Nova            map[string]string `json:"nova,omitempty"`            // cpu_dedicated_set, cpu_shared_set, vcpu_pin_set, cpu_power_management
	VRouter         map[string]string `json:"vrouter,omitempty"`         // of a Contrail/TF vRouter: CPU_LIST, CPU_CORE_MASK, SERVICE_CORE_MASK, ...
}

// Knobs are settings of the kernel that move work to CPUs or slow them down. A string is as read; empty: unknown.
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
