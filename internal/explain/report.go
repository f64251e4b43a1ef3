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
	Inferred Grade = "inferred" // it follows from what was seen, and could have another reason
)

// Report is the answer, worst first.
type Report struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"` // length of the window
	Verdict string    `json:"verdict"` // one sentence; whoever reads only this knows what to do
	// of all workers, most expensive first; never empty: Nothing and Overload are answers
	Causes  []Cause        `json:"causes"`
	Workers []WorkerReport `json:"workers"`
	Unseen  []string       `json:"unseen,omitempty"` // what could not be looked at, and what would be needed
	// events of the kernel were seen; else only counters, which is weaker
	Tracing  bool   `json:"tracing"`
	Daemon   int    `json:"daemon_pid"`
	Hostname string `json:"hostname,omitempty"`
}

// Cause of lost time or packets.
type Cause struct {
	Kind     Kind    `json:"kind"`
	Worker   int     `json:"worker"` // -1: of none in particular
	CPU      int     `json:"cpu"`
	Name     string  `json:"name"` // of the thread, the interrupt, the port or the node
	PID      int     `json:"pid,omitempty"`
	TID      int     `json:"tid,omitempty"`
	IRQ      int     `json:"irq,omitempty"`
	Port     string  `json:"port,omitempty"`
	Minor    bool    `json:"minor"`         // what any machine shows; it needs no mending
	Title    string  `json:"title"`         // one sentence: who did what
	Why      string  `json:"why,omitempty"` // why it was there
	Evidence []Fact  `json:"evidence"`
	Grade    Grade   `json:"grade"`      // of the best of it
	LostNS   int64   `json:"lost_ns"`    // of the worker's time
	Longest  int64   `json:"longest_ns"` // at once
	Times    int64   `json:"times"`
	Share    float64 `json:"share"` // of the worker's time, 0 to 1
	// packets that were lost, or could have been moved in that time
	PPS float64 `json:"packets_per_s"`
	// packets/s that others have time for: more cannot have been lost besides PPS
	Could   float64 `json:"could_packets_per_s,omitempty"`
	Fix     string  `json:"fix,omitempty"` // command for a shell; several: one per line
	FixNote string  `json:"fix_note,omitempty"`

	// What its row passes on from finding it to describing it.
	often         bool    // more times than its kind may: what it cost is more than the time that was seen
	of            uint64  // packets, of which Times were lost
	ring          *Ring   // RingOverflow: between workers
	others, spare float64 // Skew: packets/s and free share of the other workers
	all, headroom float64 // Nothing: packets/s of all workers, free share of the busiest
	groups        []group // ManySmall
	elsewhere     int64   // Moved: ns on other CPUs
}

// Fact is one thing that speaks for a cause.
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

// GapReport is a time in which a worker was away from its packets, for the timeline.
type GapReport struct {
	FromNS int64  `json:"from_ns"` // since the window began
	NS     int64  `json:"ns"`
	Kind   Kind   `json:"kind"`
	Who    string `json:"who"`
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
	NoTrace bool          // do without events of the kernel
	Threads []int         // look at these threads of any program instead; no daemon is needed
}

// DefaultWindow is long enough for rare things, and short enough to wait for.
const DefaultWindow = 10 * time.Second

// Run looks at the daemon for a window and says what held its workers back.
func Run(ctx context.Context, o Options) (*Report, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Next(ctx)
}
