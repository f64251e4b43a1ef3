// SPDX-License-Identifier: Apache-2.0
package state

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/corelane/corelane/internal/api"
)

// WholeError is the error of ApplyWhole.
type WholeError struct {
	*ApplyError
	Back *BackError // nil: the node is as it was before
	Undo Count      // the steps of the way back
	Anew []string   // "port vm1": was deleted and is there again
}

// BackError is what Back could not take back.
type BackError struct {
	Left    []Op // what differs from before
	Refused []*ApplyError
	Err     error // why the way back ended, other than by refusals
}

// gathers has the nouns whose objects have counters, connections or what they learn.
var gathers = []string{"worker", "bridge", "meter", "rule-list", "rule", "port", "mirror", "nat", "service", "endpoint"}

// shown is how many lines of a list an error has.
const shown = 20

func (e *WholeError) Error() string {
	text := e.step()
	switch {
	case e.Back != nil:
		text += fmt.Sprintf("\n  done before: %v\n  %v", e.Done, e.Back)
	case e.Undo == Count{}:
		text += "\n  nothing was changed"
	default:
		text += fmt.Sprintf("\n  done before and taken back: %v; the router is as it was before", e.Done)
	}
	if len(e.Anew) > 0 {
		text += "\n  deleted and added again, without their counters, connections and what they had learnt: " +
			strings.Join(shorten(e.Anew), ", ")
	}
	return text
}

func (e *WholeError) Unwrap() []error {
	if e.Back != nil {
		return []error{e.ApplyError, e.Back}
	}
	return []error{e.ApplyError}
}

func (e *BackError) Error() string {
	text := "not taken back"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if len(e.Left) == 0 {
		return text
	}
	var lines []string
	for _, op := range e.Left {
		line := "\n    " + op.String()
		for _, r := range e.Refused {
			if r.Op.Verb == op.Verb && r.Op.Noun == op.Noun && r.Op.Key == op.Key {
				line += "\n      refused: " + r.Err.Error()
				break
			}
		}
		lines = append(lines, line)
	}
	return text + "; the router would be as before after:" + strings.Join(shorten(lines), "")
}

func shorten(list []string) []string {
	if n := len(list) - shown; n > 0 {
		return append(slices.Clip(list[:shown]), fmt.Sprintf(" and %d more", n))
	}
	return list
}

// ApplyWhole is Apply as one transaction. If an operation is not made, or ctx is over before the last one, it makes the
// node again what it was before, and the error is a *WholeError. What has begun is always waited for, because nobody
// could know otherwise what is to be taken back. after, when given, is called after each operation on both ways.
func ApplyWhole(ctx context.Context, c *api.Client, before *State, ops []Op, after func(op Op, back bool)) (Count,
	error) {
	calls := context.WithoutCancel(ctx)
	gone, back := map[string]bool{}, false
	whole := &WholeError{}
	note := func(op Op) {
		switch name := op.Noun + " " + op.Key; {
		case !slices.Contains(gathers, op.Noun):
		case op.Verb == Del && !slices.Contains(whole.Anew, name):
			gone[name] = true
		case op.Verb == Add && gone[name]:
			gone[name] = false // it is named once
			whole.Anew = append(whole.Anew, name)
		}
		if back {
			whole.Undo.Put(op)
		}
		if after != nil {
			after(op, back)
		}
	}
	done, err := apply(ctx, ops, note, func(batch []Op) error { return insist(calls, c, batch) })
	if !errors.As(err, &whole.ApplyError) {
		return done, err
	}
	back = true
	err = Back(calls, c, before, note)
	_ = errors.As(err, &whole.Back)
	return Count{}, whole
}

// Back makes a node again what it was before. Where that is refused, it does the rest, and tries again as long as this
// brings the node nearer. The error is a *BackError.
func Back(ctx context.Context, c *api.Client, before *State, after func(Op)) error {
	e := &BackError{}
	for nearest := math.MaxInt; ; {
		now, err := Read(ctx, c)
		if err != nil {
			return &BackError{Err: err}
		}
		e.Left = Diff(before, now)
		count := CountOps(e.Left)
		left := count.Add + count.Set + count.Del
		switch {
		case left == 0:
			return nil
		case left >= nearest:
			return e
		}
		nearest = left
		e.Refused, e.Err = ApplyAround(ctx, c, e.Left, after)
	}
}
