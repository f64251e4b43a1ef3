// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestFolded(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a short line", "Add a port.", "Add a port.\n"},
		{"a paragraph", "Add a port to the router that this command talks to",
			"Add a port to the router that\nthis command talks to\n"},
		{"a flag", "  -o   table or json, one of the two ways",
			"  -o   table or json, one of\n       the two ways\n"},
		{"a flag with a long name", "  --mode run_to_completion|hybrid  which worker finishes a packet",
			"  --mode\n          run_to_completion|hybrid\n          which worker finishes\n          a packet\n"},
		{"an example", "Examples:\n  corelane port add vm1 tenant tap --vrf red\n\nFlags:",
			"Examples:\n  corelane port add vm1 \\\n      tenant tap --vrf red\n\nFlags:\n"},
		{"a long word", "  http://192.0.2.1/a/very/long/address/of/a/page x",
			"  http://192.0.2.1/a/very/long/address/of/a/page\n  x\n"},
	} {
		if got := folded(c.text, 31); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// The help of each command fits 80 columns, but for words that are longer, and folding loses none of its words.
func TestHelpFits(t *testing.T) {
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	root := a.root()
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		var b bytes.Buffer
		cmd.SetOut(&b)
		if err := cmd.Help(); err != nil {
			t.Error(err)
		}
		text := folded(b.String(), 80)
		if wordsOf(text) != wordsOf(b.String()) {
			t.Errorf("%s: other words:\n%s", cmd.CommandPath(), text)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if len([]rune(line)) > 80 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), len([]rune(line)), line)
			}
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(root)
}

// wordsOf leaves out line breaks, also those within a command.
func wordsOf(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, " \\\n", "\n")), " ")
}
