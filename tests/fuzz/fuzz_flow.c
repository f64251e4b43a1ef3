// SPDX-License-Identifier: Apache-2.0
// Frames of guests whose ports keep flows, routed and bridged, and of tunnels to them, with addresses that are
// translated, rules, meters and a mirror. Bits of the first byte: 0x80 advances the clock, 0x40 starts a new
// generation, and with 0x20 each TCP flow has to begin with a SYN.
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "flow/flow_private.h"
#include "flow/tcp.h"
#include "fuzz_frame.h"
#include "fuzz_router.h"
#include "policy/meter.h"
#include "policy/mirror.h"
#include "policy/nat.h"
#include "policy/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

// The first six are as they were before there were flows on bridges, for the inputs of the corpus.
static const uint16_t ports[] = {RED0, RED1, BLUE0, IRB0, FABRIC0, FABRIC1, LAN0, LAN1, LAN0, IRB0, FABRIC0, FABRIC1};

static void must(int ret, const struct error *err)
{
	if (ret < 0) {
		fprintf(stderr, "fuzz_flow: %s\n", err->message);
		abort();
	}
}

static void translate(struct nat_config c, const char *inside, uint8_t len, const char *outside, const char *last)
{
	struct error err = {0};

	c.vrf = c.external = RED;
	if (inside)
		c.inside = (struct ip_prefix){router_addr(inside), len};
	c.outside = router_addr(outside);
	if (last)
		c.last = router_addr(last);
	must(nat_add(&c, &err), &err);
}

static void add_translations(void)
{
	struct nat_config floating = {.id = 1, .kind = NAT_FLOATING}, source = {.id = 3, .kind = NAT_SOURCE},
			  balanced = {.id = 5, .kind = NAT_DESTINATION, .protocol = IPPROTO_TCP, .first_port = 80};
	struct ip_prefix except[2] = {{router_addr("172.20.0.0"), 16}, {router_addr("fd00:20::"), 32}};
	struct nat_backend backends[2][2] = {{{router_addr("10.0.0.2"), 8080, 1}, {router_addr("10.0.0.3"), 0, 3}},
					     {{router_addr("fd00::2"), 8080, 1}, {router_addr("fd00::3"), 0, 3}}};

	translate(floating, "10.0.0.2", 32, "198.18.0.2", NULL);
	floating.id++;
	translate(floating, "fd00::2", 128, "fd00:18::2", NULL);
	source.except = &except[0];
	source.n_except = 1;
	translate(source, "10.0.0.0", 24, "198.18.0.3", "198.18.0.9");
	source.id++;
	source.except = &except[1];
	translate(source, "fd00::", 64, "fd00:18::3", "fd00:18::9");
	balanced.backends = backends[0];
	balanced.n_backends = 2;
	translate(balanced, NULL, 0, "198.18.0.80", NULL);
	balanced.id++;
	balanced.backends = backends[1];
	translate(balanced, NULL, 0, "fd00:18::80", NULL);
}

static struct rule_list *add_rules(const char *name, bool allow, struct rule rule)
{
	struct error err = {0};
	struct rule_list *l = rule_list_add(name, allow, &err);

	FUZZ_ASSERT(l);
	rule.id = 1;
	rule.log = true;
	rule.allow = !allow;
	rule.ports[0][1] = UINT16_MAX;
	must(rules_add(l, &rule, 1, false, &err), &err);
	return l;
}

// On a bridge: a list by whose default frames without IP do not arrive, and one that lets all but telnet out.
static void add_bridge_policy(const struct meter *slow, const struct mirror *m)
{
	struct rule telnet = {.proto = IPPROTO_TCP, .ports = {{0}, {23, 23}}},
		    udp = {.proto = IPPROTO_UDP, .ports = {{0}, {0, UINT16_MAX}}};
	struct port_config cfg = router_config(LAN0);

	udp.extras.meter = slow->id;
	cfg.stateful = true;
	rules_config_edit(&cfg)->lists[RULES_EGRESS] = rule_list_id(add_rules("bridge-egress", true, telnet));
	rules_config_edit(&cfg)->lists[RULES_INGRESS] = rule_list_id(add_rules("bridge-ingress", false, udp));
	mirroring_config_edit(&cfg)->mirror = m->id;
	router_set(LAN0, &cfg);
}

// What a rule or a port may do besides: deny, log, limit, copy.
static void add_policy(void)
{
	struct meter *slow =
		meter_add(&(struct meter_config){.name = "slow", .packet_rate = 1, .burst_packets = 4}, NULL);
	struct mirror_config copies = {.name = "copies", .target = MIRROR_TUNNEL, .snap = 64};
	struct rule telnet = {.proto = IPPROTO_TCP, .ports = {{0}, {23, 23}}},
		    all = {.proto = -1, .ports = {{0}, {0, UINT16_MAX}}};
	struct port_config cfg = router_config(RED0);
	struct mirror *m;

	copies.tunnel = (struct tunnel_config){
		.encap = encap_find("erspan"), .remote = router_addr("203.0.113.9"), .session = 7};
	m = mirror_add(&copies, NULL);
	FUZZ_ASSERT(slow && m);
	rules_config_edit(&cfg)->lists[RULES_EGRESS] = rule_list_id(add_rules("egress", true, telnet));
	rules_config_edit(&cfg)->lists[RULES_INGRESS] = rule_list_id(add_rules("no-telnet", true, telnet));
	mirroring_config_edit(&cfg)->mirror = m->id;
	router_set(RED0, &cfg);
	all.extras.meter = slow->id;
	all.extras.mirror = m->id;
	cfg = router_config(BLUE0);
	rules_config_edit(&cfg)->lists[RULES_INGRESS] = rule_list_id(add_rules("ingress", false, all));
	meters_config_edit(&cfg)->egress = slow->id;
	router_set(BLUE0, &cfg);
	add_bridge_policy(slow, m);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct port_config cfg;
	unsigned i;

	mirror_init();
	meter_init();
	fuzz_router_setup();
	flow_secret_init(&(struct flow_secret){
		.add = {1, 2, 3, 4, 5}, .mul = {7, 9, 11, 13, 15}, .seed = {17, 19}}); // the same each time
	for (i = 0; i < 4; i++) {
		cfg = router_config(ports[i]);
		cfg.stateful = ports[i] != RED1;
		router_set(ports[i], &cfg);
	}
	add_policy();
	add_translations();
	flow_changes_take_effect();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t tsc;

	if (size == 0)
		return 0;
	flow_tcp_strict = *data & 0x20;
	fuzz_router_input(ports, RTE_DIM(ports), data, size);
	if (*data & 0x40) {
		flow_zone_changed(RED);
		flow_zone_changed(FLOW_ZONE_BRIDGE | LAN);
	}
	flow_changes_take_effect();
	if (*data & 0x80) {
		tsc += flow_tsc_hz; // so that the ager scans every flow
		flow_poll();
		flow_age(0, tsc);
	}
	return 0;
}
