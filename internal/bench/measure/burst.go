// SPDX-License-Identifier: Apache-2.0
package measure

import (
	"context"
	"errors"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/bench/result"
)

const shortestBurst = 64

// Burst finds the longest burst of back-to-back frames that passes without loss (RFC 2544 26.4, RFC 9004). It
// doubles the length until frames are lost, and then does a binary search.
func (m *Meter) Burst(ctx context.Context) (*result.Burst, error) {
	b := &result.Burst{}
	short, long := uint64(0), m.BurstLimit+1
	for next := uint64(shortestBurst); float64(long-short) > max(1, m.Resolution*float64(long)); {
		v, trials, err := m.burst(ctx, min(next, m.BurstLimit))
		b.Trials += trials
		switch {
		case err != nil:
			return b, err
		case v == passed:
			short = min(next, m.BurstLimit)
		default:
			long = min(next, m.BurstLimit)
		}
		if next = 2 * short; long <= m.BurstLimit {
			next = (short + long) / 2
		}
		b.Frames, b.Limit = short, short == m.BurstLimit
	}
	return b, nil
}

// burst sends so many frames that are all due at once.
func (m *Meter) burst(ctx context.Context, frames uint64) (verdict, int, error) {
	a := attempt{Meter: m, left: m.Budget}
	v, err := a.run(ctx, 0, &apiv1.GeneratorTrial{Packets: frames, Burst: uint32(frames),
		PacketsPerSecond: float64(frames)})
	if errors.Is(err, errBudget) {
		err = nil
	}
	return v, len(a.trials), err
}
