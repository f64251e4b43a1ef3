// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corelane/corelane/internal/api/apitest"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// result is what one command line did.
type result struct {
	stdout, stderr string
	code           int
}

func TestMain(m *testing.M) {
	time.Local = time.UTC // captures print local time
	os.Exit(m.Run())
}

func run(s *apitest.Server, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	c := New(&out, &errs, Dial)
	c.stdin = strings.NewReader(stdin)
	code := c.Run(context.Background(), append([]string{"--socket", s.Socket}, args...))
	return result{out.String(), errs.String(), code}
}

// TestScripts runs the command lines of testdata/*.txt, each file against a daemon of its own with the state of
// fixture(), and compares what follows each: standard output, standard error after "! ", the requests that the daemon
// got after "> ", an exit code that is not 0 in brackets.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := fixture(t)
	dir := t.TempDir()
	t.Setenv("DIR", dir)
	t.Setenv("CORELANE_AGENT_SOCKET", s.Socket)
	var got strings.Builder
	for _, line := range strings.Split(string(want), "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			fmt.Fprintln(&got, line)
		case strings.HasPrefix(line, "$ "):
			fmt.Fprintln(&got, line)
			got.WriteString(step(s, dir, line[2:]))
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != string(want) {
		t.Errorf("%s: %s\n(go test ./internal/cli -update, then look at the diff)", file,
			firstDifference(string(want), got.String()))
	}
}

func step(s *apitest.Server, dir, line string) string {
	s.Lock()
	before := len(s.Calls)
	s.Unlock()
	line, stdin, _ := strings.Cut(line, " <<< ")
	args := words(strings.ReplaceAll(line, "$DIR", dir))
	r := run(s, strings.Trim(strings.ReplaceAll(stdin, `\n`, "\n"), "'"), args[1:]...)
	var b strings.Builder
	b.WriteString(r.stdout)
	for _, l := range strings.SplitAfter(strings.TrimSuffix(r.stderr, "\n"), "\n") {
		if l != "" {
			fmt.Fprintf(&b, "! %s\n", strings.TrimSuffix(l, "\n"))
		}
	}
	s.Lock()
	for _, c := range s.Calls[before:] {
		fmt.Fprintf(&b, "> %s\n", c)
	}
	s.Unlock()
	if r.code != 0 {
		fmt.Fprintf(&b, "[%d]\n", r.code)
	}
	return strings.NewReplacer(s.Socket, "SOCKET", dir, "$DIR").Replace(b.String())
}

// words splits a command line; single quotes hold words together.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d:\nwant %s\ngot  %s", i+1, a, b)
		}
	}
	return "same"
}
