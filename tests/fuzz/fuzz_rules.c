// SPDX-License-Identifier: Apache-2.0
// Rules as messages. An accepted rule is encoded the same way again, its text is complete, and its compiled form
// decides like the rule itself about a key at the edge of its ranges. A first byte 0xff is followed by a request,
// anything else begins a list of words. There are groups "one" and "more", a meter "slow" and a mirror "copies".
#include <stdlib.h>
#include <string.h>

#include "api/api_private.h"
#include "control/rules_message.h"
#include "fuzz_frame.h"
#include "overlay/overlay.h"
#include "policy/meter.h"
#include "policy/mirror.h"
#include "policy/rules_private.h"
#include "testing/router_fixture.h"

#define GROUP_PREFIXES 2 // of a family in a group, at most

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct ip_prefix more[] = {
		{router_addr("10.0.0.0"), 8}, {router_addr("192.0.2.1"), 32}, {router_addr("fd00::"), 8}};
	struct meter_config slow = {.name = "slow", .packet_rate = 1};
	struct mirror_config copies = {.name = "copies", .target = MIRROR_TUNNEL};

	FUZZ_ASSERT(router_setup(NULL) == 0);
	meter_init();
	mirror_init();
	copies.tunnel = (struct tunnel_config){
		.encap = encap_find("erspan"), .remote = router_addr("203.0.113.9"), .session = 7};
	FUZZ_ASSERT(address_group_add("one", more, 1, NULL) && address_group_add("more", more, RTE_DIM(more), NULL) &&
		    meter_add(&slow, NULL) && mirror_add(&copies, NULL));
	return 0;
}

// A key that the entry's rule matches, at the edge of its ranges.
static struct flow_key edge(const struct rule *r, const struct rule_match *e, bool ip6)
{
	struct flow_key k = {.family = ip6 ? 6 : 4, .proto = r->proto < 0 ? 6 : (uint8_t)r->proto};

	k.addr[0] = e->addr0;
	if (ip6)
		memcpy(&k.addr[1], e->addr, sizeof(e->addr));
	k.src_port = rte_cpu_to_be_16(r->ports[0][0]);
	k.dst_port = rte_cpu_to_be_16(r->ports[1][1]);
	return k;
}

static void check_entries(const struct rule *r)
{
	uint32_t i, n, most = GROUP_PREFIXES * GROUP_PREFIXES;
	struct rules_set s = {.allow = !r->allow};
	struct rule_verdict v;
	struct flow_key k;
	unsigned f;

	for (f = 0; f < 2; f++) {
		n = rule_entries(r, f);
		FUZZ_ASSERT(n <= most);
		s.m[f] = calloc(n + 1, sizeof(*s.m[f]));
		FUZZ_ASSERT(rule_expand(r, f, s.m[f]) == n);
		s.n[f] = n;
		for (i = 0; i < n && r->proto != 1 && r->proto != 58; i++) { // for ICMP the key has type and code there
			k = edge(r, &s.m[f][i], f);
			FUZZ_ASSERT(rules_lookup(&s, &k, &v) && v.rule == r->id && v.denied == !r->allow &&
				    v.extras.meter == r->extras.meter && v.extras.mirror == r->extras.mirror);
		}
		free(s.m[f]);
		s.n[f] = 0;
	}
}

static void check(const Corelane__V1__Rule *in)
{
	static struct api_call call;
	Corelane__V1__Rule out = CORELANE__V1__RULE__INIT;
	struct error err = {0};
	struct rule r, again;
	char text[RULE_TEXT];

	if (rule_decode(in, &r, &err) < 0) {
		FUZZ_ASSERT(err.code && err.message[0] && err.field[0]);
		return;
	}
	FUZZ_ASSERT(r.ports[0][0] <= r.ports[0][1] && r.ports[1][0] <= r.ports[1][1]);
	FUZZ_ASSERT(strlen(rule_text(&r, text)) < RULE_TEXT - 1);
	check_entries(&r);
	rule_encode(&call, "list", &r, &out);
	FUZZ_ASSERT(rule_decode(&out, &again, &err) == 0);
	FUZZ_ASSERT(memcmp(r.ports, again.ports, sizeof(r.ports)) == 0 && r.proto == again.proto &&
		    r.src.len == again.src.len && ip_addr_eq(&r.src.addr, &again.src.addr) &&
		    r.dst.len == again.dst.len && ip_addr_eq(&r.dst.addr, &again.dst.addr) &&
		    r.src_group == again.src_group && r.dst_group == again.dst_group && r.log == again.log &&
		    r.extras.meter == again.extras.meter && r.extras.mirror == again.extras.mirror);
	arena_reset(&call.memory);
}

// Words that end with a newline: protocol, source, destination, ports, types, groups, meter, mirror.
static void from_words(const uint8_t *data, size_t size)
{
	Corelane__V1__Rule m = CORELANE__V1__RULE__INIT;
	char **fields[] = {&m.protocol,          &m.source,    &m.destination, &m.source_ports,
			   &m.destination_ports, &m.icmp_type, &m.icmp_code,   &m.source_group,
			   &m.destination_group, &m.meter,     &m.mirror};
	char *text = malloc(size + 1), *at = text, *next;
	unsigned i;

	memcpy(text, data, size);
	text[size] = '\0';
	m.id = 1;
	m.action = size & 1;
	for (i = 0; i < RTE_DIM(fields) && at; i++, at = next) {
		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		*fields[i] = at;
	}
	check(&m);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Corelane__V1__RuleAddRequest *req;
	size_t i;

	if (size == 0)
		return 0;
	if (data[0] != 0xff) {
		from_words(data, size);
		return 0;
	}
	req = corelane__v1__rule_add_request__unpack(NULL, size - 1, data + 1);
	for (i = 0; req && i < req->n_rules; i++)
		check(req->rules[i]);
	if (req)
		corelane__v1__rule_add_request__free_unpacked(req, NULL);
	return 0;
}
