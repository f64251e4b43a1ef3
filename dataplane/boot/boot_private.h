// SPDX-License-Identifier: Apache-2.0
// Private to boot/: from a request on the master thread to its answer.
#pragma once

#include "boot/boot.h"
#include "graph/drop.h"

void boot_receive(struct rte_mbuf *m); // from boot_input; owns the packet
struct boot_counts *boot_port_counts(uint16_t port);

// Sends the DHCPv4 message of len bytes at `message` to the guest. broadcast: to all hosts on the port, because the
// guest has no address yet or wants it so.
void boot_send4(const struct port *p, const struct rte_ether_addr *mac, rte_be32_t src, rte_be32_t dst,
		const void *message, unsigned len);

// Tells the guest what its port has for IPv6: to the sender of the solicitation m.
void advert_receive(const struct port *p, struct rte_mbuf *m);
void advert_soon(
	const struct port *p);    // within a second, and a few times more; or never, if the port does not advertise
void advert_link(struct port *p); // came up or went down
void advert_end(const struct port *p, const struct port_config *old); // takes back what was advertised

// The link-local address of the router that is advertised, by default the one of mac, which is the port's own. False:
// nobody routes there, and the guest is only told prefixes, MTU and names.
bool boot_router6(const struct port_config *cfg, const struct rte_ether_addr *mac, uint8_t router[16]);
// The subnets of the gateways, or of the guest's address if there are none. Returns their number.
unsigned boot_prefixes6(const struct port_config *cfg, struct ip_prefix out[PORT_MAX_ADDRS]);
int boot_check6(const struct port_config *cfg, struct error *err);

// Sends the DHCPv6 message of len bytes at `message` to the guest's link-local address.
void boot_send6(const struct port *p, const struct rte_ether_addr *mac, const uint8_t dst[16], const void *message,
		unsigned len);

// Answers the DHCPv6 message of len bytes at `message`, which came from this MAC and link-local address. Returns as
// dhcp4_receive() does.
const struct drop_reason *dhcp6_receive(const struct port *p, const struct rte_ether_addr *mac, const uint8_t guest[16],
					const uint8_t *message, unsigned len);

// Answers the DHCPv4 message of len bytes at `message`. Returns why there is no answer; NULL: it was answered, or needs
// no answer.
const struct drop_reason *dhcp4_receive(const struct port *p, const uint8_t *message, unsigned len);
