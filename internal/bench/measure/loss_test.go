// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"testing"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		sent, noRoom, late, lost uint64
		ratio                    float64
		want                     verdict
	}{
		"nothing lost":       {sent: 1000000, want: passed},
		"one lost":           {sent: 1000000, lost: 1, want: lossy},
		"one lost of 10,000": {sent: 1000000, lost: 100, ratio: 1e-4, want: passed},
		"no room is a loss":  {sent: 999999, noRoom: 1, want: lossy},
		"late, nothing lost": {sent: 999500, late: 500, want: passed},
		"late and lost, as a generator that was away":  {sent: 999000, late: 500, noRoom: 500, want: void},
		"late, but the router lost far more than that": {sent: 800000, late: 500, noRoom: 199500, want: lossy},
		"too late to count as offered":                 {sent: 998000, late: 2000, want: void},
		"always late":                                  {sent: 980000, late: 20000, want: slow},
		"nothing offered":                              {want: slow},
	} {
		w := &apiv1.GeneratorWindow{Due: c.sent + c.noRoom + c.late, Sent: c.sent, NoRoom: c.noRoom, Late: c.late,
			Lost: c.lost}
		if got := judge(w, c.ratio); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}
