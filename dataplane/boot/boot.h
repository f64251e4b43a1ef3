// SPDX-License-Identifier: Apache-2.0
// What a guest asks for when it boots is answered from the configuration of its port: no daemon, no leases that are
// stored. Node boot_input checks a request and passes it to the master thread, which answers on the same port.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <netinet/in.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "base/eth.h"
#include "base/ip.h"
#include "neighbor/nd_packet.h"
#include "port/registry.h"

#define BOOT_LEASE_SECONDS 86400 // unless the port says otherwise

#define BOOT_SLAAC_LEN 64 // of a prefix (RFC 4862, 7421)

enum boot_service { BOOT_DHCP4 = 1 << 0, BOOT_ADVERT = 1 << 1, BOOT_DHCP6 = 1 << 2 }; // bits of port_fwd.boot

#define DHCP4_SERVER_PORT 67
#define DHCP4_CLIENT_PORT 68
#define DHCP6_SERVER_PORT 547
#define DHCP6_CLIENT_PORT 546

struct boot_route {
	struct ip_prefix to;
	struct ip_addr via;
};

struct boot_config { // of a port (PORT_SETTINGS())
	bool dhcp4, dhcp6, advert, slaac;
	uint8_t n_addresses, n_routers, n_routes, n_dns, n_ntp;
	uint32_t lease_seconds; // 0: BOOT_LEASE_SECONDS
	struct ip_prefix addresses[LIMIT_PORT_BOOT_ADDRESSES_ITEMS];
	struct ip_addr routers[LIMIT_PORT_BOOT_ROUTERS_ITEMS];
	struct boot_route routes[LIMIT_PORT_BOOT_ROUTES_ITEMS];
	struct ip_addr dns[LIMIT_PORT_DNS_SERVERS_ITEMS], ntp[LIMIT_PORT_NTP_SERVERS_ITEMS];
	struct ip_addr server;                      // that has the boot file; family 0: none
	char domain[LIMIT_PORT_DNS_DOMAIN_MAX + 1]; // these are empty where nothing is given
	char host[LIMIT_PORT_HOST_NAME_MAX + 1];
	char file[LIMIT_PORT_BOOT_FILE_MAX + 1];
};
const struct boot_config *boot_config(const struct port_config *cfg);
struct boot_config *boot_config_edit(struct port_config *cfg);

// What a guest is given of one family.
struct boot_lease {
	struct ip_prefix addr;  // with the length of its subnet; family 0: nothing
	struct ip_addr router;  // family 0: none
	struct ip_addr gateway; // the address by which this router answers
};
void boot_lease_of(const struct port_config *cfg, uint8_t family, struct boot_lease *out);

void boot_init(void);
void boot_poll(void); // advertises to guests that are due: from the master's loop, each second

struct boot_counts {                                   // of a port. Master thread only
	uint64_t dhcp4, dhcp6, adverts;                // messages that its guest was sent
	uint64_t dhcp4_declined_at, dhcp6_declined_at; // TSC of the last event; 0: none
};
const struct boot_counts *boot_counts(uint16_t port);

// A router solicitation for all routers or for this one, or a DHCPv6 message for all servers.
static inline bool boot_claims6(const struct rte_mbuf *m, const struct port_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv6_hdr *ip = (const struct rte_ipv6_hdr *)(eth + 1);

	if (m->data_len < sizeof(*eth) + sizeof(*ip) + sizeof(struct rte_udp_hdr) ||
	    (ip->dst_addr[0] != 0xff && !eth_same(&eth->dst_addr, &f->mac)))
		return false;
	if (ip->proto == IPPROTO_UDP)
		return (f->boot & BOOT_DHCP6) != 0 && ip->dst_addr[0] == 0xff &&
		       ((const struct rte_udp_hdr *)(ip + 1))->dst_port == RTE_BE16(DHCP6_SERVER_PORT);
	return (f->boot & BOOT_ADVERT) != 0 && ip->proto == IPPROTO_ICMPV6 &&
	       *(const uint8_t *)(ip + 1) == ND_ROUTER_SOLICIT;
}

// Whether the frame, which came in by the port of f, is a request that boot_input takes: a DHCPv4 message for any
// server or for this one, or what boot_claims6() says. Workers call it only if f->boot is not 0. Looks at no more than
// the first buffer.
static inline bool boot_claims(const struct rte_mbuf *m, const struct port_fwd *f)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	unsigned at;

	if (eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6))
		return boot_claims6(m, f);
	if (eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) || m->data_len < sizeof(*eth) + sizeof(*ip))
		return false;
	at = (unsigned)(sizeof(*eth) + rte_ipv4_hdr_len(ip));
	if (ip->next_proto_id != IPPROTO_UDP || m->data_len < at + sizeof(struct rte_udp_hdr) ||
	    (ip->fragment_offset & RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK)))
		return false;
	return (f->boot & BOOT_DHCP4) != 0 && (ip->dst_addr == UINT32_MAX || ip->dst_addr == f->boot_server4) &&
	       rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, at)->dst_port == RTE_BE16(DHCP4_SERVER_PORT);
}
