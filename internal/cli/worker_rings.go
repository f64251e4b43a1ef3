// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

var ringListing = listing[*apiv1.WorkerRing]{
	key: func(r *apiv1.WorkerRing) string { return fmt.Sprintf("%d %d", r.From, r.To) },
	columns: []column[*apiv1.WorkerRing]{
		number("from", (*apiv1.WorkerRing).GetFrom),
		number("to", (*apiv1.WorkerRing).GetTo),
		number("size", (*apiv1.WorkerRing).GetSize),
		number("used", (*apiv1.WorkerRing).GetUsed),
		number("high", (*apiv1.WorkerRing).GetHigh),
		counter("packets", (*apiv1.WorkerRing).GetPackets),
		counter("refused", (*apiv1.WorkerRing).GetRefused),
		text("p50 us", func(r *apiv1.WorkerRing) string { return ringWait(r, 0.5) }),
		text("p99 us", func(r *apiv1.WorkerRing) string { return ringWait(r, 0.99) }),
	},
}

func newWorkerRings(a *app) *cobra.Command {
	cmd := newList(a, "List the rings through which workers pass packets to each other",
		"  corelane worker rings --watch", ringListing,
		listOf(a, apiv1.NewWorkersClient, apiv1.WorkersClient.Rings, &apiv1.WorkerRingListRequest{}))
	cmd.Use = "rings"
	cmd.Long = `List the rings through which workers pass packets to each other: those of ports in hybrid mode, and of
isolated-rx and host-path workers. HIGH is the most packets that a ring has held. REFUSED counts the packets that
found it full. P50 and P99 are times in the ring: one packet at a time is timed, and the time is rounded up to a power
of two of CPU cycles.`
	return cmd
}

// ringWait is the upper end of the histogram's bucket that holds the quantile.
func ringWait(r *apiv1.WorkerRing, quantile float64) string {
	var all, seen uint64
	for _, n := range r.Waited {
		all += n
	}
	if all == 0 || r.TscHz == 0 {
		return ""
	}
	for i, n := range r.Waited {
		if seen += n; float64(seen) >= quantile*float64(all) {
			return fmt.Sprintf("%.3g", math.Ldexp(1, i+1)/float64(r.TscHz)*1e6)
		}
	}
	return ""
}
