// SPDX-License-Identifier: Apache-2.0

// Package router runs the routers that are measured: Corelane and its peers. Each is a small adapter: it programs what
// the setup asks for, in its own processes, directories and namespaces, and leaves nothing behind.
package router

import (
	"context"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/bench/scenario"
)

// Router is one adapter.
type Router interface {
	Name() string // "corelane", "testpmd", "ovs", "linux"
	// Version of what is installed, or an error that says which package is missing.
	Version(ctx context.Context) (string, error)
	// Supports is nil when the router can do the scenario's work, else why not.
	Supports(s *scenario.Scenario) error
	// Unchanged: frames come out as they went in, whatever the scenario (the ceiling of the machine).
	Unchanged() bool
	// Start programs and starts a router that polls on env.CPUs. It returns when traffic may flow as soon as the
	// generator has connected. On error nothing is left behind.
	Start(ctx context.Context, env *Env, s *scenario.Setup) (Instance, error)
}

// Env is where and on what a router runs.
type Env struct {
	Dir        string   // of its own, for sockets, logs and databases; removed by the caller
	CPUs       []int    // one per worker
	ControlCPU int      // for everything that does not forward
	Memory     int      // MB of hugepages it may take; 0: none, run without
	Bin        string   // folder of Corelane's own programs
	Options    []string // more of them for corelaned
}

// Instance is a running router.
type Instance interface {
	// Devices are the generator's ends, one per port of the setup and with its name. Nil: memif clients of the ports' sockets.
	Devices() []*apiv1.GeneratorPort
	// Netns is where the generator has to run for these devices; empty: here.
	Netns() string
	// Pause stops all polling so that another router can have the CPU; Resume goes on.
	Pause() error
	Resume() error
	// Counters are what the router tells of itself: they only grow.
	Counters(ctx context.Context) (Counters, error)
	// Stop ends everything and removes what was made. Says what could not be undone.
	Stop() error
}

// Counters of a router since its start.
type Counters struct {
	Drops map[string]uint64 // by the router's own names
	Nodes []NodeCounter     // empty where it does not tell
	Busy  uint64            // TSC cycles in polls that brought packets; 0 where it does not tell
	Idle  uint64
}

// NodeCounter of one graph node.
type NodeCounter struct {
	Name                   string
	Calls, Packets, Cycles uint64
}

// Nodes is the cost per packet between two readings, for nodes that saw packets.
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
