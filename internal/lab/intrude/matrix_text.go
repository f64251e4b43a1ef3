// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/explain"
	"github.com/corelane/corelane/internal/stat"
)

// Markdown writes the table of all runs for documents, a line for each case.
func Markdown(all []Outcome) string {
	var b strings.Builder
	b.WriteString("| case | runs | expected | found first | culprit | seconds | cost said, Mpps | cost measured, " +
		"Mpps | fixed |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, name := range caseOrder(all) {
		runs := slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool { return o.Case != name })
		if runs[0].Skipped != "" {
			fmt.Fprintf(&b, "| %s | skipped: %s | %s | | | | | | |\n", name, runs[0].Skipped,
				kindText(runs[0].Expected))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.1f | %s | %s | %s |\n", name, passedText(runs),
			kindText(runs[0].Expected), foundText(runs), nameOf(&runs[0].Found), slowest(runs), saidText(runs),
			rangeText(runs, (*Outcome).Cost), fixedText(runs))
	}
	return b.String()
}

// Passed is an error that names the runs that failed, and says by how much half of the costs are off at most.
func Passed(all []Outcome) error {
	var list []string
	for _, o := range all {
		if !o.Passed {
			list = append(list, o.Case+": "+o.Why)
		}
	}
	if len(list) > 0 {
		return fmt.Errorf("%d of %d runs failed: %s", len(list), len(all), strings.Join(list, "; "))
	}
	if half, n := HalfOff(all); n >= fewest && half > pricedHalf {
		return fmt.Errorf("half of the %d costs are off by more than %.0f %%: the median is %.0f %%", n,
			100*pricedHalf, 100*half)
	}
	return nil
}

// HalfOff returns the median of how far the reported costs are off, and the number of costs.
func HalfOff(all []Outcome) (median float64, n int) {
	var off []float64
	for i := range all {
		if o := &all[i]; o.Skipped == "" && o.Unpriced == "" && o.Offered > 0 && o.Cost() >= cheap*o.Offered {
			off = append(off, o.off())
		}
	}
	if len(off) == 0 {
		return 0, 0
	}
	return stat.Median(off), len(off)
}

func caseOrder(all []Outcome) (names []string) {
	for _, o := range all {
		if !slices.Contains(names, o.Case) {
			names = append(names, o.Case)
		}
	}
	return names
}

// fixedText is the least share of the rate that came back, or why no command can fix it.
func fixedText(runs []Outcome) string {
	if runs[0].Unfixed != "" {
		return runs[0].Unfixed
	}
	least := 0.0
	for i, o := range runs {
		if share := o.After / max(1, o.Before); i == 0 || share < least {
			least = share
		}
	}
	return fmt.Sprintf("%.2f", least)
}

func passedText(runs []Outcome) string {
	n, repeated := 0, 0
	for _, o := range runs {
		if o.Passed {
			n++
		}
		repeated += len(o.Uneven)
	}
	text := fmt.Sprintf("%d of %d", n, len(runs))
	if repeated > 0 {
		text += fmt.Sprintf(" (%d repeated: the machine disturbed them)", repeated)
	}
	return text
}

func foundText(runs []Outcome) string {
	var found []explain.Kind
	after := ""
	for _, o := range runs {
		if !slices.Contains(found, o.Found.Kind) {
			found = append(found, o.Found.Kind)
		}
		if o.Ahead != "" {
			after = " (after " + o.Ahead + ", which was measured, too)"
		}
	}
	return kindText(found) + after
}

func slowest(runs []Outcome) (seconds float64) {
	for _, o := range runs {
		seconds = max(seconds, o.Seconds)
	}
	return seconds
}

// saidText is the cost that explain reports, and the bound of the cost that it cannot attribute.
func saidText(runs []Outcome) string {
	text := rangeText(runs, func(o *Outcome) float64 { return o.Said })
	if runs[0].Found.Recoverable > 0 {
		text += ", at most " + rangeText(runs, func(o *Outcome) float64 { return o.Found.Recoverable }) + " more"
	}
	if runs[0].Unpriced != "" {
		text += " (" + runs[0].Unpriced + ")"
	}
	return text
}

func rangeText(runs []Outcome, of func(*Outcome) float64) string {
	low, high := of(&runs[0]), of(&runs[0])
	for i := range runs {
		low, high = min(low, of(&runs[i])), max(high, of(&runs[i]))
	}
	if len(runs) == 1 {
		return fmt.Sprintf("%.2f", low/1e6)
	}
	return fmt.Sprintf("%.2f to %.2f", low/1e6, high/1e6)
}
