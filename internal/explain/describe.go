// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"time"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/explain/kernel"
)

// gradeOf returns how far the time of a cause can be trusted.
func gradeOf(e *Evidence, c *Cause) Grade {
	if r := rowOf(c.Kind); r.grade != nil {
		return r.grade(e)
	}
	return watched(e)
}

func counted(*Evidence) Grade { return Counted }

func watched(e *Evidence) Grade {
	if e.Trace == nil {
		return Inferred
	}
	return Seen
}

func (c *Cause) fact(g Grade, format string, args ...any) {
	c.Evidence = append(c.Evidence, Fact{g, fmt.Sprintf(format, args...)})
}

func timesText(c *Cause) string {
	text := fmt.Sprintf("it took %s of the worker's time", duration(c.LostNS))
	if c.Times > 0 {
		text += fmt.Sprintf(" in %d intervals", c.Times)
	}
	if c.Longest > 0 {
		text += ", the longest " + duration(c.Longest)
	}
	if c.hidden > 0 {
		text += fmt.Sprintf(", %s of it to enter and leave the kernel and to fill caches again, as packets cost more "+
			"than usual", duration(c.hidden))
	}
	return text
}

func duration(ns int64) string {
	switch d := time.Duration(ns); {
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.1f us", float64(ns)/1e3)
	}
}

// topSum returns the matching sum with the highest count, nil if none matches.
func topSum(e *Evidence, match func(*kernel.Sum) bool) (best *kernel.Sum) {
	if e.Trace == nil {
		return nil
	}
	for i := range e.Trace.Sums {
		if s := &e.Trace.Sums[i]; match(s) && (best == nil || s.Count > best.Count) {
			best = s
		}
	}
	return best
}

func maskOf(list string) string {
	set, err := cpuset.Parse(list)
	if err != nil {
		return "0"
	}
	return set.MaskWords()
}

func inList(list string, cpu int) bool {
	set, err := cpuset.Parse(list)
	return err == nil && set.Has(cpu)
}

// without returns the CPUs of a list that are not in another one, "" if there are none.
func without(list, other string) string {
	a, err := cpuset.Parse(list)
	b, err2 := cpuset.Parse(other)
	if err != nil || err2 != nil {
		return ""
	}
	return a.Without(b).String()
}

func firstOf(list string) string {
	set, err := cpuset.Parse(list)
	if err != nil || set.Empty() {
		return "N" // no CPU is free: the reader has to choose one
	}
	return fmt.Sprint(set.First())
}

func short(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-3]) + "..."
	}
	return text
}

// Packets writes packets per second in three digits or four: "1.25 M", "17.3 k".
func Packets(pps float64) string {
	switch {
	case pps >= 1e6:
		return fmt.Sprintf("%.2f M", pps/1e6)
	case pps >= 1e3:
		return fmt.Sprintf("%.1f k", pps/1e3)
	}
	return fmt.Sprintf("%.0f", pps)
}
