// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain/host"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// Evidence is all that is known about one window of time. Counters are their growth in the window.
type Evidence struct {
	Started time.Time
	Seconds float64
	Daemon  int    // pid
	Silent  bool   // the daemon did not answer: its workers are known from /proc alone
	Socket  string // of the daemon's API, for commands; empty: the default
	Workers []Worker
	Rings   []Ring
	Ports   []Port
	Flows   uint64 // that the flow table has room for; read when a port is noisy for its flows
	Buffers uint32 // for packets; read when a port finds none free
	Threads []OwnThreadState
	Events  []Event
	Trace   *kernel.Window // nil: kernel events were not watched
	NoTrace string         // why not
	Host    Host
}

// Worker in the window.
type Worker struct {
	Plain                          bool // a thread of any program, not a worker of corelaned; its packets are not known
	Ended                          bool // Plain: the thread ended in the window
	ID, TID, CPU                   int
	Thread, Role, Idle             string
	Loops, BusyLoops, EmptyLoops   uint64
	BusyCycles, IdleCycles         uint64
	Usual                          float64 // cycles per packet before the window, since the worker began; 0: not known
	Past                           []Past  // before the window, in order of time
	Packets, PastPackets           uint64  // in the window, and from its start to the window
	HzTSC                          float64
	SystemCalls, Dropped, RxMissed uint64
	Drops                          map[string]uint64
	Affinity                       string
	LastCPU                        int
	Involuntary, Voluntary         uint64
	Taken, Moved                   uint64
	DelayUS                        uint32
	BehindUS                       uint32
	LongestNS                      uint64 // longest loop in the window
	SleepMaxUS                     uint32
	RingSize                       uint32
	Queues                         []Queue
	LongLoops                      []LongLoop
	Nodes                          []Node
}

// label names the worker in a sentence.
func (w *Worker) label() string {
	if w.Plain {
		return fmt.Sprintf("%s (%d)", w.Thread, w.TID)
	}
	return fmt.Sprintf("worker %d", w.ID)
}

// queued returns the packets that wait in the worker's rings at the end of the window, as far as they are known.
func (w *Worker) queued() (n uint64) {
	for _, q := range w.Queues {
		n += uint64(q.Depth)
	}
	return n
}

// idle says whether nothing came to the worker although it polled.
func (w *Worker) idle() bool { return w.Loops > 0 && w.Packets+w.queued() == 0 }

// Queue that a worker polls.
type Queue struct {
	Port    string
	Index   int
	Packets uint64
	Depth   uint32 // at the end of the window
	Known   bool   // the device reports the depth
}

// LongLoop is a loop that a worker recorded in the window.
type LongLoop struct {
	FromNS, NS                     int64 // since the window began
	ReceiveNS, GraphNS, MessagesNS int64
	IdleNS, DelayNS                int64
	Packets                        uint32
	Taken, Moved                   bool
	Node                           string // the node that took longest
}

// Node of the graph.
type Node struct {
	Name                    string
	Calls, Packets, Cycles  uint64
	PastPackets, PastCycles uint64 // from the worker's start to the window
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
	Drops                                     map[string]uint64 // of packets received here, by reason
	Peer                                      string            // its other end: a socket, an interface
	Elsewhere                                 bool              // that interface is in another network namespace
	RingSize                                  uint32            // packets; 0: not known
	Workers                                   map[int]uint64    // received, by worker
	Disconnects                               uint64
	Disabled, Stateful, Hybrid                bool
	FlowLimit                                 uint32 // flows at once; 0: any number
	UnresolvedRate                            uint32 // packets/s to neighbours without a MAC; 0: the most
	NotLearnt                                 uint64 // frames with new source MACs that the bridge did not learn
	GuestKnown                                bool   // the guest's MAC and addresses are configured
	Kept, Waiting                             uint32 // packet buffers: of its device, and of packets that wait
	Carried, Sent                             uint64 // packets in and out since it exists; out before the window
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
	StalledMS        uint32
}

// Event of the daemon in the window.
type Event struct{ Kind, Subject, Text string }

// Host is what was read from /proc and /sys.
type Host struct {
	Hostname   string
	Online     int // CPUs
	Ticks      map[int]host.Ticks
	Interrupts []host.Line
	Softirqs   []host.Line
	Tasks      map[int]host.Task   // ticks and faults of the window
	Waited     map[int]int64       // ns for which each worker waited for a CPU, by tid
	Threads    map[int]host.Thread // details of the suspects, by tid
	Worker     map[int]host.Thread // details of the workers, by tid
	// the file that thaws the daemon's control group, and what to write to it; empty: it is not frozen
	Thaw, ThawText string
	IRQs           map[int]IRQPlace
	RPS            map[int][]string // queues that steer packets to a CPU
	Cgroup         host.Cgroup
	CpusetFile     string // of the daemon's control group; empty: it has none
	Cpuset         cpuset.Set
	FaultNS        int64                    // measured cost of a page fault on this machine
	Readers        map[string][]host.Thread // processes at the other end of each port
	Links          map[string]host.Link     // interfaces of ports whose link is down
	Shares         map[int][]host.Share     // of the CPUs' time that the threads of these processes got, by pid
	Handicaps      []host.Handicap
	Unread         []string
	Unmapping      []string // commands that switch off what takes memory away from processes, of what is on
	Housekeeping   string   // CPUs without a worker
}

// IRQPlace is the affinity of an interrupt, allowed and effective: lists of CPUs.
type IRQPlace struct{ Allowed, Effective string }
