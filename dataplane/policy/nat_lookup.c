// SPDX-License-Identifier: Apache-2.0
// Evaluation of NAT rules by workers, once per flow.
#include <math.h>
#include <netinet/in.h>
#include <string.h>

#include "policy/service_private.h"

// --- Keys. ---

static inline struct nat_words nat_lookup_source_of(const struct flow_key *k)
{
	return k->family == 4 ? (struct nat_words){{k->src4, 0}} : (struct nat_words){{k->addr[0], k->addr[1]}};
}

static inline struct nat_words destination_of(const struct flow_key *k)
{
	return k->family == 4 ? (struct nat_words){{k->dst4, 0}} : (struct nat_words){{k->addr[2], k->addr[3]}};
}

static inline void set_source(struct flow_key *k, const struct nat_words *w)
{
	if (k->family == 4) {
		k->src4 = (uint32_t)w->w[0];
	} else {
		k->addr[0] = w->w[0];
		k->addr[1] = w->w[1];
	}
}

static inline void set_destination(struct flow_key *k, const struct nat_words *w)
{
	if (k->family == 4) {
		k->dst4 = (uint32_t)w->w[0];
	} else {
		k->addr[2] = w->w[0];
		k->addr[3] = w->w[1];
	}
}

static inline bool nat_lookup_is_icmp(const struct flow_key *k)
{
	return k->proto == (k->family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

// The key of an echo has the identifier in both fields; other ICMP has 0 in the second one.
static inline bool nat_lookup_is_echo(const struct flow_key *k)
{
	return nat_lookup_is_icmp(k) && k->src_port == k->dst_port;
}

static inline bool nat_lookup_has_ports(const struct flow_key *k) // ports that can be translated
{
	return k->proto == IPPROTO_TCP || k->proto == IPPROTO_UDP;
}

// --- Rules. ---

static inline bool nat_lookup_within(const struct nat_net *n, const struct nat_words *a)
{
	return (((a->w[0] & n->mask.w[0]) ^ n->addr.w[0]) | ((a->w[1] & n->mask.w[1]) ^ n->addr.w[1])) == 0;
}

static bool nat_lookup_matches(const struct nat_rule *r, const struct flow_key *k, enum nat_side side)
{
	struct nat_words to = destination_of(k);
	uint16_t port = rte_be_to_cpu_16(k->dst_port);
	unsigned i;

	if (r->proto && r->proto != k->proto)
		return false;
	if (r->hi && (port < r->lo || port > r->hi))
		return false;
	if (side == NAT_OUTSIDE)
		return true;
	if (r->has_to && !nat_lookup_within(&r->to, &to))
		return false;
	for (i = 0; i < r->n_except; i++)
		if (nat_lookup_within(&r->except[i], &to))
			return false;
	return true;
}

// Returns the matching rule with the lowest id among `best` and the rules of this address.
static const struct nat_rule *nat_lookup_find(uint32_t where, const struct nat_words *addr, const struct flow_key *k,
					      enum nat_side side, const struct nat_rule *best)
{
	const struct nat_node *n;

	for (n = nat_chain(where, addr); n; n = rcu_read(n->next)) {
		if (n->where == where && nat_words_equal(&n->addr, addr) && (best == NULL || n->rule->id < best->id) &&
		    nat_lookup_matches(n->rule, k, side))
			best = n->rule;
	}
	return best;
}

static const struct nat_zone *zone_of(const struct flow_key *k)
{
	return k->zone < VRF_MAX ? rcu_read(nat_zones[k->zone]) : NULL;
}

static const struct nat_rule *find_outside(const struct flow_key *k)
{
	const struct nat_zone *z = zone_of(k);
	struct nat_words dst = destination_of(k);

	if (z == NULL || z->outside == 0)
		return NULL;
	return nat_lookup_find(NAT_WHERE(k->zone, NAT_OUTSIDE, k->family, ip_bits(k->family)), &dst, k, NAT_OUTSIDE,
			       NULL);
}

static const struct nat_rule *find_inside(const struct flow_key *k)
{
	const struct nat_zone *z = zone_of(k);
	const struct nat_rule *best = NULL;
	struct nat_words src = nat_lookup_source_of(k), masked, mask;
	unsigned i, len;
	uint64_t bits;

	if (z == NULL)
		return NULL;
	for (i = 0; i < (k->family == 4 ? 1u : 3u); i++) {
		for (bits = __atomic_load_n(&z->lens[k->family == 6][i], __ATOMIC_RELAXED); bits; bits &= bits - 1) {
			len = i * 64 + (unsigned)__builtin_ctzll(bits);
			mask = nat_mask(k->family, len);
			masked = (struct nat_words){{src.w[0] & mask.w[0], src.w[1] & mask.w[1]}};
			best = nat_lookup_find(NAT_WHERE(k->zone, NAT_INSIDE, k->family, len), &masked, k, NAT_INSIDE,
					       best);
		}
	}
	return best;
}

// --- Destination. ---

// Weighted rendezvous hashing: a backend gets flows in proportion to its weight, and when a backend is added or
// removed, only the flows that move to it or from it change.
static const struct nat_target *nat_lookup_choose(const struct nat_rule *r, const struct flow_key *k)
{
	uint32_t hash = flow_crc(flow_crc(flow_crc(0x5ca1ab1e, k->meta), k->addr[0]), k->addr[1]);
	const struct nat_target *t, *best = r->targets;
	float score, top = -1;
	uint64_t x;

	if (r->n_targets == 1)
		return best;
	hash = flow_crc(flow_crc(hash, k->addr[2]), k->addr[3]);
	for (t = r->targets; t < r->targets + r->n_targets; t++) {
		x = ((uint64_t)hash << 32 | t->seed) * 0x9e3779b97f4a7c15u;
		x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
		x ^= x >> 32;
		score = (float)t->weight / -logf(((float)(x >> 41) + 0.5f) * 0x1p-23f);
		if (score > top) {
			top = score;
			best = t;
		}
	}
	return best;
}

static void nat_lookup_set_target(struct flow_key *k, const struct nat_target *t)
{
	set_destination(k, &t->addr);
	if (t->port && nat_lookup_has_ports(k))
		k->dst_port = t->port;
}

// The flow's row of the service's table names its endpoint.
static void nat_lookup_serve(const struct service *s, struct flow_key *k, struct nat_verdict *v)
{
	const struct service_table *t = rcu_read(s->table);
	const struct service_target *target;

	v->refused = t == NULL;
	if (t == NULL)
		return;
	v->row = service_row(k, __atomic_load_n(&s->cfg.scheduler, __ATOMIC_RELAXED),
			     __atomic_load_n(&s->cfg.client_prefix, __ATOMIC_RELAXED), t->rows);
	target = &t->target[t->row[v->row]];
	v->rule = NAT_OF_ENDPOINT | target->id;
	set_destination(k, &target->addr);
	if (target->port && nat_lookup_has_ports(k))
		k->dst_port = target->port;
}

// Returns the rule that translates the destination, or NULL. Sets k->zone to the zone of the route.
static const struct nat_rule *destination_rule(struct flow_key *k, struct nat_verdict *v)
{
	const struct nat_rule *r = find_outside(k), *lead;
	const struct nat_zone *z = zone_of(k);

	if (r == NULL && z && z->leads) {
		lead = find_inside(k);
		if (lead && lead->external != k->zone) {
			v->rule = lead->id;
			k->zone = lead->external;
			r = find_outside(k); // hairpin: a host reaches another one by its outside address
			v->also = r ? lead->id : 0;
		}
	}
	if (r) {
		v->rule = r->id;
		k->zone = r->vrf;
	}
	return r;
}

void nat_destination(struct flow_key *key, struct nat_verdict *v)
{
	const struct nat_rule *r;

	if (!nat_is_in(key->zone))
		return;
	r = destination_rule(key, v);
	if (r && r->kind == NAT_FLOATING)
		set_destination(key, &r->inside);
	else if (r && r->kind == NAT_SERVICE)
		nat_lookup_serve(r->service, key, v);
	else if (r)
		nat_lookup_set_target(key, nat_lookup_choose(r, key));
}

// --- Source. ---

struct nat_words nat_pool_address(const struct nat_words *first, uint8_t family, uint32_t i)
{
	struct nat_words a = *first;
	uint64_t low;

	if (family == IPV4) {
		a.w[0] = rte_cpu_to_be_32(rte_be_to_cpu_32((uint32_t)a.w[0]) + i);
		return a;
	}
	low = rte_be_to_cpu_64(a.w[1]) + i;
	if (low < i)
		a.w[0] = rte_cpu_to_be_64(rte_be_to_cpu_64(a.w[0]) + 1);
	a.w[1] = rte_cpu_to_be_64(low);
	return a;
}

static bool in_pool(const struct nat_rule *r, const struct nat_words *a)
{
	uint64_t high, low, carry;

	if (r->family == IPV4)
		return rte_be_to_cpu_32((uint32_t)a->w[0]) - rte_be_to_cpu_32((uint32_t)r->outside.w[0]) < r->n_pool;
	low = rte_be_to_cpu_64(a->w[1]) - rte_be_to_cpu_64(r->outside.w[1]);
	carry = rte_be_to_cpu_64(a->w[1]) < rte_be_to_cpu_64(r->outside.w[1]);
	high = rte_be_to_cpu_64(a->w[0]) - rte_be_to_cpu_64(r->outside.w[0]) - carry;
	return high == 0 && low < r->n_pool;
}

static void set_ports(const struct nat_rule *r, const struct flow_key *k, struct nat_verdict *v)
{
	bool ports = nat_lookup_has_ports(k) || nat_lookup_is_echo(k);

	v->ports = ports ? r->n_ports : 0;
	v->first = ports ? r->first_port : 0;
}

// Returns the rule that translates the source, or NULL. A rule that leads to another VRF counts only if
// destination_rule() led the flow there.
static const struct nat_rule *source_rule(const struct flow_key *original, struct nat_verdict *v)
{
	const struct nat_rule *r = find_inside(original);

	if (r == NULL || (r->external != original->zone && v->rule != r->id && v->also != r->id))
		return NULL;
	if (v->rule == 0)
		v->rule = r->id;
	else if (v->rule != r->id)
		v->also = r->id;
	return r;
}

void nat_source(const struct flow_key *original, struct flow_key *key, uint32_t hash, struct nat_verdict *v)
{
	const struct nat_rule *r;
	struct nat_words a;

	if (!nat_is_in(original->zone))
		return;
	r = source_rule(original, v);
	if (r == NULL)
		return;
	if (r->kind == NAT_FLOATING) {
		set_source(key, &r->outside);
		return;
	}
	a = nat_lookup_source_of(original);
	a = nat_pool_address(&r->outside, r->family, (uint32_t)((uint64_t)nat_hash(0, &a) * r->n_pool >> 32));
	set_source(key, &a);
	set_ports(r, key, v);
	if (v->ports == 0)
		return;
	key->src_port = rte_cpu_to_be_16((uint16_t)(r->first_port + hash % r->n_ports));
	if (nat_lookup_is_icmp(key))
		key->dst_port = key->src_port;
}

// --- Re-evaluation. ---

static void keep_target(const struct nat_rule *r, struct flow_key *k, const struct flow_key *out)
{
	struct nat_words dst = destination_of(out);
	struct flow_key would;
	unsigned i;

	for (i = 0; i < r->n_targets; i++) {
		would = *k;
		nat_lookup_set_target(&would, &r->targets[i]);
		if (nat_words_equal(&r->targets[i].addr, &dst) &&
		    (!nat_lookup_has_ports(k) || would.dst_port == out->dst_port)) {
			*k = would;
			return;
		}
	}
}

static void keep_source(const struct nat_rule *r, struct flow_key *k, const struct flow_key *out, struct nat_verdict *v)
{
	struct nat_words src = nat_lookup_source_of(out);

	set_ports(r, k, v);
	if (in_pool(r, &src))
		set_source(k, &src);
	if (v->ports && (uint16_t)(rte_be_to_cpu_16(out->src_port) - v->first) < v->ports) {
		k->src_port = out->src_port;
		if (nat_lookup_is_icmp(k))
			k->dst_port = out->dst_port;
	}
}

static bool nat_lookup_serves(const struct service *s, uint32_t rule)
{
	return nat_is_endpoint(rule) && service_of_rule(rule) == s->id;
}

// The endpoint may have been removed.
static void keep_endpoint(const struct service *s, struct flow_key *k, const struct flow_key *out,
			  struct nat_verdict *v)
{
	struct nat_words dst = destination_of(out);

	if (!nat_lookup_serves(s, v->was))
		return;
	v->rule = v->was;
	set_destination(k, &dst);
	k->dst_port = out->dst_port;
}

// k: the packet before the endpoint was chosen.
static const struct endpoint *nat_lookup_endpoint(const struct service *s, const struct flow_key *k,
						  const struct flow_key *out)
{
	struct ip_addr addr = {.family = s->cfg.addr.family};
	struct nat_words dst = destination_of(out);
	const struct endpoint *e;

	memcpy(addr.bytes, &dst, ip_bytes(addr.family));
	if (!nat_lookup_has_ports(k))
		return endpoint_with(s, &addr);
	e = endpoint_at(s, &addr, rte_be_to_cpu_16(out->dst_port));
	return e == NULL && out->dst_port == k->dst_port ? endpoint_at(s, &addr, 0) : e;
}

uint32_t nat_endpoint_of(const struct flow_key *original, const struct flow_key *out)
{
	struct flow_key k = *original;
	struct nat_verdict v = {0};
	const struct nat_rule *r = destination_rule(&k, &v);
	const struct endpoint *e = NULL;

	if (r && r->kind == NAT_SERVICE && out->family == k.family)
		e = nat_lookup_endpoint(r->service, &k, out);
	return e ? NAT_OF_ENDPOINT | e->id : 0;
}

bool nat_keeps(const struct flow_key *original, const struct flow_key *out, struct nat_verdict *v)
{
	struct flow_key k = *original;
	const struct nat_rule *r = destination_rule(&k, v);

	if (r && r->kind == NAT_FLOATING)
		set_destination(&k, &r->inside);
	else if (r && r->kind == NAT_SERVICE)
		keep_endpoint(r->service, &k, out, v);
	else if (r)
		keep_target(r, &k, out);
	r = source_rule(original, v);
	if (r && r->kind == NAT_FLOATING)
		set_source(&k, &r->outside);
	else if (r)
		keep_source(r, &k, out, v);
	return flow_key_equal(&k, out, k.family == 6);
}
