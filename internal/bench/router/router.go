// SPDX-License-Identifier: Apache-2.0

// Package router runs the routers that are measured: Corelane and its peers. Each has a small adapter, which programs a
// setup in its own processes, directories and namespaces, and leaves nothing behind.
package router

import (
	"context"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// Router is the adapter of one router.
type Router interface {
	Name() string // "corelane", "testpmd", "ovs", "linux"
	// Version is the installed one, or an error that names the missing package.
	Version(ctx context.Context) (string, error)
	// Supports returns an error that says why the router cannot do the scenario's work.
	Supports(s *scenario.Scenario) error
	// Unchanged says whether frames leave unchanged in every scenario, as with the ceiling.
	Unchanged() bool
	// Start programs and starts a router that polls on env.CPUs. It returns when the generator may connect and send.
	// On error nothing is left behind.
	Start(ctx context.Context, env *Env, s *scenario.Setup) (Instance, error)
}

// Env says where a router runs.
type Env struct {
	Dir        string   // for sockets, logs and databases of this router; removed by the caller
	CPUs       []int    // one per worker
	ControlCPU int      // for everything that does not forward
	Memory     int      // MB of hugepages that it may use; 0: none
	Bin        string   // folder of Corelane's own programs
	Options    []string // additional ones for corelaned
}

// Instance is a running router.
type Instance interface {
	// Devices are the generator's ends, one for each port and with its name. Nil: memif clients of the ports' sockets.
	Devices() []*apiv1.GeneratorPort
	// Netns is the namespace in which the generator has to run; empty: that of this program.
	Netns() string
	// Pause stops all polling, so that another router can use the CPU. Resume ends the pause.
	Pause() error
	Resume() error
	// Counters returns the counters of the router. They only grow.
	Counters(ctx context.Context) (Counters, error)
	// Stop ends and removes everything. The error says what could not be removed.
	Stop() error
}

// Counters of a router since its start.
type Counters struct {
	Drops map[string]uint64 // by the router's names
	Nodes []NodeCounter     // empty if it does not report them
	Busy  uint64            // TSC cycles in polls with packets; 0 if it does not report them
	Idle  uint64
}

// NodeCounter of one graph node.
type NodeCounter struct {
	Name                   string
	Calls, Packets, Cycles uint64
}

// Nodes is the cost per packet between two readings, of the nodes that had packets.
func Nodes(before, after Counters) []result.Node {
	was := map[string]NodeCounter{}
	for _, n := range before.Nodes {
		was[n.Name] = n
	}
	var list []result.Node
	for _, n := range after.Nodes {
		b := was[n.Name]
		if packets, calls := n.Packets-b.Packets, n.Calls-b.Calls; packets > 0 && calls > 0 {
			list = append(list, result.Node{
				Name:            n.Name,
				CyclesPerPacket: float64(n.Cycles-b.Cycles) / float64(packets),
				PacketsPerCall:  float64(packets) / float64(calls),
			})
		}
	}
	return list
}
