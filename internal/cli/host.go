// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var hostSteerListing = listing[*apiv1.HostSteer]{
	key: func(s *apiv1.HostSteer) string { return s.Port + " " + s.Address },
	columns: []column[*apiv1.HostSteer]{
		text("address", (*apiv1.HostSteer).GetAddress),
		text("port", (*apiv1.HostSteer).GetPort),
		text("by", func(s *apiv1.HostSteer) string { return limits.EnumText(s.GetState().GetMode()) }),
		text("worker", hostSteerWorker),
		text("queues", hostSteerQueues),
		counter("packets", func(s *apiv1.HostSteer) uint64 { return s.GetState().GetPackets() }),
		text("why", func(s *apiv1.HostSteer) string { return s.GetState().GetWhy() }),
	},
}

func newHostCmd(a *app) *cobra.Command {
	return noun("host", "The host's own traffic: addresses of the kernel that bypass the forwarding workers",
		noun("steer", "Addresses whose packets go to the host-path worker",
			newHostSteerList(a), newHostSteerAdd(a), newHostSteerDel(a)))
}

func newHostSteerList(a *app) *cobra.Command {
	req := &apiv1.HostSteerListRequest{}
	cmd := newList(a, "List steered addresses, and whether and why the NIC or software steers each",
		"  corelane host steer list --watch", hostSteerListing,
		listOf(a, apiv1.NewHostSteersClient, apiv1.HostSteersClient.List, req))
	a.bind(cmd, req, []fieldFlag{{flag: "port", help: "only those of this fabric port", names: portNames}})
	return cmd
}

var hostSteerPort = []fieldFlag{{flag: "port", help: "fabric port (default: the only one with a host port)",
	names: portNames}}

func newHostSteerAdd(a *app) *cobra.Command {
	s := &apiv1.HostSteer{}
	cmd := verb("add ADDRESS", "Direct an address's packets to the host-path worker",
		"  corelane worker add --role host-path --cpu 3\n  corelane host steer add 192.0.2.1\n  corelane host steer "+
			"add 2001:db8::1 --port fab0",
		func(ctx context.Context, args []string) error {
			s.Address = args[0]
			return a.done(call(ctx, a, apiv1.NewHostSteersClient, apiv1.HostSteersClient.Add,
				&apiv1.HostSteerAddRequest{Steer: s}))
		})
	cmd.Long = `Direct an address's packets to the host-path worker. If the NIC can, it puts them into the port's last
queue, which that worker polls. Otherwise the worker polls all queues of the port, takes the address's packets and
passes the others on to forwarding workers. "corelane host steer list" says which of both, and why. Tunnels are never
steered. Steering needs a worker of role host-path.`
	a.bind(cmd, s, hostSteerPort)
	cmd.ValidArgsFunction = a.complete(fixed())
	return cmd
}

func newHostSteerDel(a *app) *cobra.Command {
	req := &apiv1.HostSteerDelRequest{}
	cmd := verb("del ADDRESS",
		"Stop steering an address; after a port's last one its queues return to the forwarding workers",
		"  corelane host steer del 192.0.2.1", func(ctx context.Context, args []string) error {
			req.Address = args[0]
			return a.done(call(ctx, a, apiv1.NewHostSteersClient, apiv1.HostSteersClient.Del, req))
		})
	a.bind(cmd, req, hostSteerPort)
	cmd.ValidArgsFunction = a.complete(hostSteerAddresses)
	return cmd
}

func hostSteerWorker(s *apiv1.HostSteer) string {
	if s.GetState().GetMode() == apiv1.HostSteerMode_HOST_STEER_MODE_NONE {
		return ""
	}
	return fmt.Sprint(s.GetState().GetWorker())
}

func hostSteerQueues(s *apiv1.HostSteer) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(s.GetState().GetQueues()), " ", ","), "[]")
}

var hostSteerAddresses = named(func(a *app) fetch[*apiv1.HostSteer] {
	return listOf(a, apiv1.NewHostSteersClient, apiv1.HostSteersClient.List, &apiv1.HostSteerListRequest{})
}, func(s *apiv1.HostSteer) string { return s.Address + "\t" + s.Port })
