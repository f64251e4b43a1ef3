// SPDX-License-Identifier: Apache-2.0
// The translation of packets: the first byte chooses, then come the keys of the flow's directions, the rest is a
// packet. For any input, no byte behind the first segment is read, a refused packet is unchanged, and a checksum
// stays correct or wrong.
#include <netinet/in.h>

#include "flow/packet.h"
#include "flow/translate.h"
#include "fuzz_frame.h"
#include "testing/router_fixture.h"

#define L3 14

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(node_test_setup(NULL) == 0);
	return 0;
}

static unsigned header(const uint8_t *ip)
{
	return *ip >> 4 == 6 ? 40 : (*ip & 15) * 4u;
}

// Returns the length in the packet's header if it fits the packet, else 0. The unit test covers extension headers.
static unsigned length(const uint8_t *ip, unsigned n)
{
	unsigned len;

	if (n < 20 || (*ip >> 4 == 6 && n < 40) || header(ip) < 20)
		return 0;
	len = *ip >> 4 == 6 ? 40u + (unsigned)(ip[4] << 8 | ip[5]) : (unsigned)(ip[2] << 8 | ip[3]);
	return len > n || len < header(ip) + 20 ? 0 : len;
}

static bool header_ok(const uint8_t *ip)
{
	return *ip >> 4 == 6 || router_sum(ip, header(ip), 0) == 0xffff;
}

static bool whole(const uint8_t *ip)
{
	return *ip >> 4 == 6 || ((ip[6] & 0x3f) == 0 && ip[7] == 0);
}

static bool transport_ok(const uint8_t *ip, unsigned len)
{
	bool v6 = *ip >> 4 == 6;
	uint8_t proto = v6 ? ip[6] : ip[9];
	const uint8_t *l4 = ip + header(ip);
	unsigned n = len - header(ip);
	uint32_t pseudo = router_sum(ip + (v6 ? 8 : 12), v6 ? 32 : 8, proto + n);

	if (proto == IPPROTO_UDP && l4[6] == 0 && l4[7] == 0)
		return true;
	if (proto != IPPROTO_TCP && proto != IPPROTO_UDP && proto != (v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return true;
	return router_sum(l4, n, proto == IPPROTO_ICMP ? 0 : pseudo) % 0xffff == 0;
}

static void check(const uint8_t *before, const uint8_t *after, size_t n)
{
	unsigned len = n > L3 ? length(before + L3, (unsigned)n - L3) : 0;

	if (len == 0)
		return;
	FUZZ_ASSERT(length(after + L3, (unsigned)n - L3) == len);
	FUZZ_ASSERT(!header_ok(before + L3) || header_ok(after + L3));
	FUZZ_ASSERT(!whole(before + L3) || !transport_ok(before + L3, len) || transport_ok(after + L3, len));
}

// The extension headers stay as they are, and the parser of flows finds the same transport header.
static void check_extensions(const uint8_t *before, const struct rte_mbuf *m)
{
	const uint8_t *after = rte_pktmbuf_mtod(m, const uint8_t *);
	struct flow_packet p;

	if (m->data_len < L3 + 40 || after[L3] >> 4 != 6)
		return;
	flow_parse(m, L3, 0, &p);
	if (p.kind == FLOW_TRUNCATED)
		return;
	FUZZ_ASSERT(p.l4 >= L3 + 40);
	FUZZ_ASSERT(memcmp(before + L3 + 40, after + L3 + 40, RTE_MIN(p.l4, m->data_len) - L3 - 40u) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct flow f = {0};
	struct rte_mbuf *m;
	unsigned choice;
	bool done;

	if (size < 1 + 2 * sizeof(struct flow_key) || size > 1600)
		return 0;
	choice = *data++;
	memcpy(&f.dir[0].key, data, sizeof(struct flow_key));
	memcpy(&f.dir[1].key, data + sizeof(struct flow_key), sizeof(struct flow_key));
	data += 2 * sizeof(struct flow_key);
	size -= 1 + 2 * sizeof(struct flow_key);
	f.dir[0].key.family = f.dir[1].key.family = choice & 1 ? 4 : 6;
	m = fuzz_frame(data, size, 0);
	meta(m)->l3 = L3;
	m->pkt_len += choice & 4 ? 100 : 0; // more bytes are in other segments
	if (choice & 8)
		done = flow_translate_error(m, &f, choice >> 1 & 1, L3 + 20 + (choice >> 4) * 4);
	else
		done = flow_translate(m, &f, choice >> 1 & 1);
	if (!done)
		FUZZ_ASSERT(memcmp(data, rte_pktmbuf_mtod(m, void *), size) == 0);
	else if (!(choice & 8)) {
		check(data, rte_pktmbuf_mtod(m, const uint8_t *), size);
		check_extensions(data, m);
	}
	m->pkt_len = m->data_len;
	rte_pktmbuf_free(m);
	return 0;
}
