// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/cli/protoflag"
	"github.com/corelane/corelane/internal/input"
)

var mirrorListing = listing[*apiv1.Mirror]{
	key: (*apiv1.Mirror).GetName,
	columns: []column[*apiv1.Mirror]{
		text("name", (*apiv1.Mirror).GetName),
		text("target", mirrorTarget),
		text("direction", func(m *apiv1.Mirror) string { return protoflag.EnumText(m.Direction) }),
		number("snap", (*apiv1.Mirror).GetSnapLength),
		text("resolved", func(m *apiv1.Mirror) string { return yesNo(m.GetState().GetResolved()) }),
		number("users", func(m *apiv1.Mirror) uint32 { return m.GetState().GetUsers() }),
		counter("copies", func(m *apiv1.Mirror) uint64 { return m.GetState().GetPackets() }),
		counter("bytes", func(m *apiv1.Mirror) uint64 { return m.GetState().GetBytes() }),
		counter("lost", func(m *apiv1.Mirror) uint64 { return m.GetState().GetLost() }),
	},
}

var mirrorFlags = []fieldFlag{
	{flag: "direction", help: "both, egress (what the guest sends) or ingress (what it receives)"},
	{flag: "snap-length", help: "bytes of each frame that are copied; 0: all"},
}

var (
	mirrorVxlanFlags = []fieldFlag{{flag: "vxlan", field: "remote", help: "address of a VXLAN collector, with --vni"},
		{flag: "vni", help: "VXLAN network identifier"}}
	mirrorErspanFlags = []fieldFlag{{flag: "erspan", field: "remote", help: "address of an ERSPAN type II collector, " +
		"with --session"}, {flag: "session", help: "ERSPAN session"}}
)

// mirrorOptions are the flags of add and set. A target is one of three kinds, given as a whole.
type mirrorOptions struct {
	mirror *apiv1.Mirror
	vxlan  *apiv1.MirrorVxlan
	erspan *apiv1.MirrorErspan
	port   string
	local  string
}

func newMirrorCmd(a *app) *cobra.Command {
	return noun("mirror", "Mirrors: copies of packets for a port or a collector",
		newList(a, "List mirrors", "  corelane mirror list\n  corelane mirror list --watch", mirrorListing,
			mirrorsNamed(a, "")),
		newShow(a, "MIRROR", "Show a mirror with its counters", "  corelane mirror show ids", mirrorNames,
			func(name string) (fetch[*apiv1.Mirror], error) { return mirrorsNamed(a, name), nil }),
		newMirrorAdd(a), newMirrorSet(a),
		newDel(a, "MIRROR", "Remove mirrors that are not in use",
			"  corelane mirror del ids", mirrorNames, func(ctx context.Context, name string) error {
				return a.done(call(ctx, a, apiv1.NewMirrorsClient, apiv1.MirrorsClient.Del,
					&apiv1.MirrorDelRequest{Name: name}))
			}))
}

func newMirrorAdd(a *app) *cobra.Command {
	o := &mirrorOptions{}
	var cmd *cobra.Command
	cmd = verb("add MIRROR", "Add a mirror", `  corelane mirror add ids --port tap9
  corelane mirror add far --erspan 203.0.113.9 --session 7 --snap-length 128
  corelane mirror add far6 --vxlan 2001:db8::9 --vni 77 --direction egress
  corelane port set vm1 --mirror ids`,
		func(ctx context.Context, args []string) error {
			o.mirror.Name = args[0]
			given, err := o.target(cmd)
			if err != nil {
				return err
			}
			if !given {
				return input.Errorf("target", "--port, --vxlan or --erspan", "missing")
			}
			return a.done(call(ctx, a, apiv1.NewMirrorsClient, apiv1.MirrorsClient.Add,
				&apiv1.MirrorAddRequest{Mirror: o.mirror}))
		})
	o.bind(a, cmd)
	return cmd
}

func newMirrorSet(a *app) *cobra.Command {
	o := &mirrorOptions{}
	var cmd *cobra.Command
	cmd = verb("set MIRROR", "Change a mirror; a new target replaces the whole old one",
		`  corelane mirror set ids --snap-length 0
  corelane mirror set far --erspan 203.0.113.10 --session 7`,
		func(ctx context.Context, args []string) error {
			fields := changed(cmd, mirrorFlags)
			given, err := o.target(cmd)
			if err != nil {
				return err
			}
			if given {
				fields = append([]string{"target"}, fields...)
			}
			if len(fields) == 0 {
				return input.Errorf("flags", "--port --vxlan --erspan --direction --snap-length",
					"missing, so there is nothing to change")
			}
			o.mirror.Name = args[0]
			return a.done(call(ctx, a, apiv1.NewMirrorsClient, apiv1.MirrorsClient.Set,
				&apiv1.MirrorSetRequest{Mirror: o.mirror, Fields: fields}))
		})
	o.bind(a, cmd)
	cmd.ValidArgsFunction = a.complete(mirrorNames)
	return cmd
}

func (o *mirrorOptions) bind(a *app, cmd *cobra.Command) {
	o.mirror, o.vxlan, o.erspan = &apiv1.Mirror{}, &apiv1.MirrorVxlan{}, &apiv1.MirrorErspan{}
	cmd.Flags().StringVar(&o.port, "port", "", "port that sends the copies, unchanged")
	a.completeFlag(cmd, "port", portNames)
	a.bind(cmd, o.vxlan, mirrorVxlanFlags)
	a.bind(cmd, o.erspan, mirrorErspanFlags)
	cmd.Flags().StringVar(&o.local, "local", "",
		"source address of copies to a collector (default: that of the port that sends them)")
	a.completeFlag(cmd, "local", fixed())
	a.bind(cmd, o.mirror, mirrorFlags)
}

// target puts the target of the flags into the mirror, and returns whether there is one.
func (o *mirrorOptions) target(cmd *cobra.Command) (bool, error) {
	var kinds []string
	for _, flag := range []string{"port", "vxlan", "erspan"} {
		if cmd.Flags().Changed(flag) {
			kinds = append(kinds, flag)
		}
	}
	if len(kinds) > 1 {
		return false, input.Errorf("--"+kinds[1], "one of --port, --vxlan, --erspan", "'--%s' is given too", kinds[0])
	}
	for flag, kind := range map[string][]string{"vni": {"vxlan"}, "session": {"erspan"}, "local": {"vxlan", "erspan"}} {
		if cmd.Flags().Changed(flag) && (len(kinds) == 0 || !slices.Contains(kind, kinds[0])) {
			return false, input.Errorf("--"+flag, "with --"+kind[0], "is a setting of a collector")
		}
	}
	if len(kinds) == 0 {
		return false, nil
	}
	o.vxlan.Local, o.erspan.Local = o.local, o.local
	switch kinds[0] {
	case "port":
		o.mirror.Target = &apiv1.Mirror_Port{Port: o.port}
	case "vxlan":
		o.mirror.Target = &apiv1.Mirror_Vxlan{Vxlan: o.vxlan}
	case "erspan":
		o.mirror.Target = &apiv1.Mirror_Erspan{Erspan: o.erspan}
	}
	return true, nil
}

func mirrorTarget(m *apiv1.Mirror) string {
	switch t := m.Target.(type) {
	case *apiv1.Mirror_Port:
		return "port " + t.Port
	case *apiv1.Mirror_Vxlan:
		return fmt.Sprintf("vxlan %s vni %d", t.Vxlan.Remote, t.Vxlan.Vni)
	case *apiv1.Mirror_Erspan:
		return fmt.Sprintf("erspan %s session %d", t.Erspan.Remote, t.Erspan.Session)
	}
	return ""
}

func mirrorsNamed(a *app, name string) fetch[*apiv1.Mirror] {
	return listOf(a, apiv1.NewMirrorsClient, apiv1.MirrorsClient.List, &apiv1.MirrorListRequest{Name: name})
}

var mirrorNames = named(func(a *app) fetch[*apiv1.Mirror] { return mirrorsNamed(a, "") }, (*apiv1.Mirror).GetName)
