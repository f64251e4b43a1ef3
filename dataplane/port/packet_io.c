// SPDX-License-Identifier: Apache-2.0
// The workers' side of a packet socket.
#include "port/packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_udp.h>

#include "base/eth.h"
#include "base/ip_sum.h"
#include "base/system_calls.h"
#include "offload/checksum.h"
#include "offload/segment.h"

#define PACKET_SENDS 32    // frames in one system call
#define PACKET_IOVECS 1024 // buffers in one system call; the kernel allows as many for each frame
#define PACKET_TOGETHER 64 // datagrams in a large one: what Linux allows (UDP_MAX_SEGMENTS)
#define PACKET_HEADERS (sizeof(struct rte_ether_hdr) + sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr))

static void packet_rest_unused(void *addr, void *arg)
{
}

static void packet_no_buffer(struct packet_queue *q, const struct port *port)
{
	q->no_buffer++;
	port_no_buffer(port);
}

// Gives a read its buffer, if it has none.
static bool packet_prepare(struct packet_queue *q, unsigned i)
{
	struct packet_read *r = &q->reads[i];

	if (r->m == NULL && (r->m = rte_pktmbuf_alloc(q->pool)) == NULL)
		return false;
	r->iov[0] = (struct iovec){.iov_base = &r->header, .iov_len = sizeof(r->header)};
	r->iov[1] = (struct iovec){.iov_base = rte_pktmbuf_mtod(r->m, void *), .iov_len = rte_pktmbuf_tailroom(r->m)};
	r->iov[2] = (struct iovec){.iov_base = q->rest + i * (size_t)PACKET_REST, .iov_len = PACKET_REST};
	q->messages[i].msg_hdr = (struct msghdr){.msg_iov = r->iov,
						 .msg_iovlen = RTE_DIM(r->iov),
						 .msg_control = r->control,
						 .msg_controllen = sizeof(r->control)};
	return true;
}

// Takes the frame of a read, which has len bytes. The part behind the first buffer stays in q->rest. Returns NULL if
// there is no buffer.
static struct rte_mbuf *packet_take(struct packet_queue *q, unsigned i, unsigned len)
{
	struct rte_mbuf *m = q->reads[i].m, *rest;
	unsigned room = rte_pktmbuf_tailroom(m);

	m->data_len = (uint16_t)RTE_MIN(len, room);
	m->pkt_len = len;
	if (len <= room) {
		q->reads[i].m = NULL;
		return m;
	}
	rest = rte_pktmbuf_alloc(q->pool);
	if (rest == NULL)
		return NULL;
	q->shared[i].free_cb = packet_rest_unused;
	rte_mbuf_ext_refcnt_set(&q->shared[i], 1);
	rte_pktmbuf_attach_extbuf(rest, q->rest + i * (size_t)PACKET_REST, 0, PACKET_REST, &q->shared[i]);
	rest->data_off = 0;
	rest->data_len = (uint16_t)(len - room);
	m->next = rest;
	m->nb_segs = 2;
	q->reads[i].m = NULL;
	return m;
}

// The kernel takes the outermost VLAN tag off a frame, and says so beside it. Returns type and TCI, 0: there is none.
static uint32_t packet_tag(struct msghdr *h)
{
	const struct tpacket_auxdata *aux;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(h); c != NULL; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		aux = (const struct tpacket_auxdata *)CMSG_DATA(c);
		if (!(aux->tp_status & TP_STATUS_VLAN_VALID))
			return 0;
		return (uint32_t)(aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid : RTE_ETHER_TYPE_VLAN)
			       << 16 |
		       aux->tp_vlan_tci;
	}
	return 0;
}

static void packet_insert_tag(struct rte_mbuf *m, uint32_t tag)
{
	char *data = rte_pktmbuf_prepend(m, sizeof(struct rte_vlan_hdr));
	rte_be32_t be = rte_cpu_to_be_32(tag);

	if (data == NULL) // never: the headroom is the buffer's own
		return;
	memmove(data, data + sizeof(struct rte_vlan_hdr), 2 * RTE_ETHER_ADDR_LEN);
	memcpy(data + 2 * RTE_ETHER_ADDR_LEN, &be, sizeof(be));
}

// A frame that is not cut owns all its buffers.
static struct rte_mbuf *packet_own(struct packet_queue *q, struct rte_mbuf *m)
{
	struct rte_mbuf *copy;

	if (m->nb_segs == 1)
		return m;
	copy = rte_pktmbuf_copy(m, q->pool, 0, UINT32_MAX);
	rte_pktmbuf_free(m);
	return copy;
}

// Makes packets of MTU size with complete checksums of a received frame. Frees it. Returns their number.
static unsigned packet_cut(struct packet_queue *q, const struct port *port, struct rte_mbuf *m,
			   const struct virtio_net_hdr *h, struct rte_mbuf **out)
{
	const struct drop_reason *lie = h->flags | h->gso_type ? vnet_read(m, h) : NULL;
	int n = 1;

	if (unlikely(lie != NULL)) {
		port_refused(port, m, lie);
		return 0;
	}
	if (offload_is_large(m)) {
		n = segment(m, frame_ip(m), out);
		if (n < 0) {
			if (n == -ENOBUFS)
				packet_no_buffer(q, port);
			else
				q->rx_errors++;
			rte_pktmbuf_free(m);
			return 0;
		}
	} else {
		if (offload_is_unfinished(m))
			checksum_finish(m, frame_ip(m));
		out[0] = packet_own(q, m);
		if (out[0] == NULL) {
			packet_no_buffer(q, port);
			return 0;
		}
	}
	if (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) // the sender is this machine: nothing can have damaged them
		for (int i = 0; i < n; i++)
			out[i]->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	return (unsigned)n;
}

static uint16_t packet_give(struct packet_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	n = RTE_MIN(n, (uint16_t)(q->held_to - q->held_from));
	memcpy(pkts, q->held + q->held_from, n * sizeof(*pkts));
	q->held_from = (uint16_t)(q->held_from + n);
	return n;
}

// Puts what a read has brought into q->held.
static void packet_hold(struct packet_queue *q, const struct port *port, unsigned i, unsigned len)
{
	uint32_t tag = packet_tag(&q->messages[i].msg_hdr);
	struct rte_mbuf *m = packet_take(q, i, len), **out = q->held + q->held_to;
	unsigned n, k;

	if (m == NULL) {
		packet_no_buffer(q, port);
		return;
	}
	n = packet_cut(q, port, m, &q->reads[i].header, out);
	for (k = 0; k < n && tag != 0; k++)
		packet_insert_tag(out[k], tag);
	q->held_to = (uint16_t)(q->held_to + n);
}

static void packet_read(struct packet_queue *q, const struct port *port, uint16_t n)
{
	unsigned i, most = RTE_MIN(n, q->most), longest = 1;
	int got;

	q->held_from = q->held_to = 0;
	for (i = 0; i < most && packet_prepare(q, i); i++)
		;
	if (i == 0) {
		packet_no_buffer(q, port);
		return;
	}
	system_calls++;
	got = recvmmsg(q->fd, q->messages, i, MSG_DONTWAIT, NULL);
	if (got < 0) {
		q->rx_errors += errno == EINVAL; // a kind of large frame that the kernel cannot describe
		return;
	}
	for (i = 0; i < (unsigned)got; i++) {
		longest = RTE_MAX(longest, q->messages[i].msg_len);
		packet_hold(q, port, i, q->messages[i].msg_len - (unsigned)sizeof(struct virtio_net_hdr));
	}
	i = PORT_TURN_BYTES / longest;
	q->most = (uint16_t)(i == 0 ? 1 : RTE_MIN(i, (unsigned)PACKET_READS));
}

uint16_t packet_rx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct packet_queue *q = pq->priv;

	if (q->held_from == q->held_to) {
		if (pause_lasts(&q->pause))
			return 0;
		packet_read(q, pq->port, n);
		pause_after(&q->pause, q->held_to);
	}
	return packet_give(q, pkts, n);
}

void packet_io_free(struct packet_queue *q)
{
	unsigned i;

	rte_pktmbuf_free_bulk(q->held + q->held_from, (unsigned)(q->held_to - q->held_from));
	for (i = 0; i < PACKET_READS; i++)
		rte_pktmbuf_free(q->reads[i].m);
}

// A datagram that can be part of a large one.
struct packet_datagram {
	unsigned l3, headers; // offset of its IP header; length of all headers
	bool v6;
};

// The kernel computes the checksum of each part. So a checksum must be right, or there must be none (IPv4); then the
// parts get one. Its IPv4 ids count up, which means nothing with DF.
static bool packet_datagram(const struct rte_mbuf *m, struct packet_datagram *d)
{
	const struct rte_ipv4_hdr *ip4;
	const struct rte_ipv6_hdr *ip6;
	const struct rte_udp_hdr *udp;
	unsigned behind;

	d->l3 = frame_ip(m);
	if (d->l3 != sizeof(struct rte_ether_hdr))
		return false;
	ip4 = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, d->l3);
	ip6 = (const struct rte_ipv6_hdr *)ip4;
	d->v6 = (ip4->version_ihl >> 4) == 6;
	d->headers = d->l3 + (unsigned)(d->v6 ? sizeof(*ip6) : sizeof(*ip4)) + (unsigned)sizeof(*udp);
	if (m->data_len < d->headers || (d->v6 ? ip6->proto != IPPROTO_UDP
					       : ip4->version_ihl != 0x45 || ip4->next_proto_id != IPPROTO_UDP ||
							 ip4->fragment_offset != RTE_BE16(RTE_IPV4_HDR_DF_FLAG)))
		return false;
	udp = rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, d->headers - sizeof(*udp));
	behind = m->pkt_len - d->headers + (unsigned)sizeof(*udp);
	if (rte_be_to_cpu_16(udp->dgram_len) != behind || m->pkt_len == d->headers)
		return false;
	if (udp->dgram_cksum == 0)
		return !d->v6;
	return ip_fold(checksum_pseudo(ip4, d->v6, IPPROTO_UDP, behind) +
		       checksum_data(m, d->headers - (unsigned)sizeof(*udp), behind)) == 0xffff;
}

// Whether the headers are equal, apart from lengths, ids and checksums.
static bool packet_follows(const struct rte_mbuf *a, const struct rte_mbuf *b, const struct packet_datagram *d)
{
	const uint8_t *x = rte_pktmbuf_mtod(a, const uint8_t *), *y = rte_pktmbuf_mtod(b, const uint8_t *);
	unsigned ip = d->l3;

	if (b->data_len < d->headers || memcmp(x, y, ip + 2) != 0 || // up to the type of service
	    memcmp(x + d->headers - 8, y + d->headers - 8, 4) != 0)  // ports
		return false;
	return d->v6 ? memcmp(x + ip, y + ip, 4) == 0 && memcmp(x + ip + 6, y + ip + 6, 34) == 0
		     : memcmp(x + ip + 6, y + ip + 6, 4) == 0 && memcmp(x + ip + 12, y + ip + 12, 8) == 0;
}

// How many packets from pkts[0] on make one datagram.
static unsigned packet_together(struct rte_mbuf **pkts, unsigned n, struct packet_datagram *d)
{
	unsigned bytes, i, size = pkts[0]->pkt_len;
	struct packet_datagram other;

	if (n < 2 || pkts[1]->pkt_len > size || !packet_datagram(pkts[0], d))
		return 1;
	bytes = size - d->l3;
	for (i = 1; i < RTE_MIN(n, (unsigned)PACKET_TOGETHER); i++) {
		if (pkts[i]->pkt_len > size || bytes + pkts[i]->pkt_len - d->headers > UINT16_MAX ||
		    !packet_follows(pkts[0], pkts[i], d) || !packet_datagram(pkts[i], &other))
			break;
		bytes += pkts[i]->pkt_len - d->headers;
		if (pkts[i]->pkt_len < size)
			return i + 1; // only the last one may be shorter
	}
	return i;
}

struct packet_send {
	struct virtio_net_hdr header;
	uint8_t headers[PACKET_HEADERS]; // of a large datagram
};

struct packet_burst {
	struct packet_send sends[PACKET_SENDS];
	struct mmsghdr messages[PACKET_SENDS];
	uint16_t packets[PACKET_SENDS]; // in each message
	struct iovec iov[PACKET_IOVECS];
	unsigned n, used;
};

static void packet_append(struct packet_burst *b, const struct rte_mbuf *m, unsigned skip)
{
	for (; m != NULL; m = m->next, skip = 0)
		b->iov[b->used++] = (struct iovec){.iov_base = rte_pktmbuf_mtod_offset(m, void *, skip),
						   .iov_len = m->data_len - skip};
}

// Writes the headers of the large datagram, which has `len` bytes behind its IP header.
static void packet_large(struct packet_send *s, const struct rte_mbuf *m, const struct packet_datagram *d, unsigned len)
{
	struct rte_ipv4_hdr *ip4 = (struct rte_ipv4_hdr *)(s->headers + d->l3);
	struct rte_ipv6_hdr *ip6 = (struct rte_ipv6_hdr *)ip4;
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(s->headers + d->headers - sizeof(*udp));

	memcpy(s->headers, rte_pktmbuf_mtod(m, const void *), d->headers);
	if (d->v6) {
		ip6->payload_len = rte_cpu_to_be_16((uint16_t)len);
	} else {
		ip4->total_length = rte_cpu_to_be_16((uint16_t)(len + sizeof(*ip4)));
		ip4_checksum_set(ip4);
	}
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)len);
	udp->dgram_cksum = ip_fold(checksum_pseudo(ip4, d->v6, IPPROTO_UDP, len));
	s->header = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					    .gso_type = VNET_GSO_UDP_L4,
					    .hdr_len = (uint16_t)d->headers,
					    .gso_size = (uint16_t)(m->pkt_len - d->headers),
					    .csum_start = (uint16_t)(d->headers - sizeof(*udp)),
					    .csum_offset = offsetof(struct rte_udp_hdr, dgram_cksum)};
}

// Adds the next message. Returns how many packets it has, 0: there is no room for it.
static unsigned packet_add(struct packet_burst *b, struct rte_mbuf **pkts, unsigned n, bool apart)
{
	struct packet_send *s = &b->sends[b->n];
	struct packet_datagram d;
	unsigned k = apart ? 1 : packet_together(pkts, n, &d), i, buffers = 2, len = 0;

	for (i = 0; i < k; i++)
		buffers += pkts[i]->nb_segs;
	if (b->n == PACKET_SENDS || b->used + buffers > PACKET_IOVECS)
		return 0;
	s->header = (struct virtio_net_hdr){0};
	b->messages[b->n].msg_hdr = (struct msghdr){.msg_iov = &b->iov[b->used]};
	b->iov[b->used++] = (struct iovec){.iov_base = &s->header, .iov_len = sizeof(s->header)};
	if (k == 1) {
		packet_append(b, pkts[0], 0);
	} else {
		b->iov[b->used++] = (struct iovec){.iov_base = s->headers, .iov_len = d.headers};
		for (i = 0; i < k; i++) {
			packet_append(b, pkts[i], d.headers);
			len += pkts[i]->pkt_len - d.headers;
		}
		packet_large(s, pkts[0], &d, len + (unsigned)sizeof(struct rte_udp_hdr));
	}
	b->messages[b->n].msg_hdr.msg_iovlen = (size_t)(&b->iov[b->used] - b->messages[b->n].msg_hdr.msg_iov);
	b->packets[b->n++] = (uint16_t)k;
	return k;
}

// Returns how many packets are done with, and in *wait whether the others have to wait.
static unsigned packet_send(struct packet_queue *q, struct packet_burst *b, bool *wait)
{
	unsigned done = 0, i;
	int sent;

	system_calls++;
	sent = sendmmsg(q->fd, b->messages, b->n, MSG_DONTWAIT);
	for (i = 0; (int)i < sent; i++)
		done += b->packets[i];
	if (sent == (int)b->n)
		return done;
	if (sent > 0) // the next call says why
		return done;
	if (errno == EAGAIN || errno == ENOBUFS || errno == ENETDOWN || errno == ENXIO) {
		*wait = true;
	} else if (b->packets[0] > 1) {
		q->apart = true;
	} else {
		q->tx_errors++;
		done += b->packets[0];
	}
	return done;
}

uint16_t packet_tx(struct port_queue *pq, struct rte_mbuf **pkts, uint16_t n)
{
	struct packet_queue *q = pq->priv;
	struct packet_burst b;
	unsigned done = 0, at, k;
	bool wait = false;

	while (done < n && !wait) {
		b.n = b.used = 0;
		for (at = done; at < n && (k = packet_add(&b, pkts + at, n - at, q->apart)) > 0; at += k)
			;
		if (b.n == 0) { // one frame of more buffers than the kernel takes
			q->tx_errors++;
			done++;
			continue;
		}
		done += packet_send(q, &b, &wait);
	}
	rte_pktmbuf_free_bulk(pkts, done);
	return (uint16_t)done;
}
