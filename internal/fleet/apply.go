// SPDX-License-Identifier: Apache-2.0
package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/corelane/corelane/internal/api"
	"github.com/corelane/corelane/internal/state"
)

// maxRefused bounds how many objects are left out one by one.
const maxRefused = 64

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
func (f *Fleet) applyAll(ctx context.Context, left []state.Op, refused map[string]string) (changes int, first error) {
	for {
		done := 0
		_, err := state.Apply(ctx, f.client, left, func(op state.Op) {
			done++
			changes += op.Objects()
		})
		if err == nil {
			return changes, first
		}
		left = left[done:]
		var bad *state.ApplyError
		var answer *api.Error
		if !errors.As(err, &bad) || !errors.As(err, &answer) {
			return changes, f.lost(err)
		}
		if first == nil {
			first = fmt.Errorf("%v: %w", bad.Op, answer)
		}
		refused[bad.Op.Noun+" "+bad.Op.Key] = answer.Error()
		if len(refused) == maxRefused {
			return changes, first
		}
		left = leaveOut(left, bad.Op)
	}
}

// leaveOut returns the operations without one that was refused; of a batch of routes, without that route.
func leaveOut(ops []state.Op, bad state.Op) []state.Op {
	i := slices.IndexFunc(ops, func(op state.Op) bool {
		return op.Verb == bad.Verb && op.Noun == bad.Noun && (op.Key == bad.Key || len(op.Routes) > 0)
	})
	i = max(i, 0) // it is the next one, or in its batch
	if len(ops[i].Routes) > 1 && len(bad.Routes) == 1 {
		return slices.Concat(ops[:i], []state.Op{without(ops[i], bad.Routes[0])}, ops[i+1:])
	}
	return slices.Concat(ops[:i], ops[i+1:])
}

func without(op state.Op, r state.Route) state.Op {
	routes, was := op.Routes, op.Was
	op.Routes, op.Was = nil, nil
	for i := range routes {
		if routes[i] == r {
			continue
		}
		op.Routes = append(op.Routes, routes[i])
		if was != nil {
			op.Was = append(op.Was, was[i])
		}
	}
	return op
}
