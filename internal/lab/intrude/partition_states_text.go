// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"fmt"
	"strings"
)

// Markdown writes the table for documents.
func (r *PartitionTable) Markdown() string {
	var b strings.Builder
	b.WriteString("| case | Mpps at <= 0.01 % loss | of idle | saturated, Mpps | contrail-specs, Mpps per core |\n" +
		"|---|---|---|---|---|\n")
	for i := range r.Rows {
		row := &r.Rows[i]
		rate, low, high := row.Median(func(s Sample) float64 { return s.Rate / 1e6 })
		share, least, most := row.Median(func(s Sample) float64 { return s.OfIdle })
		saturated, _, _ := row.Median(func(s Sample) float64 { return s.Saturated / 1e6 })
		reported := "-"
		if v := Reported[row.State]; v > 0 {
			reported = fmt.Sprintf("%.3f", v)
		}
		fmt.Fprintf(&b, "| %s | %.3f (%.3f to %.3f) | %.3f (%.3f to %.3f) | %.3f | %s |\n", row.State.Title(), rate,
			low, high, share, least, most, saturated, reported)
	}
	fmt.Fprintf(&b, "\nMedian (lowest to highest) of %d repetitions. Load: %s.\n", len(r.Rows[0].Samples), r.Load)
	return b.String()
}
