// SPDX-License-Identifier: Apache-2.0

// Package restart measures what a restart of corelaned costs: outage and loss of a paced stream through each kind of
// port, and TCP connections through NAT that survive it.
package restart

import (
	"fmt"
	"slices"
	"time"
)

// Options of a run.
type Options struct {
	Bin         string // folder of corelaned and corelane-gen
	Worker      int    // CPU of the router's worker
	Other       int    // CPU of everything else
	Memory      int    // MB of hugepages, 0: none
	Ports       int    // of the router, with those that carry streams
	Routes      int
	Connections int      // of TCP, through NAT
	Rate        int      // packets/s of each stream
	Kinds       []string // of ports; empty: all
	Events      []string // empty: all
	Say         func(text string)
}

// Kinds of ports that carry a stream.
var Kinds = []string{"tap", "memif", "vhost"}

// event is something that happens to the router, with the outage that it may cause at most.
type event struct {
	name  string
	most  time.Duration
	cause func(*bed) error
	// The daemon is gone, and another one is started.
	restarts bool
}

var events = []event{
	{"planned restart", 50 * time.Millisecond, (*bed).restart, true},
	{"takeover", 50 * time.Millisecond, (*bed).takeOver, true},
	{"cold restart", time.Second, (*bed).restartCold, true},
	{"kill -9", time.Second, (*bed).kill, true},
	{"client killed", 0, (*bed).killClient, false},
	{"disk full", 0, (*bed).fillDisk, false},
}

// Events lists the names of what can be measured.
func Events() (list []string) {
	for _, e := range events {
		list = append(list, e.name)
	}
	return list
}

// Row is what one event did to the stream of one kind of port.
type Row struct {
	Event       string  `json:"event"`
	Kind        string  `json:"kind"`
	OutageMS    float64 `json:"outage_ms"`      // the longest time without a packet, in steps of window
	MostMS      float64 `json:"outage_at_most"` // ms, of the table in docs/performance.md
	Sent        uint64  `json:"sent"`           // or due when the router left no room
	Lost        uint64  `json:"lost"`           // of those
	Late        uint64  `json:"late"`           // due, but not sent: the generators share a CPU with all but the worker
	StartMS     float64 `json:"start_ms"`
	Connections int     `json:"connections"`
	Survived    int     `json:"survived"`
}

// Short tells whether the row falls short of the table: its outage is longer, a connection broke, or packets were lost
// where none may be. Then the outage does not count: it is also the time that the generators wait for their CPU.
func (r Row) Short() bool {
	return r.Survived < r.Connections || (r.MostMS > 0 && r.OutageMS > r.MostMS) || (r.MostMS == 0 && r.Lost > 0)
}

// Result of a run.
type Result struct {
	Ports  int   `json:"ports"`
	Routes int   `json:"routes"`
	Rate   int   `json:"packets_per_second"` // of each stream
	Rows   []Row `json:"rows"`
}

// Check checks the names of kinds and events, and fills in all where none is named.
func (o *Options) Check() error {
	for _, k := range o.Kinds {
		if !slices.Contains(Kinds, k) {
			return fmt.Errorf("kind '%s' is not known; valid: %v", k, Kinds)
		}
	}
	for _, e := range o.Events {
		if !slices.Contains(Events(), e) {
			return fmt.Errorf("event '%s' is not known; valid: %q", e, Events())
		}
	}
	if len(o.Kinds) == 0 {
		o.Kinds = Kinds
	}
	if len(o.Events) == 0 {
		o.Events = Events()
	}
	return nil
}
