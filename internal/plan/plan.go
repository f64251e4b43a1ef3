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
	Service      int      `yaml:"service" json:"service"`           // CPUs of service and control threads; 0: shared with housekeeping
	Guests       int      `yaml:"guests" json:"guests"`             // vCPUs to be pinned, logical CPUs
	Housekeeping int      `yaml:"housekeeping" json:"housekeeping"` // cores per NUMA node; 0: at least one
	NICs         []string `yaml:"nics" json:"nics,omitempty"`       // PCI addresses or interfaces that the workers poll: their node goes first
	ShareCores   bool     `yaml:"share_cores" json:"share_cores"`   // workers may use both siblings of a core
	Boot         bool     `yaml:"boot" json:"boot"`                 // isolate at boot (isolcpus) rather than at run time only
	// Fixed choices: these CPUs and no others.
	ForwardingCPUs   cpuset.Set     `yaml:"forwarding_cpus" json:"forwarding_cpus"`
	HousekeepingCPUs cpuset.Set     `yaml:"housekeeping_cpus" json:"housekeeping_cpus"`
	GuestCPUs        cpuset.Set     `yaml:"guest_cpus" json:"guest_cpus"`
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
