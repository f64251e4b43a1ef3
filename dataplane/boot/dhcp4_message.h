// SPDX-License-Identifier: Apache-2.0
// DHCPv4 messages (RFC 2131) and their options (RFC 2132).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_ether.h>

#include "base/ip.h"

enum dhcp4_type {
	DHCP4_DISCOVER = 1,
	DHCP4_OFFER,
	DHCP4_REQUEST,
	DHCP4_DECLINE,
	DHCP4_ACK,
	DHCP4_NAK,
	DHCP4_RELEASE,
	DHCP4_INFORM,
};

enum dhcp4_option {
	DHCP4_PAD = 0,
	DHCP4_MASK = 1,
	DHCP4_ROUTER = 3,
	DHCP4_DNS = 6,
	DHCP4_HOST_NAME = 12,
	DHCP4_DOMAIN = 15,
	DHCP4_MTU = 26,
	DHCP4_NTP = 42,
	DHCP4_REQUESTED = 50,
	DHCP4_LEASE = 51,
	DHCP4_OVERLOAD = 52,
	DHCP4_TYPE = 53,
	DHCP4_SERVER = 54,
	DHCP4_MESSAGE = 56,
	DHCP4_MAX_SIZE = 57,
	DHCP4_T1 = 58,
	DHCP4_T2 = 59,
	DHCP4_CLIENT = 61,
	DHCP4_TFTP_SERVER = 66,
	DHCP4_BOOT_FILE = 67,
	DHCP4_RELAY = 82,   // RFC 3046
	DHCP4_ROUTES = 121, // RFC 3442
	DHCP4_END = 255,
};

#define DHCP4_COOKIE RTE_BE32(0x63825363)
#define DHCP4_BROADCAST RTE_BE16(0x8000) // of flags
#define DHCP4_SHORTEST 300               // bytes of a message, below which some clients drop it (RFC 1542, 2.1)
#define DHCP4_IP_SIZE 576                // the IP packet that every client takes
#define DHCP4_HEADERS 28                 // of IP and UDP

struct dhcp4_header {                  // the options follow
	uint8_t op, htype, hlen, hops; // op: 1 of a client, 2 of a server
	rte_be32_t xid;
	rte_be16_t secs, flags;
	rte_be32_t client, your, next, relay; // ciaddr, yiaddr, siaddr, giaddr
	struct rte_ether_addr mac;
	uint8_t mac_rest[10];
	char sname[64];
	char file[128];
	rte_be32_t cookie;
} __rte_packed __rte_aligned(2);

struct dhcp4_request {
	const struct dhcp4_header *header;
	uint8_t type;                 // enum dhcp4_type
	rte_be32_t requested, server; // 0: absent
	uint16_t max_size;            // of the IP packet of the answer, at least DHCP4_IP_SIZE
	const uint8_t *client;        // the client identifier; NULL: absent
	uint8_t client_len;
	const uint8_t *relay; // what a relay without an address has added (DHCP4_RELAY); NULL: absent
	uint8_t relay_len;
};

static inline bool dhcp4_is_request(const struct dhcp4_header *h)
{
	return h->op == 1 && h->htype == 1 && h->hlen == RTE_ETHER_ADDR_LEN && h->cookie == DHCP4_COOKIE;
}

// Parses a message of len bytes, also the options in its fields sname and file (RFC 2132, 9.3). The pointers lead into
// the message. False: it is truncated, an option exceeds its field or has a length that its type does not have, or it
// is no message of a client.
bool dhcp4_parse(const void *message, size_t len, struct dhcp4_request *out);

// Appends options to a message. An option that does not fit is left out.
struct dhcp4_writer {
	uint8_t *at, *end; // one byte less than there is: room for DHCP4_END
};
bool dhcp4_append(struct dhcp4_writer *w, enum dhcp4_option option, const void *value, size_t len);
bool dhcp4_append_number(struct dhcp4_writer *w, enum dhcp4_option option, uint32_t value, unsigned bytes); // 1, 2 or 4
bool dhcp4_append_text(struct dhcp4_writer *w, enum dhcp4_option option, const char *text); // not if empty
// The IPv4 addresses of the list; none if there are none.
bool dhcp4_append_addresses(struct dhcp4_writer *w, enum dhcp4_option option, const struct ip_addr *list, unsigned n);

// A destination and its router as option 121 has them. Returns the bytes that were written, at most 9.
unsigned dhcp4_route(uint8_t out[9], const struct ip_prefix *to, rte_be32_t router);
