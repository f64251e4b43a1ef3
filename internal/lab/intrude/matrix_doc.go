// SPDX-License-Identifier: Apache-2.0
package intrude

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/input"
)

// The table of a document stands between these lines.
const (
	tableBegin = "<!-- matrix: written by corelane lab intrude table RUN.json --into docs/cores.md -->\n"
	tableEnd   = "<!-- end of matrix -->\n"
)

// Outcomes reads what `matrix -o json` wrote. If a reader has a case that was read before, its runs replace those.
func Outcomes(known []Outcome, r io.Reader) ([]Outcome, error) {
	var more []Outcome
	for d := json.NewDecoder(r); ; {
		var o Outcome
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil || missingCase(&o) != nil {
			return nil, input.Errorf("file", "what corelane lab intrude matrix -o json writes", "run %d: %v",
				len(more)+1, cmp.Or(err, missingCase(&o)))
		}
		more = append(more, o)
	}
	again := func(o Outcome) bool {
		return slices.ContainsFunc(more, func(m Outcome) bool { return m.Case == o.Case })
	}
	return append(slices.DeleteFunc(known, again), more...), nil
}

func missingCase(o *Outcome) error {
	switch {
	case o.Case == "":
		return errors.New("it names no case")
	case !slices.ContainsFunc(Cases(), func(c Case) bool { return c.Name == o.Case }):
		return fmt.Errorf("there is no case '%s' any more", o.Case)
	}
	return nil
}

// Document is the table for documents: what is done, what explain says of it, what was measured, and whether its
// command mended it. The cases are in the order of Cases.
func Document(all []Outcome) string {
	var b strings.Builder
	b.WriteString("| case | what is done | said first | answered after, s | cost said, Mpps | cost measured, Mpps | " +
		"after the command | passed |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range Cases() {
		runs := slices.DeleteFunc(slices.Clone(all), func(o Outcome) bool { return o.Case != c.Name })
		if len(runs) == 0 {
			continue
		}
		if runs[0].Skipped != "" {
			fmt.Fprintf(&b, "| `%s` | %s | not run: %s | | | | | |\n", c.Name, c.Summary, runs[0].Skipped)
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s: %s | %.1f | %s | %s | %s | %s |\n", c.Name, c.Summary, foundText(runs),
			cell(whoOf(runs)), slowest(runs), saidText(runs), rangeText(runs, (*Outcome).Cost), mendedText(runs),
			passedText(runs))
	}
	return b.String() + "\n" + Summary(all)
}

// whoOf names the culprit without numbers of processes, which say nothing to a reader.
func whoOf(runs []Outcome) string {
	if f := &runs[0].Found; f.Name != "" {
		return f.Name
	}
	return nameOf(&runs[0].Found)
}

// cell is a text that may stand in a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }

func mendedText(runs []Outcome) string {
	for _, o := range runs {
		if o.Unfixed == "" && o.After == 0 {
			return "not run"
		}
	}
	return fixedText(runs)
}

// Summary says how many runs passed, what was wrong in the others, and how far the costs are off.
func Summary(all []Outcome) string {
	var b strings.Builder
	n, passed := 0, 0
	for _, o := range all {
		if o.Skipped == "" {
			n, passed = n+1, passed+one(o.Passed)
		}
	}
	fmt.Fprintf(&b, "%d of %d runs passed.", passed, n)
	if half, costs := HalfOff(all); costs > 0 {
		fmt.Fprintf(&b, " The median of %d costs is off by %.0f %%.", costs, 100*half)
	}
	b.WriteString("\n")
	first := true
	for _, o := range all {
		if !o.Passed && o.Skipped == "" {
			if first {
				b.WriteString("\n")
				first = false
			}
			fmt.Fprintf(&b, "- `%s`: %s\n", o.Case, strings.Join(strings.Fields(o.Why), " "))
		}
	}
	return b.String()
}

// Into replaces the table of a document.
func Into(document, table string) (string, error) {
	head, rest, begins := strings.Cut(document, tableBegin)
	_, tail, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", input.Errorf("--into", "a document with these two lines", "it has no place for the table: %s and %s",
			strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	return head + tableBegin + table + tableEnd + tail, nil
}
