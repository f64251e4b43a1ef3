// SPDX-License-Identifier: Apache-2.0
package result

import (
	"cmp"
	"fmt"
	"slices"
)

// rule is a condition on one field.
type rule struct {
	field string
	value any
	ok    bool
	valid string
}

func first(rules ...rule) error {
	for _, r := range rules {
		if !r.ok {
			return fmt.Errorf("%s: %v is impossible; valid: %s", r.field, r.value, r.valid)
		}
	}
	return nil
}

func each[T any](field string, list []T, check func(*T) error) error {
	for i := range list {
		if err := check(&list[i]); err != nil {
			return fmt.Errorf("%s[%d].%w", field, i, err)
		}
	}
	return nil
}

func notNegative[N int | float64](field string, n N) rule {
	return rule{field, n, n >= 0, "0 or more"}
}

func positive[N int | float64](field string, n N) rule {
	return rule{field, n, n > 0, "more than 0"}
}

func share(field string, f float64) rule {
	return rule{field, f, f >= 0 && f <= 1, "0 to 1"}
}

func named(field, name string) rule {
	return rule{field, fmt.Sprintf("'%s'", name), name != "", "a name"}
}

// check refuses values that no run can have measured.
func (r *Result) check() error {
	err := first(
		rule{"ended", r.Ended, r.Ended.IsZero() || !r.Ended.Before(r.Started), "not before it was started"},
		notNegative("manifest.cpus", r.Manifest.CPUs),
		notNegative("manifest.generator_cpu", r.Manifest.GeneratorCPU),
	)
	if err := cmp.Or(err, each("runs", r.Runs, (*Run).check)); err != nil {
		return err
	}
	seen := map[Key]int{}
	for i := range r.Runs {
		key := r.Runs[i].Key()
		if first, ok := seen[key]; ok {
			return fmt.Errorf("runs[%d]: %s is measured by runs[%d] already", i, key, first)
		}
		seen[key] = i
	}
	return nil
}

func (r *Run) check() error {
	err := first(
		named("scenario", r.Scenario), named("router", r.Router),
		positive("flows", r.Flows), notNegative("routes", r.Routes), positive("workers", r.Workers),
		rule{"frame_sizes", r.FrameSizes, len(r.FrameSizes) > 0 && slices.Min(r.FrameSizes) >= 14 &&
			slices.Max(r.FrameSizes) <= 1<<16, "14 to 65536 bytes"},
		rule{"bottleneck.component", r.Bottleneck.Component,
			slices.Contains([]string{"", "generator", "machine", "router", "sink", "wire"}, r.Bottleneck.Component),
			"generator, machine, router, sink, wire"},
	)
	return cmp.Or(err,
		each("windows", r.Windows, (*Window).check),
		r.NDR.check("ndr"), r.PDR.check("pdr"),
		each("latency", r.Latency, (*Latency).check),
		each("nodes", r.Nodes, func(n *Node) error {
			return first(named("name", n.Name), notNegative("cycles_per_packet", n.CyclesPerPacket),
				notNegative("packets_per_call", n.PacketsPerCall))
		}),
		each("drops", r.Drops, func(d *DropCounter) error { return first(named("reason", d.Reason)) }))
}

func (w *Window) check() error {
	return first(notNegative("repetition", w.Repetition), notNegative("at", w.At), positive("seconds", w.Seconds),
		notNegative("sent", w.Sent), notNegative("received", w.Received), notNegative("round_trip_ns", w.RoundTrip),
		share("idle", w.Idle))
}

func (s *Search) check(field string) error {
	if s == nil {
		return nil
	}
	err := cmp.Or(first(share("loss_ratio", s.LossRatio), notNegative("rate", s.Rate)),
		each("trials", s.Trials, (*Trial).check))
	if err != nil {
		return fmt.Errorf("%s.%w", field, err)
	}
	return nil
}

func (t *Trial) check() error {
	return first(notNegative("rate", t.Rate), notNegative("seconds", t.Seconds),
		rule{"lost", t.Lost, t.Lost <= t.Sent, fmt.Sprintf("up to the %d sent", t.Sent)})
}

func (l *Latency) check() error {
	percentiles := []float64{l.P50, l.P90, l.P99, l.P999, l.Max}
	bars := slices.IsSortedFunc(l.Histogram, func(a, b Bar) int { return cmp.Compare(a.Low, b.Low) })
	return first(named("load", l.Load), notNegative("rate", l.Rate), notNegative("p50_us", l.P50),
		rule{"p50_us ... max_us", percentiles, slices.IsSorted(percentiles), "ascending"},
		rule{"histogram", "a bar below the one before it", bars, "ascending"})
}
