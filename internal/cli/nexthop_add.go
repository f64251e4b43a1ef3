// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

var tunnelFlags = []fieldFlag{
	{flag: "encap", help: "encapsulation"},
	{flag: "remote", help: "address of the other end"},
	{flag: "local", help: "source address (default: that of the port that sends the packet)"},
	{flag: "label", help: "MPLS label; those below 16 are reserved"},
	{flag: "vni", help: "VXLAN or Geneve network identifier"},
	{flag: "router-mac", help: "VXLAN and Geneve: MAC of the remote router, for routed traffic"},
	{flag: "ttl", help: "outer TTL in pipe mode"},
	{flag: "dscp", help: "outer DSCP (default: the tenant's)"},
	{flag: "gre-key", help: "MPLSoGRE: key to send"},
	{flag: "udp6-checksum",
		help: "UDP checksum over IPv6: on, off, or default, which is on"},
}

var portNexthopFlags = []fieldFlag{
	{flag: "address", help: "port: neighbour, resolved with ARP or ND"},
	{flag: "mac", help: "port: the neighbour's MAC, no resolution"},
}

var nexthopKinds = []string{"tunnel", "port", "group", "discard", "local", "reject"}

// nexthopFlagsOf lists the flags that each kind takes.
func nexthopFlagsOf(kind string) []string {
	var flags []string
	switch kind {
	case "tunnel":
		flags = append(flags, "uniform")
		for _, f := range tunnelFlags {
			flags = append(flags, f.flag)
		}
	case "port":
		for _, f := range portNexthopFlags {
			flags = append(flags, f.flag)
		}
	}
	return flags
}

func newNexthopAdd(a *app) *cobra.Command {
	req := &apiv1.NexthopAddRequest{}
	given := newNexthopArgs()
	var cmd *cobra.Command
	cmd = verb("add ID KIND [TO...]", "Add a next hop",
		`  corelane nexthop add 100 tunnel --encap mplsoudp --remote 192.0.2.2 --label 2001
  corelane nexthop add 101 tunnel --encap vxlan --remote 2001:db8::2 --vni 5001 --router-mac 02:00:00:00:00:02
  corelane nexthop add 7 port vm1 --address 10.1.0.5
  corelane nexthop add 9 group 100:1 101:3
  corelane nexthop add 3 discard`,
		func(ctx context.Context, args []string) error {
			nh, err := given.nexthop(cmd.Flags(), args)
			if err != nil {
				return err
			}
			req.Nexthop = nh
			return a.done(call(ctx, a, apiv1.NewNexthopsClient, apiv1.NexthopsClient.Add, req))
		})
	cmd.Long = "Add a next hop with an id of your choice, " + protoflag.Numbers(&apiv1.Nexthop{}, "id") +
		`. KIND is one of
  tunnel              to another host, see --encap
  port PORT           out of a port, to a guest or a router of the underlay
  group ID[:WEIGHT].. ECMP over next hops, per flow; weight ` + protoflag.Numbers(&apiv1.GroupMember{}, "weight") + `
  discard             drop and count
  reject              drop and answer with ICMP unreachable
  local               to the router itself`
	a.bind(cmd, given.tunnel, tunnelFlags)
	a.bind(cmd, given.port, portNexthopFlags)
	given.addUniform(cmd.Flags())
	a.bind(cmd, req, []fieldFlag{{flag: "replace", help: "replace an existing next hop"}})
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		third := fixed()
		if len(args) > 1 {
			third = map[string]names{"port": portNames, "group": nexthopNames}[args[1]]
		}
		if third == nil {
			third = fixed()
		}
		return a.complete(fixed(), fixed(nexthopKinds...), third)(c, args, prefix)
	}
	return cmd
}

// nexthopArgs is what the command line, or a line of a file, says about a next hop besides its positional arguments.
type nexthopArgs struct {
	tunnel  *apiv1.TunnelNexthop
	port    *apiv1.PortNexthop
	uniform bool
}

func newNexthopArgs() *nexthopArgs {
	return &nexthopArgs{tunnel: &apiv1.TunnelNexthop{}, port: &apiv1.PortNexthop{}}
}

func (n *nexthopArgs) addUniform(flags *pflag.FlagSet) {
	flags.BoolVar(&n.uniform, "uniform", false,
		"copy TTL and DSCP in both directions (uniform mode of RFC 3443; default: pipe mode)")
}

// nexthop returns the next hop of parsed flags and of the arguments "ID KIND [TO...]".
func (n *nexthopArgs) nexthop(flags *pflag.FlagSet, args []string) (*apiv1.Nexthop, error) {
	if n.uniform {
		n.tunnel.Mode = apiv1.TunnelMode_TUNNEL_MODE_UNIFORM
	}
	n.tunnel.FixedDscp = flags.Changed("dscp")
	n.tunnel.GreHasKey = flags.Changed("gre-key")
	nh, err := parseNexthop(args, n.tunnel, n.port)
	if err != nil {
		return nil, err
	}
	return nh, onlyFlags(flags, args[1], nexthopFlagsOf)
}

// onlyFlags refuses flags that belong to another kind.
func onlyFlags(flags *pflag.FlagSet, kind string, of func(kind string) []string) error {
	mine := of(kind)
	for _, other := range nexthopKinds {
		for _, f := range of(other) {
			if flags.Changed(f) && !slices.Contains(mine, f) {
				return input.Errorf("--"+f, "for "+kind+": "+orNone(mine), "is for %s, not for %s", other, kind)
			}
		}
	}
	return nil
}

// parseNexthop reads "ID KIND [TO...]".
func parseNexthop(args []string, tunnel *apiv1.TunnelNexthop, port *apiv1.PortNexthop) (*apiv1.Nexthop, error) {
	id, err := protoflag.ParseField("id", args[0], &apiv1.Nexthop{}, "id")
	if err != nil {
		return nil, err
	}
	nh := &apiv1.Nexthop{Id: id}
	kind, to := args[1], args[2:]
	switch {
	case kind == "port" && len(to) == 1:
		port.Port = to[0]
		nh.Kind = &apiv1.Nexthop_Port{Port: port}
	case kind == "port":
		return nil, input.Errorf("port", "the name of one port", "%d names given", len(to))
	case kind == "group":
		group, err := parseGroup(to)
		if err != nil {
			return nil, err
		}
		nh.Kind = &apiv1.Nexthop_Group{Group: group}
	case len(to) > 0 && slices.Contains(nexthopKinds, kind):
		return nil, input.Errorf("arguments", "flags", "'%s' is one too many for %s", to[0], kind)
	case kind == "tunnel" && tunnel.Encap == apiv1.Encap_ENCAP_UNSPECIFIED:
		return nil, input.Errorf("--encap", strings.Join(limits.EnumNames(tunnel.Encap.Descriptor()), ", "),
			"missing")
	case kind == "tunnel" && tunnel.Remote == "":
		return nil, input.Errorf("--remote", "address of the other end", "missing")
	case kind == "tunnel" && !uses(tunnel.Encap, "vni") && tunnel.Vni != 0:
		return nil, input.Errorf("--vni", "--label", "is for %s", encapsWith("vni"))
	case kind == "tunnel" && !uses(tunnel.Encap, "label") && tunnel.Label != 0:
		return nil, input.Errorf("--label", "--vni", "is for %s", encapsWith("label"))
	case kind == "tunnel":
		nh.Kind = &apiv1.Nexthop_Tunnel{Tunnel: tunnel}
	case kind == "discard":
		nh.Kind = &apiv1.Nexthop_Discard{Discard: &apiv1.Empty{}}
	case kind == "local":
		nh.Kind = &apiv1.Nexthop_Local{Local: &apiv1.Empty{}}
	case kind == "reject":
		nh.Kind = &apiv1.Nexthop_Reject{Reject: &apiv1.Empty{}}
	default:
		return nil, input.Errorf("kind", strings.Join(nexthopKinds, ", "), "'%s' is unknown", kind)
	}
	return nh, nil
}

// uses says whether tunnels with an encapsulation have a field.
func uses(e apiv1.Encap, field string) bool {
	return slices.Contains(limits.EncapsulationsWith(field), e)
}

func encapsWith(field string) string {
	var names []string
	for _, e := range limits.EncapsulationsWith(field) {
		names = append(names, limits.EnumName(e.Descriptor(), e.Number()))
	}
	return strings.Join(names, " and ")
}

// parseGroup reads members, "100" or "100:3" with a weight.
func parseGroup(specs []string) (*apiv1.GroupNexthop, error) {
	if len(specs) == 0 {
		return nil, input.Errorf("group", "members, ID or ID:WEIGHT", "missing")
	}
	group := &apiv1.GroupNexthop{}
	for _, spec := range specs {
		id, weight, weighted := strings.Cut(spec, ":")
		member := &apiv1.GroupMember{Weight: 1}
		var err error
		if member.Nexthop, err = protoflag.ParseField("member", id, &apiv1.GroupMember{}, "nexthop"); err != nil {
			return nil, err
		}
		if weighted {
			if member.Weight, err = protoflag.ParseField("weight", weight, &apiv1.GroupMember{}, "weight"); err != nil {
				return nil, err
			}
		}
		group.Members = append(group.Members, member)
	}
	return group, nil
}
