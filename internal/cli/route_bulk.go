// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/corelane/corelane/internal/api"
	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

// routeBatch is how many routes one request may hold.
const routeBatch = 4096

// bulk sends the routes of a file in batches.
type bulk struct {
	*app
	route      *apiv1.Route // the VRF of all lines, and the next hop of lines without one
	prefixOnly bool         // a line needs no next hop
	send       func(ctx context.Context, routes []*apiv1.Route) (*apiv1.RouteReply, error)

	name  string // of the file
	lines []int  // the line of each route of the batch
	batch []*apiv1.Route
	done  uint64
	begun time.Time
	shown time.Time
}

// file sends the routes of all lines of a file.
func (b *bulk) file(ctx context.Context, name string) error {
	in := b.stdin
	if b.name = name; name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return input.Errorf("--file", "a file, or - for standard input", "%v", err)
		}
		defer f.Close()
		in = f
	}
	b.begun = time.Now()
	err := b.read(ctx, in)
	if err == nil {
		err = b.flush(ctx)
	}
	if isTerminal(b.stderr) {
		b.progress(true)
	}
	if err != nil {
		return b.progressError(err)
	}
	return b.app.done(&apiv1.RouteReply{Changed: uint32(b.done)}, nil)
}

func (b *bulk) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		route, err := parseRouteLine(lines.Text(), b.route, b.prefixOnly)
		if err != nil {
			return b.at(n, err)
		}
		if route == nil {
			continue
		}
		b.batch, b.lines = append(b.batch, route), append(b.lines, n)
		if len(b.batch) == routeBatch {
			if err := b.flush(ctx); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func (b *bulk) flush(ctx context.Context) error {
	if len(b.batch) == 0 {
		return nil
	}
	reply, err := b.send(ctx, b.batch)
	var refused *api.Error
	if errors.As(err, &refused) && int(refused.Index) < len(b.lines) {
		return b.at(b.lines[refused.Index], err)
	}
	if err != nil {
		return err
	}
	b.done += uint64(reply.Changed)
	b.batch, b.lines = b.batch[:0], b.lines[:0]
	if isTerminal(b.stderr) && time.Since(b.shown) > 200*time.Millisecond {
		b.progress(false)
	}
	return nil
}

func (b *bulk) at(line int, err error) error { return fmt.Errorf("%s:%d: %w", b.name, line, err) }

// progressError adds to an error how many routes were changed before it: batches are not undone.
func (b *bulk) progressError(err error) error {
	return fmt.Errorf("%w (%d routes before it were changed, none after)", err, b.done)
}

func (b *bulk) progress(last bool) {
	b.shown = time.Now()
	end := map[bool]string{true: "\n"}[last]
	fmt.Fprintf(b.stderr, "\r%d routes, %.0f routes/s%s", b.done, float64(b.done)/b.shown.Sub(b.begun).Seconds(), end)
}

// parseRouteLine reads "PREFIX [NEXTHOP] [# comment]"; nil for a line without a route. like has everything else, and
// the next hop of lines that have none; 0: they must have one. With prefixOnly, the rest of the line is ignored.
func parseRouteLine(line string, like *apiv1.Route, prefixOnly bool) (*apiv1.Route, error) {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, nil
	}
	route, err := routeTo(like, words[0])
	if err != nil {
		return nil, err
	}
	switch {
	case prefixOnly:
	case len(words) > 2:
		return nil, input.Errorf("line", "PREFIX NEXTHOP", "'%s' is one too many", words[2])
	case len(words) == 2:
		route.Nexthop, err = protoflag.ParseField("nexthop", words[1], &apiv1.Nexthop{}, "id")
	case like.Nexthop == 0:
		err = input.Errorf("nexthop", "PREFIX NEXTHOP, or --nexthop for all lines", "missing")
	}
	if err != nil {
		return nil, err
	}
	return route, nil
}
