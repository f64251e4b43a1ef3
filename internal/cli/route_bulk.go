// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"

	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

// routeBatch is how many routes one request may hold.
const routeBatch = 4096

// bulkRoutes sends the routes of a file. like has the VRF of all lines, and the next hop of lines without one; with
// prefixOnly, a line needs none.
func (a *app) bulkRoutes(like *apiv1.Route, prefixOnly bool,
	send func(ctx context.Context, routes []*apiv1.Route) (*apiv1.RouteReply, error)) *bulk[*apiv1.Route] {
	return &bulk[*apiv1.Route]{app: a, what: "routes", most: routeBatch,
		parse: func(words []string) (*apiv1.Route, error) { return parseRouteLine(words, like, prefixOnly) },
		send: func(ctx context.Context, routes []*apiv1.Route) (uint32, error) {
			reply, err := send(ctx, routes)
			return reply.GetChanged(), err
		},
		reply: func(changed uint32) proto.Message { return &apiv1.RouteReply{Changed: changed} }}
}

// parseRouteLine reads "PREFIX [NEXTHOP]". like has everything else, and the next hop of lines that have none; 0: they
// must have one. With prefixOnly, the rest of the line is ignored.
func parseRouteLine(words []string, like *apiv1.Route, prefixOnly bool) (*apiv1.Route, error) {
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
