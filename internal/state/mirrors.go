// SPDX-License-Identifier: Apache-2.0
package state

import (
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
)

func (l *loader) checkMirror(path string, n *yaml.Node, m *apiv1.Mirror) {
	of := m.ProtoReflect()
	kind := of.WhichOneof(of.Descriptor().Oneofs().ByName("target"))
	if kind == nil || kind.Message() == nil {
		return
	}
	end := func(name protoreflect.Name) (netip.Addr, error) {
		return netip.ParseAddr(of.Get(kind).Message().Get(kind.Message().Fields().ByName(name)).String())
	}
	remote, err := end("remote")
	local, err2 := end("local")
	if err == nil && err2 == nil && remote.Is4() != local.Is4() {
		l.fail(l.at(n), path+"."+string(kind.Name())+".local",
			"an address of the remote's family", "'%s' and '%s' are not of one family", local, remote)
	}
}

// Mirrors refer to ports, and ports and rules refer to mirrors. So mirrors are added after ports and rules, which
// then get their mirrors.

// mirrorsLess deletes mirrors whose target port is deleted first, and removes them from ports and rules.
func (d *differ) mirrorsLess() {
	s := *d.haveState
	s.Ports, s.Rules = slices.Clone(s.Ports), slices.Clone(s.Rules)
	d.haveState = &s
	d.gone["mirrors"] = map[string]string{}
	for _, m := range s.Mirrors {
		if d.isGone("ports", m.GetPort()) {
			d.gone["mirrors"][m.Name] = ""
			if d.want["mirrors"][m.Name] != nil {
				d.gone["mirrors"][m.Name] = "its port '" + m.GetPort() + "' is deleted first"
			}
		}
	}
	for i, have := range s.Ports {
		if !d.isGone("mirrors", have.Mirror) {
			continue
		}
		less := proto.CloneOf(have)
		less.Mirror = ""
		d.op(Set, "ports", less, have, "its mirror's port is deleted first")
		s.Ports[i], d.have["ports"][have.Name] = less, less
	}
	for i, have := range s.Rules {
		if !d.isGone("mirrors", have.Mirror) {
			continue
		}
		less := proto.CloneOf(have)
		less.Mirror = ""
		d.op(Set, "rules", less, have, "its mirror's port is deleted first")
		s.Rules[i], d.have["rules"][keyOf(have)] = less, less
	}
	d.delGone("mirrors")
}

// hasMirror says whether a mirror exists and stays. No mirror ("") counts as one.
func (d *differ) hasMirror(name string) bool {
	return name == "" || d.have["mirrors"][name] != nil && !d.isGone("mirrors", name)
}

// withMirror returns a wanted port as it can be before mirrors are added: with the mirror that it has, or without one.
func (d *differ) withMirror(want *apiv1.Port) *apiv1.Port {
	if d.hasMirror(want.Mirror) {
		return want
	}
	now := proto.CloneOf(want)
	now.Mirror = ""
	if have, there := d.have["ports"][want.Name].(*apiv1.Port); there && !d.isGone("ports", want.Name) {
		now.Mirror = have.Mirror
	}
	return now
}

func (d *differ) ruleWithMirror(want *apiv1.Rule) *apiv1.Rule {
	if d.hasMirror(want.Mirror) {
		return want
	}
	now := proto.CloneOf(want)
	now.Mirror = ""
	if have, there := d.have["rules"][keyOf(want)].(*apiv1.Rule); there {
		now.Mirror = have.Mirror
	}
	return now
}

func (d *differ) mirrors() {
	for _, want := range d.wantState.Mirrors {
		have := d.have["mirrors"][want.Name]
		switch {
		case have == nil || d.isGone("mirrors", want.Name):
			d.op(Add, "mirrors", want, nil, "")
		case len(changed(want, have)) > 0:
			d.op(Set, "mirrors", want, have, "")
		}
	}
	for _, want := range d.wantState.Ports {
		if before := d.withMirror(want); before != want {
			d.op(Set, "ports", want, before, "")
		}
	}
	for _, want := range d.wantState.Rules {
		if before := d.ruleWithMirror(want); before != want {
			d.op(Set, "rules", want, before, "")
		}
	}
}
