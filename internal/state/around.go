// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"errors"
	"slices"

	"github.com/corelane/corelane/internal/api"
)

// MaxRefused bounds how many operations ApplyAround leaves out one by one.
const MaxRefused = 64

// ApplyAround carries the operations out in order and leaves out those that are refused. It stops after MaxRefused of
// them, and at an error that is no refusal. after, when given, is called after each operation.
func ApplyAround(ctx context.Context, c *api.Client, ops []Op, after func(Op)) (refused []*ApplyError, err error) {
	for len(refused) < MaxRefused {
		done := 0
		_, err := Apply(ctx, c, ops, func(op Op) {
			done++
			if after != nil {
				after(op)
			}
		})
		var stopped *ApplyError
		switch {
		case err == nil:
			return refused, nil
		case !errors.As(err, &stopped) || !IsRefused(err):
			return refused, err
		}
		refused = append(refused, stopped)
		ops = leaveOut(ops[done:], stopped.Op)
	}
	return refused, nil
}

// leaveOut returns the operations without one that was refused; of a batch of routes, without that route.
func leaveOut(ops []Op, bad Op) []Op {
	i := slices.IndexFunc(ops, func(op Op) bool {
		return op.Verb == bad.Verb && op.Noun == bad.Noun && (op.Key == bad.Key || len(op.Routes) > 0)
	})
	i = max(i, 0) // it is the next one, or in its batch
	if len(ops[i].Routes) > 1 && len(bad.Routes) == 1 {
		return slices.Concat(ops[:i], []Op{without(ops[i], bad.Routes[0])}, ops[i+1:])
	}
	return slices.Concat(ops[:i], ops[i+1:])
}

func without(op Op, r Route) Op {
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
