// SPDX-License-Identifier: Apache-2.0
package result

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/corelane/corelane/internal/table"
)

// Print writes the comparison: the two results, a table of rates with verdicts, a table of single figures, and
// warnings.
func (c *Comparison) Print(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "a: %s\nb: %s\n", c.A, c.B)
	for _, warning := range c.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", warning)
	}
	out.WriteString("\n" + table.Text(rateRows(c.Lines)))
	if rows := singleRows(c.Lines); len(rows) > 1 {
		out.WriteString("\nSingle figures, measured once, so without an interval:\n" + table.Text(rows))
	}
	out.WriteString("\n" + c.explain())
	_, err := io.WriteString(w, out.String())
	return err
}

func rateRows(lines []Line) [][]string {
	rows := [][]string{append(slices.Clone(keyHeads), "A MPPS", "B MPPS", "A/CEILING", "B/CEILING", "B/A",
		"95% INTERVAL", "WINDOWS", "VERDICT")}
	for _, l := range lines {
		interval := "-"
		if l.High > 0 {
			interval = fixed(l.Low) + " to " + fixed(l.High)
		}
		rows = append(rows, append(l.cells(), Digits(l.A/1e6), Digits(l.B/1e6), fixed(l.CeilA), fixed(l.CeilB),
			fixed(l.Ratio), interval, l.Windows, l.Verdict))
	}
	return rows
}

var keyHeads = []string{"SCENARIO", "ROUTER", "FLOWS", "ROUTES", "BYTES", "WORKERS"}

func (k Key) cells() []string {
	return []string{k.Scenario, k.Router, strconv.Itoa(k.Flows), strconv.Itoa(k.Routes), k.Sizes,
		strconv.Itoa(k.Workers)}
}

func singleRows(lines []Line) [][]string {
	rows := [][]string{append(slices.Clone(keyHeads), "FIGURE", "A", "B", "UNIT", "B/A")}
	for _, l := range lines {
		for _, s := range l.Singles {
			rows = append(rows, append(l.cells(), s.Name, Digits(s.A), Digits(s.B), s.Unit, fixed(s.Ratio())))
		}
	}
	return rows
}

// explain says what the columns mean and which runs were not compared.
func (c *Comparison) explain() string {
	text := "MPPS are frames received per second at saturation, the median of the windows. B/A is of the geometric " +
		"means of the repetitions' medians.\n"
	if slices.ContainsFunc(c.Lines, func(l Line) bool { return l.CeilA > 0 }) {
		text += "Where the ceiling (" + Ceiling +
			") was measured in both, B/A and verdict are of the ratio to it: machines drift from run to run.\n" +
			"The ceiling's own line shows that drift.\n"
	}
	text += fmt.Sprintf("WINDOWS near: with a round trip between the CPUs below %.1f times the best; "+
		"all: one of the results has too few of these.\n", nearFactor)
	for _, l := range c.Lines {
		if l.Why != "" {
			text += fmt.Sprintf("%s: %s: %s\n", l.Key, l.Verdict, l.Why)
		}
	}
	for _, m := range c.Missing {
		text += "not compared: " + m + "\n"
	}
	return text + "\n" + c.Sentence() + "\n"
}

// Sentence sums up the verdicts.
func (c *Comparison) Sentence() string {
	count := map[string]int{}
	for _, l := range c.Lines {
		count[l.Verdict]++
	}
	if count[Faster]+count[Slower] == 0 {
		return fmt.Sprintf("%s compared: no difference that is more than noise.", plural(len(c.Lines), "run"))
	}
	return fmt.Sprintf("%s compared: b is %s in %d, %s in %d, the rest (%d) is noise.", plural(len(c.Lines), "run"),
		Faster, count[Faster], Slower, count[Slower], count[Noise])
}
