// SPDX-License-Identifier: Apache-2.0
package bench

import "time"

// What steps take besides their trials, and how many trials a search takes. The remaining time is estimated from it.
const (
	startTime    = 4 * time.Second
	checkTime    = time.Second
	betweenTime  = 150 * time.Millisecond // trials: draining, counters
	searchTrials = 20                     // both searches
	burstTrials  = 25
	latencies    = 4
)

func (o *Options) roundTime() time.Duration {
	return time.Duration(o.Measure.Windows)*(o.Measure.Window+o.Measure.Pause) + 2*betweenTime
}

func (o *Options) searchTime() time.Duration {
	return searchTrials * (o.Measure.TrialTime + betweenTime)
}

func (o *Options) latencyTime() time.Duration { return latencies * (o.Measure.TrialTime + betweenTime) }

func (o *Options) burstTime() time.Duration { return burstTrials * betweenTime }

// expected is the estimated time of a scenario with so many routers.
func (o *Options) expected(routers int) time.Duration {
	each := startTime + checkTime + time.Duration(o.Repetitions)*o.roundTime()
	if o.Search {
		each += o.searchTime()
	}
	if o.Latency {
		each += o.latencyTime()
	}
	if o.Burst {
		each += o.burstTime()
	}
	return time.Duration(routers) * each
}

// Progress is notified of the steps of a run.
type Progress interface {
	Begin(expected time.Duration)             // of all steps
	Step(text string, expected time.Duration) // the previous step has ended
	Note(text string)                         // something that a reader of the result should know as well
}
