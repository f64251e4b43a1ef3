// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
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

// bulk sends routes in batches.
type bulk struct {
	*app
	vrf      string
	optional bool // next hops may be left out of the lines
	send     func(ctx context.Context, routes []*apiv1.Route) (*apiv1.RouteReply, error)

	name  string // of the file
	lines []int  // the line of each route of the batch
	batch []*apiv1.Route
	done  uint64
	begun time.Time
	shown time.Time
}

// prefixes handles the prefixes of the command line.
func (b *bulk) prefixes(ctx context.Context, args []string, nexthop uint32) error {
	for _, arg := range args {
		p, err := parsePrefix("prefix", arg)
		if err != nil {
			return err
		}
		b.batch = append(b.batch, &apiv1.Route{Vrf: b.vrf, Prefix: p, Nexthop: nexthop})
	}
	reply, err := b.send(ctx, b.batch)
	return b.app.done(reply, err)
}

// file handles the lines of a file; nexthop stands in where a line has none.
func (b *bulk) file(ctx context.Context, name string, nexthop uint32) error {
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
	err := b.read(ctx, in, nexthop)
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

func (b *bulk) read(ctx context.Context, in io.Reader, nexthop uint32) error {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		route, err := parseRouteLine(lines.Text(), nexthop, b.optional)
		if err != nil {
			return b.at(n, err)
		}
		if route == nil {
			continue
		}
		route.Vrf = b.vrf
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

// parseRouteLine reads "PREFIX [NEXTHOP] [# comment]"; nil for a line without a route. A next hop is needed in the line
// or as the default, unless it is optional: then the rest of the line is ignored.
func parseRouteLine(line string, nexthop uint32, optional bool) (*apiv1.Route, error) {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, nil
	}
	prefix, err := parsePrefix("prefix", words[0])
	if err != nil {
		return nil, err
	}
	route := &apiv1.Route{Prefix: prefix, Nexthop: nexthop}
	switch {
	case optional:
	case len(words) > 2:
		return nil, input.Errorf("line", "PREFIX NEXTHOP", "'%s' is one too many", words[2])
	case len(words) == 2:
		route.Nexthop, err = protoflag.ParseField("nexthop", words[1], &apiv1.Nexthop{}, "id")
	case nexthop == 0:
		err = input.Errorf("nexthop", "PREFIX NEXTHOP, or --nexthop for all lines", "missing")
	}
	if err != nil {
		return nil, err
	}
	return route, nil
}

// parsePrefix returns the prefix as the daemon writes it. A lone address is a host route.
func parsePrefix(field, text string) (string, error) {
	const valid = "an IPv4 or IPv6 prefix, 10.0.0.0/8"
	p, err := netip.ParsePrefix(text)
	if addr, aerr := netip.ParseAddr(text); aerr == nil && addr.Zone() == "" {
		p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	switch {
	case err != nil:
		return "", input.Errorf(field, valid, "'%s' is not a prefix", text)
	case p.Addr().Is4In6():
		return "", input.Errorf(field, valid, "'%s' is an IPv4 address in IPv6's notation", text)
	case p != p.Masked():
		return "", input.Errorf(field, p.Masked().String(), "'%s' has host bits", text)
	}
	return p.String(), nil
}
