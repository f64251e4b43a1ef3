// SPDX-License-Identifier: Apache-2.0
package lab

import (
	"slices"
	"testing"
)

func TestPlaceHostPath(t *testing.T) {
	for _, c := range []struct {
		cpus   []int // the last one first
		want   HostPathPlacement
		wanted bool
	}{
		{nil, HostPathPlacement{}, false},
		{[]int{0}, HostPathPlacement{}, false},
		{[]int{1, 0}, HostPathPlacement{Forwarding: 1, HostPath: 0, Others: []int{0}}, true},
		{[]int{7, 5, 2}, HostPathPlacement{Forwarding: 7, HostPath: 5, Others: []int{2}}, true},
		{[]int{3, 2, 1, 0}, HostPathPlacement{Forwarding: 3, HostPath: 2, Others: []int{1, 0}}, true},
	} {
		got, err := placeHostPath(c.cpus)
		if (err == nil) != c.wanted || got.Forwarding != c.want.Forwarding || got.HostPath != c.want.HostPath ||
			!slices.Equal(got.Others, c.want.Others) {
			t.Errorf("%v: %+v, %v", c.cpus, got, err)
		}
	}
}

func rates(list ...float64) HostPathRow {
	r := HostPathRow{}
	for _, bps := range list {
		r.Samples = append(r.Samples, HostPathSample{TCP: Rate{BitsPerSecond: bps}})
	}
	return r
}

func TestHostPathFigures(t *testing.T) {
	if got := rates(5, 1, 3).Bps(); got != 3 {
		t.Errorf("median of three: %v", got)
	}
	if got := rates(4, 1, 3, 2).Bps(); got != 2.5 {
		t.Errorf("median of four: %v", got)
	}
	if got := rates().Bps(); got != 0 {
		t.Errorf("median of none: %v", got)
	}
	// The machine becomes twice as slow, but both rows of a round stay alike.
	r := HostPathReport{Rows: []HostPathRow{rates(100, 50, 25), rates(90, 45, 22.5)}}
	if got := r.Ratio(1, 0, func(s HostPathSample) float64 { return s.TCP.BitsPerSecond }); got != 0.9 {
		t.Errorf("ratio: %v", got)
	}
	if len(HostPathCases) != 5 {
		t.Errorf("%d cases", len(HostPathCases))
	}
}
