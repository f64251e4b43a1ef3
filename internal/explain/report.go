// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"context"
	"time"
)

// Grade says how far evidence can be trusted.
type Grade string

const (
	Seen     Grade = "seen"     // the kernel reported each event
	Counted  Grade = "counted"  // counters of the kernel or of corelaned grew
	Inferred Grade = "inferred" // it follows from other evidence, but could have another reason
)

// Report is the answer of one window.
type Report struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"` // length of the window
	Verdict string    `json:"verdict"` // one sentence that is enough to act on
	// of all workers, the most expensive first; never empty: Nothing and Overload are answers too
	Causes     []Cause        `json:"causes"`
	Workers    []WorkerReport `json:"workers"`
	Unobserved []string       `json:"unobserved,omitempty"` // what could not be observed, and what would be needed
	// kernel events were watched; otherwise there are only counters, which is weaker evidence
	Tracing  bool   `json:"tracing"`
	Daemon   int    `json:"daemon_pid"`
	Hostname string `json:"hostname,omitempty"`
}

// Cause of lost time or packets.
type Cause struct {
	Kind     Kind    `json:"kind"`
	Worker   int     `json:"worker"` // -1: not one worker's
	CPU      int     `json:"cpu"`
	Name     string  `json:"name"` // of the thread, the interrupt, the port or the node
	PID      int     `json:"pid,omitempty"`
	TID      int     `json:"tid,omitempty"`
	IRQ      int     `json:"irq,omitempty"`
	Port     string  `json:"port,omitempty"`
	Threads  int     `json:"threads,omitempty"` // of a group, which the first one stands for
	Minor    bool    `json:"minor"`             // too small to need a remedy
	Title    string  `json:"title"`             // one sentence: who did what
	Why      string  `json:"why,omitempty"`     // why it could happen
	Evidence []Fact  `json:"evidence"`
	Grade    Grade   `json:"grade"`      // of the time or the loss
	LostNS   int64   `json:"lost_ns"`    // of the worker's time
	Longest  int64   `json:"longest_ns"` // at once
	Times    int64   `json:"times"`
	Share    float64 `json:"share"` // of the worker's time, 0 to 1
	// packets that were lost, or could have been processed in that time
	PPS float64 `json:"packets_per_s"`
	// packets/s that other workers have time for: the most that was lost besides PPS
	Recoverable float64 `json:"recoverable_packets_per_s,omitempty"`
	Fix         string  `json:"fix,omitempty"` // shell commands, one per line
	FixNote     string  `json:"fix_note,omitempty"`

	// What a row passes from losses, together and answers to describe.
	often         bool    // more often than its kind may: its cost exceeds the measured time
	of            uint64  // packets in total; Times of them were lost
	ring          *Ring   // RingOverflow: between workers
	others, spare float64 // Skew: packets/s and free share of the other workers
	all, headroom float64 // Nothing: packets/s of all workers, free share of the busiest
	groups        []group // ManySmall
	elsewhere     int64   // Moved: ns on other CPUs
	hidden        int64   // of LostNS: not seen, but missing in the packets' cost
	cycles        float64 // CostlyPackets: that a packet costs
	ofFreezer     bool    // Stopped: not by a signal or a tracer
	taken         float64 // SmallRing: packets that a loop takes from it
	members       []member
}

// Fact is one piece of evidence for a cause.
type Fact struct {
	Grade Grade  `json:"grade"`
	Text  string `json:"text"`
}

// WorkerReport is what one worker did, and what it could have done.
type WorkerReport struct {
	ID      int         `json:"id"`
	Label   string      `json:"label"` // "worker 0"
	Thread  string      `json:"thread"`
	TID     int         `json:"tid"`
	CPU     int         `json:"cpu"`
	Verdict string      `json:"verdict"`
	Model   Model       `json:"model"`
	Gaps    []GapReport `json:"gaps,omitempty"`  // the longest, in order of time
	Nodes   []NodeCost  `json:"nodes,omitempty"` // most expensive first
}

// GapReport is an interval in which a worker did not poll, for the timeline.
type GapReport struct {
	FromNS  int64  `json:"from_ns"` // since the window began
	NS      int64  `json:"ns"`
	Kind    Kind   `json:"kind"`
	Culprit string `json:"culprit"`
}

// NodeCost is a node of the graph.
type NodeCost struct {
	Name    string  `json:"name"`
	Packets uint64  `json:"packets"`
	Cycles  float64 `json:"cycles_per_packet"`
	Share   float64 `json:"share"` // of the worker's busy time
}

// Options of Run.
type Options struct {
	Socket  string        // of corelaned
	Window  time.Duration // 0: 10 s
	Root    string        // of /proc and /sys; "" is "/"
	NoTrace bool          // do not watch kernel events
	Threads []int         // observe these threads of any program instead of a daemon's workers
}

// DefaultWindow is long enough for rare things, and short enough to wait for.
const DefaultWindow = 10 * time.Second

// Run observes the daemon for one window and reports what held its workers back.
func Run(ctx context.Context, o Options) (*Report, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Next(ctx)
}
