// SPDX-License-Identifier: Apache-2.0
package guard

import "time"

// Two programs that undo each other's changes would never stop: after this many repairs of the same thing within a
// minute the guard reports an oscillation and pauses.
const (
	oscillationRepairs = 5
	oscillationSpan    = time.Minute
	oscillationPause   = 10 * time.Minute
	failurePause       = 30 * time.Second // a CPU that is offline comes back, or does not
)

// limiter counts the repairs of each thing.
type limiter map[key]*repairs

type repairs struct {
	times []time.Time
	until time.Time // end of the pause
}

// allow reports whether a thing may be repaired now, and whether this call has just detected an oscillation.
func (l limiter) allow(k key, now time.Time) (ok, oscillating bool) {
	r := l[k]
	if r == nil {
		r = &repairs{}
		l[k] = r
	}
	if now.Before(r.until) {
		return false, false
	}
	recent := r.times[:0]
	for _, t := range r.times {
		if now.Sub(t) < oscillationSpan {
			recent = append(recent, t)
		}
	}
	if r.times = recent; len(recent) >= oscillationRepairs {
		r.until, r.times = now.Add(oscillationPause), nil
		return false, true
	}
	r.times = append(r.times, now)
	return true, false
}

// failed takes back the last repair: nobody undid it. The next attempt follows after a while.
func (l limiter) failed(k key, now time.Time) {
	if r := l[k]; r != nil && len(r.times) > 0 {
		r.times = r.times[:len(r.times)-1]
		r.until = now.Add(failurePause)
	}
}

// forget drops old repairs, so that the map does not grow with threads that have ended.
func (l limiter) forget(now time.Time) {
	for k, r := range l {
		if now.After(r.until) && (len(r.times) == 0 || now.Sub(r.times[len(r.times)-1]) > oscillationSpan) {
			delete(l, k)
		}
	}
}
