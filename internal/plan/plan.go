// SPDX-License-Identifier: Apache-2.0

// Package plan decides the role of each CPU of a machine. It does no I/O: from a machine and a request it makes a plan,
// or an error that says why the request cannot be met. Other packages apply, verify and guard the plan, and write it
// in the formats of other tools (package plan/output).
package plan

import "github.com/corelane/corelane/internal/cpuset"

// Role is the use of a CPU. Each CPU has one role.
type Role string

// The roles, named after the workers and threads of corelaned and of the host.
const (
	Forwarding   Role = "forwarding"   // one worker each
	IsolatedRx   Role = "isolated-rx"  // polls queues for a forwarding worker, may be its sibling
	HostPath     Role = "host-path"    // the kernel's traffic
	Service      Role = "service"      // master, helpers and control threads of the data plane
	Guests       Role = "guests"       // vCPUs
	Emulator     Role = "emulator"     // guests' other threads, vhost threads of the kernel
	Housekeeping Role = "housekeeping" // the host: everything else, and all interrupts
	Idle         Role = "idle"         // kept free, because it is a sibling of a worker or guest
)

// Request is what an operator wants. A zero means "none", or for sizes "the planner decides".
type Request struct {
	Forwarding int `yaml:"forwarding" json:"forwarding"`
	IsolatedRx int `yaml:"isolated_rx" json:"isolated_rx"` // 0 or as many as forwarding
	HostPath   int `yaml:"host_path" json:"host_path"`
	// CPUs of service and control threads; 0: shared with housekeeping
	Service      int      `yaml:"service" json:"service"`
	Guests       int      `yaml:"guests" json:"guests"`               // vCPUs to be pinned, logical CPUs
	Emulator     int      `yaml:"emulator" json:"emulator"`           // CPUs of guests' other threads; 0: as needed
	Housekeeping int      `yaml:"housekeeping" json:"housekeeping"`   // minimum of cores per NUMA node; 0: one
	NICs         []string `yaml:"nics" json:"nics,omitempty"`         // PCI addresses or interfaces to poll
	ShareCores   bool     `yaml:"share_cores" json:"share_cores"`     // workers may use both siblings of a core
	AllowOverlap bool     `yaml:"allow_overlap" json:"allow_overlap"` // workers may share the host's core or CPU
	// isolate at boot (isolcpus), not only at run time
	Boot bool `yaml:"boot" json:"boot"`
	// Fixed choices: exactly these CPUs. The number above is then 0 or the size of the set.
	ForwardingCPUs   cpuset.Set        `yaml:"forwarding_cpus" json:"forwarding_cpus"`
	IsolatedRxCPUs   cpuset.Set        `yaml:"isolated_rx_cpus" json:"isolated_rx_cpus"`
	HostPathCPUs     cpuset.Set        `yaml:"host_path_cpus" json:"host_path_cpus"`
	ServiceCPUs      cpuset.Set        `yaml:"service_cpus" json:"service_cpus"`
	GuestCPUs        cpuset.Set        `yaml:"guest_cpus" json:"guest_cpus"`
	EmulatorCPUs     cpuset.Set        `yaml:"emulator_cpus" json:"emulator_cpus"`
	HousekeepingCPUs cpuset.Set        `yaml:"housekeeping_cpus" json:"housekeeping_cpus"` // all others stay idle
	Hugepages        []HugepageRequest `yaml:"hugepages" json:"hugepages,omitempty"`
}

// HugepageRequest is a number of hugepages for a node.
type HugepageRequest struct {
	Node  int `yaml:"node" json:"node"` // -1: each
	KiB   int `yaml:"kib" json:"kib"`   // a size that the machine has: 2048, 1048576
	Pages int `yaml:"pages" json:"pages"`
}

// Plan holds every CPU's role and the reasons.
type Plan struct {
	Version      int               `json:"version"`             // 1
	Machine      string            `json:"machine"`             // host name
	Container    bool              `json:"container,omitempty"` // it knows only the CPUs of a container
	Topology     string            `json:"topology"`            // fingerprint of CPUs, cores, nodes and NICs
	Layout       []string          `json:"layout"`              // the same in readable form, to list differences
	Request      Request           `json:"request"`
	CPUs         []CPU             `json:"cpus"`     // all online CPUs, by id
	Workers      []Worker          `json:"workers"`  // by id
	Isolated     cpuset.Set        `json:"isolated"` // CPUs to isolate
	IRQs         cpuset.Set        `json:"irqs"`     // CPUs that may take interrupts
	Hugepages    []HugepageRequest `json:"hugepages,omitempty"`
	Warnings     []string          `json:"warnings,omitempty"` // one sentence each
	Alternatives []Alternative     `json:"alternatives,omitempty"`
}

// CPU of a plan.
type CPU struct {
	ID   int    `json:"id"`
	Role Role   `json:"role"`
	Why  string `json:"why"` // one sentence
}

// Worker of corelaned.
type Worker struct {
	ID     int  `json:"id"`
	Role   Role `json:"role"`
	CPU    int  `json:"cpu"`
	Node   int  `json:"node"`
	Target int  `json:"target"` // of isolated-rx: the forwarding worker that it serves; else -1
}

// Alternative is another request that can be met, with its gain and cost.
type Alternative struct {
	What string `json:"what"` // "use both siblings of each core"
	Gain string `json:"gain"`
	Cost string `json:"cost"`
}

// Of returns the CPUs of a role.
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

// roleOf returns the role of a CPU, empty if it is not in the plan.
func (p *Plan) roleOf(id int) Role {
	for _, c := range p.CPUs {
		if c.ID == id {
			return c.Role
		}
	}
	return ""
}

// ServiceCPUs returns the CPUs of service threads: those of the role except the last one, or the host's.
func (p *Plan) ServiceCPUs() cpuset.Set {
	own := p.Of(Service)
	if own.Len() > 1 {
		return own.Without(p.ControlCPUs())
	}
	return p.ControlCPUs()
}

// ControlCPUs returns the CPUs of DPDK's control threads: the last CPU of the role service, or the host's.
func (p *Plan) ControlCPUs() cpuset.Set {
	if ids := p.Of(Service).IDs(); len(ids) > 0 {
		return cpuset.Of(ids[len(ids)-1])
	}
	return p.hostCPUs()
}

// EmulatorCPUs returns the CPUs of guests' emulator and vhost threads: those of the role, or the host's CPUs without
// interrupts, or all of the host's CPUs.
func (p *Plan) EmulatorCPUs() cpuset.Set {
	if own := p.Of(Emulator); !own.Empty() {
		return own
	}
	if quiet := p.Of(Housekeeping).Without(p.IRQs); !quiet.Empty() {
		return quiet
	}
	return p.hostCPUs()
}

// hostCPUs returns the CPUs for everything else: the housekeeping CPUs, or the only CPU of a machine.
func (p *Plan) hostCPUs() cpuset.Set {
	if host := p.Of(Housekeeping); !host.Empty() {
		return host
	}
	return p.IRQs
}
