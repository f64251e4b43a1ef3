// SPDX-License-Identifier: Apache-2.0
package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestOutput(t *testing.T) {
	c := Command{Argv: []string{"sh", "-c", "read word; echo $word $WHAT; echo bad luck >&2; echo more >&2; exit " +
		"$CODE"}, Env: []string{"WHAT=2", "CODE=0"}}
	if out, err := c.Output(t.Context(), []byte("1\n")); err != nil || out != "1 2\n" {
		t.Errorf("%q, %v", out, err)
	}
	c.Env[1] = "CODE=3"
	out, err := c.Output(t.Context(), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "exit status 3: bad luck") ||
		strings.Contains(err.Error(), "\n") || out != "2\n" {
		t.Errorf("%q, %v", out, err)
	}
	c = Command{Argv: []string{"sleep", "60"}}
	gone := errors.New("nobody waits")
	// timed: it is to expire
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, gone)
	defer cancel()
	if _, err := c.Output(ctx, nil); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
	c = Command{Argv: []string{"true"}, Netns: "no-such-namespace"}
	if _, err := c.Output(t.Context(), nil); err == nil {
		t.Error("in a namespace that does not exist")
	}
}
