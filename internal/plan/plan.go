// SPDX-License-Identifier: Apache-2.0

// Package plan decides which CPU of a machine does what. It is pure: a machine and wishes in, a plan or the reason why there
// is none out. The same plan is applied, verified and guarded by others, and written in the words of other tools (package
// plan/output).
package plan

import "github.com/corelane/corelane/internal/cpuset"

// Role is what a CPU is for. A CPU has one.
type Role string

// The roles. The words are those of the workers and threads of corelaned, and of the host around it.
const (
	Forwarding   Role = "forwarding"   // one worker each
	IsolatedRx   Role = "isolated-rx"  // polls queues for a forwarding worker, may be its sibling
	HostPath     Role = "host-path"    // the kernel's traffic
	Service      Role = "service"      // master, helpers and control threads of the data plane
	Guests       Role = "guests"       // vCPUs
	Emulator     Role = "emulator"     // guests' other threads, vhost threads of the kernel
	Housekeeping Role = "housekeeping" // the host: everything else, and all interrupts
	Idle         Role = "idle"         // kept free, a sibling of a CPU that must not be disturbed
)

// Wishes are what an operator asks for. Zero values are "none", or for sizes "as many as are right".
type Wishes struct {
	Forwarding   int      `yaml:"forwarding" json:"forwarding"`
	IsolatedRx   int      `yaml:"isolated_rx" json:"isolated_rx"` // 0 or as many as forwarding
	HostPath     int      `yaml:"host_path" json:"host_path"`
	Service      int      `yaml:"service" json:"service"`             // CPUs of service and control threads; 0: shared with housekeeping
	Guests       int      `yaml:"guests" json:"guests"`               // vCPUs to be pinned, logical CPUs
	Emulator     int      `yaml:"emulator" json:"emulator"`           // CPUs of guests' other threads; 0: as many as are left and of use
	Housekeeping int      `yaml:"housekeeping" json:"housekeeping"`   // cores per NUMA node, at least; 0: one
	NICs         []string `yaml:"nics" json:"nics,omitempty"`         // PCI addresses or interfaces that the workers poll: their node goes first
	ShareCores   bool     `yaml:"share_cores" json:"share_cores"`     // workers may use both siblings of a core
	AllowOverlap bool     `yaml:"allow_overlap" json:"allow_overlap"` // workers may share the host's core, or its only CPU: for small machines
	Boot         bool     `yaml:"boot" json:"boot"`                   // isolate at boot (isolcpus) rather than at run time only
	// Fixed choices: these CPUs and no others. A number above is then 0 or that of the set.
	ForwardingCPUs   cpuset.Set     `yaml:"forwarding_cpus" json:"forwarding_cpus"`
	IsolatedRxCPUs   cpuset.Set     `yaml:"isolated_rx_cpus" json:"isolated_rx_cpus"`
	HostPathCPUs     cpuset.Set     `yaml:"host_path_cpus" json:"host_path_cpus"`
	ServiceCPUs      cpuset.Set     `yaml:"service_cpus" json:"service_cpus"`
	GuestCPUs        cpuset.Set     `yaml:"guest_cpus" json:"guest_cpus"`
	EmulatorCPUs     cpuset.Set     `yaml:"emulator_cpus" json:"emulator_cpus"`
	HousekeepingCPUs cpuset.Set     `yaml:"housekeeping_cpus" json:"housekeeping_cpus"` // CPUs that nobody asked for stay idle then
	Hugepages        []HugepageWish `yaml:"hugepages" json:"hugepages,omitempty"`
}

// HugepageWish is memory for one node.
type HugepageWish struct {
	Node  int `yaml:"node" json:"node"` // -1: each
	KiB   int `yaml:"kib" json:"kib"`   // 2048 or 1048576
	Pages int `yaml:"pages" json:"pages"`
}

// Plan is every CPU's role and the reasons.
type Plan struct {
	Version      int            `json:"version"`  // 1
	Machine      string         `json:"machine"`  // host name
	Topology     string         `json:"topology"` // fingerprint of CPUs, cores, nodes and NICs: a plan is for one machine
	Layout       []string       `json:"layout"`   // the same in words, to say what differs
	Wishes       Wishes         `json:"wishes"`
	CPUs         []CPU          `json:"cpus"`     // by id, each CPU of the machine that is online
	Workers      []Worker       `json:"workers"`  // by id
	Isolated     cpuset.Set     `json:"isolated"` // CPUs that the host must keep off
	IRQs         cpuset.Set     `json:"irqs"`     // CPUs that may take interrupts
	Hugepages    []HugepageWish `json:"hugepages,omitempty"`
	Warnings     []string       `json:"warnings,omitempty"` // what is not as it should be, one sentence each
	Alternatives []Alternative  `json:"alternatives,omitempty"`
}

// CPU of a plan.
type CPU struct {
	ID   int    `json:"id"`
	Role Role   `json:"role"`
	Why  string `json:"why"` // one sentence
}

// Worker of corelaned.
type Worker struct {
	ID    int  `json:"id"`
	Role  Role `json:"role"`
	CPU   int  `json:"cpu"`
	Node  int  `json:"node"`
	Feeds int  `json:"feeds"` // isolated-rx: the forwarding worker that it serves; else -1
}

// Alternative is another way to meet the wishes, or more than them, and its price.
type Alternative struct {
	What string `json:"what"` // "use both siblings of each core"
	Gain string `json:"gain"`
	Cost string `json:"cost"`
}

// Of is the CPUs of a role.
func (p *Plan) Of(roles ...Role) cpuset.Set {
	var ids []int
	for _, c := range p.CPUs {
		for _, r := range roles {
			if c.Role == r {
				ids = append(ids, c.ID)
			}
		}
	}
	return cpuset.Of(ids...)
}

// roleOf is the role of a CPU, empty when it is not in the plan.
func (p *Plan) roleOf(id int) Role {
	for _, c := range p.CPUs {
		if c.ID == id {
			return c.Role
		}
	}
	return ""
}

// ServiceCPUs are those of service threads: of their role, but for its last one, or the host's.
func (p *Plan) ServiceCPUs() cpuset.Set {
	own := p.Of(Service)
	if own.Len() > 1 {
		return own.Without(p.ControlCPUs())
	}
	return p.ControlCPUs()
}

// ControlCPUs are those of the data plane's control threads, DPDK's own: the last one of the service CPUs, or the host's.
func (p *Plan) ControlCPUs() cpuset.Set {
	if ids := p.Of(Service).IDs(); len(ids) > 0 {
		return cpuset.Of(ids[len(ids)-1])
	}
	return p.hostCPUs()
}

// EmulatorCPUs are those of guests' emulator and vhost threads: of their role, or those of the host that take no interrupts,
// or the host's.
func (p *Plan) EmulatorCPUs() cpuset.Set {
	if own := p.Of(Emulator); !own.Empty() {
		return own
	}
	if quiet := p.Of(Housekeeping).Without(p.IRQs); !quiet.Empty() {
		return quiet
	}
	return p.hostCPUs()
}

// hostCPUs are where everything else runs: the housekeeping CPUs, and on a machine with a single CPU that one.
func (p *Plan) hostCPUs() cpuset.Set {
	if host := p.Of(Housekeeping); !host.Empty() {
		return host
	}
	return p.IRQs
}
