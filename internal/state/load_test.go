// SPDX-License-Identifier: Apache-2.0
package state

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/corelane/corelane/internal/api/v1"
	"github.com/corelane/corelane/internal/limits"
	"github.com/corelane/corelane/internal/rounds"
)

var update = flag.Bool("update", false, "write the files that docs/ has from this package")

const (
	examplePath = "../../docs/examples/node.yaml"
	schemaPath  = "../../docs/node.schema.json"
)

func write(t testing.TB, s *State) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func equalStates(a, b *State) bool {
	if (a.Workers == nil) != (b.Workers == nil) || len(a.Routes) != len(b.Routes) {
		return false
	}
	for i := range a.Routes {
		if CompareRoutes(a.Routes[i], b.Routes[i]) != 0 || a.Routes[i].Nexthop != b.Routes[i].Nexthop {
			return false
		}
	}
	for _, section := range sections {
		x, y := a.objects(section), b.objects(section)
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !proto.Equal(x[i], y[i]) {
				return false
			}
		}
	}
	return true
}

func TestWriteAndLoadGiveTheSameState(t *testing.T) {
	rounds.Seeds(t, 100, 500, func(seed uint64) {
		s := randomState(rand.New(rand.NewPCG(seed, 3)))
		text := write(t, s)
		back, err := Load("written.yaml", []byte(text))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if !equalStates(s, back) {
			t.Fatalf("seed %d:\n%s\nbecame\n%s", seed, text, write(t, back))
		}
		if again := write(t, back); again != text {
			t.Fatalf("seed %d: written differently the second time:\n%s\n%s", seed, text, again)
		}
	})
}

// The example of the documentation has every field, and an export of it reads back as the same state.
func TestExampleShowsEveryField(t *testing.T) {
	s, err := LoadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[protoreflect.Name]bool{}
	var walk func(md protoreflect.MessageDescriptor)
	walk = func(md protoreflect.MessageDescriptor) {
		if seen[md.Name()] {
			return
		}
		seen[md.Name()] = true
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			if ruleOf(fd).readOnly {
				continue
			}
			if !strings.Contains(string(text), string(fd.Name())+":") {
				t.Errorf("%s is not in %s", fd.FullName(), examplePath)
			}
			if fd.Kind() == protoreflect.MessageKind {
				walk(fd.Message())
			}
		}
	}
	for _, section := range sections {
		walk(newMessage(section).ProtoReflect().Descriptor())
	}
	back, err := Load("written.yaml", []byte(write(t, s)))
	if err != nil || !equalStates(s, back) {
		t.Errorf("the example does not survive export: %v", err)
	}
}

func TestSchemaIsTheOneInDocs(t *testing.T) {
	schema, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaPath, schema, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(schemaPath)
	if err != nil || !bytes.Equal(old, schema) {
		t.Errorf("%s is out of date (%v): go test ./internal/state -update", schemaPath, err)
	}
}

// Defaults are valid values, references name sections, notations belong to text, and limits of lists to lists.
func TestLimitsFitTheirFields(t *testing.T) {
	for d := range rules() {
		fd, ok := d.(protoreflect.FieldDescriptor)
		if !ok {
			continue
		}
		l := limits.Of(fd)
		for _, n := range l.Default {
			if !limits.Number(fd, n) {
				t.Errorf("%s: default %d; valid: %s", fd.FullName(), n, limits.Numbers(fd))
			}
		}
		if l.Ref != "" && !slices.Contains(sections, l.Ref) {
			t.Errorf("%s: there is no section '%s'", fd.FullName(), l.Ref)
		}
		if l.Notation != 0 && fd.Kind() != protoreflect.StringKind {
			t.Errorf("%s: a notation, but not text", fd.FullName())
		}
		if (l.Items > 0 || l.Distinct) && !fd.IsList() {
			t.Errorf("%s: limits of a list, but not a list", fd.FullName())
		}
		if l.Max > 0 && l.Max < l.Min {
			t.Errorf("%s: the range from %d to %d is empty", fd.FullName(), l.Min, l.Max)
		}
	}
}

// An object with a fault of its own exists: what names it is not a second fault.
func TestOneFaultOnce(t *testing.T) {
	_, err := Load("f", []byte("nexthops:\n- {id: 100, tunnel: {encap: ENCAP_MPLSOUDP, remote: 192.0.2.9, label: x}}\n"+
		"routes:\n- {vrf: fabric, prefix: 10.0.0.0/8, nexthop: 100}\n"))
	if list, ok := err.(Errors); !ok || len(list) != 1 || list[0].Field != "nexthops[0].tunnel.label" {
		t.Errorf("%v", err)
	}
}

func TestTooManyVRFs(t *testing.T) {
	var text strings.Builder
	text.WriteString("vrfs:\n")
	for i := range 16384 {
		fmt.Fprintf(&text, "- name: v%d\n", i)
	}
	_, err := Load("f", []byte(text.String()))
	if err == nil || err.Error() != "f:1:1: vrfs: 16384 are too many; valid: up to 16383" {
		t.Errorf("%v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown section", "vrfs: []\nvrf: []\n", "f:2:1: vrf: unknown key; valid: settings workers vrfs"},
		{"unknown key", "vrfs:\n  - name: red\n    colour: 3\n", "f:3:5: vrfs[0].colour: unknown key; valid: name id"},
		{"read only", "vrfs:\n  - {name: red, router_mac: \"02:00:00:00:00:01\"}\n",
			"f:2:17: vrfs[0].router_mac: read only"},
		{"not a list", "vrfs: red\n", "f:1:7: vrfs: not a list"},
		{"not a mapping", "vrfs: [red]\n", "f:1:8: vrfs[0]: not a mapping; valid: a mapping with name id"},
		{"number as text", "vrfs: [{name: 10}]\n",
			"f:1:15: vrfs[0].name: '10' is not text but a number: put it in quotes"},
		{"text as number", "vrfs: [{name: a, id: one}]\n",
			"f:1:22: vrfs[0].id: 'one' is not a number; valid: 1 to 16383"},
		{"out of range", "vrfs: [{name: a, id: 16384}]\n",
			"f:1:22: vrfs[0].id: '16384' is out of range; valid: 1 to 16383"},
		{"bool", "bridges: [{name: a, no_learning: yes}]\n",
			"f:1:34: bridges[0].no_learning: 'yes' is neither true nor false"},
		{"enum", "bridges: [{name: a, unknown_unicast: DROP}]\n",
			"'DROP' is not accepted; valid: flood, drop"},
		{"name too long", "vrfs: [{name: " + strings.Repeat("a", 32) + "}]\n",
			"is not accepted; valid: 1 to 31 of A-Z"},
		{"missing", "labels: [{vrf: fabric}]\n", "f:1:10: labels[0].label: missing; valid: 16 to 1048575"},
		{"missing oneof", "labels: [{label: 20}]\n", "labels[0]: target missing; valid: one of vrf, bridge, nexthop"},
		{"two of a oneof", "labels: [{label: 20, vrf: fabric, nexthop: 1}]\n",
			"labels[0].nexthop: 'vrf' is already given; valid: one of vrf, bridge, nexthop"},
		{"twice", "vrfs:\n  - {name: a}\n  - {name: a}\n", "f:3:5: vrfs[1]: vrf a is already given in line 2"},
		{"key twice", "vrfs: [{name: a, name: b}]\n", "f:1:18: vrfs[0].name: already given in line 1"},
		{"section twice", "vrfs: []\nports: []\nvrfs: []\n", "f:3:1: vrfs: already given in line 1"},
		{"no such VRF", "vrfs: [{name: a}]\nlabels: [{label: 20, vrf: b}]\n",
			"f:2:27: labels[0].vrf: there is no vrf 'b' in this file; valid: fabric, a"},
		{"no such next hop", "bridges: [{name: a, flood: [4]}]\n",
			"f:1:29: bridges[0].flood[0]: there is no nexthop '4' in this file"},
		{"host bits", "nexthops: [{id: 1, discard: {}}]\nroutes:\n  - {vrf: fabric, prefix: 10.0.0.1/8, nexthop: 1}\n",
			"f:3:27: routes[0].prefix: '10.0.0.1/8' has host bits set: '10.0.0.0/8' has none; valid: a prefix " +
				"without host bits"},
		{"route twice", "nexthops: [{id: 1, discard: {}}]\nroutes:\n  - {vrf: fabric, prefix: \"2001:db8::/32\", " +
			"nexthop: 1}\n" +
			"  - {vrf: fabric, prefix: \"2001:0db8::/32\", nexthop: 1}\n",
			"f:4:1: routes: 2001:db8::/32 in VRF 'fabric' is already given in line 3"},
		{"multicast MAC", "neighbors: [{port: p, address: 192.0.2.1, mac: \"01:00:5e:00:00:01\"}]\n",
			"is not accepted; valid: a unicast MAC"},
		{"fabric with VRF", "ports: [{name: p, role: PORT_ROLE_FABRIC, vhost: {socket: /s}, proxy_arp: true}]\n",
			"ports[0].proxy_arp: a fabric port does not have this field"},
		{"sub-port of a sub-port", "bridges: [{name: b}]\n" +
			"ports: [{name: p, role: PORT_ROLE_TENANT, tap: {}, bridge: b}, " +
			"{name: q, role: PORT_ROLE_TENANT, subport: {parent: p, vlan: 1}, bridge: b}, " +
			"{name: r, role: PORT_ROLE_TENANT, subport: {parent: q, vlan: 1}, bridge: b}]\n",
			"'q', the parent of 'r', cannot have sub-ports"},
		{"sub-port with a larger MTU", "bridges: [{name: b}]\n" +
			"ports: [{name: p, role: PORT_ROLE_TENANT, tap: {}, bridge: b, mtu: 1400}, " +
			"{name: q, role: PORT_ROLE_TENANT, subport: {parent: p, vlan: 1}, bridge: b}]\n",
			"the MTU of 'q' is larger than that of its parent 'p'; valid: up to 1400"},
		{"sub-port that is no tenant", "ports: [{name: q, role: PORT_ROLE_FABRIC, subport: {parent: q, vlan: 1}}]\n",
			"the sub-port 'q' is not a tenant port"},
		{"queues of a sub-port", "bridges: [{name: b}]\n" +
			"ports: [{name: p, role: PORT_ROLE_TENANT, tap: {}, bridge: b}, " +
			"{name: q, role: PORT_ROLE_TENANT, subport: {parent: p, vlan: 1}, bridge: b, queues: 2}]\n",
			"ports[1].queues: a sub-port does not have this field"},
		{"one tag twice", "bridges: [{name: b}]\nports: [{name: p, role: PORT_ROLE_TENANT, tap: {}, bridge: b}, " +
			"{name: q, role: PORT_ROLE_TENANT, subport: {parent: p, vlan: 1}, bridge: b}, " +
			"{name: r, role: PORT_ROLE_TENANT, subport: {parent: p, vlan: 1}, bridge: b}]\n", "has the same device"},
		{"host without fabric", "ports: [{name: p, role: PORT_ROLE_HOST, tap: {}}]\n", "ports[0].fabric: missing"},
		{"host with an MTU", "ports:\n- {name: f, role: PORT_ROLE_FABRIC, vhost: {socket: /f}}\n" +
			"- {name: p, role: PORT_ROLE_HOST, tap: {}, fabric: f, mtu: 1400}\n",
			"ports[1].mtu: a host port does not have this field"},
		{"host without interface", "ports:\n- {name: f, role: PORT_ROLE_FABRIC, vhost: {socket: /f}}\n- {name: p, " +
			"role: PORT_ROLE_HOST, vhost: {socket: /p}, fabric: f}\n",
			"has no kernel interface, which a host port needs; valid: tap, dpdk"},
		{"host of a host", "ports:\n- {name: f, role: PORT_ROLE_FABRIC, vhost: {socket: /f}}\n- {name: p, role: " +
			"PORT_ROLE_HOST, tap: {}, fabric: f}\n- {name: q, role: PORT_ROLE_HOST, tap: {}, fabric: p}\n",
			"the host port 'q' shares 'p', which is not a fabric port"},
		{"two hosts", "ports:\n- {name: f, role: PORT_ROLE_FABRIC, vhost: {socket: /f}}\n" +
			"- {name: p, role: PORT_ROLE_HOST, tap: {}, fabric: f}\n" +
			"- {name: q, role: PORT_ROLE_HOST, tap: {}, fabric: f}\n", "the host ports 'p' and 'q' share 'f'"},
		{"fabric of a fabric", "ports:\n- {name: f, role: PORT_ROLE_FABRIC, vhost: {socket: /f}}\n" +
			"- {name: p, role: PORT_ROLE_FABRIC, tap: {}, fabric: f}\n",
			"ports[1].fabric: a fabric port does not have this field"},
		{"routed to the kernel", "ports: [{name: f, role: PORT_ROLE_FABRIC, vhost: {socket: /f}}, {name: h, role: " +
			"PORT_ROLE_HOST, tap: {}, fabric: f}]\nnexthops: [{id: 1, port: {port: h, address: 192.0.2.9}}]\n",
			"nexthops: 'h' is the kernel's: packets are not routed to it; valid: a fabric or tenant port"},
		{"steered without host", "ports: [{name: f, role: PORT_ROLE_FABRIC, vhost: {socket: /f}}]\n" +
			"host_steers: [{address: 192.0.2.1, port: f}]\n",
			"host_steers: the port 'f' has no host port; valid: a fabric port with a host port"},
		{"tenant without VRF", "ports: [{name: p, role: PORT_ROLE_TENANT, tap: {}}]\n",
			"ports[0]: a tenant port needs a VRF or a bridge; valid: vrf, bridge or both"},
		{"target of a forwarding worker", "workers: [{id: 0, cpu: 1, target: 1}]\n",
			"workers[0].target: a forwarding worker finishes its packets itself"},
		{"one CPU for two workers", "workers: [{id: 0, cpu: 2}, {id: 1, cpu: 2, idle: sleep}]\n",
			"f:1:41: workers[1].cpu: 2 is the CPU of worker 0, and a worker that is idle with spin or pause keeps its"},
		{"odd ring", "workers: [{id: 0, cpu: 1, ring_size: 1000}]\n",
			"workers[0].ring_size: '1000' is not accepted; valid: a power of two from 64 to 4194304"},
		{"worker out of range", "ports: [{name: p, role: PORT_ROLE_FABRIC, tap: {}, spread_workers: [64]}]\n",
			"ports[0].spread_workers[0]: '64' is not"},
		{"meter without rate", "meters: [{name: a}]\n",
			"f:1:10: meters[0]: a meter needs a rate; valid: bit_rate or packet_rate"},
		{"meter of two kinds", "meters: [{name: a, bit_rate: 8000, packet_rate: 1}]\n",
			"meters[0].packet_rate: a meter limits bits or packets, not both"},
		{"burst of the other kind", "meters: [{name: a, packet_rate: 1, burst_bytes: 9600}]\n",
			"meters[0].burst_bytes: the meter limits packets; valid: burst_packets"},
		{"slow meter", "meters: [{name: a, bit_rate: 1}]\n",
			"f:1:30: meters[0].bit_rate: '1' is out of range; valid: 8000 to 1000000000000"},
		{"meter of a stateless port", "meters: [{name: m, packet_rate: 1}]\nvrfs: [{name: a}]\nports: [{name: p, " +
			"role: PORT_ROLE_TENANT, vrf: a, tap: {}, egress_meter: m}]\n",
			"ports[0].egress_meter: meters limit flows, which only stateful ports keep; valid: stateful: true"},
		{"limit of a stateless port", "vrfs: [{name: a}]\nports: [{name: p, role: PORT_ROLE_TENANT, vrf: a, tap: {}, " +
			"flow_limit: 5}]\n",
			"ports[0].flow_limit: only stateful ports have flows to limit; valid: stateful: true"},
		{"rate of a stateless port", "vrfs: [{name: a}]\nports: [{name: p, role: PORT_ROLE_TENANT, vrf: a, tap: {}, " +
			"flow_rate: 5}]\n",
			"ports[0].flow_rate: only stateful ports have flows to limit; valid: stateful: true"},
		{"meter of a deny rule", "meters: [{name: m, packet_rate: 1}]\nrule_lists: [{name: l}]\nrules: [{list: l, " +
			"id: 1, action: RULE_ACTION_DENY, meter: m}]\n",
			"rules[0].meter: a rule that denies has no traffic to limit; valid: with action RULE_ACTION_ALLOW"},
		{"mirror without target", "mirrors: [{name: a}]\n",
			"mirrors[0]: target missing; valid: one of port, vxlan, geneve, erspan"},
		{"mirror to no port", "mirrors: [{name: a, port: p}]\n", "mirrors[0].port: there is no port 'p' in this file"},
		{"ERSPAN session", "mirrors: [{name: a, erspan: {remote: 192.0.2.1, session: 1024}}]\n",
			"mirrors[0].erspan.session: '1024' is out of range; valid: 0 to 1023"},
		{"mirror of two families",
			"mirrors: [{name: a, vxlan: {remote: 192.0.2.1, local: \"2001:db8::1\", vni: 1}}]\n",
			"mirrors[0].vxlan.local: '2001:db8::1' and '192.0.2.1' are not of one family"},
		{"mirror of a stateless port", "mirrors: [{name: m, port: p}]\nvrfs: [{name: a}]\nports: [{name: p, role: " +
			"PORT_ROLE_TENANT, vrf: a, tap: {}, mirror: m}]\n",
			"ports[0].mirror: mirrors copy flows, which only stateful ports keep; valid: stateful: true"},
		{"ERSPAN next hop", "nexthops: [{id: 1, tunnel: {encap: ENCAP_ERSPAN, remote: 192.0.2.1}}]\n",
			"encap: ENCAP_ERSPAN is for mirrors"},
		{"device twice", "vrfs: [{name: a}]\nports:\n  - {name: p, role: PORT_ROLE_TENANT, vrf: a, tap: {ifname: " +
			"t}}\n" +
			"  - {name: q, role: PORT_ROLE_TENANT, vrf: a, tap: {ifname: t}}\n",
			"f:4:5: ports[1]: the port in line 3 has the same device"},
		{"tap name", "vrfs: [{name: a}]\nports: [{name: a123456789012345, role: PORT_ROLE_TENANT, vrf: a, tap: {}}]\n",
			"too long for the kernel"},
		{"network as gateway", "vrfs: [{name: a}]\n" +
			"ports: [{name: p, role: PORT_ROLE_TENANT, vrf: a, tap: {}, gateways: [10.1.0.0/24]}]\n",
			"gateways[0]: '10.1.0.0/24' is not accepted; valid: the address of a host with its prefix length"},
		{"broadcast as gateway", "vrfs: [{name: a}]\n" +
			"ports: [{name: p, role: PORT_ROLE_TENANT, vrf: a, tap: {}, gateways: [10.1.0.255/24]}]\n",
			"'10.1.0.255/24' is not accepted"},
		{"a document after an empty one", "---\n---\nvrfs:\n- name: a\n", "the file has a second document"},
		{"nothing", "", "the file is empty; valid: at least one section; 'vrfs: []' alone deletes everything"},
		{"only a comment", "# export failed\n---\n", "the file is empty"},
		{"VXLAN with label",
			"nexthops: [{id: 1, tunnel: {encap: ENCAP_VXLAN, remote: 192.0.2.1, vni: 1, label: 16}}]\n",
			"label: ENCAP_VXLAN does not have this field"},
		{"MPLS without label", "nexthops: [{id: 1, tunnel: {encap: ENCAP_MPLSOGRE, remote: 192.0.2.1}}]\n",
			"label: missing; valid: 16 to 1048575"},
		{"reserved label", "nexthops: [{id: 1, tunnel: {encap: ENCAP_MPLSOGRE, remote: 192.0.2.1, label: 15}}]\n",
			"label: '15' is out of range; valid: 16 to 1048575"},
		{"two families", "nexthops: [{id: 1, tunnel: {encap: ENCAP_MPLSOGRE, label: 16, remote: 192.0.2.1, local: " +
			"\"2001:db8::1\"}}]\n", "not of one family"},
		{"group in group", "nexthops:\n  - {id: 1, group: {members: [{nexthop: 1}]}}\n",
			"next hop 1 of kind group cannot be in a group"},
		{"empty group", "nexthops: [{id: 1, group: {members: []}}]\n", "the group has no members; valid: at least one"},
		{"flood to a discard", "nexthops: [{id: 1, discard: {}}]\nbridges: [{name: a, flood: [1]}]\n",
			"bridges[0].flood[0]: next hop 1 is of kind discard; valid: a next hop of kind tunnel"},
		{"MAC on a port of another bridge", "bridges: [{name: a}, {name: b}]\n" +
			"ports: [{name: p, role: PORT_ROLE_TENANT, bridge: a, tap: {}}]\nmacs:\n" +
			"- {bridge: b, mac: \"02:00:00:00:00:01\", port: p}\n",
			"f:4:3: macs: the port 'p' is not in the bridge 'b'"},
		{"address twice", "ports:\n- {name: p, role: PORT_ROLE_FABRIC, dpdk: {devargs: a}, addresses: " +
			"[192.0.2.1/24]}\n- {name: q, role: PORT_ROLE_FABRIC, dpdk: {devargs: b}, addresses: [192.0.2.1/25]}\n",
			"f:3:3: ports: the ports 'q' and 'p' both have 192.0.2.1/32 in VRF 'fabric'"},
		{"bridge in two VRFs", "vrfs: [{name: a}, {name: b}]\nbridges: [{name: c}]\nports:\n- {name: p, role: " +
			"PORT_ROLE_TENANT, bridge: c, vrf: a, tap: {}}\n- {name: q, role: PORT_ROLE_TENANT, bridge: c, vrf: b, " +
			"tap: {}}\n",
			"f:5:3: ports: the port 'q' is in VRF 'b', but 'p' of the same bridge is in 'a'"},
		{"route of a port", "nexthops: [{id: 1, discard: {}}]\nports: [{name: p, role: PORT_ROLE_FABRIC, dpdk: " +
			"{devargs: a}, addresses: [192.0.2.1/24]}]\nroutes:\n- {vrf: fabric, prefix: 192.0.2.0/24, nexthop: 1}\n",
			"f:4:1: routes: the node adds 192.0.2.0/24 in VRF 'fabric' by itself for the port 'p'"},
		{"too many items", "settings: {vxlan_ports: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n",
			"settings.vxlan_ports: 9 values are too many; valid: up to 8"},
		{"ports of a protocol without ports",
			"rule_lists: [{name: a}]\nrules: [{list: a, id: 1, action: RULE_ACTION_DENY, destination_ports: 80}]\n",
			"rules[0].destination_ports: the protocol has no ports; valid: with protocol tcp, udp or sctp"},
		{"reversed range", "rule_lists: [{name: a}]\n" +
			"rules: [{list: a, id: 1, action: RULE_ACTION_DENY, protocol: tcp, destination_ports: 80-79}]\n",
			"'80-79' is not accepted; valid: a port from 0 to 65535, or a range"},
		{"ICMP of the other family", "rule_lists: [{name: a}]\n" +
			"rules: [{list: a, id: 1, action: RULE_ACTION_DENY, protocol: icmp, source: \"2001:db8::/32\"}]\n",
			"'icmp' does not match the family of '2001:db8::/32'"},
		{"rule of two families", "rule_lists: [{name: a}]\nrules: [{list: a, id: 1, action: RULE_ACTION_DENY, " +
			"source: 10.0.0.0/8, destination: \"::/0\"}]\n",
			"rules[0].destination: '10.0.0.0/8' and '::/0' are not of one family"},
		{"prefix and group", "rule_lists: [{name: a}]\nrules: [{list: a, id: 1, action: RULE_ACTION_DENY, source: " +
			"10.0.0.0/8, source_group: g}]\n", "rules[0].source_group: '10.0.0.0/8' and 'g' are both given"},
		{"no such group", "rule_lists: [{name: a}]\nrules: [{list: a, id: 1, action: RULE_ACTION_DENY, source_group: " +
			"g}]\n", "there is no address-group 'g' in this file"},
		{"code without type", "rule_lists: [{name: a}]\nrules: [{list: a, id: 1, action: RULE_ACTION_DENY, protocol: " +
			"icmp, icmp_type: 0-255, icmp_code: 1}]\n", "rules[0].icmp_code: a code belongs to a type"},
		{"no such list", "rule_lists: [{name: a}]\nrules: [{list: a, id: 1, action: RULE_ACTION_DENY, log: true}, " +
			"{list: b, id: 1, action: RULE_ACTION_ALLOW}]\n", "there is no rule-list 'b' in this file; valid: a"},
		{"rule twice", "rule_lists: [{name: a}]\n" +
			"rules: [{list: a, id: 1, action: RULE_ACTION_DENY, log: true}, {list: a, id: 1, action: " +
			"RULE_ACTION_ALLOW}]\n", "rule a 1 is already given in line 2"},
		{"rules without flows", "vrfs: [{name: a}]\nrule_lists: [{name: l}]\nports: [{name: p, role: " +
			"PORT_ROLE_TENANT, vrf: a, tap: {}, egress_rules: l}]\n", "ports[0]: rules decide about flows"},
		{"own fabric", "vrfs: [{name: fabric}]\n", "the VRF 'fabric' belongs to the underlay and always exists"},
		{"NAT in the underlay", "nat: [{id: 1, vrf: fabric, floating: {inside: 10.0.0.1, outside: 192.0.2.1}}]\n",
			"nat[0].vrf: 'fabric' belongs to the underlay; valid: another VRF"},
		{"NAT of no kind", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a}]\n",
			"nat[0]: kind missing; valid: one of floating, source, destination"},
		{"NAT between families", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, floating: {inside: 10.0.0.1, outside: " +
			"\"2001:db8::1\"}}]\n",
			"nat[0]: '10.0.0.1' and '2001:db8::1' have different IP versions; NAT between IPv4 and IPv6 is not " +
				"supported; valid: addresses of one family"},
		{"NAT to multicast",
			"vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, floating: {inside: 10.0.0.1, outside: 224.0.0.1}}]\n",
			"'224.0.0.1' is not accepted; valid: the address of a host"},
		{"NAT to itself", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, external_vrf: a, floating: {inside: 10.0.0.1, " +
			"outside: 10.0.0.1}}]\n", "is the same as the inside address"},
		{"NAT ports", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, first_port: 80, floating: {inside: 10.0.0.1, " +
			"outside: 192.0.2.1}}]\n", "nat[0].first_port: ports need a protocol that has them"},
		{"NAT pool backwards", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, source: {prefix: 10.0.0.0/8, first: " +
			"192.0.2.9, last: 192.0.2.8}}]\n", "nat[0].source.last: '192.0.2.8' comes before the first one"},
		{"NAT pool too large", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, source: {prefix: \"fd00::/8\", first: " +
			"\"2001:db8::\", last: \"2001:db8::1:0\"}}]\n",
			"'2001:db8::1:0' makes the pool larger than 65536 addresses; valid: a pool of up to 65536"},
		{"NAT service without protocol", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, destination: {address: 192.0.2.1, " +
			"port: 80, backends: [{address: 10.0.0.1}]}}]\n", "nat[0].destination.port: a port needs a protocol"},
		{"NAT service that matches", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, to: 10.0.0.0/8, destination: " +
			"{address: 192.0.2.1, backends: [{address: 10.0.0.1}]}}]\n",
			"a service has an address and a port of its own"},
		{"service in the underlay", "services: [{name: s, vrf: fabric, address: 192.0.2.1}]\n",
			"services[0].vrf: 'fabric' belongs to the underlay; valid: another VRF"},
		{"service with a port alone",
			"vrfs: [{name: a}]\nservices: [{name: s, vrf: a, address: 192.0.2.1, port: 80}]\n",
			"services[0].port: a port needs a protocol that has ports"},
		{"service with a long prefix",
			"vrfs: [{name: a}]\nservices: [{name: s, vrf: a, address: 192.0.2.1, client_prefix: 33}]\n",
			"services[0].client_prefix: 33 is longer than an IPv4 address; valid: 0 to 32"},
		{"service twice", "vrfs: [{name: a}]\nservices: [{name: s, vrf: a, address: 192.0.2.1}, {name: t, vrf: a, " +
			"address: 192.0.2.1}]\n", "service 't' has what service 's' has"},
		{"service with NAT's address", "vrfs: [{name: a}]\nnat: [{id: 1, vrf: a, floating: {inside: 10.0.0.1, " +
			"outside: 192.0.2.1}}]\nservices: [{name: s, vrf: a, address: 192.0.2.1}]\n",
			"service 's' has an address of NAT rule 1"},
		{"endpoint of the other family", "vrfs: [{name: a}]\nservices: [{name: s, vrf: a, address: 192.0.2.1}]\n" +
			"endpoints: [{service: s, address: \"2001:db8::1\", port: 0}]\n",
			"'2001:db8::1' and '192.0.2.1' of service 's' have different IP versions"},
		{"endpoint with a port alone", "vrfs: [{name: a}]\nservices: [{name: s, vrf: a, address: 192.0.2.1}]\n" +
			"endpoints: [{service: s, address: 10.0.0.1, port: 80}]\n", "the service's protocol has no ports"},
		{"endpoint of another SCTP port", "vrfs: [{name: a}]\nservices: [{name: s, vrf: a, address: 192.0.2.1, " +
			"port: 80, protocol: NAT_PROTOCOL_SCTP}]\nendpoints: [{service: s, address: 10.0.0.1, port: 81}]\n",
			"ports of SCTP are not translated"},
		{"too many endpoints", "vrfs: [{name: a}]\nservices: [{name: s, vrf: a, address: 192.0.2.1, " +
			"max_endpoints: 1}]\nendpoints: [{service: s, address: 10.0.0.1, port: 0}, " +
			"{service: s, address: 10.0.0.2, port: 0}]\n",
			"service 's' has more than 1"},
		{"NAT address twice", "vrfs: [{name: a}, {name: b}]\nnat:\n- {id: 1, vrf: a, floating: {inside: 10.0.0.1, " +
			"outside: 192.0.2.5}}\n- {id: 2, vrf: b, external_vrf: a, source: {prefix: 10.0.0.0/8, first: 192.0.2.1, " +
			"last: 192.0.2.9}}\n",
			"f:4:3: nat: the outside addresses of rule 2 (from 192.0.2.1 in VRF 'a') overlap with those of rule 1"},
		{"NAT address of a guest", "vrfs: [{name: a}]\nports: [{name: p, role: PORT_ROLE_TENANT, vrf: a, tap: {}, " +
			"guest_addresses: [10.0.0.0/24]}]\nnat: [{id: 1, vrf: a, floating: {inside: 10.0.0.1, outside: " +
			"10.0.0.200}}]\n",
			"the outside addresses of rule 1 (from 10.0.0.200 in VRF 'a') overlap with those of the port 'p'"},
		{"alias", "vrfs: [{name: &a red}, {name: *a}]\n", "an alias, which is not supported; write the value"},
		{"no value", "vrfs: [{name: }]\n", "vrfs[0].name: has no value"},
		{"second document", "vrfs: []\n---\nvrfs: []\n", "the file has a second document"},
		{"not YAML", "vrfs:\n  - {name: a\n  - b\n", "f:3:1: not YAML: "},
		{"tab", "vrfs:\n\t- {name: a}\n", "not YAML: found character that cannot start any token"},
		{"JSON", "{\"vrfs\": [{\"name\": \"a\", \"id\": 0}]}", "f:1:31: vrfs[0].id: '0' is out of range"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load("f", []byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if !IsInput(err) {
				t.Errorf("%T is not an error of the input", err)
			}
		})
	}
}

// Errors have line numbers of the file, in whichever piece the line is.
func TestLoadErrorLineInALongFile(t *testing.T) {
	var b strings.Builder
	b.WriteString("nexthops: [{id: 1, discard: {}}]\nroutes: # many\n")
	for i := range 50000 {
		fmt.Fprintf(&b, "# comment\n- {vrf: fabric, prefix: 10.%d.%d.%d/32, nexthop: 1}\n", i>>16, i>>8&255, i&255)
	}
	b.WriteString("- {vrf: fabric, prefix: 10.0.0.1/32, nexthop: 2}\n")
	_, err := Load("f", []byte(b.String()))
	if want := "f:100003:47: routes[50000].nexthop: there is no nexthop '2'"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// 0 is a limit of ICMP errors like others; only a file that does not set the limit gets the default.
func TestZeroIsNotTheDefault(t *testing.T) {
	for text, want := range map[string]uint32{"vrfs: []": 1000, "settings: {}": 1000,
		"settings: {icmp_errors_per_second: 0}": 0} {
		s := load(t, text)
		if s.Settings.IcmpErrorsPerSecond != want ||
			!strings.Contains(write(t, s), fmt.Sprintf("icmp_errors_per_second: %d\n", want)) {
			t.Errorf("%q: %v", text, s.Settings)
		}
	}
}

func TestLoadStopsAfterManyErrors(t *testing.T) {
	_, err := Load("f", []byte("vrfs:\n"+strings.Repeat("  - {name: a/b}\n", 5000)))
	if n := strings.Count(err.Error(), "\n") + 1; n != maxErrors {
		t.Errorf("%d errors", n)
	}
}

// A file gives the same state, or is refused, whether it is read in pieces or as a whole.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile(examplePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte(baseYAML))
	f.Add([]byte("vrfs:\n- name: a\n  id: 3\n- {name: b}\nworkers: []\n"))
	f.Add([]byte(`{"vrfs": [{"name": "a"}]}`))
	f.Add([]byte("vrfs:\n  - name: >-\n      a\n  # b\nports:\n"))
	f.Add([]byte("---\nvrfs:\r\n- name: a\r\n# \U0001F600 \u00e9\n"))
	f.Add([]byte("vrfs:\n- name: a\n\t\n  x: y\n"))
	f.Add([]byte("vrfs:\n  - name: a\n- name: b\n"))
	f.Add([]byte("vrfs: # \xff\n\x01\n"))
	f.Add([]byte("- a\n"))
	f.Add([]byte("vrfs: {}\n---\nvrfs: {}\n"))
	f.Add([]byte("vrfs: [\n"))
	f.Add([]byte("{vrfs: [], vrfs: [], absent: 1}"))
	f.Fuzz(checkLoad)
}

// Each field of a route that is not read only survives Write and Load and the conversion to Route, and a change of it
// is an operation.
func TestRoutesKeepTheirFields(t *testing.T) {
	values := map[protoreflect.Name][2]any{"vrf": {"red", "blue"}, "prefix": {"198.51.100.0/24", "192.0.2.0/24"},
		"nexthop": {uint32(2), uint32(1)}}
	m := &apiv1.Route{}
	var given []protoreflect.FieldDescriptor
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if ruleOf(fd).readOnly {
			continue
		}
		if values[fd.Name()][0] == nil {
			t.Fatalf("give %s two values here, and a member of Route", fd.Name())
		}
		m.ProtoReflect().Set(fd, protoreflect.ValueOf(values[fd.Name()][0]))
		given = append(given, fd)
	}
	convert := func(m *apiv1.Route) []Route {
		r, err := routeOf(m, strings.Clone)
		if err != nil {
			t.Fatal(err)
		}
		return []Route{r}
	}
	s := load(t, baseYAML)
	s.Routes = convert(m)
	if got := load(t, write(t, s)).Routes; len(got) != 1 || !proto.Equal(got[0].message(), m) {
		t.Errorf("%+v, want %v", got, m)
	}
	for _, fd := range given {
		other := proto.CloneOf(m)
		other.ProtoReflect().Set(fd, protoreflect.ValueOf(values[fd.Name()][1]))
		if len(Diff(&State{Routes: convert(other)}, &State{Routes: convert(m)})) == 0 {
			t.Errorf("a change of %s is no operation", fd.Name())
		}
	}
}

// A value of an enum is what the commands take, also where YAML 1.1 knows the word, or its name in the contract.
func TestLoadEnums(t *testing.T) {
	const text = "nexthops: [{id: 1, tunnel: {encap: %s, remote: 2001:db8::1, label: 16, udp6_checksum: %s}}]\n"
	long := load(t, fmt.Sprintf(text, "ENCAP_MPLSOUDP", "UDP6_CHECKSUM_OFF"))
	for _, off := range []string{"off", `"off"`} {
		if ops := Diff(load(t, fmt.Sprintf(text, "mplsoudp", off)), long); len(ops) > 0 {
			t.Errorf("%s:\n%s", off, planned(t, ops))
		}
	}
	if tunnel := long.Nexthops[0].GetTunnel(); tunnel.Udp6Checksum != apiv1.Udp6Checksum_UDP6_CHECKSUM_OFF {
		t.Error(tunnel)
	}
}
