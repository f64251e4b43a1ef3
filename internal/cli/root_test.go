// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestNoDaemon(t *testing.T) {
	var out, errs bytes.Buffer
	code := New(&out, &errs, Dial).Run(context.Background(), []string{"--socket", "/does/not/exist", "port", "list"})
	want := "corelaned does not answer on /does/not/exist: is it running? Another socket: --socket or CORELANE_SOCKET\n"
	if code != 2 || errs.String() != want || out.Len() != 0 {
		t.Errorf("%d %q %q", code, errs.String(), out.String())
	}
}

func TestSocketFromEnvironment(t *testing.T) {
	s := fixture(t)
	t.Setenv("CORELANE_SOCKET", s.Socket)
	var out, errs bytes.Buffer
	if code := New(&out, &errs, Dial).Run(context.Background(), []string{"vrf", "list"}); code != 0 {
		t.Error(code, errs.String())
	}
}

// walk calls f for each command that people see.
func walk(cmd *cobra.Command, f func(*cobra.Command)) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			f(c)
			walk(c, f)
		}
	}
}

// Every command has a one-line description, and each that can run has an example of its own use.
func TestHelp(t *testing.T) {
	a := &app{}
	root := a.root()
	walk(root, func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short description %q", c.CommandPath(), c.Short)
		}
		if c.HasSubCommands() {
			return
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: example %q", c.CommandPath(), c.Example)
		}
		for _, line := range strings.Split(c.Example, "\n") {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: example line %q", c.CommandPath(), line)
			}
		}
	})
}

// The examples are command lines that parse: their flags exist, and the number of their arguments is right.
func TestExamples(t *testing.T) {
	walk((&app{}).root(), func(c *cobra.Command) {
		for _, line := range strings.Split(c.Example, "\n") {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "corelane ") || strings.HasPrefix(line, "corelane completion") {
				continue
			}
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " > ")
			root := (&app{}).root()
			cmd, args, err := root.Traverse(words(strings.ReplaceAll(line, `""`, "''"))[1:])
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	})
}

func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if r := run(fixture(t), "", "man", dir); r.code != 0 {
		t.Fatal(r)
	}
	walk((&app{}).root(), func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.HasPrefix(page, []byte(".nh\n.TH ")) || !bytes.Contains(page, []byte(".SH SYNOPSIS")) {
			t.Errorf("%s: %v, %.60s", name, err, page)
		}
	})
}

// The completion scripts are accepted by the shells that are installed.
func TestCompletionScripts(t *testing.T) {
	s := fixture(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		r := run(s, "", "completion", shell)
		if r.code != 0 || !strings.Contains(r.stdout, "corelane") {
			t.Errorf("%s: %d, %s", shell, r.code, r.stderr)
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		cmd := exec.Command(shell, "-n")
		cmd.Stdin = strings.NewReader(r.stdout)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v %s", shell, err, out)
		}
	}
}
