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

var fabricOnly = []protoreflect.Name{"vlan", "addresses"}

var hostOnly = []protoreflect.Name{"fabric"}

// A host port has mtu and mac of its fabric port.
var notHost = []protoreflect.Name{"mtu", "mac", "mode", "ring_full", "spread_workers", "polled_by"}

var tenantOnly = []protoreflect.Name{"vrf", "bridge", "gateways", "guest_mac", "guest_addresses", "proxy_arp",
	"mss_clamp", "unresolved_rate", "no_anycast_gateway", "stateful", "flow_limit", "flow_rate", "source_check",
	"egress_rules", "ingress_rules", "egress_meter", "ingress_meter", "mirror"}

var interfaceName = limits.Text(apiv1.Notation_NOTATION_INTERFACE)

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
	}
}

func (l *loader) checkPort(path string, n *yaml.Node, m *apiv1.Port) {
	wrong, role := slices.Concat(hostOnly, tenantOnly), "fabric"
	switch m.Role {
	case apiv1.PortRole_PORT_ROLE_TENANT:
		wrong, role = slices.Concat(hostOnly, fabricOnly), "tenant"
	case apiv1.PortRole_PORT_ROLE_HOST:
		wrong, role = slices.Concat(fabricOnly, tenantOnly, notHost), "host"
		l.checkHost(path, n, m)
	}
	for _, name := range wrong {
		if at := child(n, string(name)); at != nil {
			l.fail(l.at(at), fmt.Sprintf("%s.%s", path, name), "", "a %s port does not have this field", role)
		}
	}
	if tap := m.GetTap(); tap != nil && tap.Ifname == "" && len(m.Name) > int(interfaceName.Longest) {
		l.fail(l.at(n), path+".tap.ifname", interfaceName.Valid,
			"missing, and the port's name '%s' is too long for the kernel", m.Name)
	}
	if m.Role == apiv1.PortRole_PORT_ROLE_TENANT {
		l.checkTenant(path, n, m)
	}
	slices.SortFunc(m.SpreadWorkers, byWorker)
	slices.SortFunc(m.PolledBy, byWorker)
	device := deviceOf(m)
	if first, twice := l.inuse[device]; twice {
		l.fail(l.at(n), path, "a device for each port", "the port in line %d has the same device", first.line)
		return
	}
	l.inuse[device] = l.at(n)
}

func (l *loader) checkWorker(path string, n *yaml.Node, m *apiv1.Worker) {
	if m.Target != "" && m.Role == apiv1.WorkerRole_WORKER_ROLE_FORWARDING {
		l.fail(l.at(child(n, "target")), path+".target", "a role such as WORKER_ROLE_ISOLATED_RX",
			"a forwarding worker finishes its packets itself")
	}
}

func (l *loader) checkHost(path string, n *yaml.Node, m *apiv1.Port) {
	if m.Fabric == "" {
		l.fail(l.at(n), path+".fabric", "the name of a fabric port", "missing: a host port shares a fabric port")
	}
	if m.GetTap() == nil && m.GetDpdk() == nil {
		l.fail(l.at(n), path, "tap, dpdk", "the device has no kernel interface, which a host port needs")
	}
}

// hosts checks that each fabric port has at most one host port, and that addresses are steered only where it has one.
func (l *loader) hosts() {
	roles, first := map[string]apiv1.PortRole{}, map[string]string{}
	for _, p := range l.state.Ports {
		roles[p.Name] = p.Role
	}
	for _, p := range l.state.Ports {
		if p.Role != apiv1.PortRole_PORT_ROLE_HOST {
			continue
		}
		at := l.defs["ports"][p.Name]
		if role, there := roles[p.Fabric]; there && role != apiv1.PortRole_PORT_ROLE_FABRIC {
			l.fail(at, "ports", "a fabric port", "the host port '%s' shares '%s', which is not a fabric port", p.Name,
				p.Fabric)
		}
		if other := first[p.Fabric]; other != "" {
			l.fail(at, "ports", "one host port for each fabric port",
				"the host ports '%s' and '%s' share '%s'", other, p.Name, p.Fabric)
		}
		first[p.Fabric] = p.Name
	}
	for _, n := range l.state.Nexthops {
		if port := n.GetPort().GetPort(); roles[port] == apiv1.PortRole_PORT_ROLE_HOST {
			l.fail(l.defs["nexthops"][keyOf(n)], "nexthops", "a fabric or tenant port",
				"'%s' is the kernel's: packets are not routed to it", port)
		}
	}
	for _, s := range l.state.Steers {
		if _, there := roles[s.Port]; there && first[s.Port] == "" {
			l.fail(l.defs["host_steers"][keyOf(s)],
				"host_steers", "a fabric port with a host port", "the port '%s' has no host port", s.Port)
		}
	}
}

func (l *loader) checkTenant(path string, n *yaml.Node, m *apiv1.Port) {
	switch {
	case m.Vrf == FabricVrf:
		l.fail(l.at(child(n, "vrf")), path+".vrf", "another VRF", "'%s' belongs to the underlay", FabricVrf)
	case m.Vrf == "" && m.Bridge == "":
		l.fail(l.at(n), path, "vrf, bridge or both", "a tenant port needs a VRF or a bridge")
	case m.SourceCheck == apiv1.SourceCheck_SOURCE_CHECK_REVERSE_PATH && m.Vrf == "":
		l.fail(l.at(child(n, "source_check")), path+".source_check", "vrf, or SOURCE_CHECK_STRICT",
			"looks up a route, which needs a VRF")
	case m.SourceCheck == apiv1.SourceCheck_SOURCE_CHECK_STRICT && m.GuestMac == "":
		l.fail(l.at(child(n, "source_check")), path+".source_check", "guest_mac",
			"compares with the guest's MAC, which is not set")
	case !m.Stateful && (m.EgressRules != "" || m.IngressRules != ""):
		l.fail(l.at(n), path, "with stateful: true", "rules decide about flows, which only stateful ports keep")
	case m.Vrf == "" && m.Stateful:
		l.fail(l.at(child(n, "stateful")), path+".stateful", "vrf", "only routed ports keep flows")
	case !m.Stateful && m.FlowLimit != 0:
		l.fail(l.at(child(n, "flow_limit")), path+".flow_limit", "stateful: true",
			"only stateful ports have flows to limit")
	case !m.Stateful && m.FlowRate != 0:
		l.fail(l.at(child(n, "flow_rate")), path+".flow_rate", "stateful: true",
			"only stateful ports have flows to limit")
	case !m.Stateful && m.EgressMeter != "":
		l.fail(l.at(child(n, "egress_meter")), path+".egress_meter", "stateful: true",
			"meters limit flows, which only stateful ports keep")
	case !m.Stateful && m.IngressMeter != "":
		l.fail(l.at(child(n, "ingress_meter")), path+".ingress_meter", "stateful: true",
			"meters limit flows, which only stateful ports keep")
	case !m.Stateful && m.Mirror != "":
		l.fail(l.at(child(n, "mirror")), path+".mirror", "stateful: true",
			"mirrors copy flows, which only stateful ports keep")
	case m.Bridge != "" && (m.EgressRules != "" || m.IngressRules != ""):
		l.fail(l.at(n), path, "without bridge", "bridged frames would pass the rules, which see routed packets only")
	case m.Bridge != "" && (m.EgressMeter != "" || m.IngressMeter != ""):
		l.fail(l.at(n), path, "without bridge", "bridged frames would pass the meter, which limits routed packets only")
	case m.Bridge != "" && m.Mirror != "":
		l.fail(l.at(n), path, "without bridge",
			"bridged frames would pass the mirror, which copies routed packets only")
	case m.Vrf == "" && (len(m.Gateways) > 0 || len(m.GuestAddresses) > 0):
		l.fail(l.at(n), path, "vrf", "gateways and guest addresses need a VRF")
	}
}

// deviceOf identifies the device of a port, which only one port can have.
func deviceOf(m *apiv1.Port) string {
	switch d := m.Device.(type) {
	case *apiv1.Port_Dpdk:
		first, _, _ := strings.Cut(d.Dpdk.Devargs, ",")
		return "dpdk " + first
	case *apiv1.Port_Tap:
		ifname := d.Tap.Ifname
		if ifname == "" {
			ifname = m.Name
		}
		return "tap " + d.Tap.Netns + " " + ifname
	case *apiv1.Port_Memif:
		return fmt.Sprintf("memif %s %d", d.Memif.Socket, d.Memif.Id)
	case *apiv1.Port_Vhost:
		return "vhost " + d.Vhost.Socket
	}
	return ""
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

// finish checks what can only be checked when the whole file has been read.
func (l *loader) finish() {
	for _, ref := range l.refs {
		l.lookup(ref)
	}
	for _, m := range l.members {
		if kind := l.kinds[m.key]; kind != "" && kind != "port" && kind != "tunnel" {
			l.fail(m.at, m.field, "a next hop of kind port or tunnel", "next hop %s of kind %s cannot be in a group",
				m.key, kind)
		}
	}
	l.tunnels()
	l.portsOfMacs()
	l.hosts()
	l.vrfsOfBridges()
	l.ownRoutes()
	l.clashesOfNat()
	l.duplicateRoutes()
	if l.state.Settings == nil {
		l.state.Settings = DefaultSettings()
	}
}

// tunnels checks that bridges and MAC addresses refer only to next hops that are tunnels.
func (l *loader) tunnels() {
	for _, ref := range l.refs {
		kind := l.kinds[ref.key]
		if ref.section == "nexthops" && kind != "" && kind != "tunnel" && bridgesRef(ref.field) {
			l.fail(ref.at, ref.field, "a next hop of kind tunnel", "next hop %s is of kind %s", ref.key, kind)
		}
	}
}

func bridgesRef(field string) bool {
	return strings.HasPrefix(field, "bridges[") || strings.HasPrefix(field, "macs[")
}

func (l *loader) portsOfMacs() {
	bridge := map[string]string{}
	for _, p := range l.state.Ports {
		bridge[p.Name] = p.Bridge
	}
	for _, m := range l.state.Macs {
		if at := l.defs["macs"][keyOf(m)]; m.GetPort() != "" && bridge[m.GetPort()] != m.Bridge {
			l.fail(at, "macs", "a port of the bridge", "the port '%s' is not in the bridge '%s'", m.GetPort(), m.Bridge)
		}
	}
}

// vrfsOfBridges checks that all ports of a bridge are in the same VRF.
func (l *loader) vrfsOfBridges() {
	first := map[string]*apiv1.Port{}
	for _, p := range l.state.Ports {
		other := first[p.Bridge]
		switch {
		case p.Bridge == "" || p.Vrf == "":
		case other == nil:
			first[p.Bridge] = p
		case other.Vrf != p.Vrf:
			l.fail(l.defs["ports"][p.Name], "ports", "the VRF of the bridge's other ports",
				"the port '%s' is in VRF '%s', but '%s' of the same bridge is in '%s'",
				p.Name, p.Vrf, other.Name, other.Vrf)
		}
	}
}

// ownRoutes notes the prefixes for which a node adds routes by itself, and finds ports that have the same prefix.
func (l *loader) ownRoutes() {
	l.own = map[Route]string{}
	owner := map[Route]string{}
	for _, p := range l.state.Ports {
		at := l.defs["ports"][p.Name]
		for _, key := range addressKeys(p) {
			if other := owner[key]; other != "" && other != p.Name {
				l.fail(at, "ports",
					"a prefix for each port", "the ports '%s' and '%s' both have %s in VRF '%s'", p.Name, other,
					key.Prefix, key.Vrf)
			}
			owner[key] = p.Name
		}
		for _, prefix := range ownPrefixes(p) {
			l.own[prefix] = p.Name
		}
	}
}

func (l *loader) lookup(ref pending) {
	if ref.section == "vrfs" && ref.key == FabricVrf {
		return
	}
	if _, found := l.defs[ref.section][ref.key]; !found {
		l.fail(ref.at, ref.field, l.known(ref.section), "there is no %s '%s' in this file", nounOf[ref.section].name,
			ref.key)
	}
}

// known lists the names of a section, only some of them if there are many.
func (l *loader) known(section string) string {
	const some = 8
	var keys []string
	for key := range l.defs[section] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		x, err1 := strconv.Atoi(a)
		y, err2 := strconv.Atoi(b)
		if err1 == nil && err2 == nil {
			return x - y
		}
		return strings.Compare(a, b)
	})
	if section == "vrfs" {
		keys = append([]string{FabricVrf}, keys...)
	}
	switch {
	case len(keys) == 0:
		return fmt.Sprintf("none, because the section %s is empty", section)
	case len(keys) > some:
		return fmt.Sprintf("%s and %d more", strings.Join(keys[:some], ", "), len(keys)-some)
	}
	return strings.Join(keys, ", ")
}

// duplicateRoutes sorts the routes and finds prefixes that are given twice, or that the node has routes for by itself.
func (l *loader) duplicateRoutes() {
	routes := l.state.Routes
	if !slices.IsSortedFunc(routes, CompareRoutes) {
		slices.SortStableFunc(routes, CompareRoutes)
	}
	for i := range routes {
		if port := l.own[Route{Vrf: routes[i].Vrf, Prefix: routes[i].Prefix}]; port != "" {
			l.fail(position{int(routes[i].Line), 1}, "routes", "another prefix",
				"the node adds %s in VRF '%s' by itself for the port '%s'", routes[i].Prefix, routes[i].Vrf, port)
		}
		if i == 0 {
			continue
		}
		if CompareRoutes(routes[i-1], routes[i]) == 0 {
			l.fail(position{int(routes[i].Line), 1}, "routes", "each prefix of a VRF once",
				"%s in VRF '%s' is already given in line %d", routes[i].Prefix, routes[i].Vrf, routes[i-1].Line)
		}
	}
}
