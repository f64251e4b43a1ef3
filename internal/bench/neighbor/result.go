// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
)

// Result of one run.
type Result struct {
	Complete bool            `json:"complete"`
	Started  time.Time       `json:"started"`
	Command  string          `json:"command"`
	Manifest result.Manifest `json:"manifest"`
	Notes    []string        `json:"notes,omitempty"`
	Noise    []Noise         `json:"noise"` // by kind of port
	Rows     []*Row          `json:"rows"`
}

// Row is an attack through one kind of port.
type Row struct {
	Name     string   `json:"attack"`
	Port     string   `json:"port"`
	Capacity float64  `json:"capacity"`    // frames/s that the worker forwards of the observed tenant alone
	Offered  float64  `json:"offered"`     // frames/s of the observed tenant
	Attack   float64  `json:"attack_rate"` // frames/s that the attacker tries to send
	Pairs    []Pair   `json:"pairs"`
	Missed   []string `json:"missed,omitempty"`       // targets that the row does not reach
	Unsure   []string `json:"within_noise,omitempty"` // targets that it reaches or misses by less than the noise
}

// Pair is consecutive trials: with the attacker, alone and, where the attack is packets whose latency beside others is
// measured, beside an ordinary neighbour that sends at the same rate. The base is repeated, which shows what differs
// between trials anyway.
type Pair struct {
	Without *Sample `json:"without"`
	Busy    *Sample `json:"busy,omitempty"`
	Again   *Sample `json:"base_again"`
	With    *Sample `json:"with"`
}

// Base is the trial that the attack must not be slower than.
func (p Pair) Base() *Sample {
	if p.Busy != nil {
		return p.Busy
	}
	return p.Without
}

// Sample is one trial. Rates are frames per second.
type Sample struct {
	Rate      float64           `json:"rate"`      // of the observed tenant, received
	Delivered float64           `json:"delivered"` // received, as a share of what the tenant tried to send
	P50       float64           `json:"p50_us"`
	P99       float64           `json:"p99_us"`
	LoopP99   float64           `json:"loop_p99_us"` // of the worker's loops that brought packets
	Attack    float64           `json:"attack"`      // frames/s that the router took from the attacker
	Passed    float64           `json:"passed"`      // of these, received
	Asked     int               `json:"arp_asked"`
	Answered  int               `json:"arp_answered"`
	CallMS    float64           `json:"api_ms"`               // longest call of the API
	MasterMS  float64           `json:"master_ms"`            // longest turn of the router's master
	Waited    float64           `json:"cpu_lost"`             // share of the time without the worker's CPU
	Drops     map[string]uint64 `json:"drops"`                // of the attacker's port, by reason
	HostDrops map[string]uint64 `json:"host_drops,omitempty"` // of the host that asks
	// packets that the router took, did not pass on and did not count; negative where it copies or answers
	NotCounted int64 `json:"not_counted"`
}

// Targets of a row.
const (
	leastRate = 0.90 // of the rate and of the latency without the attacker
	mostP99   = 1 / leastRate
	mostTwice = 2 // see mostSlower
	maxCallMS = 100
	maxTurnMS = 100
	requests  = 50 // for the router's MAC address, in all trials with the attacker
)

// Of is the median and range of a figure of each pair.
func (r *Row) Of(figure func(Pair) float64) stat.Spread { return stat.SpreadOf(r.Pairs, figure) }

// Kept is the share of its rate that the observed tenant keeps. Frames that the generator did not try to send in time,
// because its own CPU was busy, do not count.
func (r *Row) Kept() stat.Spread {
	return r.Of(func(p Pair) float64 { return p.With.Delivered / max(p.Without.Delivered, 1e-9) })
}

func (r *Row) timed() bool { return row{port: r.Port}.timed() }

// P99 is the median of the 99th percentile of the observed tenant's latency in microseconds: alone, beside an ordinary
// neighbour (0: not measured), and beside the attacker.
func (r *Row) P99() (without, busy, with float64) {
	return r.Of(func(p Pair) float64 { return p.Without.P99 }).Median, r.Of(func(p Pair) float64 {
		if p.Busy == nil {
			return 0
		}
		return p.Busy.P99
	}).Median, r.Of(func(p Pair) float64 { return p.With.P99 }).Median
}

// Loops is the 99th percentile of the worker's loops in microseconds, without and with the attacker. A frame waits for
// two of them at most; what its latency has beyond that, it gets in the rings, while the generator is busy.
func (r *Row) Loops() (without, with stat.Spread) {
	return r.Of(func(p Pair) float64 { return p.Without.LoopP99 }), r.Of(func(p Pair) float64 { return p.With.LoopP99 })
}

// Slower is how many times as long the 99th percentile is with the attacker: a worker that a tenant loads has longer
// turns than an idle one whatever its packets are, so of an attack by packets, the base is an ordinary neighbour.
func (r *Row) Slower() stat.Spread {
	return r.Of(func(p Pair) float64 { return p.With.P99 / max(p.Base().P99, 1e-9) })
}

// ARP counts the requests for the router's MAC address, and the answers.
func (r *Row) ARP() (answered, asked int) {
	for _, p := range r.Pairs {
		answered, asked = answered+p.With.Answered, asked+p.With.Asked
	}
	return answered, asked
}

// hostDrops says for which reasons packets of the host that asks were dropped.
func (r *Row) hostDrops() (text string) {
	sum := map[string]uint64{}
	for _, p := range r.Pairs {
		for reason, n := range p.With.HostDrops {
			sum[reason] += n
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(sum)) {
		text += fmt.Sprintf(", %s %d", reason, sum[reason])
	}
	return text
}

// CallMS is the longest call of the API.
func (r *Row) CallMS() float64 { return r.Of(func(p Pair) float64 { return p.With.CallMS }).High }

// MasterMS is the longest turn of the router's master.
func (r *Row) MasterMS() float64 { return r.Of(func(p Pair) float64 { return p.With.MasterMS }).High }

// NotCounted is the number of packets that were lost without a drop reason.
func (r *Row) NotCounted() (n int64) {
	for _, p := range r.Pairs {
		for _, s := range []*Sample{p.Without, p.Busy, p.Again, p.With} {
			if s != nil {
				n += max(s.NotCounted, 0)
			}
		}
	}
	return n
}

// check compares all rows with the targets.
func (r *Result) check() {
	for _, kind := range PortKinds() {
		noise := noiseOf(kind, r.Rows)
		if noise.Pairs == 0 {
			continue
		}
		r.Noise = append(r.Noise, noise)
		for _, row := range r.Rows {
			if row.Port == kind {
				row.check(noise)
			}
		}
	}
}

func (r *Row) check(noise Noise) {
	kept := r.Kept().Median
	r.judge(judge(leastRate/max(kept, 1e-9), 1, noise.Kept), "keeps %.2f of its rate; at least %.2f", kept, leastRate)
	if slower := r.Slower().Median; slower == 0 && r.timed() {
		r.miss("p99 could not be measured")
	} else if r.timed() {
		most := mostSlower(r.Name)
		r.judge(judge(slower, most, noise.P99), "p99 is %.2f times as long; at most %.2f", slower, most)
	}
	if answered, asked := r.ARP(); answered < asked {
		r.miss("%d of %d ARP requests are answered%s", answered, asked, r.hostDrops())
	}
	if ms := r.CallMS(); ms > maxCallMS {
		r.miss("a call of the API takes %.0f ms; at most %d", ms, maxCallMS)
	}
	if ms := r.MasterMS(); ms > maxTurnMS {
		r.miss("the master is away for %.0f ms; at most %d", ms, maxTurnMS)
	}
	if n := r.NotCounted(); n > 0 {
		r.miss("%d packets are lost without a drop reason", n)
	}
}

func (r *Row) judge(v verdict, format string, args ...any) {
	switch v {
	case misses:
		r.miss(format, args...)
	case withinNoise:
		r.Unsure = append(r.Unsure, fmt.Sprintf(format, args...))
	}
}

// Verdict says in a word whether the row reaches the targets.
func (r *Row) Verdict() string {
	switch {
	case len(r.Missed) > 0:
		return "misses"
	case len(r.Unsure) > 0:
		return "within noise"
	}
	return "holds"
}

func (r *Row) miss(format string, args ...any) {
	r.Missed = append(r.Missed, fmt.Sprintf(format, args...))
}

// Missed lists the rows that do not reach the targets, each with the reasons.
func (r *Result) Missed() (list []*Row) {
	for _, row := range r.Rows {
		if len(row.Missed) > 0 {
			list = append(list, row)
		}
	}
	return list
}

// Drop is a drop reason and the packets per second of the attacker that it counts.
type Drop struct {
	Reason string
	Rate   float64
}

// Drops lists why packets of the attacker were dropped, the most frequent reason first.
func (r *Row) Drops(trial time.Duration) []Drop {
	sum := map[string]uint64{}
	for _, p := range r.Pairs {
		for reason, n := range p.With.Drops {
			sum[reason] += n
		}
	}
	var list []Drop
	for reason, n := range sum {
		if n > 0 {
			list = append(list, Drop{reason, float64(n) / float64(len(r.Pairs)) / trial.Seconds()})
		}
	}
	slices.SortFunc(list, func(a, b Drop) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}
