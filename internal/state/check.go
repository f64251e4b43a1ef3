// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

// check finds fields of an object that contradict each other.
func (l *loader) check(section, path string, n *yaml.Node, m proto.Message) {
	switch m := m.(type) {
	case *apiv1.Settings:
		l.checkPorts(path, n, m)
	case *apiv1.Vrf:
		if m.Name == FabricVrf {
			l.fail(l.at(n), path+".name",
				"another name", "the VRF '%s' belongs to the underlay and always exists; leave it out", FabricVrf)
		}
	case *apiv1.Meter:
		l.checkMeter(path, n, m)
	case *apiv1.Mirror:
		l.checkMirror(path, n, m)
	case *apiv1.Worker:
		l.checkWorker(path, n, m)
	case *apiv1.Port:
		l.checkPort(path, n, m)
	case *apiv1.Rule:
		l.checkRule(path, n, m)
	case *apiv1.Nexthop:
		l.checkNexthop(path, n, m)
	case *apiv1.NatRule:
		l.checkNat(path, n, m)
	case *apiv1.Service:
		l.checkService(path, n, m)
	}
}

func (l *loader) checkWorker(path string, n *yaml.Node, m *apiv1.Worker) {
	if m.Target != "" && m.Role == apiv1.WorkerRole_WORKER_ROLE_FORWARDING {
		l.fail(l.at(child(n, "target")), path+".target", "a role such as isolated_rx",
			"a forwarding worker finishes its packets itself")
	}
	for _, w := range l.state.Workers {
		if w.Cpu == m.Cpu && (keepsCPU(w) || keepsCPU(m)) {
			l.fail(l.at(child(n, "cpu")), path+".cpu", "another CPU, or idle: yield, sleep or interrupt for both",
				"%d is the CPU of worker %d, and a worker that is idle with spin or pause keeps its CPU", m.Cpu, w.Id)
		}
	}
}

// checkPorts checks that no UDP port belongs to two tunnel protocols.
func (l *loader) checkPorts(path string, n *yaml.Node, m *apiv1.Settings) {
	owner := map[uint64]protoreflect.Name{}
	for fields, i := m.ProtoReflect().Descriptor().Fields(), 0; i < fields.Len(); i++ {
		fd := fields.Get(i)
		if !fd.IsList() || !strings.HasSuffix(string(fd.Name()), "_ports") {
			continue
		}
		for ports, k := m.ProtoReflect().Get(fd).List(), 0; k < ports.Len(); k++ {
			port := ports.Get(k).Uint()
			if other, taken := owner[port]; taken && other != fd.Name() {
				l.fail(l.at(n), path+"."+string(fd.Name()),
					"other ports than those of "+string(other), "%d is also one of %s", port, other)
			}
			owner[port] = fd.Name()
		}
	}
}

func (l *loader) checkNexthop(path string, n *yaml.Node, m *apiv1.Nexthop) {
	r := m.ProtoReflect()
	l.kinds[keyOf(m)] = string(r.WhichOneof(r.Descriptor().Oneofs().ByName("kind")).Name())
	switch {
	case m.GetTunnel() != nil:
		l.checkTunnel(path+".tunnel", child(n, "tunnel"), m.GetTunnel())
	case m.GetPort() != nil:
		if m.GetPort().Address == "" && m.GetPort().Mac == "" {
			l.fail(l.at(n), path+".port", "an address or a mac", "the host behind the port is not given")
		}
	case m.GetGroup() != nil:
		l.checkGroup(path+".group.members", child(n, "group"), m.GetGroup())
	}
}

func (l *loader) checkGroup(path string, n *yaml.Node, g *apiv1.GroupNexthop) {
	if len(g.Members) == 0 {
		l.fail(l.at(n), path, "at least one", "the group has no members")
	}
	seen := map[uint32]bool{}
	for i, member := range g.Members {
		field := fmt.Sprintf("%s[%d].nexthop", path, i)
		if seen[member.Nexthop] {
			l.fail(l.at(n), field, "each next hop once, with a weight", "next hop %d is given twice", member.Nexthop)
		}
		seen[member.Nexthop] = true
		l.members = append(l.members, pending{"nexthops", strconv.Itoa(int(member.Nexthop)), field, l.at(n)})
	}
}

func (l *loader) checkTunnel(path string, n *yaml.Node, t *apiv1.TunnelNexthop) {
	own := limits.Encapsulation(t.Encap)
	if own.MirrorsOnly {
		l.fail(l.at(child(n, "encap")), path+".encap", encapNames(), "%s is for mirrors", t.Encap)
	}
	for _, name := range limits.EncapsulationFields() {
		if at := child(n, name); at != nil && !slices.Contains(own.Fields, name) {
			l.fail(l.at(at), path+"."+name, "", "%s does not have this field", t.Encap)
		}
	}
	if slices.Contains(own.Fields, "vni") && t.Vni == 0 {
		l.fail(l.at(n), path+".vni", numbers(t, "vni"), "missing")
	}
	if slices.Contains(own.Fields, "label") && t.Label == 0 {
		l.fail(l.at(n), path+".label", numbers(t, "label"), "missing")
	}
	if t.Local != "" && strings.Contains(t.Local, ":") != strings.Contains(t.Remote, ":") {
		l.fail(l.at(n), path+".local", "an address of the family of remote", "'%s' and '%s' are not of one family",
			t.Local, t.Remote)
	}
}

func numbers(m proto.Message, field protoreflect.Name) string {
	return limits.Numbers(m.ProtoReflect().Descriptor().Fields().ByName(field))
}

func encapNames() string {
	var names []string
	for _, e := range limits.Encapsulations() {
		names = append(names, e.String())
	}
	return strings.Join(names, ", ")
}

func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
