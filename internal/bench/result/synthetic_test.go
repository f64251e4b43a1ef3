// SPDX-License-Identifier: Apache-2.0
package result

import (
	"math"
	"math/rand/v2"
	"time"
)

// machine imitates a virtual machine: it drifts from run to run and from repetition to repetition, the distance of its
// CPUs changes, and single windows lose time to other programs.
type machine struct {
	repetitions, windows int // windows of each router per repetition
	run, repetition      float64
	turn                 float64 // spread between the routers' turns within a repetition
	start                float64 // spread between the starts of a router
	window, stolen       float64
	far                  float64 // how often a repetition goes to the other state
}

var usual = machine{repetitions: 5, windows: 10, run: 0.15, repetition: 0.05, turn: 0.02, start: 0.008, window: 0.03,
	stolen: 0.1, far: 0.4}

// rates of routers in frames per second on a machine that is quiet.
type rates map[string]float64

func (m machine) measure(seed uint64, routers rates) *Result {
	r := rand.New(rand.NewPCG(seed, 77))
	out := &Result{Version: Version, Complete: true, Started: time.Unix(1700000000, 0).UTC()}
	today, far := math.Exp(m.run*r.NormFloat64()), false
	luck := map[string]float64{}
	for _, name := range []string{Ceiling, "corelane", "ovs"} {
		if routers[name] > 0 {
			luck[name] = math.Exp(m.start * r.NormFloat64())
			out.Runs = append(out.Runs, Run{Scenario: "encap", Router: name, Flows: 1000, Routes: 1,
				FrameSizes: []int{64}, Workers: 1})
		}
	}
	for repetition := range m.repetitions {
		now := today * math.Exp(m.repetition*r.NormFloat64())
		for turn := range out.Runs {
			run := &out.Runs[turn]
			if repetition%2 == 1 { // A B, B A, A B, ...
				run = &out.Runs[len(out.Runs)-1-turn]
			}
			rate := now * luck[run.Router] * routers[run.Router] * math.Exp(m.turn*r.NormFloat64())
			for i := range m.windows {
				if r.Float64() < m.far/float64(m.windows) {
					far = !far
				}
				w := m.one(r, far, rate)
				w.Repetition, w.At = repetition, 0.2*float64((repetition*len(out.Runs)+turn)*m.windows+i)
				run.Windows = append(run.Windows, w)
			}
		}
	}
	return out
}

func (m machine) one(r *rand.Rand, far bool, rate float64) Window {
	w := Window{Seconds: 0.2, Sent: 3e7, RoundTrip: 60 * math.Exp(0.1*r.NormFloat64())}
	if far {
		w.RoundTrip *= 6
		rate *= 0.5
	}
	if r.Float64() < m.stolen {
		rate *= 0.5 + 0.5*r.Float64()
	}
	w.Received = rate * math.Exp(m.window*r.NormFloat64())
	return w
}
