// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/ttrpc"
	"google.golang.org/grpc/codes"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/wait"
)

// ApplyError is the error of an application that stopped before its end. Apply itself takes nothing back.
type ApplyError struct {
	Done, Left Count
	Op         Op // the one that was not made
	Err        error
}

func (e *ApplyError) Error() string {
	return fmt.Sprintf("%s\n  done: %v; not done: %v, including this one", e.step(), e.Done, e.Left)
}

// step says which operation was not made, and why.
func (e *ApplyError) step() string {
	what := "not made"
	if IsRefused(e.Err) {
		what = "refused"
	}
	return fmt.Sprintf("%s\n  %s: %v", e.Op, what, e.Err)
}

// IsRefused says whether an error is the answer of the daemon to a request, which therefore has changed nothing.
func IsRefused(err error) bool {
	var refused *api.Error
	return errors.As(err, &refused)
}

func (e *ApplyError) Unwrap() error { return e.Err }

// lateWorker is how long Apply waits for a worker whose CPU others use.
const lateWorker = 30 * time.Second

// Apply carries the operations out in order and stops at the first one that is refused (*ApplyError). What waits for a
// worker that is late is asked for again. after, when given, is called after each operation.
func Apply(ctx context.Context, c *api.Client, ops []Op, after func(Op)) (Count, error) {
	return apply(ctx, ops, after, func(batch []Op) error { return insist(ctx, c, batch) })
}

// apply is Apply with a function that makes a batch of operations. It begins none when ctx is over.
func apply(ctx context.Context, ops []Op, after func(Op), makes func([]Op) error) (Count, error) {
	var done Count
	for i := 0; i < len(ops); {
		batch := ops[i : i+batchSize(ops[i:])]
		err := context.Cause(ctx)
		if err == nil {
			err = makes(batch)
		}
		if len(batch) > 1 && hasCode(err, codes.Unimplemented) { // an older daemon has no such batches
			batch = batch[:1]
			err = makes(batch)
		}
		if err != nil {
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

// insist is do(), again and again while the daemon says that the same request may pass later: a worker is late. A
// deletion goes on meanwhile.
func insist(ctx context.Context, c *api.Client, ops []Op) error {
	began, tries := time.Now(), 0
	return wait.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		err := do(ctx, c, ops)
		tries++
		switch {
		case tries > 1 && ops[0].Verb == Del && hasCode(err, codes.NotFound):
			return true, nil
		case !hasCode(err, codes.Unavailable, codes.DeadlineExceeded):
			return true, err
		case time.Since(began) < lateWorker:
			return false, nil
		}
		return true, fmt.Errorf("%w (asked for %v)", err, lateWorker)
	})
}

func hasCode(err error, any ...codes.Code) bool {
	var refused *api.Error
	return errors.As(err, &refused) && slices.Contains(any, refused.Code)
}

// batchSize is the number of operations, from the first one on, that one request carries out.
func batchSize(ops []Op) int {
	n, most := 1, 1
	if ops[0].Noun == "rule" {
		most = RuleBatch
	} else if ops[0].Verb == Add {
		most = nounByName[ops[0].Noun].mostOf("AddAll")
	} else if ops[0].Verb == Del {
		most = nounByName[ops[0].Noun].mostOf("DelAll")
	}
	for n < len(ops) && n < most && ops[n].Noun == ops[0].Noun && ops[n].Verb == ops[0].Verb {
		n++
	}
	return n
}

// refusedOf returns the operation of a batch that was refused; of a batch of routes, with that route only.
func refusedOf(ops []Op, err error) Op {
	var refused *api.Error
	op := ops[0]
	if len(ops) > 1 && errors.As(err, &refused) && int(refused.Index) < len(ops) {
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
	switch {
	case len(ops) > 1 && op.Verb == Del:
		return n.delAll(ctx, c, ops)
	case len(ops) > 1:
		return n.addAll(ctx, c, ops)
	case op.Verb == Add:
		return n.add(ctx, c, op.New)
	case op.Verb == Set:
		return n.set(ctx, c, op.New, op.Fields)
	}
	return n.del(ctx, c, op.Old)
}

func (op Op) doRoutes(ctx context.Context, c *api.Client) error {
	list := messages(op.Routes)
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
