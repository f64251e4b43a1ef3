// SPDX-License-Identifier: Apache-2.0
// DHCPv6 messages and their options (RFC 8415).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_byteorder.h>

#include "base/ip.h"

enum dhcp6_type {
	DHCP6_SOLICIT = 1,
	DHCP6_ADVERTISE,
	DHCP6_REQUEST,
	DHCP6_CONFIRM,
	DHCP6_RENEW,
	DHCP6_REBIND,
	DHCP6_REPLY,
	DHCP6_RELEASE,
	DHCP6_DECLINE,
	DHCP6_RECONFIGURE,
	DHCP6_INFORMATION,
	DHCP6_RELAY_FORWARD,
	DHCP6_RELAY_REPLY,
};

enum dhcp6_option {
	DHCP6_CLIENT = 1,
	DHCP6_SERVER = 2,
	DHCP6_IA_NA = 3,
	DHCP6_IA_TA = 4,
	DHCP6_ADDRESS = 5,
	DHCP6_WANTED = 6,
	DHCP6_PREFERENCE = 7,
	DHCP6_STATUS = 13,
	DHCP6_RAPID_COMMIT = 14,
	DHCP6_DNS = 23,
	DHCP6_DOMAINS = 24,
	DHCP6_IA_PD = 25,
	DHCP6_REFRESH = 32,   // in replies to DHCP6_INFORMATION
	DHCP6_FQDN = 39,      // RFC 4704
	DHCP6_NTP = 56,       // RFC 5908
	DHCP6_BOOT_FILE = 59, // RFC 5970
};

enum dhcp6_status {
	DHCP6_SUCCESS = 0,
	DHCP6_NO_ADDRESS = 2,
	DHCP6_NO_BINDING = 3,
	DHCP6_NOT_ON_LINK = 4,
	DHCP6_NO_PREFIX = 6,
};

#define DHCP6_MAX_IAS 8        // of a message; the others are not answered
#define DHCP6_DUID_LONGEST 130 // bytes with the type
#define DHCP6_DUID_SHORTEST 3

struct dhcp6_header {
	uint8_t type; // enum dhcp6_type
	uint8_t xid[3];
};

struct dhcp6_ia {        // an identity association: what the guest wants one address for
	uint16_t option; // DHCP6_IA_NA, DHCP6_IA_TA or DHCP6_IA_PD
	uint8_t id[4];
	const uint8_t *options; // in it, each of which lies within
	uint16_t len;
};

struct dhcp6_request {
	const struct dhcp6_header *header;
	const uint8_t *client, *server, *wanted; // values of the options; NULL: absent
	uint16_t client_len, server_len, wanted_len;
	bool rapid_commit;
	unsigned n_ias;
	struct dhcp6_ia ias[DHCP6_MAX_IAS];
};

// Parses a message of a client of len bytes, which has what its type must have (RFC 8415, 16). The pointers lead into
// the message. False: it is truncated, an option exceeds its field or is too short for its type or is there twice, or
// it is no message that a client sends to all servers.
bool dhcp6_parse(const void *message, size_t len, struct dhcp6_request *out);

// Whether the client wants to be told this option: those that do not say what they want, are told all.
bool dhcp6_wants(const struct dhcp6_request *r, enum dhcp6_option option);

// The next address that an association names; *at is 0 before the first one. False: there are no more.
bool dhcp6_next_address(const struct dhcp6_ia *ia, unsigned *at, const uint8_t **address);

// Appends options to a message. One that does not fit is left out, and the function returns NULL or false.
struct dhcp6_writer {
	uint8_t *at, *end;
};
uint8_t *dhcp6_reserve(struct dhcp6_writer *w, enum dhcp6_option option, size_t len); // returns where its value is
bool dhcp6_append(struct dhcp6_writer *w, enum dhcp6_option option, const void *value, size_t len);
bool dhcp6_append_status(struct dhcp6_writer *w, enum dhcp6_status status);
// The IPv6 addresses of the list; none if there are none.
bool dhcp6_append_addresses(struct dhcp6_writer *w, enum dhcp6_option option, const struct ip_addr *list, unsigned n);

static inline void dhcp6_number(uint8_t *at, uint32_t value)
{
	rte_be32_t be = rte_cpu_to_be_32(value);

	memcpy(at, &be, sizeof(be));
}
