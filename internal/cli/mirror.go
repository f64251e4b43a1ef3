// SPDX-License-Identifier: Apache-2.0
package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/input"
	"github.com/corelane/corelane/internal/limits"
)

var mirrorListing = listing[*apiv1.Mirror]{
	key: (*apiv1.Mirror).GetName,
	columns: []column[*apiv1.Mirror]{
		text("name", (*apiv1.Mirror).GetName),
		text("target", mirrorTarget),
		text("direction", func(m *apiv1.Mirror) string { return limits.EnumText(m.Direction) }),
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

// mirrorKinds are the kinds of target: a port, or a collector with the name of its encapsulation.
var mirrorKinds = (&apiv1.Mirror{}).ProtoReflect().Descriptor().Oneofs().ByName("target").Fields()

// mirrorOptions are the flags of add and set. A target is one of its kinds, given as a whole: --KIND has the port or
// the address of the collector, and the other flags of a collector have the names of its fields.
type mirrorOptions struct {
	mirror *apiv1.Mirror
	port   string
	fields map[string]protoreflect.Message // by flag of a collector: the message with its value
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
				return input.Errorf("target", mirrorKindFlags(), "missing")
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
				return input.Errorf("flags", mirrorKindFlags()+", --direction, --snap-length",
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

func mirrorKindFlags() string {
	var flags []string
	for i := range mirrorKinds.Len() {
		flags = append(flags, "--"+string(mirrorKinds.Get(i).Name()))
	}
	return strings.Join(flags, ", ")
}

func (o *mirrorOptions) bind(a *app, cmd *cobra.Command) {
	o.mirror, o.fields = &apiv1.Mirror{}, map[string]protoreflect.Message{}
	cmd.Flags().StringVar(&o.port, "port", "", "port that sends the copies, unchanged")
	a.completeFlag(cmd, "port", portNames)
	for i := range mirrorKinds.Len() {
		if kind := mirrorKinds.Get(i); kind.Message() != nil {
			o.bindCollector(a, cmd, kind)
		}
	}
	a.bind(cmd, o.mirror, mirrorFlags)
}

func (o *mirrorOptions) bindCollector(a *app, cmd *cobra.Command, kind protoreflect.FieldDescriptor) {
	m := (&apiv1.Mirror{}).ProtoReflect().NewField(kind).Message()
	for i := range kind.Message().Fields().Len() {
		field := kind.Message().Fields().Get(i)
		flag := mirrorFlag(kind, field)
		if o.fields[flag] != nil {
			continue // a field of several kinds
		}
		o.fields[flag] = m
		help := map[string]string{
			"vni":     "network identifier of the copies to a collector",
			"session": "ERSPAN session",
			"local":   "source address of copies to a collector (default: that of the port that sends them)",
		}[flag]
		if help == "" {
			help = "address of a collector, for copies in " + strings.ToUpper(string(kind.Name()))
		}
		a.bind(cmd, m.Interface(), []fieldFlag{{flag: flag, field: string(field.Name()), help: help}})
	}
}

// mirrorFlag is the flag of a collector's field: --KIND for its address.
func mirrorFlag(kind, field protoreflect.FieldDescriptor) string {
	if field.Name() == "remote" {
		return string(kind.Name())
	}
	return string(field.Name())
}

// target puts the target of the flags into the mirror, and returns whether there is one.
func (o *mirrorOptions) target(cmd *cobra.Command) (bool, error) {
	var given protoreflect.FieldDescriptor
	for i := range mirrorKinds.Len() {
		kind := mirrorKinds.Get(i)
		if !cmd.Flags().Changed(string(kind.Name())) {
			continue
		}
		if given != nil {
			return false, input.Errorf("--"+string(kind.Name()), "one of "+mirrorKindFlags(), "'--%s' is given too",
				given.Name())
		}
		given = kind
	}
	if err := o.checkFields(cmd, given); err != nil || given == nil {
		return false, err
	}
	if given.Message() == nil {
		o.mirror.Target = &apiv1.Mirror_Port{Port: o.port}
		return true, nil
	}
	m := o.mirror.ProtoReflect().Mutable(given).Message()
	for i := range given.Message().Fields().Len() {
		field := given.Message().Fields().Get(i)
		from := o.fields[mirrorFlag(given, field)]
		m.Set(field, from.Get(from.Descriptor().Fields().ByName(field.Name())))
	}
	return true, nil
}

// checkFields refuses flags of fields that the kind of target does not have.
func (o *mirrorOptions) checkFields(cmd *cobra.Command, kind protoreflect.FieldDescriptor) error {
	for _, flag := range slices.Sorted(maps.Keys(o.fields)) {
		has := func(kind protoreflect.FieldDescriptor) bool {
			return kind != nil && kind.Message() != nil &&
				(string(kind.Name()) == flag || kind.Message().Fields().ByName(protoreflect.Name(flag)) != nil)
		}
		if !cmd.Flags().Changed(flag) || has(kind) {
			continue
		}
		var with []string
		for i := range mirrorKinds.Len() {
			if has(mirrorKinds.Get(i)) {
				with = append(with, "--"+string(mirrorKinds.Get(i).Name()))
			}
		}
		return input.Errorf("--"+flag, "with "+strings.Join(with, " or "), "is a setting of a collector")
	}
	return nil
}

// mirrorTarget is the target in one text: "port vm1", "erspan 203.0.113.9 session 7".
func mirrorTarget(m *apiv1.Mirror) string {
	kind := m.ProtoReflect().WhichOneof(mirrorKinds.Get(0).ContainingOneof())
	if kind == nil {
		return ""
	}
	if kind.Message() == nil {
		return "port " + m.GetPort()
	}
	target := m.ProtoReflect().Get(kind).Message()
	words := []string{string(kind.Name())}
	for i := range kind.Message().Fields().Len() {
		switch field := kind.Message().Fields().Get(i); field.Name() {
		case "remote":
			words = append(words, target.Get(field).String())
		case "local":
		default:
			words = append(words, string(field.Name()), target.Get(field).String())
		}
	}
	return strings.Join(words, " ")
}

func mirrorsNamed(a *app, name string) fetch[*apiv1.Mirror] {
	return listOf(a, apiv1.NewMirrorsClient, apiv1.MirrorsClient.List, &apiv1.MirrorListRequest{Name: name})
}

var mirrorNames = named(func(a *app) fetch[*apiv1.Mirror] { return mirrorsNamed(a, "") }, (*apiv1.Mirror).GetName)
