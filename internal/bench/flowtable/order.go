// SPDX-License-Identifier: Apache-2.0
package flowtable

import "slices"

// Order of the steps, from what routers have had to the fastest.
var Order = []string{"chained", "chained-signatures", "chained-crc", "chained-batch", "rte_hash", "corelane-single", "corelane-no-prefetch",
	"corelane-plain", "corelane-sse4.2", "corelane-avx2", "corelane-avx512"}

func sortSteps(steps []Step, order map[string]int) {
	slices.SortStableFunc(steps, func(a, b Step) int { return order[a.Backend] - order[b.Backend] })
}
