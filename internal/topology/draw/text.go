// SPDX-License-Identifier: Apache-2.0
package draw

import (
	"fmt"
	"strings"

	"github.com/corelane/corelane/internal/cpuset"
	"github.com/corelane/corelane/internal/topology"
)

// Text draws a map for a terminal with a number of columns. Siblings are in brackets, whose kind shows the speed of the
// core, and each line is one cache.
func Text(m *topology.Machine, marks Marks, width int, color bool) string {
	d := &textMap{marks: marks, digits: len(fmt.Sprint(m.LastCPU())), width: width, color: color}
	for _, n := range layout(m) {
		d.out.WriteString(n.title + "\n")
		for _, c := range n.caches {
			d.cache(c)
		}
	}
	d.out.WriteString("\n")
	d.legend()
	for _, line := range speeds(m) {
		d.out.WriteString(line + "\n")
	}
	return d.out.String()
}

type textMap struct {
	out    strings.Builder
	marks  Marks
	digits int // number of digits of the highest id
	width  int
	color  bool
}

const indent = "  "

// cache draws as many cores in a line as fit.
func (d *textMap) cache(c cache) {
	most := 1
	for _, k := range c.cores {
		most = max(most, len(k.cpus))
	}
	wide := most*(d.digits+2) + 2 // "[ 1F 21F] "
	line := max((d.width-len(indent)+1)/wide, 1)
	for i, k := range c.cores {
		if i%line == 0 {
			d.out.WriteString(indent)
		}
		d.core(k, most)
		if i%line == line-1 || i == len(c.cores)-1 {
			d.out.WriteString("\n")
		} else {
			d.out.WriteString(" ")
		}
	}
}

func (d *textMap) core(k core, most int) {
	frame := bracketsOf(k.speed)
	d.out.WriteString(frame[:1])
	for i, id := range k.cpus {
		if i > 0 {
			d.out.WriteString(" ")
		}
		d.out.WriteString(d.paint(d.marks[id], fmt.Sprintf("%*s", d.digits+1, cell(id, d.marks))))
	}
	d.out.WriteString(strings.Repeat(" ", (most-len(k.cpus))*(d.digits+2)) + frame[1:])
}

// cell returns a CPU of the map: 12F.
func cell(id int, marks Marks) string { return fmt.Sprintf("%d%c", id, marks[id].Letter) }

func (d *textMap) paint(m Mark, text string) string {
	if !d.color {
		return text
	}
	return fmt.Sprintf("\x1b[48;5;%dm\x1b[30m%s\x1b[0m", m.ansi, text)
}

// legend explains the letters and lists the CPUs of each.
func (d *textMap) legend() {
	for _, mark := range legend {
		if set := d.marks.with(mark); !set.Empty() {
			fmt.Fprintf(&d.out, "%s %s: %s (%s)\n", d.paint(mark, string(mark.Letter)), mark.Name, set,
				count(set.Len(), "CPU"))
		}
	}
}

// with returns the CPUs that have a mark.
func (marks Marks) with(mark Mark) cpuset.Set {
	var ids []int
	for id, m := range marks {
		if m == mark {
			ids = append(ids, id)
		}
	}
	return cpuset.Of(ids...)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
