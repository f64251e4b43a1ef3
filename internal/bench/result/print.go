// SPDX-License-Identifier: Apache-2.0
package result

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Print the comparison: what is compared, a table of the rates with verdicts, a table of single figures, warnings.
func (c *Comparison) Print(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "a: %s\nb: %s\n", c.A, c.B)
	for _, warning := range c.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", warning)
	}
	out.WriteString("\n" + table(rateRows(c.Lines)))
	if rows := singleRows(c.Lines); len(rows) > 1 {
		out.WriteString("\nSingle figures, measured once, so without an interval:\n" + table(rows))
	}
	out.WriteString("\n" + c.explain())
	_, err := io.WriteString(w, out.String())
	return err
}

func rateRows(lines []Line) [][]string {
	rows := [][]string{{"SCENARIO", "ROUTER", "FLOWS", "ROUTES", "BYTES", "WORKERS", "A MPPS", "B MPPS", "A/CEILING", "B/CEILING", "B/A", "95% LOW",
		"95% HIGH", "VERDICT", "", "WINDOWS"}}
	for _, l := range lines {
		why := ""
		if l.Why != "" {
			why = "(" + l.Why + ")"
		}
		rows = append(rows, []string{l.Scenario, l.Router, strconv.Itoa(l.Flows), strconv.Itoa(l.Routes), l.Sizes, strconv.Itoa(l.Workers),
			Digits(l.A / 1e6), Digits(l.B / 1e6), fixed(l.CeilA), fixed(l.CeilB), fixed(l.Ratio), fixed(l.Low), fixed(l.High), l.Verdict, why, l.Windows})
	}
	return rows
}

func singleRows(lines []Line) [][]string {
	rows := [][]string{{"SCENARIO", "ROUTER", "FIGURE", "FLOWS", "ROUTES", "BYTES", "WORKERS", "A", "B", "UNIT", "B/A"}}
	for _, l := range lines {
		for _, s := range l.Singles {
			rows = append(rows, []string{l.Scenario, l.Router, s.Name, strconv.Itoa(l.Flows), strconv.Itoa(l.Routes), l.Sizes, strconv.Itoa(l.Workers),
				Digits(s.A), Digits(s.B), s.Unit, fixed(s.Ratio())})
		}
	}
	return rows
}

// explain what the columns and the verdicts mean, and what was left out.
func (c *Comparison) explain() string {
	count := map[string]int{}
	for _, l := range c.Lines {
		count[l.Verdict]++
	}
	text := fmt.Sprintf("%s compared: %d %s, %d %s, %d %s.\n", plural(len(c.Lines), "run"), count[Faster], Faster, count[Slower], Slower, count[Noise], Noise)
	text += "B/A and verdict: of the frames received per second at saturation (median of the windows).\n"
	if c.Ceiling {
		text += "Where the ceiling (" + Ceiling + ") was measured in both, B/A and verdict are of the ratio to it, as machines drift between runs;\n" +
			"the ceiling's own line shows that drift.\n"
	}
	for _, m := range c.Missing {
		text += "not compared: " + m + "\n"
	}
	return text
}
