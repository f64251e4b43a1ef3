// SPDX-License-Identifier: Apache-2.0
// API of rule lists and rules (api/rule.proto).
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>

#include "control/rules_message.h"
#include "port/registry.h"

#define SOME 16 // shadowed rules that a reply names at most

// --- Lists. ---

static void rules_api_encode_list(struct api_call *call, const struct rule_list *l, Corelane__V1__RuleList *out)
{
	out->name = api_strdup(call, l->name);
	out->default_action =
		l->allow ? CORELANE__V1__RULE_ACTION__RULE_ACTION_ALLOW : CORELANE__V1__RULE_ACTION__RULE_ACTION_DENY;
	out->rules = (uint32_t)l->n;
	out->entries_ipv4 = l->entries[0];
	out->entries_ipv6 = l->entries[1];
	out->ports = l->refs;
	out->default_hits = rule_hits(l->slot);
	out->compiling = l->wanted || l->running;
	out->last_error = api_strdup(call, l->last_error);
}

static bool rules_api_allows(const Corelane__V1__RuleList *in)
{
	return in->default_action == CORELANE__V1__RULE_ACTION__RULE_ACTION_ALLOW;
}

static int rules_api_list_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RuleList *in = ((const Corelane__V1__RuleListAddRequest *)req)->list;
	struct rule_list *l = rule_list_add(in->name, rules_api_allows(in), err);

	if (l == NULL)
		return -err->code;
	rules_api_encode_list(call, l, resp);
	return 0;
}

static int rules_api_list_set(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RuleListSetRequest *in = req;
	struct rule_list *l = rule_list_find_err(in->list->name, "rule_list.name", err);

	if (l == NULL)
		return -ENOENT;
	if (rule_list_set(l, rules_api_allows(in->list)) < 0) // api/rule.proto has no other field that a Set may name
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no memory for rules");
	rules_api_encode_list(call, l, resp);
	return 0;
}

static int rules_api_list_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	return rule_list_del(((const Corelane__V1__RuleListDelRequest *)req)->name, err);
}

static int rules_api_list_lists(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__RuleListListRequest *in = req;
	uint16_t *last = cursor;
	struct rule_list *l;

	if (*in->name && *last == 0 && rule_list_find_err(in->name, "rule_list.name", err) == NULL)
		return -ENOENT;
	while (++*last < RULE_LISTS_MAX) {
		l = rule_list_get(*last);
		if (l == NULL || (*in->name && strcmp(in->name, l->name) != 0))
			continue;
		rules_api_encode_list(call, l, item);
		return 1;
	}
	*last = RULE_LISTS_MAX - 1;
	return 0;
}

// --- Rules, in batches. ---

struct item {
	struct rule_list *l;
	struct rule r;
	uint32_t index; // in the request
};

static int by_list(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->l != y->l)
		return x->l->id < y->l->id ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

// Sorted by list, else in the order of the request.
static struct item *rules_api_decode(struct api_call *call, Corelane__V1__Rule *const *in, size_t n, bool whole,
				     struct error *err)
{
	struct rule_list *l = NULL;
	struct item *out;
	size_t i;

	out = api_alloc(call, (n + 1) * sizeof(*out));
	for (i = 0; i < n; i++) {
		if (l == NULL || strcmp(l->name, in[i]->list) != 0)
			l = rule_list_find_err(in[i]->list, "rule.list", err);
		out[i] = (struct item){.l = l, .index = (uint32_t)i, .r.id = in[i]->id};
		if (l == NULL || (whole && rule_decode(in[i], &out[i].r, err) < 0)) {
			err->index = (uint32_t)i;
			return NULL;
		}
	}
	qsort(out, n, sizeof(*out), by_list);
	return out;
}

static void note_shadow(struct api_call *call, const char *list, const struct rule *r, Corelane__V1__RuleReply *out)
{
	Corelane__V1__RuleShadow *s;

	out->shadowed++;
	if (out->n_some == SOME)
		return;
	if (out->some == NULL)
		out->some = api_alloc(call, SOME * sizeof(*out->some));
	s = api_alloc(call, sizeof(*s));
	corelane__v1__rule_shadow__init(s);
	s->list = api_strdup(call, list);
	s->id = r->id;
	s->shadowed_by = r->shadowed_by;
	out->some[out->n_some++] = s;
}

// Notes the rules that the change shadows: new rules, and old rules behind new ones.
static void note_shadows(struct api_call *call, const struct rule_list *l, Corelane__V1__RuleReply *out)
{
	const struct rule *by;
	size_t i;

	for (i = 0; i < l->n; i++) {
		const struct rule *r = &l->rules[i];

		if (r->shadowed_by == 0)
			continue;
		by = rules_get(l, r->shadowed_by);
		if (r->seq == l->seq || (by && by->seq == l->seq))
			note_shadow(call, l->name, r, out);
	}
}

// A run of items of one list.
struct run {
	struct rule_list *l;
	struct rule *r;
	const struct item *items;
	size_t n;
};

static size_t runs_of(struct api_call *call, const struct item *items, size_t n, struct run **out)
{
	size_t i, n_runs = 0;

	*out = api_alloc(call, (n + 1) * sizeof(**out));
	for (i = 0; i < n; i++) {
		struct run *run = n_runs ? &(*out)[n_runs - 1] : NULL;

		if (run == NULL || run->l != items[i].l) {
			run = &(*out)[n_runs++];
			*run = (struct run){
				.l = items[i].l, .items = &items[i], .r = api_alloc(call, (n - i) * sizeof(*run->r))};
		}
		run->r[run->n++] = items[i].r;
	}
	return n_runs;
}

static int rules_api_blame(const struct run *run, int ret, struct error *err)
{
	if (ret < 0 && err->index < run->n)
		err->index = run->items[err->index].index;
	return ret;
}

static int rules_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RuleAddRequest *in = req;
	struct item *items = rules_api_decode(call, in->rules, in->n_rules, true, err);
	Corelane__V1__RuleReply *out = resp;
	size_t i, n;
	struct run *runs;
	int ret = items ? 0 : -err->code;

	n = items ? runs_of(call, items, in->n_rules, &runs) : 0;
	for (i = 0; i < n && n > 1 && ret == 0; i++) // check all lists before any changes
		ret = rules_api_blame(&runs[i], rules_check(runs[i].l, runs[i].r, runs[i].n, in->replace, err), err);
	for (i = 0; i < n && ret == 0; i++) {
		ret = rules_api_blame(&runs[i], rules_add(runs[i].l, runs[i].r, runs[i].n, in->replace, err), err);
		if (ret == 0) {
			out->changed += (uint32_t)runs[i].n;
			note_shadows(call, runs[i].l, out);
		}
	}
	return ret;
}

static int rules_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RuleDelRequest *in = req;
	struct item *items = rules_api_decode(call, in->rules, in->n_rules, false, err);
	Corelane__V1__RuleReply *out = resp;
	size_t i, j, n;
	struct run *runs;
	uint32_t *ids;
	int ret = items ? 0 : -err->code;

	n = items ? runs_of(call, items, in->n_rules, &runs) : 0;
	for (i = 0; i < n && ret == 0; i++)
		for (j = 0; j < runs[i].n && ret == 0; j++)
			if (rules_get(runs[i].l, runs[i].r[j].id) == NULL)
				ret = rules_api_blame(&runs[i], rules_del(runs[i].l, &runs[i].r[j].id, 1, err), err);
	for (i = 0; i < n && ret == 0; i++) {
		size_t before = runs[i].l->n;

		ids = api_alloc(call, runs[i].n * sizeof(*ids));
		for (j = 0; j < runs[i].n; j++)
			ids[j] = runs[i].r[j].id;
		ret = rules_del(runs[i].l, ids, runs[i].n, err);
		out->changed += (uint32_t)(before - runs[i].l->n);
	}
	return ret;
}

struct cursor {
	uint16_t list;
	uint32_t rule;
};

static int rules_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__RuleListRulesRequest *in = req;
	const struct rule *r;
	struct cursor *c = cursor;
	struct rule_list *l = NULL;

	if (c->list == 0) {
		c->list = 1;
		if (*in->list && (l = rule_list_find_err(in->list, "list", err)) == NULL)
			return -ENOENT;
		c->list = l ? l->id : 1;
	}
	for (; c->list < RULE_LISTS_MAX; c->list++, c->rule = 0) {
		l = rule_list_get(c->list);
		if (l == NULL || (*in->list && strcmp(l->name, in->list) != 0))
			continue;
		r = in->id == 0 ? rules_next(l, c->rule) : c->rule < in->id ? rules_get(l, in->id) : NULL;
		if (r == NULL)
			continue;
		c->rule = r->id;
		rule_encode(call, l->name, r, item);
		((Corelane__V1__Rule *)item)->hits = rule_hits(r->slot);
		return 1;
	}
	return 0;
}

// --- Explain. ---

static int rules_api_decode_key(const Corelane__V1__RuleExplainRequest *in, struct flow_key *k, struct error *err)
{
	struct ip_addr src, dst;
	int16_t proto;
	int ret = ip_parse_addr(in->source, "source", &src, err);

	if (ret == 0)
		ret = ip_parse_addr(in->destination, "destination", &dst, err);
	if (ret == 0)
		ret = rule_protocol_parse(in->protocol, "protocol", &proto, err);
	if (ret < 0)
		return ret;
	if (src.family != dst.family)
		return error_set(err, EINVAL, "destination", in->destination, "addresses of one family",
				 "is of another family than the source");
	if (proto < 0)
		return error_set(err, EINVAL, "protocol", in->protocol,
				 "tcp, udp, sctp, icmp, icmpv6 or a number from 0 to 255", "a flow needs one protocol");
	*k = (struct flow_key){.proto = (uint8_t)proto, .family = src.family};
	memcpy(src.family == IPV4 ? (void *)&k->src4 : k->src6, src.bytes, ip_bytes(src.family));
	memcpy(src.family == IPV4 ? (void *)&k->dst4 : k->dst6, dst.bytes, ip_bytes(src.family));
	k->src_port = rte_cpu_to_be_16((uint16_t)in->source_port);
	k->dst_port = rte_cpu_to_be_16((uint16_t)in->destination_port);
	if (proto == (src.family == IPV4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) { // as in flow/key.h
		bool echo = src.family == IPV4 ? in->icmp_type == 8 || in->icmp_type == 0
					       : in->icmp_type == 128 || in->icmp_type == 129;

		k->src_port = echo ? 1 : rte_cpu_to_be_16((uint16_t)(in->icmp_type << 8 | in->icmp_code));
		k->dst_port = echo ? 1 : 0;
	}
	return 0;
}

static int rules_api_explain(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__RuleExplainRequest *in = req;
	Corelane__V1__RuleExplainReply *out = resp;
	struct port *p = port_find(in->port);
	struct rule_verdict v;
	struct rule_list *l;
	struct flow_key key;
	char text[RULE_TEXT];
	unsigned dir =
		in->direction == CORELANE__V1__RULE_DIRECTION__RULE_DIRECTION_INGRESS ? RULES_INGRESS : RULES_EGRESS;
	int ret;

	if (p == NULL)
		return error_set(err, ENOENT, "port", in->port, "the name of a port", "there is no such port");
	// analyzer: core.UndefinedBinaryOperatorResult: without an error, both addresses are set
	ret = rules_api_decode_key(in, &key, err);
	if (ret < 0)
		return ret;
	rules_classify(p->id, dir, &key, &v);
	l = rule_list_get(rules_config(&p->cfg)->lists[dir]);
	out->action =
		v.denied ? CORELANE__V1__RULE_ACTION__RULE_ACTION_DENY : CORELANE__V1__RULE_ACTION__RULE_ACTION_ALLOW;
	out->list = api_strdup(call, l ? l->name : "");
	out->id = v.rule;
	out->rule = api_strdup(call, v.rule ? rule_text(rules_get(l, v.rule), text) : "");
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.RuleLists", "Add", &corelane__v1__rule_list_add_request__descriptor,
	 &corelane__v1__rule_list__descriptor, .unary = rules_api_list_add},
	{"corelane.v1.RuleLists", "Set", &corelane__v1__rule_list_set_request__descriptor,
	 &corelane__v1__rule_list__descriptor, .unary = rules_api_list_set},
	{"corelane.v1.RuleLists", "Del", &corelane__v1__rule_list_del_request__descriptor,
	 &corelane__v1__empty__descriptor, .unary = rules_api_list_del},
	{"corelane.v1.RuleLists", "List", &corelane__v1__rule_list_list_request__descriptor,
	 &corelane__v1__rule_list__descriptor, .next = rules_api_list_lists, .cursor_size = sizeof(uint16_t)},
	{"corelane.v1.Rules", "Add", &corelane__v1__rule_add_request__descriptor, &corelane__v1__rule_reply__descriptor,
	 .unary = rules_api_add},
	{"corelane.v1.Rules", "Del", &corelane__v1__rule_del_request__descriptor, &corelane__v1__rule_reply__descriptor,
	 .unary = rules_api_del},
	{"corelane.v1.Rules", "List", &corelane__v1__rule_list_rules_request__descriptor,
	 &corelane__v1__rule__descriptor, .next = rules_api_list, .cursor_size = sizeof(struct cursor)},
	{"corelane.v1.Rules", "Explain", &corelane__v1__rule_explain_request__descriptor,
	 &corelane__v1__rule_explain_reply__descriptor, .unary = rules_api_explain},
};
API_METHODS(methods)
