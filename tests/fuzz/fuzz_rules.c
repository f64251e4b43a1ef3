// SPDX-License-Identifier: Apache-2.0
// Rules as messages. An accepted rule is encoded the same way again, its text is complete, and its compiled form
// decides like the rule itself about a key at the edge of its ranges. A first byte 0xff is followed by a request,
// anything else begins a list of words.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/rules_message.h"
#include "fuzz_frame.h"
#include "policy/rules_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Memory of a request.
static void *blocks[64];
static unsigned n_blocks;

static char *keep(char *s)
{
	FUZZ_ASSERT(s && n_blocks < RTE_DIM(blocks));
	return blocks[n_blocks++] = s;
}

static void forget(void)
{
	while (n_blocks > 0)
		free(blocks[--n_blocks]);
}

static void back_to_message(const struct rule *r, Corelane__V1__Rule *m)
{
	bool icmp = r->proto == 1 || r->proto == 58;
	char buf[IP_TEXT];
	unsigned i;

	corelane__v1__rule__init(m);
	m->id = r->id;
	m->action =
		r->allow ? CORELANE__V1__RULE_ACTION__RULE_ACTION_ALLOW : CORELANE__V1__RULE_ACTION__RULE_ACTION_DENY;
	m->log = r->log;
	m->protocol = keep(strdup(rule_protocol_name(r->proto, buf)));
	m->source = keep(strdup(r->src.addr.family ? ip_format_prefix(&r->src, buf) : ""));
	m->destination = keep(strdup(r->dst.addr.family ? ip_format_prefix(&r->dst, buf) : ""));
	for (i = 0; i < 2; i++) {
		char *text = keep(strdup(rule_range_text(r->ports[i], icmp ? 255 : 65535, buf)));

		if (icmp)
			*(i ? &m->icmp_code : &m->icmp_type) = text;
		else
			*(i ? &m->destination_ports : &m->source_ports) = text;
	}
}

static void check_entries(const struct rule *r)
{
	struct rule_match *e = malloc(sizeof(*e));
	struct rules_set s = {.allow = !r->allow};
	unsigned f;

	for (f = 0; f < 2; f++) {
		struct flow_key k = {.family = f ? 6 : 4};
		struct rule_verdict v;

		FUZZ_ASSERT(rule_entries(r, f) <= 1 && rule_expand(r, f, e) == rule_entries(r, f));
		if (rule_entries(r, f) == 0)
			continue;
		s.m[f] = e;
		s.n[f] = 1;
		k.addr[0] = e->addr0;
		if (f)
			memcpy(&k.addr[1], e->addr, sizeof(e->addr));
		k.proto = r->proto < 0 ? 6 : (uint8_t)r->proto;
		k.src_port = rte_cpu_to_be_16(r->ports[0][0]);
		k.dst_port = rte_cpu_to_be_16(r->ports[1][1]);
		if (r->proto != 1 && r->proto != 58) // for ICMP the key has type and code there
			FUZZ_ASSERT(rules_lookup(&s, &k, &v) && v.rule == r->id && v.denied == !r->allow);
		s.n[f] = 0;
	}
	free(e);
}

static void check(const Corelane__V1__Rule *in)
{
	Corelane__V1__Rule out;
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
	back_to_message(&r, &out);
	FUZZ_ASSERT(rule_decode(&out, &again, &err) == 0);
	FUZZ_ASSERT(memcmp(r.ports, again.ports, sizeof(r.ports)) == 0 && r.proto == again.proto &&
		    r.src.len == again.src.len && ip_addr_eq(&r.src.addr, &again.src.addr) &&
		    r.dst.len == again.dst.len && ip_addr_eq(&r.dst.addr, &again.dst.addr));
	forget();
}

// Words that end with a newline: protocol, source, destination, ports, types, groups.
static void from_words(const uint8_t *data, size_t size)
{
	Corelane__V1__Rule m = CORELANE__V1__RULE__INIT;
	char **fields[] = {&m.protocol,  &m.source,    &m.destination,  &m.source_ports,     &m.destination_ports,
			   &m.icmp_type, &m.icmp_code, &m.source_group, &m.destination_group};
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
