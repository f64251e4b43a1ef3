// SPDX-License-Identifier: Apache-2.0
// Entries of rules compiled by rte_acl.
#include "policy/rules_acl.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_errno.h>

// The keys that rte_acl classifies: one byte first, then words in network byte order.
struct key4 {
	uint8_t proto, pad[3];
	uint64_t addr;
	uint16_t port[2];
} __rte_packed __rte_aligned(4);

struct key6 {
	uint8_t proto, pad[3];
	uint64_t addr[4];
	uint16_t port[2];
} __rte_packed __rte_aligned(4);

#define FIELDS(f) ((f) ? 11u : 5u)
RTE_ACL_RULE_DEF(acl_rule, 11); // IPv4 uses the first five fields

static void rules_acl_field(struct rte_acl_field_def *d, unsigned i, uint8_t type, uint8_t size, unsigned offset)
{
	*d = (struct rte_acl_field_def){.type = type,
					.size = size,
					.field_index = (uint8_t)i,
					.input_index = (uint8_t)(offset / 4),
					.offset = offset};
}

static void rules_acl_define(struct rte_acl_config *cfg, unsigned f)
{
	unsigned n = FIELDS(f), i;

	*cfg = (struct rte_acl_config){.num_categories = 1, .num_fields = n};
	rules_acl_field(&cfg->defs[0], 0, RTE_ACL_FIELD_TYPE_BITMASK, 1, 0);
	for (i = 1; i < n - 2; i++)
		rules_acl_field(&cfg->defs[i], i, RTE_ACL_FIELD_TYPE_MASK, 4, i * 4);
	rules_acl_field(&cfg->defs[n - 2], n - 2, RTE_ACL_FIELD_TYPE_RANGE, 2, (n - 2) * 4);
	rules_acl_field(&cfg->defs[n - 1], n - 1, RTE_ACL_FIELD_TYPE_RANGE, 2, (n - 2) * 4 + 2);
}

static void rules_acl_rule(const struct rule_match *m, uint32_t i, unsigned f, struct acl_rule *r)
{
	uint64_t addr[4] = {m->addr0, m->addr[0], m->addr[1], m->addr[2]},
		 mask[4] = {m->mask0, m->mask[0], m->mask[1], m->mask[2]};
	const uint32_t *a = (const uint32_t *)addr, *k = (const uint32_t *)mask;
	unsigned n = FIELDS(f), j;

	memset(r, 0, sizeof(*r));
	r->data = (struct rte_acl_rule_data){
		.category_mask = 1, .priority = (int32_t)(RTE_ACL_MAX_PRIORITY - i), .userdata = i + 1};
	r->field[0].value.u8 = m->proto;
	r->field[0].mask_range.u8 = m->proto_mask;
	for (j = 1; j < n - 2; j++) {
		r->field[j].value.u32 = rte_be_to_cpu_32(a[j - 1]);
		r->field[j].mask_range.u32 = (uint32_t)__builtin_popcount(k[j - 1]);
	}
	for (j = 0; j < 2; j++) {
		r->field[n - 2 + j].value.u16 = m->ports[j][0];
		r->field[n - 2 + j].mask_range.u16 = (uint16_t)(m->ports[j][0] + m->ports[j][1]);
	}
}

static int rules_acl_fill(struct rte_acl_ctx *acl, const struct rule_match *m, uint32_t n, unsigned f)
{
	struct rte_acl_config cfg;
	struct acl_rule r;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < n && ret == 0; i++) {
		rules_acl_rule(&m[i], i, f, &r); // analyzer: core.CallAndMessage: reads 64-bit words as pairs
		ret = rte_acl_add_rules(acl, (const struct rte_acl_rule *)&r, 1);
	}
	rules_acl_define(&cfg, f);
	return ret < 0 ? ret : rte_acl_build(acl, &cfg);
}

struct rte_acl_ctx *acl_build(const struct rule_match *m, uint32_t n, unsigned f)
{
	static unsigned serial; // rte_acl needs unique names
	char name[RTE_ACL_NAMESIZE];
	struct rte_acl_param p = {
		.name = name, .socket_id = SOCKET_ID_ANY, .rule_size = RTE_ACL_RULE_SZ(FIELDS(f)), .max_rule_num = n};
	struct rte_acl_ctx *acl;
	int ret;

	snprintf(name, sizeof(name), "rules-%u", ++serial);
	acl = rte_acl_create(&p);
	if (acl == NULL) {
		errno = rte_errno;
		return NULL;
	}
	ret = rules_acl_fill(acl, m, n, f);
	if (ret == 0)
		return acl;
	rte_acl_free(acl);
	errno = -ret;
	return NULL;
}

uint32_t acl_classify(const struct rte_acl_ctx *acl, unsigned f, const uint64_t *addr, const uint16_t port[2],
		      uint8_t proto)
{
	const uint16_t be[2] = {rte_cpu_to_be_16(port[0]), rte_cpu_to_be_16(port[1])};
	const uint8_t *data;
	uint32_t found = 0;
	struct key4 k4;
	struct key6 k6;

	if (f) {
		k6.proto = proto;
		memcpy(k6.addr, addr, sizeof(k6.addr));
		memcpy(k6.port, be, sizeof(be));
		data = (const uint8_t *)&k6;
	} else {
		k4.proto = proto;
		memcpy(&k4.addr, addr, sizeof(k4.addr));
		memcpy(k4.port, be, sizeof(be));
		data = (const uint8_t *)&k4;
	}
	rte_acl_classify(acl, &data, &found, 1, 1);
	return found;
}
