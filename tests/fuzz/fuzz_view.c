// SPDX-License-Identifier: Apache-2.0
#include "fuzz_view.h"

#include <netinet/in.h>

#include "testing/router_fixture.h"

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void view_mpls(struct view *v, const uint8_t *data, size_t size, unsigned at)
{
	uint32_t word;

	for (; at + 4 <= size; at += 4) {
		word = (uint32_t)be16(data + at) << 16 | be16(data + at + 2);
		if (word >> 12 != 0 && word >> 12 != 2) {
			v->tunnel = true;
			v->id = word >> 12;
			v->inner = at + 4;
			return;
		}
	}
}

static void view_gre(struct view *v, const uint8_t *data, size_t size, unsigned at)
{
	v->erspan = at + 4 <= size && be16(data + at + 2) == 0x88be;
	if (at + 4 <= size && be16(data + at + 2) == 0x8847)
		view_mpls(v, data, size,
			  at + 4 + (data[at] & 0x80 ? 4 : 0) + (data[at] & 0x20 ? 4 : 0) + (data[at] & 0x10 ? 4 : 0));
}

static void view_udp(struct view *v, const uint8_t *data, size_t size, unsigned at)
{
	if (at + 16 > size)
		return;
	if (be16(data + at + 2) == 6635)
		view_mpls(v, data, size, at + 8);
	if (be16(data + at + 2) != 4789 && be16(data + at + 2) != 6081)
		return;
	v->tunnel = true;
	v->id = (uint32_t)be16(data + at + 12) << 8 | data[at + 14];
	v->inner = at + 16 + (be16(data + at + 2) == 6081 ? 4 * (data[at + 8] & 0x3f) : 0);
}

static unsigned view_ip(const uint8_t *data, size_t size)
{
	unsigned at = 12;

	if (size >= 18 && be16(data + at) == 0x8100)
		at += 4;
	return size >= at + 22 && (be16(data + at) == 0x0800 || be16(data + at) == 0x86dd) ? at + 2 : 0;
}

struct view view(const uint8_t *data, size_t size)
{
	struct view v = {.ip = view_ip(data, size)};
	bool v6 = v.ip && (data[v.ip] >> 4) == 6;
	unsigned l4 = v.ip + (v6 ? 40 : (data[v.ip] & 15) * 4u);

	if (v.ip == 0 || l4 > size || (data[v.ip] >> 4 != 4 && !v6))
		return v;
	if (data[v.ip + (v6 ? 6 : 9)] == IPPROTO_UDP)
		view_udp(&v, data, size, l4);
	else if (data[v.ip + (v6 ? 6 : 9)] == IPPROTO_GRE)
		view_gre(&v, data, size, l4);
	return v;
}

static bool view_is_tag(const uint8_t *data, size_t size, unsigned at)
{
	return size >= at + 4 && (be16(data + at) == 0x8100 || be16(data + at) == 0x88a8);
}

struct view_tags view_tags(const uint8_t *data, size_t size)
{
	struct view_tags t = {0};
	unsigned at = 12;

	if (view_is_tag(data, size, at) && (be16(data + at + 2) & 0xfff) == 0)
		at += 4;
	if (!view_is_tag(data, size, at))
		return (struct view_tags){.len = at - 12};
	if (be16(data + at) == 0x88a8) {
		t.outer = be16(data + at + 2) & 0xfff;
		at += 4;
	}
	if (view_is_tag(data, size, at) && be16(data + at) == 0x8100)
		t.id = be16(data + at + 2) & 0xfff;
	t.len = at + 4 - 12;
	return t;
}

static void fix_ip(uint8_t *ip, size_t size)
{
	unsigned hlen = (ip[0] & 15) * 4u;
	uint16_t sum;

	if (size < 20 || ip[0] >> 4 != 4 || hlen > size || hlen < 20)
		return;
	ip[10] = ip[11] = 0;
	sum = (uint16_t)~router_sum(ip, hlen, 0);
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void fix_icmp(uint8_t *ip, size_t size)
{
	bool v6 = ip[0] >> 4 == 6;
	unsigned hlen = v6 ? 40 : (ip[0] & 15) * 4u, len;
	uint16_t sum;

	if (size < 40 || hlen + 8 > size || (v6 ? ip[6] != IPPROTO_ICMPV6 : ip[9] != IPPROTO_ICMP))
		return;
	len = v6 ? be16(ip + 4) : be16(ip + 2) - hlen;
	if (len < 8 || len > size - hlen)
		return;
	ip[hlen + 2] = ip[hlen + 3] = 0;
	sum = (uint16_t)~router_sum(ip + hlen, len, v6 ? router_sum(ip + 8, 32, len + IPPROTO_ICMPV6) : 0);
	ip[hlen + 2] = (uint8_t)(sum >> 8);
	ip[hlen + 3] = (uint8_t)sum;
}

void fix(uint8_t *frame, size_t size, uint8_t how)
{
	struct view v = view(frame, size);
	unsigned inner = v.inner;

	if (v.tunnel && inner + 34 <= size && view_ip(frame + inner, size - inner)) // in VXLAN, or behind its label
		inner += 14;
	if (v.tunnel && inner + 20 <= size && (how & FIX_INNER)) {
		fix_ip(frame + inner, size - inner);
		if (how & FIX_ICMP)
			fix_icmp(frame + inner, size - inner);
		fix_ip(frame + inner, size - inner);
	}
	if (v.ip && (how & FIX_ICMP))
		fix_icmp(frame + v.ip, size - v.ip);
	if (v.ip && (how & FIX_IP))
		fix_ip(frame + v.ip, size - v.ip);
}
