// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	// Two string literals of C that only white space separates are one.
	adjacentLiterals = regexp.MustCompile(`"[ \t]*\n[ \t]*"`)
	// Two string literals of Go that are added, across lines or not, are one.
	joinedLiterals = regexp.MustCompile(`" \+\s*"`)
	// A command between back quotes, as drop reasons, events, errors, help texts and inline code of Markdown have it.
	backQuoted = regexp.MustCompile("`(?:sudo )?(?:bin/)?(corelane [^`\n]*)`")
	// A command between single quotes, as errors and help texts of Go have it.
	singleQuoted = regexp.MustCompile(`'(?:sudo )?(?:bin/)?(corelane [a-z-][^'\n]*)'`)
	// A command at the end of a text, behind a colon: "measure it here: corelane lab intrude".
	afterColon = regexp.MustCompile(`: (?:sudo )?(corelane [a-z]+(?: [a-z-]+)*)[".;]`)
	// A Go literal in which the whole text is a command: the remedies of explain and verify.
	wholeLiteral = regexp.MustCompile(`"(?:sudo )?(corelane [a-z][^"\n]*)"`)
	// A line of a code block of Markdown.
	blockLine    = regexp.MustCompile(`^\s*(?:\$ |# )?(?:sudo )?(?:[A-Z_]+=\S+ )*(?:bin/)?(corelane [a-z-].*)$`)
	endOfCommand = regexp.MustCompile(`\s+(?:[|>]|&&|#).*$|;.*$`)
	commandWord  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// quotedCommands returns the commands that a file of the repository quotes.
func quotedCommands(path, text string) []string {
	var found []string
	add := func(matches [][]string) {
		for _, m := range matches {
			found = append(found, strings.TrimSpace(endOfCommand.ReplaceAllString(m[1], "")))
		}
	}
	switch filepath.Ext(path) {
	case ".c", ".h":
		text = adjacentLiterals.ReplaceAllString(text, "")
		add(backQuoted.FindAllStringSubmatch(text, -1))
		add(singleQuoted.FindAllStringSubmatch(text, -1))
	case ".go":
		text = strings.ReplaceAll(text, "` + \"`\" + `", "`") // a back quote inside a raw string
		text = joinedLiterals.ReplaceAllString(text, "")
		add(backQuoted.FindAllStringSubmatch(text, -1))
		add(singleQuoted.FindAllStringSubmatch(text, -1))
		add(afterColon.FindAllStringSubmatch(text, -1))
		if !strings.HasPrefix(path, "internal/bench/") { // there the name also begins sentences and lists of routers
			// a literal of several lines has a command on each
			add(wholeLiteral.FindAllStringSubmatch(strings.ReplaceAll(text, `\n`, `"+"`), -1))
		}
	case ".md":
		block, lines := false, strings.Split(text, "\n")
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				block = !block
			} else if block {
				add(blockLine.FindAllStringSubmatch(line, -1))
			} else if strings.Count(line, "`")%2 == 1 && continues(lines[i+1:]) {
				lines[i+1] = line + " " + strings.TrimSpace(lines[i+1])
			} else {
				add(backQuoted.FindAllStringSubmatch(line, -1))
			}
		}
	default:
		add(backQuoted.FindAllStringSubmatch(text, -1))
	}
	return found
}

// continues says whether the next line is of the same paragraph, in which a quote may end.
func continues(next []string) bool {
	return len(next) > 0 && strings.TrimSpace(next[0]) != "" && !strings.HasPrefix(strings.TrimSpace(next[0]), "```")
}

// checkQuoted looks whether the command and each of its flags exist. Values and placeholders are not looked at.
func checkQuoted(root *cobra.Command, line string) error {
	cmd, rest := root, strings.Fields(line)[1:]
	for len(rest) > 0 {
		next := subCommand(cmd, rest[0])
		if next == nil {
			break
		}
		cmd, rest = next, rest[1:]
	}
	if len(rest) > 0 && cmd.HasSubCommands() && commandWord.MatchString(rest[0]) {
		return fmt.Errorf("%q has no command %q", cmd.CommandPath(), rest[0])
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	for _, word := range rest {
		if word == "--" {
			break
		}
		name, isFlag := strings.CutPrefix(strings.Trim(word, "[]()"), "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && commandWord.MatchString(name) && cmd.Flag(name) == nil &&
			cmd.InheritedFlags().Lookup(name) == nil {
			return fmt.Errorf("%q has no flag --%s", cmd.CommandPath(), name)
		}
	}
	return nil
}

func subCommand(parent *cobra.Command, word string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == word || c.HasAlias(word) {
			return c
		}
	}
	return nil
}

// Commands that drop reasons, events, errors, help texts and documents quote exist, with their flags.
func TestQuotedCommandsExist(t *testing.T) {
	const top = "../.."
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", top, "ls-files", "--", "*.c", "*.h", "*.go", "*.md",
		"*.sh", "*.proto", "*.service", "Makefile", "packaging").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := (&app{}).root()
	checked := 0
	for _, path := range strings.Fields(string(out)) {
		if strings.HasSuffix(path, "quoted_test.go") || strings.Contains(path, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, path))
		if os.IsNotExist(err) { // deleted, not yet committed
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for _, line := range quotedCommands(path, string(text)) {
			checked++
			if err := checkQuoted(root, line); err != nil {
				t.Errorf("%s: `%s`: %v", path, line, err)
			}
		}
	}
	if checked < 200 {
		t.Errorf("only %d quoted commands were found: the search is broken", checked)
	}
}

func TestQuotedCommandsAreFound(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"a.c", "DROP_REASON(x, \"See \"\n\t\t\"`corelane port \"\n\t\t\"list`.\");", "corelane port list"},
		{"a.go", "x := \"sudo corelane cores verify --plan %s\"", "corelane cores verify --plan %s"},
		{"a.go", "x := \"run 'corelane cores apply --plan x' first\"", "corelane cores apply --plan x"},
		{"a.go", "x := \"run 'corelane cores \" +\n\t\"apply' first\"", "corelane cores apply"},
		{"a.go", `x := "corelane port list\ncorelane drops"`, "corelane port list+corelane drops"},
		{"a.go", "x := \"measure it here: corelane lab intrude\"", "corelane lab intrude"},
		{"a.md", "```\nsudo corelane explain | less\n```", "corelane explain"},
		{"a.md", "Try `corelane drops --all` first.", "corelane drops --all"},
		{"a.md", "Try `x` and `corelane\n  drops --all`, or `corelane port\nlist`.", "corelane drops --all+corelane port list"},
	} {
		if got := strings.Join(quotedCommands(c.path, c.text), "+"); got != c.want {
			t.Errorf("%s: found %q in %q", c.path, got, c.text)
		}
	}
	root := (&app{}).root()
	for _, line := range []string{"corelane settings set --no-such", "corelane prot list", "corelane port lst"} {
		if checkQuoted(root, line) == nil {
			t.Errorf("%q passes", line)
		}
	}
}
