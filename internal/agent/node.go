// SPDX-License-Identifier: Apache-2.0
package agent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/guard"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/state"
)

// node applies the node file once to each data plane that starts. What an operator changes afterwards stays, also when
// the agent is restarted: record names the data plane that has the file already. A data plane that has brought its
// state back by itself has the file too, with what was changed afterwards, unless the file is another one now.
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
	same, restored := n.has(status)
	if restored {
		if err := n.remember(status); err != nil {
			return event(guard.Failed, "", "node file: %v", err)
		}
	}
	if same || restored {
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

// has tells whether the file was applied to this very process, or to one whose whole state this one has brought back.
func (n node) has(s *apiv1.Status) (same, restored bool) {
	text, err := os.ReadFile(n.record)
	if err != nil || s.StartedNs == 0 {
		return false, false
	}
	started, file, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	same = started == instance(s)
	whole := s.Kept.GetRestored() > 0 && s.Kept.GetRefused() == 0
	return same, !same && whole && file != "" && file == n.digest()
}

// digest is empty if the file cannot be read.
func (n node) digest() string {
	text, err := os.ReadFile(n.file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func (n node) remember(s *apiv1.Status) error {
	if err := os.MkdirAll(filepath.Dir(n.record), 0o700); err != nil {
		return err
	}
	return os.WriteFile(n.record, []byte(instance(s)+"\n"+n.digest()+"\n"), 0o600)
}

func instance(s *apiv1.Status) string { return strconv.FormatUint(s.StartedNs, 10) }
