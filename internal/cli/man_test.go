// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corelane/corelane/internal/state"
)

// A manual page has the texts of its command, word for word.
func TestManualPagesHaveTheWholeText(t *testing.T) {
	dir := t.TempDir()
	writer := (&app{}).root()
	writer.SetArgs([]string{"man", dir})
	if err := writer.Execute(); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			check(sub)
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return // a hidden command
		}
		checked++
		text := wordsOfRoff(string(page))
		has := func(what, want string) {
			if want = strings.Join(strings.Fields(want), " "); !strings.Contains(text, want) {
				t.Errorf("%s: %s is not in the page: %s", name, what, want)
			}
		}
		has("the summary", c.Short)
		has("the description", c.Long)
		for _, flags := range []*pflag.FlagSet{c.NonInheritedFlags(), c.InheritedFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { has("--"+f.Name, f.Usage) })
		}
	}
	check((&app{}).root())
	if checked < 100 {
		t.Errorf("only %d pages were found", checked)
	}
}

// The page of the node file has each field of the schema that the file is checked with, and what is valid for it.
func TestManualOfTheNodeFile(t *testing.T) {
	page, err := nodeManual((&app{}).root())
	if err != nil {
		t.Fatal(err)
	}
	text := wordsOfRoff(string(page))
	for _, want := range []string{
		"mtu 576 to 9600, default 1500 largest IP packet; 576 to 9600 bytes, default 1500",
		"Exactly one of these is given: port, tunnel, group, discard, local, reject.",
		"id 1 to 1048575, required",
		"buffer_size 128 to 32768, a multiple of 64, default 2048",
		"mode one of run_to_completion, hybrid, auto",
		"ports list of PORT", "settings SETTINGS", "tap TAPDEVICE",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("'%s' is not in the page", want)
		}
	}
	schema, err := state.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var s nodeSchema
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	for name, def := range s.Defs {
		_, section, found := strings.Cut(string(page), "\n.SH "+strings.ToUpper(name)+"\n")
		if section, _, _ = strings.Cut(section, "\n.SH "); !found && len(def.Properties) > 0 {
			t.Errorf("%s has no section", name)
		}
		for field := range def.Properties {
			if !strings.Contains(section, "\\fB"+field+"\\fP\n") {
				t.Errorf("%s.%s is not in the page", name, field)
			}
		}
	}
}

// wordsOfRoff returns the words of a page that man shows.
func wordsOfRoff(page string) string {
	var words []string
	for _, line := range strings.Split(page, "\n") {
		if !strings.HasPrefix(line, ".") {
			line = strings.NewReplacer(`\-`, "-", `\&`, "", `\e`, `\`, `\(aq`, "'", `\fB`, "", `\fI`, "", `\fP`, "",
				`\fR`, "").Replace(line)
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.Join(words, " ")
}
