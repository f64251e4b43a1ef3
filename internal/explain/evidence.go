// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// Evidence is all that was found out about one window of time. Counters are what they grew by.
type Evidence struct {
	Started time.Time
	Seconds float64
	Daemon  int    // pid
	Socket  string // of the daemon's API, for commands; empty: the usual one
	Workers []Worker
	Rings   []Ring
	Ports   []Port
	Threads []OwnThreadState
	Events  []Event
	Trace   *kernel.Window // nil: the kernel's events could not be watched
	NoTrace string         // why
	Host    Host
}

// Worker in the window.
type Worker struct {
	Plain                          bool // no worker of corelaned, but a thread of any program; its packets are not known
	ID, TID, CPU                   int
	Thread, Role, Idle             string
	Loops, BusyLoops, EmptyLoops   uint64
	BusyCycles, IdleCycles         uint64
	Packets                        uint64
	HzTSC                          float64
	SystemCalls, Dropped, RxMissed uint64
	Drops                          map[string]uint64
	Affinity                       string
	LastCPU                        int
	Involuntary, Voluntary         uint64
	Taken, Moved                   uint64
	DelayUS                        uint32
	BehindUS                       uint32
	LongestNS                      uint64 // loop of the window
	SleepMaxUS                     uint32
	RingSize                       uint32
	Queues                         []Queue
	LongLoops                      []LongLoop
	Nodes                          []Node
}

// label is what it is called in a sentence.
func (w *Worker) label() string {
	if w.Plain {
		return fmt.Sprintf("%s (%d)", w.Thread, w.TID)
	}
	return fmt.Sprintf("worker %d", w.ID)
}

// Queue that a worker polls.
type Queue struct {
	Port    string
	Index   int
	Packets uint64
	Depth   uint32 // at the end of the window
	Known   bool   // the device tells the depth
}

// LongLoop of a worker's recorder, in the window.
type LongLoop struct {
	FromNS, NS                     int64 // since the window began
	ReceiveNS, GraphNS, MessagesNS int64
	IdleNS, DelayNS                int64
	Packets                        uint32
	Taken, Moved                   bool
	Node                           string // that took longest
}

// Node of the graph.
type Node struct {
	Name                   string
	Calls, Packets, Cycles uint64
}

// Ring between two workers.
type Ring struct {
	From, To         int
	Size, Used, High uint32
	Packets, Refused uint64
}

// Port of the router.
type Port struct {
	Name, Device, Driver, Role                string
	Up, Connected                             bool
	RxPackets, TxPackets, RxMissed, TxRefused uint64
	Drops                                     map[string]uint64 // of packets that came in here, by reason
	Peer                                      string            // where its other end is: a socket, an interface
	RingSize                                  uint32            // packets, 0: not known
	Workers                                   map[int]uint64    // received, by worker
	Disconnects                               uint64
	Disabled                                  bool
}

// OwnThreadState is a thread of the daemon at the end of the window.
type OwnThreadState struct {
	TID              int
	Name, Role       string
	Planned, Allowed string
	CPU              int
	State            string
	RanNS            uint64 // in the window
	MovedBack        uint32 // in the window
	Displaced        bool
	StandingMS       uint32
}

// Event of the daemon in the window.
type Event struct{ Kind, Subject, Text string }

// Host is what /proc and /sys told.
type Host struct {
	Hostname     string
	Online       int // CPUs
	Ticks        map[int]host.Ticks
	Interrupts   []host.Line
	Softirqs     []host.Line
	Tasks        map[int]host.Task   // ticks and faults of the window
	Waited       map[int]int64       // by worker's tid, ns
	Threads      map[int]host.Thread // details of those that may be to blame, by tid
	IRQs         map[int]IRQPlace
	RPS          map[int][]string // queues that steer packets to a CPU
	Cgroup       host.Cgroup
	FaultNS      int64                    // what a page fault costs here; measured
	Readers      map[string][]host.Thread // who has the other end of a port
	Unread       []string
	Housekeeping string // CPUs that no worker has
}

// IRQPlace is where an interrupt may go.
type IRQPlace struct{ Allowed, Effective string }
