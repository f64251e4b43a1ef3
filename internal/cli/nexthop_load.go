// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
)

// nexthopBatch is how many next hops one request may hold.
const nexthopBatch = 1024

func newNexthopLoad(a *app) *cobra.Command {
	cmd := verb("load FILE", "Add the next hops of a file",
		"  corelane nexthop load nexthops.txt",
		func(ctx context.Context, args []string) error {
			b := &bulk[*apiv1.Nexthop]{app: a, what: "next hops", most: nexthopBatch, parse: parseNexthopLine,
				send: func(ctx context.Context, list []*apiv1.Nexthop) (uint32, error) {
					reply, err := call(ctx, a, apiv1.NewNexthopsClient, apiv1.NexthopsClient.AddAll,
						&apiv1.NexthopAddAllRequest{Nexthops: list})
					return reply.GetAdded(), err
				},
				reply: func(n uint32) proto.Message { return &apiv1.NexthopAddAllReply{Added: n} }}
			return b.file(ctx, args[0])
		})
	cmd.Long = `Add the next hops of a file, or of standard input with -. A line is what "corelane nexthop add" takes:
  100 tunnel --encap vxlan --remote 192.0.2.2 --vni 5001
The members of a group come before it. # starts a comment. Next hops are sent in batches of 1024; each batch is added
as a whole or not at all.`
	cmd.ValidArgsFunction = nil // names of files
	return cmd
}

func parseNexthopLine(words []string) (*apiv1.Nexthop, error) {
	given := newNexthopArgs()
	flags := pflag.NewFlagSet("nexthop", pflag.ContinueOnError)
	for _, f := range tunnelFlags {
		f.add(flags, given.tunnel)
	}
	for _, f := range portNexthopFlags {
		f.add(flags, given.port)
	}
	given.addUniform(flags)
	if err := flags.Parse(words); err != nil {
		cmd := &cobra.Command{}
		cmd.Flags().AddFlagSet(flags)
		return nil, flagError(cmd, err)
	}
	if flags.NArg() < 2 {
		return nil, input.Errorf("line", "ID KIND [TO...] [--FLAG VALUE]...", "'%s' is not a next hop",
			strings.Join(words, " "))
	}
	return given.nexthop(flags, flags.Args())
}
