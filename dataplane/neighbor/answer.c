// SPDX-License-Identifier: Apache-2.0
#include "neighbor/answer.h"

#include "neighbor/neighbor_private.h"

void answer_link_local(const struct rte_ether_addr *mac, uint8_t out[16])
{
	const uint8_t *m = mac->addr_bytes;
	const uint8_t a[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};

	memcpy(out, a, sizeof(a));
}

static bool answer_is_own4(const struct port_fwd *f, uint32_t be)
{
	unsigned i;

	for (i = 0; i < f->n_ip4; i++)
		if (f->ip4[i] == be)
			return true;
	return false;
}

static bool answer_is_own6(const struct port_fwd *f, const uint8_t a[16])
{
	uint8_t link_local[16];
	unsigned i;

	for (i = 0; i < f->n_ip6; i++)
		if (memcmp(f->ip6[i], a, 16) == 0)
			return true;
	answer_link_local(&f->mac, link_local);
	return memcmp(a, link_local, 16) == 0;
}

bool answer_is_own(const struct port_fwd *f, const struct ip_addr *a)
{
	return a->family == IPV4 ? answer_is_own4(f, ip4_be(a)) : answer_is_own6(f, a->bytes);
}

// Link-local addresses are never answered by proxy: that would make loops (RFC 4389, 4.1).
static bool answer_is_link_local(const struct ip_addr *a)
{
	if (a->family == IPV4)
		return a->bytes[0] == 169 && a->bytes[1] == 254;
	return a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

enum answer answer_for(const struct port_fwd *f, uint16_t port, const struct ip_addr *target)
{
	if (answer_is_own(f, target))
		return ANSWER_OWN;
	if (!f->proxy_arp || answer_is_link_local(target) || ip_is_multicast(target) || ip_is_unspecified(target))
		return ANSWER_NO;
	return neighbor_leads_elsewhere(f->vrf, target, port) ? ANSWER_PROXY : ANSWER_NO;
}

bool answer_is_wrong_guest(const struct port *p, const struct ip_addr *a, const struct rte_ether_addr *mac)
{
	unsigned i;

	if (rte_is_zero_ether_addr(&p->cfg.guest_mac) || rte_is_same_ether_addr(&p->cfg.guest_mac, mac))
		return false;
	for (i = 0; i < p->cfg.n_guests; i++)
		if (ip_prefix_covers(&p->cfg.guests[i], a))
			return true;
	return false;
}
