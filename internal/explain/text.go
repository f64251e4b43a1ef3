// SPDX-License-Identifier: Apache-2.0
package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/corelane/corelane/internal/table"
)

// WriteText writes the report as text. The first line alone is enough to act on.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Verdict)
	if len(r.Causes) > 0 {
		writeFix(&b, &r.Causes[0])
	}
	fmt.Fprintf(&b, "\n%.1f s of process %d%s\n", r.Seconds, r.Daemon,
		map[bool]string{false: ", without kernel events: the evidence is weaker"}[r.Tracing])
	minor := 0
	for i := range r.Causes {
		if r.Causes[i].Minor {
			minor++
			continue
		}
		writeCause(&b, i+1, &r.Causes[i])
	}
	for i := range r.Workers {
		writeWorker(&b, &r.Workers[i])
	}
	writeMinor(&b, r, minor)
	if len(r.Unobserved) > 0 {
		fmt.Fprintf(&b, "\nNot observed:\n")
		for _, u := range r.Unobserved {
			fmt.Fprintf(&b, "  %s\n", u)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFix(b *strings.Builder, c *Cause) {
	if c.FixNote != "" {
		fmt.Fprintf(b, "  %s\n", c.FixNote)
	}
	for line := range strings.Lines(c.Fix) {
		fmt.Fprintf(b, "  # %s\n", strings.TrimSpace(line))
	}
}

func writeCause(b *strings.Builder, n int, c *Cause) {
	fmt.Fprintf(b, "\n%d. %s [%s]\n", n, c.Title, c.Kind)
	if cost := c.Cost(); cost != "" {
		fmt.Fprintf(b, "   cost: %s\n", cost)
	}
	if c.Why != "" {
		fmt.Fprintf(b, "   why: %s\n", c.Why)
	}
	for _, f := range c.Evidence {
		fmt.Fprintf(b, "   %s: %s\n", f.Grade, f.Text)
	}
	if n > 1 {
		var fix strings.Builder
		writeFix(&fix, c)
		b.WriteString(strings.ReplaceAll("\n"+strings.TrimSuffix(fix.String(), "\n"), "\n", "\n ")[1:])
		b.WriteString("\n")
	}
}

func writeWorker(b *strings.Builder, w *WorkerReport) {
	m := &w.Model
	fmt.Fprintf(b, "\n%s, thread %d (%s) on CPU %d: %s\n", w.Label, w.TID, w.Thread, w.CPU, w.Verdict)
	if m.PerPacket <= 0 {
		return
	}
	t := table.New(b, []bool{false, true, true})
	row := func(name string, share, pps float64) { // writing to a strings.Builder cannot fail
		_ = t.Add("  "+name, fmt.Sprintf("%.1f%%", 100*share), fmt.Sprintf("%.0f", pps))
	}
	_ = t.Add("", "time", "packets/s")
	row(fmt.Sprintf("this core, at %.0f cycles per packet", m.PerPacket), 1, m.Expected)
	for _, p := range m.Shown() {
		row("- "+short(p.Name, 46), p.Share, p.PPS)
	}
	row("= delivered", m.Forwarding, m.Delivered)
	_ = t.Flush()
	fmt.Fprintf(b, "  %s\n", strings.ReplaceAll(TableNote, "\n", "\n  "))
}

// TableNote says what the table of a worker has beside each time.
const TableNote = "Each time is also given as the packets/s that the core could have processed meanwhile.\n" +
	"How many of them were lost is the cost of a cause, above."

const shownMinor = 6

func writeMinor(b *strings.Builder, r *Report, n int) {
	if n == 0 {
		return
	}
	fmt.Fprintf(b, "\nAlso seen, but too small to matter:\n")
	shown := 0
	for _, c := range r.Causes {
		if c.Minor && shown < shownMinor {
			fmt.Fprintf(b, "  %s: %s\n", c.Title, c.Evidence[0].Text)
			shown++
		}
	}
	if n > shown {
		fmt.Fprintf(b, "  and %d more; -o json lists them\n", n-shown)
	}
}
