// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// foldHelp folds the help of all commands to the width of the terminal. Elsewhere it stays as it is, so that programs
// find a flag and its description in one line.
func (a *app) foldHelp(root *cobra.Command) {
	print := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		width := a.tableWidth()
		if width == 0 {
			print(cmd, args)
			return
		}
		var b bytes.Buffer
		cmd.SetOut(&b)
		print(cmd, args)
		cmd.SetOut(a.stdout)
		_, _ = io.WriteString(a.stdout, folded(b.String(), width))
	})
}

const (
	leastText = 24 // columns of a description; with fewer it continues at newIndent
	newIndent = 10
	continued = "      "
)

// folded breaks the lines of a help text that are longer than width.
func folded(text string, width int) string {
	var b strings.Builder
	examples := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line[0] != ' ' {
			examples = line == "Examples:"
		}
		switch {
		case len([]rune(line)) <= width:
			b.WriteString(line + "\n")
		case examples:
			foldWords(&b, line, continued, " \\", width)
		default:
			foldWords(&b, line, hangingOf(line, width), "", width)
		}
	}
	return b.String()
}

// hangingOf returns what the further lines of a line begin with: blanks up to its description, if it has one after two
// or more blanks, or as many as the line itself begins with.
func hangingOf(line string, width int) string {
	text := strings.TrimLeft(line, " ")
	first := len(line) - len(text)
	gap := strings.Index(text, "  ")
	if first == 0 || gap < 0 {
		return line[:first]
	}
	column := len(line) - len(strings.TrimLeft(text[gap:], " "))
	if column > width-leastText {
		column = newIndent
	}
	return strings.Repeat(" ", column)
}

// foldWords writes a line in parts of at most width columns. All but the first begin with hanging, and all but the last
// end with more. A word that is longer stays whole.
func foldWords(b *strings.Builder, line, hanging, more string, width int) {
	for len([]rune(line)) > width {
		at := -1
		begun := len(line) - len(strings.TrimLeft(line, " "))
		for i := range line {
			if i > begun && line[i] == ' ' && line[i-1] != ' ' && (len([]rune(line[:i]))+len(more) <= width || at < 0) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		b.WriteString(line[:at] + more + "\n")
		if line = strings.TrimLeft(line[at:], " "); line == "" {
			return
		}
		line = hanging + line
	}
	b.WriteString(line + "\n")
}
