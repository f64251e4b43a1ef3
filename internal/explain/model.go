// SPDX-License-Identifier: Apache-2.0
package explain

// Model compares what a worker did with what its core can do. Rates are packets/s; they add up:
// Expected = Delivered + the rates of all Parts.
type Model struct {
	HzTSC     float64 `json:"tsc_hz"`
	PerPacket float64 `json:"cycles_per_packet"` // in full batches, by the worker alone
	Batch     float64 `json:"packets_per_loop"`  // of loops that brought packets
	Expected  float64 `json:"expected"`          // at 100 % of its CPU, in full batches
	Achieved  float64 `json:"achieved"`          // received
	Delivered float64 `json:"delivered"`         // of these not dropped
	Busy      float64 `json:"busy"`              // share of its own time with packets, 0 to 1
	Parts     []Part  `json:"parts"`
}

// Part of the difference.
type Part struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"` // of the window
	PPS   float64 `json:"packets_per_s"`
}
