// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/state"
)

// routesShown is how many routes of a batch get a line of their own while they are applied.
const routesShown = 8

func newApplyCmd(a *app) *cobra.Command {
	var file string
	var dryRun bool
	cmd := verb("apply", "Make the node match a file",
		`  corelane apply -f node.yaml --dry-run
  corelane apply -f node.yaml
  corelane export | ssh other corelane apply -f -`,
		func(ctx context.Context, _ []string) error { return a.apply(ctx, file, dryRun) })
	cmd.Long = `Compare a file with the running node and apply the difference, in an order in which each step is
possible. Applying a file again does nothing. Objects that the daemon makes by itself stay: connected and guest
routes, learnt addresses. All other objects that the file does not have are deleted, but workers only if it has a list
of workers.

apply is one transaction. If the daemon refuses a step, or apply is interrupted or hung up on, it takes back what it has
done and ends with an error; a second interrupt ends it at once. The error says which step it was and why, and that the
router is as it was before, or what could not be taken back (exit code 3). A port, rule or other object that had to be
deleted and added again has lost its counters, its connections and what it had learnt.

The output has one object per line: + added, ~ changed, - deleted. The format of the file: docs/node-yaml.md;
corelane export writes it from a running node.`
	cmd.Flags().StringVarP(&file, "file", "f", "", "the file, or - for standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the difference and change nothing")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json")
	return cmd
}

func (a *app) loadState(file string) (*state.State, error) {
	const valid = "a file, or - for standard input"
	if file == "" {
		return nil, input.Errorf("--file", valid, "missing")
	}
	name, in := file, a.stdin
	if file == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(file)
		if err != nil {
			return nil, input.Errorf("--file", valid, "%v", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, input.Errorf("--file", valid, "%v", err)
	}
	return state.Load(name, text)
}

func (a *app) apply(ctx context.Context, file string, dryRun bool) error {
	want, err := a.loadState(file)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	have, err := state.Read(ctx, c)
	if err != nil {
		return err
	}
	for _, p := range want.Ports {
		a.warnUnchecked(p)
	}
	ops := state.Diff(want, have)
	if dryRun {
		return a.showPlan(ops)
	}
	return a.carryOut(ctx, c, have, ops)
}

func (a *app) showPlan(ops []state.Op) error {
	return buffered(a.stdout, func(w *bufio.Writer) error {
		if a.json() {
			return planJSON(w, ops)
		}
		if err := state.Print(w, ops); err != nil {
			return err
		}
		count := state.CountOps(ops)
		if len(ops) == 0 {
			_, err := fmt.Fprintln(w, "No difference.")
			return err
		}
		_, err := fmt.Fprintf(w, "%d to add, %d to change, %d to delete.\n", count.Add, count.Set, count.Del)
		return err
	})
}

func (a *app) carryOut(ctx context.Context, c *api.Client, before *state.State, ops []state.Op) error {
	begun := time.Now()
	ctx, done := untilHangup(ctx)
	defer done()
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintln(a.stderr, "Interrupted: what is done is taken back. Again: it stays as it is.")
	})()
	made, err := state.ApplyWhole(ctx, c, before, ops, a.reportSteps())
	if err != nil {
		return err
	}
	switch {
	case a.json():
		return json.NewEncoder(a.stdout).Encode(map[string]any{"added": made.Add, "changed": made.Set,
			"deleted": made.Del, "seconds": time.Since(begun).Seconds()})
	case len(ops) == 0:
		fmt.Fprintln(a.stdout, "No difference.")
	default:
		fmt.Fprintf(a.stdout, "%v.\n", made)
	}
	return nil
}

// reportSteps returns a function that shows each step of the way, and then of the way back.
func (a *app) reportSteps() func(op state.Op, back bool) {
	wasBack := false
	return func(op state.Op, back bool) {
		if a.json() {
			return
		}
		if back && !wasBack {
			fmt.Fprintln(a.stdout, "Taken back:")
		}
		wasBack = back
		if op.Objects() > routesShown {
			fmt.Fprintln(a.stdout, op)
		} else {
			_ = state.Print(a.stdout, []state.Op{op})
		}
	}
}

// planLine is one object of a plan in JSON.
type planLine struct {
	Verb   string          `json:"verb"` // add, set, del
	Noun   string          `json:"noun"`
	Key    string          `json:"key,omitempty"`
	Fields []string        `json:"fields,omitempty"`
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
	Why    string          `json:"why,omitempty"`
}

var verbNames = map[state.Verb]string{state.Add: "add", state.Set: "set", state.Del: "del"}

func planJSON(w io.Writer, ops []state.Op) error {
	enc := json.NewEncoder(w)
	for _, op := range ops {
		for _, line := range op.Lines() {
			before, err := rawJSON(line.Old)
			if err != nil {
				return err
			}
			after, err := rawJSON(line.New)
			if err != nil {
				return err
			}
			err = enc.Encode(planLine{verbNames[op.Verb], op.Noun, line.Key, op.Fields, before, after, op.Why})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func rawJSON(m proto.Message) (json.RawMessage, error) {
	if m == nil {
		return nil, nil
	}
	return api.JSON(m, false)
}
