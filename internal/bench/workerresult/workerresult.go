// SPDX-License-Identifier: Apache-2.0

// Package workerresult is the result of the benchmark of workers (package workerbench), and tables of it.
package workerresult

import (
	"cmp"
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
)

// Result of one run. Parts that were not measured are empty.
type Result struct {
	Complete bool            `json:"complete"`
	Started  time.Time       `json:"started"`
	Command  string          `json:"command"`
	Manifest result.Manifest `json:"manifest"`
	Notes    []string        `json:"notes,omitempty"`
	Modes    []Mode          `json:"modes,omitempty"`
	Rings    []Ring          `json:"rings,omitempty"`
	Wanted   int             `json:"wanted_burst,omitempty"` // frames that arrive while a worker is late
	Isolated []Bursts        `json:"isolated,omitempty"`
	Changes  []Change        `json:"changes,omitempty"`
	Scaling  []Scale         `json:"scaling,omitempty"`
}

// Sample of one repetition. Rates are frames per second, times microseconds.
type Sample struct {
	Rate     float64 `json:"rate"` // received at saturation
	P50      float64 `json:"p50_us"`
	P99      float64 `json:"p99_us"`
	Half     float64 `json:"half_rate,omitempty"` // half of Rate
	HalfP50  float64 `json:"half_p50_us,omitempty"`
	HalfP99  float64 `json:"half_p99_us,omitempty"`
	HalfLost uint64  `json:"half_lost,omitempty"`
	Turn     float64 `json:"turn_us,omitempty"` // mean time for which the poller had the generator's CPU
	Queued   uint32  `json:"queued,omitempty"`  // most packets in the ring between the workers
}

// Mode is one way to run, with its repetitions.
type Mode struct {
	Name    string   `json:"name"`
	Ring    int      `json:"ring,omitempty"`
	Samples []Sample `json:"samples"`
}

// Complete is the name of the mode in which the poller finishes the packets.
const Complete = "run-to-completion"

// Modes are in the order of their turns. Routers are often set to a ring of 2,048 for throughput.
var Modes = []Mode{{Name: Complete}, {Name: "hybrid", Ring: 1024}, {Name: "hybrid", Ring: 2048}}

// DeviceRing is the size of the device's ring that bursts overflow.
const DeviceRing = 512

// Late is the delay in each loop of a late worker.
const Late = 200 * time.Microsecond

// Title is the name of a mode with its ring.
func (m *Mode) Title() string {
	if m.Ring > 0 {
		return fmt.Sprintf("%s, ring of %d", m.Name, m.Ring)
	}
	return m.Name
}

// Ring is a size of the ring between two workers.
type Ring struct {
	Size    int      `json:"size"`
	Samples []Sample `json:"samples"`
	Burst   int      `json:"burst"` // the longest that passed without loss while the worker was late
}

// Bursts of one length through a device's ring.
type Bursts struct {
	Frames   int      `json:"frames"`
	Isolated bool     `json:"isolated"`
	Sent     uint64   `json:"sent"`
	Lost     uint64   `json:"lost"`
	Why      []string `json:"why,omitempty"` // of each repetition with a loss
}

// Change of one kind, made many times under traffic.
type Change struct {
	Name       string    `json:"name"`
	Done       int       `json:"done"`
	Sent       uint64    `json:"sent"`
	Lost       uint64    `json:"lost"`
	Reordered  uint64    `json:"reordered"`
	Duplicated uint64    `json:"duplicated"`
	GaveUp     uint64    `json:"order_given_up"`    // changes that gave up waiting for a worker, after 100 ms
	Late       uint64    `json:"generator_late"`    // frames that the generator could not send in time
	Took       []float64 `json:"took_ms"`           // each change
	Why        string    `json:"why,omitempty"`     // the router's counters of a loss
	Rate       float64   `json:"frames_per_second"` // offered
	Saturated  float64   `json:"saturated_rate"`    // of the same workers and queues
}

// Scale is a number of workers.
type Scale struct {
	// shared, apart (beside a process that shares nothing), control (with a counter that all write)
	Kind     string    `json:"kind"`
	Stateful bool      `json:"stateful"`
	Workers  int       `json:"workers"`
	Cycles   []float64 `json:"cycles"` // per packet, each window
}

// Times is the ratio of a figure of two modes, repetition by repetition.
func Times(a, b Mode, pick func(Sample) float64) stat.Spread {
	n := min(len(a.Samples), len(b.Samples))
	var ratios []float64
	for i := range n {
		if d := pick(b.Samples[i]); d > 0 {
			ratios = append(ratios, pick(a.Samples[i])/d)
		}
	}
	return stat.SpreadOf(ratios, stat.Itself)
}

// enoughRate is the share of the fastest ring's rate that counts as equal.
const enoughRate = 0.97

// Recommended is the smallest ring that costs no throughput and passes the wanted burst, because latency at saturation
// grows with the ring. 0: no ring does.
func Recommended(rings []Ring, wanted int) int {
	best := 0.0
	for _, r := range rings {
		best = max(best, r.Rate())
	}
	size := 0
	for _, r := range rings {
		if r.Rate() >= enoughRate*best && r.Burst >= wanted && (size == 0 || r.Size < size) {
			size = r.Size
		}
	}
	return size
}

// Rate is the median at saturation.
func (r *Ring) Rate() float64 {
	return stat.SpreadOf(r.Samples, func(s Sample) float64 { return s.Rate }).Median
}

// Median returns the median of the windows, with their spread.
func (s *Scale) Median() stat.Spread { return stat.SpreadOf(s.Cycles, stat.Itself) }

// AddWindow adds a window to the windows of the same kind.
func AddWindow(list []Scale, w Scale) []Scale {
	for i := range list {
		if cmp.Or(cmp.Compare(list[i].Kind, w.Kind), list[i].Workers-w.Workers) == 0 && list[i].Stateful == w.Stateful {
			list[i].Cycles = append(list[i].Cycles, w.Cycles...)
			return list
		}
	}
	return append(list, w)
}
