// SPDX-License-Identifier: Apache-2.0
// Most lines are a request and the error that the options of its fields cause.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <rte_common.h>

#include "api/check.h"
#include "api/fields.h"
#include "bridge.pb-c.h"
#include "capture.pb-c.h"
#include "event.pb-c.h"
#include "flow.pb-c.h"
#include "host.pb-c.h"
#include "label.pb-c.h"
#include "meter.pb-c.h"
#include "mirror.pb-c.h"
#include "nat.pb-c.h"
#include "nexthop.pb-c.h"
#include "port.pb-c.h"
#include "route.pb-c.h"
#include "rule.pb-c.h"
#include "system.pb-c.h"
#include "vni.pb-c.h"
#include "vrf.pb-c.h"
#include "worker.pb-c.h"

#define VALID_HOST "valid: the address of a host, such as \"192.0.2.1\" or \"2001:db8::1\""

static void accepted(const void *request)
{
	struct error err = {0};

	if (api_check(request, &err) != 0)
		fail_msg("refused: %s", err.message);
}

static struct error refused(const void *request, int code, const char *message)
{
	struct error err = {0};

	assert_int_equal(api_check(request, &err), -code);
	assert_string_equal(err.message, message);
	return err;
}

#define METER(...)                                                                                     \
	&(Corelane__V1__MeterAddRequest)                                                               \
	{                                                                                              \
		.base = PROTOBUF_C_MESSAGE_INIT(&corelane__v1__meter_add_request__descriptor),         \
		.meter = &(Corelane__V1__Meter)                                                        \
		{                                                                                      \
			.base = PROTOBUF_C_MESSAGE_INIT(&corelane__v1__meter__descriptor), __VA_ARGS__ \
		}                                                                                      \
	}

static void numbers(void **state)
{
	struct error err;

	accepted(METER(.name = "gold", .bit_rate = 8000));
	accepted(METER(.name = "gold", .bit_rate = 1000000000000));
	accepted(METER(.name = "gold")); // the meter checks that exactly one rate is given
	err = refused(METER(.name = "gold", .bit_rate = 7999), ERANGE,
		      "meter.bit_rate '7999': is out of range; valid: 8000 to 1000000000000");
	assert_string_equal(err.field, "meter.bit_rate");
	assert_string_equal(err.value, "7999");
	assert_string_equal(err.valid, "8000 to 1000000000000");
	refused(METER(.name = "gold", .bit_rate = 1000000000001), ERANGE,
		"meter.bit_rate '1000000000001': is out of range; valid: 8000 to 1000000000000");
	refused(METER(.name = "gold", .bit_rate = 8000, .burst_bytes = 9599), ERANGE,
		"meter.burst_bytes '9599': is out of range; valid: 9600 to 4294967295");
	refused(METER(.name = "gold", .packet_rate = 1000000001), ERANGE,
		"meter.packet_rate '1000000001': is out of range; valid: 1 to 1000000000");
}

// Modules index their tables with these values.
static void ids(void **state)
{
	Corelane__V1__Vrf vrf = CORELANE__V1__VRF__INIT;
	Corelane__V1__VrfAddRequest add_vrf = CORELANE__V1__VRF_ADD_REQUEST__INIT;
	Corelane__V1__Bridge bridge = CORELANE__V1__BRIDGE__INIT;
	Corelane__V1__BridgeAddRequest add_bridge = CORELANE__V1__BRIDGE_ADD_REQUEST__INIT;
	Corelane__V1__Label label = CORELANE__V1__LABEL__INIT;
	Corelane__V1__LabelAddRequest add_label = CORELANE__V1__LABEL_ADD_REQUEST__INIT;
	Corelane__V1__Vni vni = CORELANE__V1__VNI__INIT;
	Corelane__V1__VniAddRequest add_vni = CORELANE__V1__VNI_ADD_REQUEST__INIT;
	Corelane__V1__Rule rule = CORELANE__V1__RULE__INIT, *rules[] = {&rule};
	Corelane__V1__RuleAddRequest add_rules = CORELANE__V1__RULE_ADD_REQUEST__INIT;
	uint32_t flood[] = {7, 8, 7};

	add_vrf.vrf = &vrf;
	vrf.name = "red";
	vrf.id = 16384;
	refused(&add_vrf, ERANGE, "vrf.id '16384': is out of range; valid: 1 to 16383");
	add_bridge.bridge = &bridge;
	bridge.name = "lan";
	bridge.id = 16384;
	refused(&add_bridge, ERANGE, "bridge.id '16384': is out of range; valid: 1 to 16383");
	bridge.id = 0; // the next free one
	bridge.flood = flood;
	bridge.n_flood = 3;
	refused(&add_bridge, EINVAL, "bridge.flood '7': is given twice; valid: each once");
	bridge.n_flood = 2;
	accepted(&add_bridge);
	add_label.label = &label;
	label.label = 15;
	refused(&add_label, ERANGE, "label.label '15': is out of range; valid: 16 to 1048575");
	label.label = 1048576;
	refused(&add_label, ERANGE, "label.label '1048576': is out of range; valid: 16 to 1048575");
	add_vni.vni = &vni;
	refused(&add_vni, ERANGE, "vni.vni '0': is out of range; valid: 1 to 16777215");
	vni.vni = 16777216;
	refused(&add_vni, ERANGE, "vni.vni '16777216': is out of range; valid: 1 to 16777215");
	add_rules.rules = rules;
	add_rules.n_rules = 1;
	rule.list = "web";
	refused(&add_rules, ERANGE, "rule.id '0': is out of range; valid: 1 to 16777216");
	rule.id = 16777217;
	refused(&add_rules, ERANGE, "rule.id '16777217': is out of range; valid: 1 to 16777216");
}

static void hosts(void **state)
{
	Corelane__V1__HostSteer steer = CORELANE__V1__HOST_STEER__INIT;
	Corelane__V1__HostSteerAddRequest req = CORELANE__V1__HOST_STEER_ADD_REQUEST__INIT;

	req.steer = &steer;
	steer.address = "ff02::1";
	refused(&req, EINVAL, "steer.address 'ff02::1': is not a host's address; " VALID_HOST);
	steer.address = "0.0.0.0";
	refused(&req, EINVAL, "steer.address '0.0.0.0': is not a host's address; " VALID_HOST);
	steer.address = "192.0.2.1";
	accepted(&req);
}

static void addresses_of_interfaces(void **state)
{
	static const struct {
		const char *address, *flaw;
	} bad[] = {
		{"10.1.0.0/24", "is the address of the network itself"},
		{"2001:db8::/64", "is the address of the network itself"},
		{"10.1.0.255/24", "is the broadcast address of the network"},
		{"127.0.0.1/8", "is not a host's address on a link"},
		{"::1/128", "is not a host's address on a link"},
		{"224.0.0.1/24", "is not a host's address on a link"},
	};
	static const char *const good[] = {"10.1.0.1/24",
					   "10.1.1.0/23",
					   "10.0.0.0/31",
					   "10.0.0.1/31",
					   "10.0.0.0/32",
					   "2001:db8::/127",
					   "2001:db8::ffff:ffff:ffff:ffff/64",
					   "10.0.0.3/0"};
	Corelane__V1__Port p = CORELANE__V1__PORT__INIT;
	Corelane__V1__TapDevice tap = CORELANE__V1__TAP_DEVICE__INIT;
	Corelane__V1__PortAddRequest req = CORELANE__V1__PORT_ADD_REQUEST__INIT;
	char *gateway, text[192];
	unsigned i;

	req.port = &p;
	p.name = "vm1";
	p.role = CORELANE__V1__PORT_ROLE__PORT_ROLE_TENANT;
	p.device_case = CORELANE__V1__PORT__DEVICE_TAP;
	p.tap = &tap;
	p.gateways = &gateway;
	p.n_gateways = 1;
	for (i = 0; i < RTE_DIM(bad); i++) {
		gateway = (char *)(uintptr_t)bad[i].address;
		snprintf(text, sizeof(text), "port.gateways '%s': %s; valid: %s", gateway, bad[i].flaw,
			 NOTATION_INTERFACE_ADDRESS_VALID);
		refused(&req, EINVAL, text);
	}
	for (i = 0; i < RTE_DIM(good); i++) {
		gateway = (char *)(uintptr_t)good[i];
		accepted(&req);
	}
}

static void names(void **state)
{
	char name[33] = "12345678901234567890123456789012";

	refused(METER(.name = "", .bit_rate = 8000), EINVAL,
		"meter.name '': is missing; valid: 1 to 31 of A-Z a-z 0-9 . _ -");
	refused(METER(.name = "a b"), EINVAL, "meter.name 'a b': is not a name; valid: 1 to 31 of A-Z a-z 0-9 . _ -");
	refused(METER(.name = "\xc3\xa9"), EINVAL,
		"meter.name '\xc3\xa9': is not a name; valid: 1 to 31 of A-Z a-z 0-9 . _ -");
	refused(METER(.name = name), EINVAL,
		"meter.name '12345678901234567890123456789012': is not a name; valid: 1 to 31 of A-Z a-z 0-9 . _ -");
	name[31] = '\0';
	accepted(METER(.name = name));
}

static void a_request_without_its_object(void **state)
{
	Corelane__V1__MeterAddRequest none = CORELANE__V1__METER_ADD_REQUEST__INIT;
	Corelane__V1__MeterListRequest list = CORELANE__V1__METER_LIST_REQUEST__INIT;

	refused(&none, EINVAL, "meter: is missing");
	accepted(&list);
}

// A Set checks the key and the fields that it names.
static void names_of_a_set(void **state)
{
	Corelane__V1__Bridge b = CORELANE__V1__BRIDGE__INIT;
	Corelane__V1__BridgeSetRequest req = CORELANE__V1__BRIDGE_SET_REQUEST__INIT;
	char *fields[] = {"no_learning", "mac_limit"};

	req.bridge = &b;
	req.fields = fields;
	req.n_fields = 1;
	refused(&req, EINVAL, "bridge.name '': is missing; valid: 1 to 31 of A-Z a-z 0-9 . _ -");
	b.name = "office";
	b.mac_limit = 1048577;
	accepted(&req);
	req.n_fields = 2;
	refused(&req, ERANGE, "bridge.mac_limit '1048577': is out of range; valid: 1 to 1048576");
	b.mac_limit = 0; // the default again
	accepted(&req);
	req.n_fields = 0;
	refused(&req, EINVAL,
		"fields: nothing to change; valid: unknown_unicast, flood, no_learning, mac_limit, "
		"neighbor_suppression, multicast_snooping");
	req.n_fields = 2;
	fields[1] = "id";
	refused(&req, EINVAL,
		"fields 'id': cannot be set; valid: unknown_unicast, flood, no_learning, mac_limit, "
		"neighbor_suppression, multicast_snooping");
}

// A setting is always given: a Set that names it sets it.
static void settings(void **state)
{
	Corelane__V1__Settings s = CORELANE__V1__SETTINGS__INIT;
	Corelane__V1__SettingsSetRequest req = CORELANE__V1__SETTINGS_SET_REQUEST__INIT;
	uint32_t ports[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
	char *fields[] = {"mac_age_seconds"};

	req.settings = &s;
	req.fields = fields;
	req.n_fields = 1;
	refused(&req, ERANGE, "settings.mac_age_seconds '0': is out of range; valid: 10 to 1000000");
	fields[0] = "rebalance_seconds";
	accepted(&req);
	fields[0] = "vxlan_ports";
	refused(&req, EINVAL, "settings.vxlan_ports: is missing; valid: 1 to 8");
	s.vxlan_ports = ports;
	s.n_vxlan_ports = 9;
	refused(&req, ERANGE, "settings.vxlan_ports '9': there are too many; valid: 1 to 8");
	s.n_vxlan_ports = 8;
	accepted(&req);
	ports[3] = 65536;
	refused(&req, ERANGE, "settings.vxlan_ports '65536': is out of range; valid: 1 to 65535");
	ports[3] = 8;
	refused(&req, EINVAL, "settings.vxlan_ports '8': is given twice; valid: each once");
}

static void enums(void **state)
{
	Corelane__V1__Port p = CORELANE__V1__PORT__INIT;
	Corelane__V1__TapDevice tap = CORELANE__V1__TAP_DEVICE__INIT;
	Corelane__V1__PortAddRequest req = CORELANE__V1__PORT_ADD_REQUEST__INIT;

	req.port = &p;
	p.name = "vm1";
	refused(&req, EINVAL, "port.role '0': is not one of the values; valid: fabric, tenant, host");
	p.role = 4;
	refused(&req, EINVAL, "port.role '4': is not one of the values; valid: fabric, tenant, host");
	p.role = CORELANE__V1__PORT_ROLE__PORT_ROLE_TENANT;
	refused(&req, EINVAL, "port.device: is missing; valid: dpdk, tap, memif, vhost, subport");
	p.device_case = CORELANE__V1__PORT__DEVICE_TAP;
	p.tap = &tap;
	accepted(&req);
	tap.ifname = "a/b";
	refused(&req, EINVAL,
		"port.tap.ifname 'a/b': is not accepted; valid: 1 to 15 bytes without space, '/', ':' or '%'");
	tap.ifname = "";
	p.mtu = 68; // the kernel's least for a tap; an ICMP error of the router has up to 576 bytes (RFC 1812)
	refused(&req, ERANGE, "port.mtu '68': is out of range; valid: 576 to 9600");
	p.mtu = 9601;
	refused(&req, ERANGE, "port.mtu '9601': is out of range; valid: 576 to 9600");
	p.mtu = 576;
	p.queues = 17;
	refused(&req, ERANGE, "port.queues '17': is out of range; valid: 1 to 16");
	p.queues = 0; // the default
	p.source_check = (Corelane__V1__SourceCheck)-1;
	refused(&req, EINVAL,
		"port.source_check '-1': is not one of the values; valid: default, reverse_path, strict, none");
}

static void numbers_of_a_kind(void **state)
{
	Corelane__V1__Port p = CORELANE__V1__PORT__INIT;
	Corelane__V1__MemifDevice m = CORELANE__V1__MEMIF_DEVICE__INIT;
	Corelane__V1__PortAddRequest req = CORELANE__V1__PORT_ADD_REQUEST__INIT;

	req.port = &p;
	p.name = "vm1";
	p.role = CORELANE__V1__PORT_ROLE__PORT_ROLE_TENANT;
	p.device_case = CORELANE__V1__PORT__DEVICE_MEMIF;
	p.memif = &m;
	refused(&req, EINVAL, "port.memif.socket '': is missing; valid: an absolute path of up to 107 bytes");
	m.socket = "run/memif";
	refused(&req, EINVAL,
		"port.memif.socket 'run/memif': is not accepted; valid: an absolute path of up to 107 bytes");
	m.socket = "/run/memif";
	m.ring_size = 1000;
	refused(&req, ERANGE, "port.memif.ring_size '1000': is out of range; valid: a power of two from 32 to 16384");
	m.ring_size = 1024;
	m.buffer_size = 200;
	refused(&req, ERANGE,
		"port.memif.buffer_size '200': is out of range; valid: a multiple of 64 from 128 to 32768");
}

static void oneofs(void **state)
{
	Corelane__V1__Label label = CORELANE__V1__LABEL__INIT;
	Corelane__V1__LabelAddRequest req = CORELANE__V1__LABEL_ADD_REQUEST__INIT;

	req.label = &label;
	refused(&req, ERANGE, "label.label '0': is out of range; valid: 16 to 1048575");
	label.label = 16;
	refused(&req, EINVAL, "label.target: is missing; valid: vrf, bridge, nexthop");
	label.target_case = CORELANE__V1__LABEL__TARGET_NEXTHOP;
	refused(&req, ERANGE, "label.nexthop '0': is out of range; valid: 1 to 1048575");
	label.nexthop = 1;
	accepted(&req);
}

static void batches(void **state)
{
	static Corelane__V1__Route *many[4097];
	Corelane__V1__Route good = CORELANE__V1__ROUTE__INIT, bad = CORELANE__V1__ROUTE__INIT;
	Corelane__V1__RouteAddRequest req = CORELANE__V1__ROUTE_ADD_REQUEST__INIT;
	Corelane__V1__RouteDelRequest del = CORELANE__V1__ROUTE_DEL_REQUEST__INIT;
	struct error err;
	unsigned i;

	good.vrf = bad.vrf = "fabric";
	good.prefix = "10.0.0.0/8";
	bad.prefix = "10.0.0.1/8";
	good.nexthop = bad.nexthop = 1;
	for (i = 0; i < 4097; i++)
		many[i] = i == 7 ? &bad : &good;
	req.routes = del.routes = many;
	req.n_routes = del.n_routes = 4096;
	err = refused(&req, EINVAL, "route.prefix '10.0.0.1/8': has host bits set; valid: 10.0.0.0/8");
	assert_int_equal(err.index, 7);
	many[7] = &good;
	accepted(&req);
	req.n_routes = 4097;
	refused(&req, ERANGE, "routes '4097': there are too many; valid: up to 4096");
	good.nexthop = 0; // only the key of a deleted route is checked
	accepted(&del);
	req.n_routes = 1;
	refused(&req, ERANGE, "route.nexthop '0': is out of range; valid: 1 to 1048575");
}

static void lists_of_text(void **state)
{
	Corelane__V1__AddressGroup g = CORELANE__V1__ADDRESS_GROUP__INIT;
	Corelane__V1__AddressGroupAddRequest req = CORELANE__V1__ADDRESS_GROUP_ADD_REQUEST__INIT;
	char *prefixes[] = {"10.2.0.0/16", "10.1.0.0/16", "10.3.0.0/16", "10.1.0.0/16"};
	struct error err;

	req.group = &g;
	g.name = "servers";
	accepted(&req);
	g.prefixes = prefixes;
	g.n_prefixes = 3;
	accepted(&req);
	g.n_prefixes = 4;
	err = refused(&req, EINVAL, "group.prefixes '10.1.0.0/16': is given twice; valid: each once");
	assert_string_equal(err.field, "group.prefixes");
	assert_string_equal(err.value, "10.1.0.0/16");
	assert_string_equal(prefixes[0], "10.2.0.0/16"); // the request's order stays
}

static void nexthops(void **state)
{
	Corelane__V1__GroupMember member = CORELANE__V1__GROUP_MEMBER__INIT, *members[65];
	Corelane__V1__GroupNexthop group = CORELANE__V1__GROUP_NEXTHOP__INIT;
	Corelane__V1__TunnelNexthop tunnel = CORELANE__V1__TUNNEL_NEXTHOP__INIT;
	Corelane__V1__Nexthop nh = CORELANE__V1__NEXTHOP__INIT;
	Corelane__V1__NexthopAddRequest req = CORELANE__V1__NEXTHOP_ADD_REQUEST__INIT;
	unsigned i;

	refused(&req, EINVAL, "nexthop: is missing");
	req.nexthop = &nh;
	refused(&req, ERANGE, "nexthop.id '0': is out of range; valid: 1 to 1048575");
	nh.id = 1048576;
	refused(&req, ERANGE, "nexthop.id '1048576': is out of range; valid: 1 to 1048575");
	nh.id = 1048575;
	refused(&req, EINVAL, "nexthop.kind: is missing; valid: port, tunnel, group, discard, local, reject");
	nh.kind_case = CORELANE__V1__NEXTHOP__KIND_GROUP;
	nh.group = &group;
	refused(&req, EINVAL, "nexthop.group.members: is missing; valid: 1 to 64");
	for (i = 0; i < 65; i++)
		members[i] = &member;
	member.nexthop = 1;
	group.members = members;
	group.n_members = 65;
	refused(&req, ERANGE, "nexthop.group.members '65': there are too many; valid: 1 to 64");
	group.n_members = 64;
	accepted(&req);
	member.weight = 257;
	refused(&req, ERANGE, "nexthop.group.members.weight '257': is out of range; valid: 1 to 256");
	nh.kind_case = CORELANE__V1__NEXTHOP__KIND_TUNNEL;
	nh.tunnel = &tunnel;
	tunnel.encap = CORELANE__V1__ENCAP__ENCAP_VXLAN;
	tunnel.remote = "224.0.0.1";
	refused(&req, EINVAL, "nexthop.tunnel.remote '224.0.0.1': is not a host's address; " VALID_HOST);
	tunnel.remote = "::";
	refused(&req, EINVAL, "nexthop.tunnel.remote '::': is not a host's address; " VALID_HOST);
	tunnel.remote = "192.0.2.1";
	tunnel.label = 15;
	refused(&req, ERANGE, "nexthop.tunnel.label '15': is out of range; valid: 16 to 1048575");
	tunnel.label = 0;
	tunnel.vni = 1 << 24;
	refused(&req, ERANGE, "nexthop.tunnel.vni '16777216': is out of range; valid: 1 to 16777215");
	tunnel.vni = 1;
	tunnel.dscp = 64;
	refused(&req, ERANGE, "nexthop.tunnel.dscp '64': is out of range; valid: 0 to 63");
	tunnel.dscp = 63;
	tunnel.ttl = 256;
	refused(&req, ERANGE, "nexthop.tunnel.ttl '256': is out of range; valid: 1 to 255");
	tunnel.ttl = 255;
	accepted(&req);
}

static void nat_rules(void **state)
{
	Corelane__V1__NatBackend backend = CORELANE__V1__NAT_BACKEND__INIT, *backends[65];
	Corelane__V1__DestinationNat service = CORELANE__V1__DESTINATION_NAT__INIT;
	Corelane__V1__NatRule rule = CORELANE__V1__NAT_RULE__INIT;
	Corelane__V1__NatAddRequest req = CORELANE__V1__NAT_ADD_REQUEST__INIT;
	char *except[17];
	unsigned i;

	req.rule = &rule;
	rule.vrf = "red";
	rule.kind_case = CORELANE__V1__NAT_RULE__KIND_DESTINATION;
	rule.destination = &service;
	refused(&req, ERANGE, "rule.id '0': is out of range; valid: 1 to 1048575");
	rule.id = 1048576;
	refused(&req, ERANGE, "rule.id '1048576': is out of range; valid: 1 to 1048575");
	rule.id = 1;
	service.address = "224.0.0.1";
	refused(&req, EINVAL, "rule.destination.address '224.0.0.1': is not a host's address; " VALID_HOST);
	service.address = "198.51.100.1";
	refused(&req, EINVAL, "rule.destination.backends: is missing; valid: 1 to 64");
	for (i = 0; i < 65; i++)
		backends[i] = &backend;
	backend.address = "10.0.0.2";
	service.backends = backends;
	service.n_backends = 65;
	refused(&req, ERANGE, "rule.destination.backends '65': there are too many; valid: 1 to 64");
	service.n_backends = 64;
	backend.weight = 257;
	refused(&req, ERANGE, "rule.destination.backends.weight '257': is out of range; valid: 1 to 256");
	backend.weight = 256;
	service.port = 65536;
	refused(&req, ERANGE, "rule.destination.port '65536': is out of range; valid: 0 to 65535");
	service.port = 0;
	for (i = 0; i < 17; i++)
		except[i] = i % 2 ? "10.0.0.0/8" : "11.0.0.0/8";
	rule.except = except;
	rule.n_except = 17;
	refused(&req, ERANGE, "rule.except '17': there are too many; valid: up to 16");
	rule.n_except = 2;
	rule.protocol = 5;
	refused(&req, EINVAL, "rule.protocol '5': is not one of the values; valid: any, icmp, tcp, udp, sctp");
	rule.protocol = CORELANE__V1__NAT_PROTOCOL__NAT_PROTOCOL_TCP;
	accepted(&req);
}

static void questions(void **state)
{
	Corelane__V1__FlowFilter filter = CORELANE__V1__FLOW_FILTER__INIT;
	Corelane__V1__FlowExplainRequest flow = CORELANE__V1__FLOW_EXPLAIN_REQUEST__INIT;
	Corelane__V1__RuleExplainRequest rule = CORELANE__V1__RULE_EXPLAIN_REQUEST__INIT;
	Corelane__V1__TraceRequest trace = CORELANE__V1__TRACE_REQUEST__INIT;
	Corelane__V1__CaptureRequest capture = CORELANE__V1__CAPTURE_REQUEST__INIT;
	Corelane__V1__EventListRequest events = CORELANE__V1__EVENT_LIST_REQUEST__INIT;
	Corelane__V1__CapturePoint points[] = {CORELANE__V1__CAPTURE_POINT__CAPTURE_POINT_DROP,
					       (Corelane__V1__CapturePoint)3};

	filter.l4_port = 65536;
	refused(&filter, ERANGE, "l4_port '65536': is out of range; valid: 1 to 65535");
	flow.source_port = 65536;
	refused(&flow, ERANGE, "source_port '65536': is out of range; valid: 0 to 65535");
	flow.source_port = 65535;
	flow.destination_port = 65536;
	refused(&flow, ERANGE, "destination_port '65536': is out of range; valid: 0 to 65535");
	rule.icmp_code = 256;
	refused(&rule, ERANGE, "icmp_code '256': is out of range; valid: 0 to 255");
	trace.count = 201;
	refused(&trace, ERANGE, "count '201': is out of range; valid: 1 to 200");
	trace.count = 200;
	accepted(&trace);
	capture.points = points;
	capture.n_points = 2;
	refused(&capture, EINVAL, "points '3': is not one of the values; valid: rx, tx, drop");
	capture.n_points = 1;
	accepted(&capture);
	events.severity = (Corelane__V1__EventSeverity)3;
	refused(&events, EINVAL, "severity '3': is not one of the values; valid: info, warning, error");
}

// Each table is about the fields of its message.
static void tables_fit(void **state)
{
	unsigned i, j;

	for (i = 0; i < n_api_requests; i++) {
		for (j = 0; j < api_requests[i]->n_fields; j++) {
			const struct field_limits *l = &api_requests[i]->fields[j];

			assert_true(l->field < api_requests[i]->type->n_fields);
			if (l->of)
				assert_ptr_equal(l->of->type, api_requests[i]->type->fields[l->field].descriptor);
		}
	}
}

static void decoded_fields(void **state)
{
	const struct {
		const char *name;
		int value;
	} rows[] = {{"bit_rate", 1}, {"burst_bytes", 2}, {"packet_rate", 3}, {"burst_packets", 4}};
	const ProtobufCMessageDescriptor *meter = &corelane__v1__meter__descriptor;

	assert_int_equal(API_FIELD_FIND(rows, "packet_rate")->value, 3);
	assert_null(API_FIELD_FIND(rows, "name"));
	assert_null(api_field_missing(meter, API_FIELD_ROWS(rows)));
	assert_string_equal(api_field_missing(meter, rows, 3, sizeof(rows[0])), "burst_packets");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoded_fields),
		cmocka_unit_test(numbers),
		cmocka_unit_test(ids),
		cmocka_unit_test(hosts),
		cmocka_unit_test(addresses_of_interfaces),
		cmocka_unit_test(names),
		cmocka_unit_test(a_request_without_its_object),
		cmocka_unit_test(names_of_a_set),
		cmocka_unit_test(settings),
		cmocka_unit_test(enums),
		cmocka_unit_test(numbers_of_a_kind),
		cmocka_unit_test(oneofs),
		cmocka_unit_test(batches),
		cmocka_unit_test(lists_of_text),
		cmocka_unit_test(nexthops),
		cmocka_unit_test(nat_rules),
		cmocka_unit_test(questions),
		cmocka_unit_test(tables_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
