// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
	"github.com/corelane/corelane/internal/stat"
)

// Shares of a rate that the generator was late with.
const (
	lateTolerance = 1e-3 // up to here the rate counts as offered: it is far below the resolution
	lateAlways    = 1e-2 // from here on the generator is too slow, not disturbed
	// lost frames per late one that may be the generator's: while it does not run it does not receive
	lateCosts = 10
)

type verdict int

const (
	passed verdict = iota
	lossy          // the router lost more than is allowed
	void           // the generator was late: the trial does not count
	slow           // the generator cannot keep the rate
)

// offered counts the frames that the router could have taken. A NIC drops frames for which a queue has no room; here
// they are not sent, and count as lost too.
func offered(t *apiv1.GeneratorWindow) uint64 { return t.Sent + t.NoRoom }

func lost(t *apiv1.GeneratorWindow) uint64 { return t.Lost + t.NoRoom }

func judge(t *apiv1.GeneratorWindow, lossRatio float64) verdict {
	late := float64(t.Late)
	switch {
	case offered(t) == 0, late > lateAlways*float64(t.Due):
		return slow
	case float64(lost(t)) > lossRatio*float64(offered(t))+lateCosts*late:
		return lossy
	case late > lateTolerance*float64(t.Due):
		return void
	case float64(lost(t)) <= lossRatio*float64(offered(t)):
		return passed
	case late > lossRatio*float64(t.Due):
		return void
	}
	return lossy
}

// asTrial is the record of a trial.
func asTrial(rate float64, o *Outcome, v verdict, repeated bool) result.Trial {
	t := result.Trial{Rate: rate, Seconds: o.Total.Seconds, Sent: offered(o.Total), Lost: lost(o.Total),
		Passed: v == passed, Repeated: repeated}
	if v != passed {
		t.Why = why(o)
	}
	return t
}

// why says where frames were lost, as far as generator and router have counters.
func why(o *Outcome) string {
	var parts []string
	add := func(n uint64, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(o.Total.NoRoom, "no room in the router's queue for %d")
	for _, d := range first(grownDrops(o.Before.Drops, o.After.Drops), maxReasons) {
		add(d.Frames, "router: "+strings.ReplaceAll(d.Reason, "%", "%%")+" %d")
	}
	add(o.Total.Corrupt, "corrupt %d")
	add(o.Total.Misplaced, "%d left by the wrong port")
	add(o.Total.Late, "generator late with %d")
	parts = append(parts, Others(o.Waited)...)
	if len(parts) == 0 {
		return "no counter has them"
	}
	return strings.Join(parts, ", ")
}

// Others names the CPUs that other work had for long enough to lose frames.
func Others(waited map[int]time.Duration) (list []string) {
	for _, cpu := range slices.Sorted(maps.Keys(waited)) {
		if t := waited[cpu]; t >= someWait {
			list = append(list, fmt.Sprintf("other work had CPU %d for %.1f ms", cpu, t.Seconds()*1e3))
		}
	}
	return list
}

const (
	maxReasons = 4
	someWait   = 100 * time.Microsecond // that fills a ring
)

func first[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// grownDrops are the counters that grew, the largest first.
func grownDrops(before, after map[string]uint64) []result.DropCounter {
	var list []result.DropCounter
	for reason, n := range stat.GrownBy(after, before) {
		list = append(list, result.DropCounter{Reason: reason, Frames: n})
	}
	slices.SortFunc(list, func(a, b result.DropCounter) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), strings.Compare(a.Reason, b.Reason))
	})
	return list
}
