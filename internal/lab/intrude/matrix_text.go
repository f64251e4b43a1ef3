// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/explain"
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

// Passed is an error that names the runs that failed.
func Passed(all []Outcome) error {
	var list []string
	for _, o := range all {
		if !o.Passed {
			list = append(list, o.Case+": "+o.Why)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d runs failed: %s", len(list), len(all), strings.Join(list, "; "))
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
	n := 0
	for _, o := range runs {
		if o.Passed {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(runs))
}

func foundText(runs []Outcome) string {
	var found []explain.Kind
	for _, o := range runs {
		if !slices.Contains(found, o.Found.Kind) {
			found = append(found, o.Found.Kind)
		}
	}
	return kindText(found)
}

func slowest(runs []Outcome) (seconds float64) {
	for _, o := range runs {
		seconds = max(seconds, o.Seconds)
	}
	return seconds
}

// saidText is the cost that explain reports, and the bound of the cost that it cannot attribute.
func saidText(runs []Outcome) string {
	text := rangeText(runs, func(o *Outcome) float64 { return o.Found.PPS })
	if runs[0].Found.Recoverable > 0 {
		text += ", at most " + rangeText(runs, func(o *Outcome) float64 { return o.Found.Recoverable }) + " more"
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
