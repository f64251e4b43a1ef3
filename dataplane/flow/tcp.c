// SPDX-License-Identifier: Apache-2.0
// TCP state and timeouts of flows.
#include "flow/tcp.h"

#include "flow/packet.h"

bool flow_tcp_strict;

struct flow_timeouts flow_timeouts = {
	.tcp = {[TCP_NONE] = 30,
		[TCP_SYN_SENT] = 30,
		[TCP_SYN_RECV] = 30,
		[TCP_ESTABLISHED] = 7440,
		[TCP_FIN_WAIT] = 240,
		[TCP_CLOSING] = 10,
		[TCP_CLOSED] = 5},
	.udp = 30,
	.udp_answered = 180,
	.icmp = 30,
	.other = 600,
	.denied = 5,
};

uint8_t flow_tcp_next(struct flow *f, unsigned dir, uint8_t flags)
{
	uint8_t was = f->tcp;

	if (flags & TCP_RST)
		return TCP_CLOSED;
	if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && dir == 0) {
		if (was == TCP_NONE || was >= TCP_CLOSING) { // a new connection with the same ports
			f->fin = 0;
			return TCP_SYN_SENT;
		}
		return was;
	}
	if ((flags & (TCP_SYN | TCP_ACK)) == (TCP_SYN | TCP_ACK) && dir == 1)
		return was == TCP_SYN_SENT ? TCP_SYN_RECV : was;
	if (flags & TCP_FIN)
		f->fin |= (uint8_t)(1 << dir);
	if (f->fin == 3)
		return TCP_CLOSING;
	if (f->fin != 0)
		return TCP_FIN_WAIT;
	if (was == TCP_SYN_RECV && dir == 0)
		return TCP_ESTABLISHED;
	if (was == TCP_NONE) // picked up in mid-connection: established once the other direction answers
		return dir == 1 ? TCP_ESTABLISHED : TCP_NONE;
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
