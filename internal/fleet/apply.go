// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"fmt"
	"maps"

	"github.com/corelane/corelane/internal/state"
)

// apply changes objects of the data plane from what they were to what they should be. An object that it refuses holds
// up only what depends on it; the error names the first one.
func (f *Fleet) apply(ctx context.Context, want, was *state.State) error {
	ops := state.Diff(want, was)
	refused := map[string]string{}
	f.inStep = false
	changes, first := f.applyAll(ctx, ops, refused)
	f.enter()
	f.refused = refused
	f.sync.Changes += uint64(changes)
	f.mu.Unlock()
	if first != nil {
		if f.client != nil {
			if err := f.readAll(ctx); err != nil {
				return f.lost(err)
			}
		}
		return first
	}
	f.inStep = true
	f.notePorts(ops)
	return nil
}

// notePorts tells the engine which ports have come and gone.
func (f *Fleet) notePorts(ops []state.Op) {
	news := false
	for _, op := range ops {
		if op.Noun == "port" {
			f.ports[op.Key], news = op.Verb != state.Del, true
		}
	}
	if !news {
		return
	}
	maps.DeleteFunc(f.ports, func(_ string, there bool) bool { return !there })
	f.enter()
	f.engine.SetPorts(f.ports)
	f.mu.Unlock()
	f.nudge() // guests of new ports are announced
}

// applyAll carries out operations, and leaves out those that are refused. It returns how many objects it has changed,
// and the first refusal.
func (f *Fleet) applyAll(ctx context.Context, ops []state.Op, refused map[string]string) (changes int, first error) {
	bad, err := state.ApplyAround(ctx, f.client, ops, func(op state.Op) { changes += op.Objects() })
	for _, e := range bad {
		refused[e.Op.Noun+" "+e.Op.Key] = e.Err.Error()
		if first == nil {
			first = fmt.Errorf("%v: %w", e.Op, e.Err)
		}
	}
	if err != nil {
		return changes, f.lost(err)
	}
	return changes, first
}
