// SPDX-License-Identifier: Apache-2.0
package restart

import (
	"testing"
	"time"
)

const ms = time.Millisecond

func TestOutage(t *testing.T) {
	at := func(start, length time.Duration, received uint64) arrivals { return arrivals{start, length, received} }
	for name, c := range map[string]struct {
		windows []arrivals
		want    float64
	}{
		"none":             {[]arrivals{at(0, 5*ms, 9), at(5*ms, 5*ms, 9)}, 0},
		"before the event": {[]arrivals{at(0, 5*ms, 0), at(5*ms, 5*ms, 9)}, 0},
		"the longest": {[]arrivals{at(5*ms, 5*ms, 0), at(10*ms, 5*ms, 1), at(15*ms, 6*ms, 0),
			at(21*ms, 5*ms, 0), at(26*ms, 5*ms, 1)}, 11},
		"until the end":     {[]arrivals{at(5*ms, 5*ms, 1), at(10*ms, 5*ms, 0)}, 5},
		"without a window":  {nil, 0},
		"nothing comes yet": {[]arrivals{at(5*ms, 5*ms, 0), at(10*ms, 5*ms, 0)}, 10},
	} {
		got := (&trial{windows: c.windows}).outage(5 * ms)
		if got != c.want {
			t.Errorf("%s: %v ms, want %v", name, got, c.want)
		}
	}
}

// What the generator did not send was not lost by the router.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		trial      trial
		sent, lost uint64
	}{
		{trial{due: 10, received: 10}, 10, 0},
		{trial{due: 10, late: 4, received: 5}, 6, 1},
		{trial{due: 10, received: 7}, 10, 3},
		{trial{due: 10, late: 4, received: 7}, 6, 0}, // one came twice
	} {
		if c.trial.sent() != c.sent || c.trial.lost() != c.lost {
			t.Errorf("%+v: sent %d, lost %d", c.trial, c.trial.sent(), c.trial.lost())
		}
	}
}

func TestShort(t *testing.T) {
	for _, c := range []struct {
		row  Row
		want bool
	}{
		{Row{OutageMS: 50, MostMS: 50, Lost: 500, Connections: 2, Survived: 2}, false},
		{Row{OutageMS: 51, MostMS: 50, Connections: 2, Survived: 2}, true},
		{Row{OutageMS: 10, MostMS: 50, Connections: 2, Survived: 1}, true},
		{Row{OutageMS: 10}, false},
		{Row{Lost: 1}, true},
	} {
		if got := c.row.Short(); got != c.want {
			t.Errorf("%+v: %v", c.row, got)
		}
	}
	o := Options{Kinds: []string{"veth"}}
	if o.Check() == nil {
		t.Error("a kind that does not exist is accepted")
	}
	o = Options{Events: []string{"flood"}}
	if o.Check() == nil {
		t.Error("an event that does not exist is accepted")
	}
}
