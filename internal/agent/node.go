// SPDX-License-Identifier: Apache-2.0
package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/guard"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/state"
)

// node applies the node file once to each data plane that starts. What an operator changes afterwards stays, also when
// the agent is restarted: record names the data plane that has the file already.
type node struct{ file, record string }

func (n node) load() (*state.State, error) {
	text, err := os.ReadFile(n.file)
	if err != nil {
		return nil, input.Errorf("--node-file", "a file of docs/node-yaml.md", "%v", err)
	}
	return state.Load(n.file, text)
}

// restore returns what is worth a report, if anything.
func (n node) restore(ctx context.Context, c *api.Client) *guard.Event {
	event := func(kind guard.Kind, fix, format string, args ...any) *guard.Event {
		return &guard.Event{Time: time.Now(), Kind: kind, Text: fmt.Sprintf(format, args...), Fix: fix}
	}
	want, err := n.load() // as it is now: it may have been edited since the agent started
	if err != nil {
		return event(guard.Failed, "", "node file: %v", err)
	}
	status, err := api.Call(ctx, c, apiv1.NewSystemClient, apiv1.SystemService.GetStatus, &apiv1.Empty{})
	if err != nil {
		return event(guard.Failed, "", "the data plane's status: %v", err)
	}
	have, err := state.Read(ctx, c)
	if err != nil {
		return event(guard.Failed, "", "the data plane's state: %v", err)
	}
	ops := state.Diff(want, have)
	if n.has(status) {
		if len(ops) == 0 {
			return nil
		}
		return event(guard.Notice, "corelane apply -f "+n.file+" (--dry-run shows the steps)",
			"the data plane was changed after the node file was applied, and keeps these changes; to apply the "+
				"file again would be: %v", state.CountOps(ops))
	}
	done, err := state.Apply(ctx, c, ops, nil)
	if err == nil {
		err = n.remember(status)
	}
	switch {
	case err != nil:
		return event(guard.Failed, "", "node file: %v", err)
	case len(ops) == 0:
		return nil
	}
	return event(guard.Repaired, "", "the data plane matches the node file again: %v", done)
}

// has tells whether the file was applied to this very process.
func (n node) has(s *apiv1.Status) bool {
	text, err := os.ReadFile(n.record)
	return err == nil && s.StartedNs != 0 && string(text) == instance(s)
}

func (n node) remember(s *apiv1.Status) error {
	if err := os.MkdirAll(filepath.Dir(n.record), 0o700); err != nil {
		return err
	}
	return os.WriteFile(n.record, []byte(instance(s)), 0o600)
}

func instance(s *apiv1.Status) string { return strconv.FormatUint(s.StartedNs, 10) + "\n" }
