// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/corelane/corelane/internal/stat"
	"github.com/corelane/corelane/internal/table"
)

// column is one column of a noun's table.
type column[T any] struct {
	head  string
	right bool
	rate  bool // a counter: the head gets /s while watching
	text  func(s sample[T]) string
}

// sample is an object and, while watching, its state one interval before.
type sample[T any] struct {
	now, before T
	seconds     float64 // between the two; 0 in the first round
	watching    bool
}

func text[T any](head string, f func(T) string) column[T] {
	return column[T]{head: head, text: func(s sample[T]) string { return f(s.now) }}
}

func number[T any, N uint32 | uint64 | int](head string, f func(T) N) column[T] {
	return column[T]{head: head, right: true, text: func(s sample[T]) string { return fmt.Sprint(f(s.now)) }}
}

// counter is a total, and a rate per second while watching.
func counter[T any](head string, f func(T) uint64) column[T] {
	return column[T]{head: head, right: true, rate: true, text: func(s sample[T]) string {
		switch {
		case !s.watching:
			return strconv.FormatUint(f(s.now), 10)
		case s.seconds == 0:
			return "-"
		}
		return rate(f(s.now), f(s.before), s.seconds)
	}}
}

// quotient is one counter divided by another; while watching, over the last interval.
func quotient[T any](head string, top, bottom func(T) uint64) column[T] {
	return column[T]{head: head, right: true, text: func(s sample[T]) string {
		a, b := top(s.now), bottom(s.now)
		if s.watching && s.seconds > 0 {
			a, b = stat.Grown(a, top(s.before)), stat.Grown(b, bottom(s.before))
		}
		if b == 0 {
			return "-"
		}
		return strconv.FormatFloat(float64(a)/float64(b), 'f', 1, 64)
	}}
}

func rate(now, before uint64, seconds float64) string {
	r := float64(stat.Grown(now, before)) / seconds
	if r > 0 && r < 10 {
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return strconv.FormatFloat(r, 'f', 0, 64)
}

// fetch calls each for every object of a list.
type fetch[T any] func(ctx context.Context, each func(T) error) error

// listing is a noun's table: key tells an object from the others.
type listing[T proto.Message] struct {
	key     func(T) string
	columns columns[T]
}

// columns of one table.
type columns[T any] []column[T]

// rows shows the objects of fetch as a table or as JSON lines, repeatedly with --watch.
func (l listing[T]) rows(ctx context.Context, a *app, f fetch[T]) error {
	var before map[string]T
	var at time.Time
	return a.repeat(ctx, func(w io.Writer, watching bool) error {
		return buffered(w, func(b *bufio.Writer) error {
			if a.json() {
				return f(ctx, func(obj T) error { return writeJSON(b, obj) })
			}
			if !watching {
				return l.table(ctx, a, b, false, f, plain)
			}
			seconds, start := time.Since(at).Seconds(), time.Now()
			now := map[string]T{}
			err := l.table(ctx, a, b, true, f, func(obj T) sample[T] {
				now[l.key(obj)] = obj
				s := sample[T]{now: obj, watching: true}
				if old, ok := before[l.key(obj)]; ok {
					s.before, s.seconds = old, seconds
				}
				return s
			})
			before, at = now, start
			return err
		})
	})
}

// plain makes the sample of an object that is shown once.
func plain[T any](obj T) sample[T] { return sample[T]{now: obj} }

// table writes one table.
func (l listing[T]) table(ctx context.Context, a *app, b *bufio.Writer, watching bool, f fetch[T],
	take func(T) sample[T]) error {
	t, empty := l.columns.head(a, b, watching), true
	err := f(ctx, func(obj T) error {
		empty = false
		return t.Add(l.columns.cells(take(obj))...)
	})
	if err != nil && empty {
		return err // without a head line
	}
	if ferr := t.Flush(); err == nil {
		err = ferr
	}
	return err
}

// only returns a listing with just these columns.
func (l listing[T]) only(heads ...string) listing[T] {
	l.columns = slices.DeleteFunc(slices.Clone(l.columns), func(c column[T]) bool {
		return !slices.Contains(heads, c.head)
	})
	return l
}

func (cs columns[T]) head(a *app, b *bufio.Writer, watching bool) *table.Writer {
	var right []bool
	var heads []string
	for _, c := range cs {
		right = append(right, c.right)
		if c.rate && watching {
			c.head += "/s"
		}
		heads = append(heads, strings.ToUpper(c.head))
	}
	t := table.New(b, right).Fit(a.tableWidth())
	if !a.noHeaders {
		_ = t.Add(heads...) // the first row fills no block: nothing is written yet
	}
	return t
}

func (cs columns[T]) cells(s sample[T]) []string {
	row := make([]string, len(cs))
	for i, c := range cs {
		if row[i] = c.text(s); row[i] == "" {
			row[i] = "-"
		}
	}
	return row
}
