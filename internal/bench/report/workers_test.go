// SPDX-License-Identifier: Apache-2.0
package report

import (
	"strings"
	"testing"

	"github.com/corelane/corelane/internal/bench/workerresult"
)

func TestWorkersPage(t *testing.T) {
	r := &workerresult.Result{Command: "corelane bench workers <modes>", Notes: []string{"CPU 0 is shared"},
		Wanted: 500}
	for i, m := range workerresult.Modes {
		m.Samples = []workerresult.Sample{{Rate: 5e6, P50: 10, P99: float64(20 * (1 + i))},
			{Rate: 5e6, P50: 10, P99: float64(25 * (1 + i))}}
		r.Modes = append(r.Modes, m)
	}
	for _, size := range []int{256, 1024} {
		r.Rings = append(r.Rings,
			workerresult.Ring{Size: size, Samples: []workerresult.Sample{{Rate: 5e6, P99: float64(size)}}, Burst: size})
	}
	r.Changes = []workerresult.Change{{Name: "move a queue", Done: 100, Sent: 1000, Took: []float64{1}}}
	var out strings.Builder
	if err := WriteWorkers(&out, r); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	found := elements(t, page)
	if n := len(found["section"]); n != 4 { // modes, rings, changes, notes
		t.Errorf("%d sections", n)
	}
	bars := strings.Count(page, `<rect class="bar `)
	if bars != len(r.Modes)+2*len(r.Rings) {
		t.Errorf("%d bars", bars)
	}
	for _, want := range []string{"Incomplete", "Recommended: 1024", "CPU 0 is shared",
		"corelane bench workers &lt;modes&gt;", "p99 at saturation"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
}
