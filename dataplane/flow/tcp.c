// SPDX-License-Identifier: Apache-2.0
// TCP state and timeouts of flows.
#include "flow/tcp.h"

#include "base/field_limits.h"
#include "base/setting.h"
#include "flow/packet.h"

bool flow_tcp_strict;
SETTING(flow_tcp_strict, flow_tcp_strict);

struct flow_timeouts flow_timeouts = {
	.tcp = {[TCP_NONE] = LIMIT_SETTINGS_FLOW_TCP_HALF_OPEN_SECONDS_DEFAULT,
		[TCP_SYN_SENT] = LIMIT_SETTINGS_FLOW_TCP_HALF_OPEN_SECONDS_DEFAULT,
		[TCP_SYN_RECV] = LIMIT_SETTINGS_FLOW_TCP_HALF_OPEN_SECONDS_DEFAULT,
		[TCP_ESTABLISHED] = LIMIT_SETTINGS_FLOW_TCP_ESTABLISHED_SECONDS_DEFAULT,
		[TCP_FIN_WAIT] = LIMIT_SETTINGS_FLOW_TCP_CLOSING_SECONDS_DEFAULT,
		[TCP_CLOSING] = 10,
		[TCP_CLOSED] = 5},
	.udp = LIMIT_SETTINGS_FLOW_UDP_SECONDS_DEFAULT,
	.udp_answered = LIMIT_SETTINGS_FLOW_UDP_ANSWERED_SECONDS_DEFAULT,
	.icmp = LIMIT_SETTINGS_FLOW_ICMP_SECONDS_DEFAULT,
	.other = LIMIT_SETTINGS_FLOW_OTHER_SECONDS_DEFAULT,
	.denied = LIMIT_SETTINGS_FLOW_DENIED_SECONDS_DEFAULT,
};

static void tcp_half_open_changed(const struct setting *own)
{
	flow_timeouts.tcp[TCP_NONE] = flow_timeouts.tcp[TCP_SYN_RECV] = flow_timeouts.tcp[TCP_SYN_SENT];
}

SETTING(flow_tcp_half_open_seconds, flow_timeouts.tcp[TCP_SYN_SENT], .changed = tcp_half_open_changed);
SETTING(flow_tcp_established_seconds, flow_timeouts.tcp[TCP_ESTABLISHED]);
SETTING(flow_tcp_closing_seconds, flow_timeouts.tcp[TCP_FIN_WAIT]);
SETTING(flow_udp_seconds, flow_timeouts.udp);
SETTING(flow_udp_answered_seconds, flow_timeouts.udp_answered);
SETTING(flow_icmp_seconds, flow_timeouts.icmp);
SETTING(flow_other_seconds, flow_timeouts.other);
SETTING(flow_denied_seconds, flow_timeouts.denied);

#define SURVIVED_PACKETS 3  // packets each way that prove that a RST or the FINs were not of this connection
#define MIDSTREAM_PACKETS 3 // packets each way before a connection without a handshake counts as established

static bool tcp_carried(const struct flow *f, unsigned dir)
{
	const struct flow_dir *d = &f->dir[dir];

	return d->packets + __atomic_load_n(&f->other_packets[dir], __ATOMIC_RELAXED) >= MIDSTREAM_PACKETS || d->hi;
}

static uint8_t tcp_closed(struct flow *f, uint8_t state)
{
	f->after_end[0] = f->after_end[1] = 0;
	return state;
}

// Sequence numbers are not followed, so anyone who knows the 5-tuple can forge the end of a connection. A host that has
// closed it answers every further packet with a RST; if both hosts go on instead, the connection is alive.
static bool tcp_survived(struct flow *f, unsigned dir)
{
	if (f->after_end[dir] < SURVIVED_PACKETS)
		f->after_end[dir]++;
	return f->after_end[0] == SURVIVED_PACKETS && f->after_end[1] == SURVIVED_PACKETS;
}

uint8_t flow_tcp_next(struct flow *f, unsigned dir, uint8_t flags)
{
	uint8_t was = f->tcp;

	if (flags & TCP_RST)
		return tcp_closed(f, TCP_CLOSED);
	if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && dir == 0) {
		if (was == TCP_NONE || was >= TCP_CLOSING) { // a new connection with the same ports
			f->fin = 0;
			return TCP_SYN_SENT;
		}
		return was;
	}
	if ((flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK) && dir == 1)
		return was == TCP_SYN_SENT ? TCP_SYN_RECV : was;
	if (was >= TCP_CLOSING && !(flags & TCP_FIN)) {
		if (!tcp_survived(f, dir))
			return was;
		f->fin = 0;
		return TCP_ESTABLISHED;
	}
	if (flags & TCP_FIN)
		f->fin |= (uint8_t)(1 << dir);
	if (was == TCP_CLOSED || f->fin == 3)
		return tcp_closed(f, was == TCP_CLOSED ? TCP_CLOSED : TCP_CLOSING);
	if (f->fin != 0)
		return TCP_FIN_WAIT;
	if (was == TCP_SYN_RECV && dir == 0)
		return TCP_ESTABLISHED;
	if (was == TCP_NONE) // picked up in mid-connection
		return tcp_carried(f, 0) && tcp_carried(f, 1) ? TCP_ESTABLISHED : TCP_NONE;
	return was;
}

uint32_t flow_timeout(const struct flow *f)
{
	const struct flow_dir *d = &f->dir[1];
	bool answered = d->packets || d->hi || f->other_packets[1];

	if (f->dir[0].flags & FLOW_DENY)
		return flow_timeouts.denied;
	switch (f->dir[0].key.proto) {
	case IPPROTO_TCP:
		if (f->tcp == TCP_NONE && answered) // older than the router, and idle between keepalives
			return flow_timeouts.tcp[TCP_FIN_WAIT];
		return flow_timeouts.tcp[f->tcp];
	case IPPROTO_UDP:
		return answered ? flow_timeouts.udp_answered : flow_timeouts.udp;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return flow_timeouts.icmp;
	default:
		return flow_timeouts.other;
	}
}
