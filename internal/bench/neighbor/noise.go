// SPDX-License-Identifier: Apache-2.0
package neighbor

import (
	"math"
	"math/rand/v2"

	"github.com/corelane/corelane/internal/stat"
)

// Noise is what repeated trials show, between which nothing differs: by which factor the median of
// as many pairs as a row has strays from 1, in 95 of 100 cases.
type Noise struct {
	Port  string  `json:"port"`  // kind of port of the rows
	Pairs int     `json:"pairs"` // that it was estimated from
	Kept  float64 `json:"kept"`
	P99   float64 `json:"p99"` // 0: not measured
}

const (
	resamples  = 2000
	confidence = 0.95
)

// noiseOf estimates the noise of rows with one kind of port.
func noiseOf(port string, rows []*Row) Noise {
	n := Noise{Port: port}
	var kept, p99 []float64
	each := 0
	for _, r := range rows {
		if r.Port != port {
			continue
		}
		each = max(each, len(r.Pairs))
		for _, p := range r.Pairs {
			n.Pairs++
			kept = appendBoth(kept, p.Again.Delivered, p.Base().Delivered)
			if r.timed() {
				p99 = appendBoth(p99, p.Again.P99, p.Base().P99)
			}
		}
	}
	n.Kept, n.P99 = straying(kept, each), straying(p99, each)
	return n
}

// appendBoth appends the logarithm of a ratio in both directions: neither trial of such a pair comes before the other.
func appendBoth(logs []float64, a, b float64) []float64 {
	if a <= 0 || b <= 0 {
		return logs
	}
	return append(logs, math.Log(a/b), math.Log(b/a))
}

// straying is the factor that the median of n ratios exceeds in 5 of 100 cases.
func straying(logs []float64, n int) float64 {
	if len(logs) == 0 || n == 0 {
		return 0
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same result for the same trials
	medians := make([]float64, resamples)
	some := make([]float64, n)
	for i := range medians {
		for k := range some {
			some[k] = logs[random.IntN(len(logs))]
		}
		medians[i] = stat.Median(some)
	}
	return math.Exp(max(0, stat.Percentile(medians, confidence)))
}

// verdict says whether a figure reaches its target.
type verdict int

const (
	holds verdict = iota
	withinNoise
	misses
)

// judge compares a ratio with the largest one that is accepted. Where noise alone can move it across, it is neither
// reached nor missed.
func judge(ratio, most, noise float64) verdict {
	switch {
	case ratio > most*noise:
		return misses
	case ratio > most/noise && noise > 1:
		return withinNoise
	}
	return holds
}
