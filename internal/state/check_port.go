// SPDX-License-Identifier: Apache-2.0
package state

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
)

var fabricOnly = []protoreflect.Name{"vlan", "addresses"}

var hostOnly = []protoreflect.Name{"fabric"}

// A host port has mtu and mac of its fabric port.
var notHost = []protoreflect.Name{"mtu", "mac", "mode", "ring_full", "spread_workers", "polled_by"}

var tenantOnly = []protoreflect.Name{"vrf", "bridge", "gateways", "guest_mac", "guest_addresses", "proxy_arp",
	"mss_clamp", "offload", "unresolved_rate", "no_anycast_gateway", "stateful", "flow_limit", "flow_rate",
	"source_check", "allow_router", "allow_dhcp_server", "egress_rules", "ingress_rules", "egress_meter",
	"ingress_meter", "mirror", "dhcp4", "dhcp6", "router_advertisements", "slaac", "boot_addresses", "boot_routers",
	"boot_routes", "dns_servers", "dns_domain", "host_name", "ntp_servers", "lease_seconds", "boot_file", "boot_server"}

// A sub-port has them of its parent.
var notSubport = []protoreflect.Name{"queues", "offload", "mode", "ring_full", "spread_workers", "polled_by"}

var interfaceName = limits.Text(apiv1.Notation_NOTATION_INTERFACE)

func (l *loader) checkPort(path string, n *yaml.Node, m *apiv1.Port) {
	wrong, role := slices.Concat(hostOnly, tenantOnly), "fabric port"
	switch m.Role {
	case apiv1.PortRole_PORT_ROLE_TENANT:
		wrong, role = slices.Concat(hostOnly, fabricOnly), "tenant port"
	case apiv1.PortRole_PORT_ROLE_HOST:
		wrong, role = slices.Concat(fabricOnly, tenantOnly, notHost), "host port"
		l.checkHost(path, n, m)
	}
	if m.GetSubport() != nil && m.Role == apiv1.PortRole_PORT_ROLE_TENANT {
		wrong, role = slices.Concat(wrong, notSubport), "sub-port"
	}
	for _, name := range wrong {
		if at := child(n, string(name)); at != nil {
			l.fail(l.at(at), fmt.Sprintf("%s.%s", path, name), "", "a %s does not have this field", role)
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

func (l *loader) checkHost(path string, n *yaml.Node, m *apiv1.Port) {
	if m.Fabric == "" {
		l.fail(l.at(n), path+".fabric", "the name of a fabric port", "missing: a host port shares a fabric port")
	}
	if m.GetTap() == nil && m.GetDpdk() == nil {
		l.fail(l.at(n), path, "tap, dpdk", "the device has no kernel interface, which a host port needs")
	}
}

// subports checks that the parents of sub-ports are tenant ports with a device, whose MTU is large enough.
func (l *loader) subports() {
	ports := map[string]*apiv1.Port{}
	for _, p := range l.state.Ports {
		ports[p.Name] = p
	}
	for _, p := range l.state.Ports {
		sub := p.GetSubport()
		if sub == nil {
			continue
		}
		at, parent := l.defs["ports"][p.Name], ports[sub.Parent]
		switch {
		case p.Role != apiv1.PortRole_PORT_ROLE_TENANT:
			l.fail(at, "ports", "PORT_ROLE_TENANT", "the sub-port '%s' is not a tenant port", p.Name)
		case parent == nil: // lookup() says so
		case parent.Role != apiv1.PortRole_PORT_ROLE_TENANT || parent.GetSubport() != nil:
			l.fail(at, "ports", "a tenant port with a device", "'%s', the parent of '%s', cannot have sub-ports",
				sub.Parent, p.Name)
		case mtuOf(p) > mtuOf(parent):
			l.fail(at, "ports", fmt.Sprintf("up to %d", mtuOf(parent)),
				"the MTU of '%s' is larger than that of its parent '%s'", p.Name, sub.Parent)
		}
	}
}

func mtuOf(p *apiv1.Port) uint32 {
	if p.Mtu == 0 {
		return uint32(limits.Of(p.ProtoReflect().Descriptor().Fields().ByName("mtu")).Default[0])
	}
	return p.Mtu
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
	case m.Vrf == "" && len(m.Gateways) > 0:
		l.fail(l.at(child(n, "gateways")), path+".gateways", "vrf", "gateways need a VRF")
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
	case *apiv1.Port_Subport:
		return fmt.Sprintf("subport %s %d %d", d.Subport.Parent, d.Subport.OuterVlan, d.Subport.Vlan)
	}
	return ""
}
