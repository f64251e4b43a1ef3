// SPDX-License-Identifier: Apache-2.0
package router

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAbandoned(t *testing.T) {
	dir, proc := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "17"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{"corelane-bench-18-ovs1", "corelane-bench-18-router2"}
	for _, name := range append([]string{"corelane-bench-17-ovs1", "corelane-bench-x-ovs1", "corelane-lab-18", "red"}, want...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := abandoned(dir, proc); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestOutput(t *testing.T) {
	c := Command{Argv: []string{"sh", "-c", "read word; echo $word $WHAT; echo bad luck >&2; echo more >&2; exit $CODE"}, Env: []string{"WHAT=2", "CODE=0"}}
	if out, err := c.output(t.Context(), []byte("1\n")); err != nil || string(out) != "1 2\n" {
		t.Errorf("%q, %v", out, err)
	}
	c.Env[1] = "CODE=3"
	_, err := c.output(t.Context(), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 3: bad luck") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	c = Command{Argv: []string{"sleep", "60"}}
	gone := errors.New("nobody waits")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, gone)
	defer cancel()
	if _, err := c.output(ctx, nil); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	c = Command{Argv: []string{"true"}, Netns: "no-such-namespace"}
	if _, err := c.output(t.Context(), nil); err == nil {
		t.Error("in a namespace that does not exist")
	}
}
