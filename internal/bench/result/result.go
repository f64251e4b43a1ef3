// SPDX-License-Identifier: Apache-2.0

// Package result is the result of a benchmark run: a JSON file of a known version, which says whether it is complete.
package result

import "time"

// Version of the format. Files of another version are refused.
const Version = 1

// Result is one run of the benchmark: the machine, the settings, and a Run for each scenario and router.
type Result struct {
	Version  int       `json:"version"`
	Complete bool      `json:"complete"` // false: interrupted or failed; what is there was measured
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Command  string    `json:"command"`
	Manifest Manifest  `json:"manifest"`
	Runs     []Run     `json:"runs"`
	Notes    []string  `json:"notes,omitempty"` // what a reader should know, such as which peers are missing and why
}

// Manifest is the machine and the settings, on which the figures depend.
type Manifest struct {
	Host         string            `json:"host"`
	CPU          string            `json:"cpu"` // model name
	CPUs         int               `json:"cpus"`
	TSCHz        uint64            `json:"tsc_hz"`
	Kernel       string            `json:"kernel"`
	KernelArgs   string            `json:"kernel_args"`
	Isolated     string            `json:"isolated"` // /sys/devices/system/cpu/isolated
	NoHzFull     string            `json:"nohz_full"`
	Governor     string            `json:"governor"` // empty: none
	Hypervisor   bool              `json:"hypervisor"`
	Hugepages    map[string]uint64 `json:"hugepages"` // size -> number
	DPDK         string            `json:"dpdk"`
	Compiler     string            `json:"compiler"`
	Commit       string            `json:"commit"`
	Corelane     string            `json:"corelane"`
	RouterCPUs   []int             `json:"router_cpus"`
	GeneratorCPU int               `json:"generator_cpu"`
	Settings     map[string]string `json:"settings"` // trial lengths, repetitions, resolution, ...
}

// Run is one scenario on one router.
type Run struct {
	Scenario      string        `json:"scenario"` // name and variants: "vxlan-encap, IPv6"
	Router        string        `json:"router"`
	RouterVersion string        `json:"router_version"`
	Flows         int           `json:"flows"`
	Routes        int           `json:"routes"`
	FrameSizes    []int         `json:"frame_sizes"` // bytes with Ethernet header, without FCS
	Workers       int           `json:"workers"`
	Error         string        `json:"error,omitempty"` // why nothing below was measured
	Windows       []Window      `json:"windows,omitempty"`
	NDR           *Search       `json:"ndr,omitempty"`
	PDR           *Search       `json:"pdr,omitempty"`
	Latency       []Latency     `json:"latency,omitempty"`
	Burst         *Burst        `json:"burst,omitempty"`
	Nodes         []Node        `json:"nodes,omitempty"`
	Bottleneck    Bottleneck    `json:"bottleneck"`
	Checked       uint64        `json:"checked"` // frames whose headers were checked
	Drops         []DropCounter `json:"drops,omitempty"`
}

// Window is a short measurement at saturation. Rates are frames per second.
type Window struct {
	Repetition int     `json:"repetition"` // of the interleaved rounds, from 0
	At         float64 `json:"at"`         // seconds since the run began
	Seconds    float64 `json:"seconds"`
	Sent       float64 `json:"sent"`
	Received   float64 `json:"received"`
	// of a cache line between the generator's and the router's CPU; 0 = not probed
	RoundTrip float64 `json:"round_trip_ns"`
	Idle      float64 `json:"idle"` // share of its time in which the generator had nothing to do
}

// Search is the highest rate at which no more than a share of the frames was lost.
type Search struct {
	LossRatio float64 `json:"loss_ratio"` // allowed: 0 for NDR, 1e-4 for PDR
	Rate      float64 `json:"rate"`       // found, frames per second; 0 = none
	Trials    []Trial `json:"trials"`
	Limited   string  `json:"limited,omitempty"` // why the rate may be higher
}

// Trial is one attempt of a search.
type Trial struct {
	Rate     float64 `json:"rate"` // wanted
	Seconds  float64 `json:"seconds"`
	Sent     uint64  `json:"sent"`
	Lost     uint64  `json:"lost"`
	Passed   bool    `json:"passed"`
	Repeated bool    `json:"repeated,omitempty"` // a repetition of a trial with loss, to verify it
	Why      string  `json:"why,omitempty"`      // the loss by the counters of router and generator
}

// Latency of frames through the router at a constant rate.
type Latency struct {
	Load       string  `json:"load"` // "10% NDR", ..., "saturation"
	Rate       float64 `json:"rate"` // frames per second
	P50        float64 `json:"p50_us"`
	P90        float64 `json:"p90_us"`
	P99        float64 `json:"p99_us"`
	P999       float64 `json:"p999_us"`
	Max        float64 `json:"max_us"`
	Histogram  []Bar   `json:"histogram,omitempty"`
	LateFrames uint64  `json:"late_frames,omitempty"` // that the generator could not send in time
}

// Bar of a histogram: frames with a latency from Low up to the Low of the next bar.
type Bar struct {
	Low    float64 `json:"low_us"`
	Frames uint64  `json:"frames"`
}

// Burst is the longest burst of back-to-back frames without loss (RFC 2544 section 26.4, RFC 9004).
type Burst struct {
	Frames uint64 `json:"frames"`
	Trials int    `json:"trials"`
	Limit  bool   `json:"limit"` // no longer one was tried
}

// Node is what one node of the router's graph cost.
type Node struct {
	Name            string  `json:"name"`
	CyclesPerPacket float64 `json:"cycles_per_packet"` // TSC
	PacketsPerCall  float64 `json:"packets_per_call"`
}

// Bottleneck says what limited the saturated rate.
type Bottleneck struct {
	Component string `json:"component"` // generator, machine, router, sink, wire
	Why       string `json:"why"`       // one sentence, with the figures that show it
}

// DropCounter is a counter of the router that grew in the saturated windows.
type DropCounter struct {
	Reason string `json:"reason"`
	Frames uint64 `json:"frames"`
}
