// SPDX-License-Identifier: Apache-2.0
package report

import "github.com/corelane/corelane/internal/bench/result"

// view is what the template shows.
type view struct {
	*result.Result
	Rows []row
}

// row is one run in the summary.
type row struct {
	result.Key
	*result.Run
	Median, P10, P90 float64 // frames per second received at saturation
}

func build(r *result.Result) view {
	v := view{Result: r}
	for i := range r.Runs {
		run := &r.Runs[i]
		rates := make([]float64, len(run.Windows))
		for i, w := range run.Windows {
			rates[i] = w.Received
		}
		v.Rows = append(v.Rows, row{run.Key(), run, result.Percentile(rates, 0.5), result.Percentile(rates, 0.1), result.Percentile(rates, 0.9)})
	}
	return v
}
