// SPDX-License-Identifier: Apache-2.0
// A set-associative cache per worker: the flows of recent first fragments.
#include "flow/fragment.h"

#include "worker/worker.h"

#define SETS 1024u
#define WAYS 4u

struct slot {
	struct flow_key key; // of a fragment
	uint32_t id;
	flow_entry_t entry; // 0: free
	uint16_t seen;
	uint8_t proto; // of the flow
};

static struct slot slots[WORKER_MAX][SETS][WAYS]; // each worker uses its own

// Key shared by all fragments of a packet. IPv6: without the protocol, because only the first fragment shows which
// header follows (RFC 8200, section 4.5).
static struct flow_key fragment_key(const struct flow_key *k)
{
	struct flow_key r = *k;

	r.src_port = r.dst_port = 0;
	if (k->family == 6)
		r.proto = 0;
	return r;
}

static struct slot *set_of(unsigned worker, const struct flow_key *k, uint32_t id)
{
	return slots[worker][flow_crc((uint32_t)flow_key_hash(k), id) % SETS];
}

static bool fragment_same(const struct slot *s, const struct flow_key *k, uint32_t id, uint16_t now)
{
	return s->entry && s->id == id && (uint16_t)(now - s->seen) < FRAGMENT_SECONDS &&
	       flow_key_equal(&s->key, k, k->family == 6);
}

void flow_fragment_add(unsigned worker, const struct flow_packet *p, flow_entry_t e, uint16_t now)
{
	struct flow_key k = fragment_key(&p->key);
	struct slot *set = set_of(worker, &k, p->fragment_id), *oldest = set;
	unsigned i;

	for (i = 0; i < WAYS; i++) {
		if (set[i].entry == 0 || fragment_same(&set[i], &k, p->fragment_id, now)) {
			oldest = &set[i];
			break;
		}
		if ((uint16_t)(now - set[i].seen) > (uint16_t)(now - oldest->seen))
			oldest = &set[i];
	}
	*oldest = (struct slot){k, p->fragment_id, e, now, p->key.proto};
}

// False if the flow has ended. Its memory may have been reused, so the keys are compared.
static bool fragment_still(const struct slot *s)
{
	const struct flow_key *flow = flow_entry_key(s->entry);
	struct flow_key is = fragment_key(flow);

	return __atomic_load_n(&flow_of(s->entry)->state, __ATOMIC_ACQUIRE) == FLOW_LIVE && flow->proto == s->proto &&
	       flow_key_equal(&is, &s->key, is.family == 6);
}

flow_entry_t flow_fragment_find(unsigned worker, const struct flow_packet *p, uint16_t now)
{
	struct flow_key k = fragment_key(&p->key);
	struct slot *set = set_of(worker, &k, p->fragment_id);
	unsigned i;

	for (i = 0; i < WAYS; i++)
		if (fragment_same(&set[i], &k, p->fragment_id, now))
			return fragment_still(&set[i]) ? set[i].entry : 0;
	return 0;
}
