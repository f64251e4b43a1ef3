// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
)

// target is what a label or a VNI leads to: one of these is set.
type target struct {
	vrf, bridge string
	nexthop     uint32
}

const targetKinds = "vrf NAME, bridge NAME, nexthop ID"

func parseTarget(kind, name string) (target, error) {
	switch kind {
	case "vrf":
		return target{vrf: name}, nil
	case "bridge":
		return target{bridge: name}, nil
	case "nexthop":
		id, err := parseID("nexthop", name, 1, maxNexthop)
		return target{nexthop: id}, err
	}
	return target{}, usagef("target", targetKinds, "'%s' is unknown", kind)
}

func targetText(vrf, bridge string, nexthop uint32) string {
	switch {
	case vrf != "":
		return "vrf " + vrf
	case bridge != "":
		return "bridge " + bridge
	}
	return "nexthop " + strconv.Itoa(int(nexthop))
}

// newTargetAdd makes "add NUMBER TARGET NAME".
func newTargetAdd(a *app, arg, short, example string, least, most uint32, add func(ctx context.Context, n uint32, t target) error) *cobra.Command {
	cmd := verb("add "+arg+" TARGET NAME", short, example, func(ctx context.Context, args []string) error {
		n, err := parseID(arg, args[0], least, most)
		if err != nil {
			return err
		}
		t, err := parseTarget(args[1], args[2])
		if err != nil {
			return err
		}
		return add(ctx, n, t)
	})
	cmd.Long = short + ". TARGET NAME is one of: " + targetKinds + "."
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
