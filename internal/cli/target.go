// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

// targetKinds are the targets of labels and VNIs.
const targetKinds = "vrf NAME, bridge NAME, nexthop ID"

func targetText(vrf, bridge string, nexthop uint32) string {
	switch {
	case vrf != "":
		return "vrf " + vrf
	case bridge != "":
		return "bridge " + bridge
	}
	return "nexthop " + strconv.Itoa(int(nexthop))
}

// setTarget fills the field of msg that kind names.
func setTarget(msg proto.Message, kind, name string) error {
	m := msg.ProtoReflect()
	f := m.Descriptor().Fields().ByName(protoreflect.Name(kind))
	switch kind {
	case "vrf", "bridge":
		m.Set(f, protoreflect.ValueOfString(name))
		return nil
	case "nexthop":
		id, err := protoflag.ParseField("nexthop", name, msg, "nexthop")
		m.Set(f, protoreflect.ValueOfUint32(id))
		return err
	}
	return input.Errorf("target", targetKinds, "'%s' is unknown", kind)
}

// newTargetAdd makes "add NUMBER TARGET NAME", which fills msg: a message whose first field, named arg, is the number,
// with the fields vrf, bridge, nexthop, uniform, sources and tunnel_ends. req is its request, with the field replace.
func newTargetAdd(a *app, arg, short, example string, msg, req proto.Message,
	add func(ctx context.Context) error) *cobra.Command {
	cmd := verb("add "+arg+" TARGET NAME", short, example, func(ctx context.Context, args []string) error {
		n, err := protoflag.ParseField(arg, args[0], msg, protoreflect.Name(arg))
		if err != nil {
			return err
		}
		m := msg.ProtoReflect()
		m.Set(m.Descriptor().Fields().ByName(protoreflect.Name(arg)), protoreflect.ValueOfUint32(n))
		if err := setTarget(msg, args[1], args[2]); err != nil {
			return err
		}
		return add(ctx)
	})
	cmd.Long = short + ". TARGET NAME is one of: " + targetKinds + "."
	a.bind(cmd, msg, []fieldFlag{
		{flag: "uniform", help: "copy the tunnel's TTL and DSCP into the inner header " +
			"(uniform mode of RFC 3443; default: pipe mode)"},
		{flag: "sources", help: "address group of the sources that packets are accepted from (default: any)",
			names: groupNames},
		{flag: "tunnel-ends", help: "accept packets from the remote ends of this node's tunnels, and from --sources"},
	})
	a.bind(cmd, req, []fieldFlag{{flag: "replace", help: "replace an existing " + arg}})
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		name := fixed()
		if len(args) == 2 {
			if n, ok := map[string]names{"vrf": vrfNames, "bridge": bridgeNames, "nexthop": nexthopNames}[args[1]]; ok {
				name = n
			}
		}
		return a.complete(fixed(), fixed("vrf", "bridge", "nexthop"), name)(c, args, prefix)
	}
	return cmd
}

// sourcesText says which outer sources packets are accepted from; empty: any.
func sourcesText(group string, ends bool) string {
	var from []string
	if group != "" {
		from = append(from, group)
	}
	if ends {
		from = append(from, "tunnel ends")
	}
	return strings.Join(from, ", ")
}

func tunnelMode(uniform bool) string { return map[bool]string{true: "uniform", false: "pipe"}[uniform] }
