// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/ttrpc"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

// ApplyError is the error of an application that stopped before its end. Nothing is rolled back.
type ApplyError struct {
	Done, Left Count
	Op         Op // the one that was refused
	Err        error
}

func (e *ApplyError) Error() string {
	return fmt.Sprintf("%s\n  refused: %v\n  done: %v; not done: %v, including this one", e.Op, e.Err, e.Done, e.Left)
}

func (e *ApplyError) Unwrap() error { return e.Err }

// Apply carries the operations out in order and stops at the first one that is refused (*ApplyError). after, when
// given, is called after each operation.
func Apply(ctx context.Context, c *api.Client, ops []Op, after func(Op)) (Count, error) {
	var done Count
	for i := 0; i < len(ops); {
		batch := ops[i : i+batchSize(ops[i:])]
		if err := do(ctx, c, batch); err != nil {
			return done, &ApplyError{done, CountOps(ops[i:]), refusedOf(batch, err), err}
		}
		for _, op := range batch {
			done.Put(op)
			if after != nil {
				after(op)
			}
		}
		i += len(batch)
	}
	return done, nil
}

// batchSize is the number of operations, from the first one on, that one request carries out.
func batchSize(ops []Op) int {
	n := 1
	for n < len(ops) && n < RuleBatch && ops[0].Noun == "rule" && ops[n].Noun == "rule" && ops[n].Verb == ops[0].Verb {
		n++
	}
	return n
}

// refusedOf returns the operation of a batch that was refused; of a batch of routes, with that route only.
func refusedOf(ops []Op, err error) Op {
	var refused *api.Error
	op := ops[0]
	if op.Noun == "rule" && errors.As(err, &refused) && int(refused.Index) < len(ops) {
		return ops[refused.Index]
	}
	if op.Noun == "route" && errors.As(err, &refused) && int(refused.Index) < len(op.Routes) {
		i := refused.Index
		op.Routes = op.Routes[i : i+1]
		if op.Was != nil {
			op.Was = op.Was[i : i+1]
		}
	}
	return op
}

func do(ctx context.Context, c *api.Client, ops []Op) error {
	op := ops[0]
	switch op.Noun {
	case "route":
		return op.doRoutes(ctx, c)
	case "rule":
		return doRules(ctx, c, ops)
	}
	n := nounByName[op.Noun]
	switch op.Verb {
	case Add:
		return n.add(ctx, c, op.New)
	case Set:
		return n.set(ctx, c, op.New, op.Fields)
	}
	return n.del(ctx, c, op.Old)
}

func (op Op) doRoutes(ctx context.Context, c *api.Client) error {
	list := make([]*apiv1.Route, len(op.Routes))
	for i, r := range op.Routes {
		list[i] = r.message()
	}
	if op.Verb == Del {
		return call(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.Del, &apiv1.RouteDelRequest{Routes: list})
	}
	return call(ctx, c, apiv1.NewRoutesClient, apiv1.RoutesClient.Add, &apiv1.RouteAddRequest{Routes: list})
}

// call is api.Call without the reply.
func call[S, Req, Resp any](ctx context.Context, c *api.Client, service func(*ttrpc.Client) S,
	method func(S, context.Context, Req) (Resp, error), req Req) error {
	_, err := api.Call(ctx, c, service, method, req)
	return err
}
