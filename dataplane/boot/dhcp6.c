// SPDX-License-Identifier: Apache-2.0
// DHCPv6 (RFC 8415) for the one guest of a port. As for DHCPv4, nothing is allocated or stored: the same request always
// gets the same answer. A port without an address for its guest answers everything else.
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/event.h"
#include "boot/boot_private.h"
#include "boot/dhcp6_message.h"
#include "boot/dns_name.h"

#define DHCP6_LONGEST 1232  // bytes of an answer: every link of IPv6 takes it
#define DECLINED_SECONDS 60 // between two events about the same port

DROP_REASON(dhcp6_malformed, "The guest sent a DHCPv6 message whose options exceed it, have wrong lengths or lack what "
			     "its type needs, or that no client sends.");
DROP_REASON(dhcp6_other_server, "The guest sent a DHCPv6 message for another server than its port's.");
DROP_REASON(dhcp6_nothing_to_confirm, "The guest asked in DHCPv6 whether its addresses fit the link, and named none.");

EVENT_KIND(
	dhcp6_declined, WARNING,
	"A guest refused the IPv6 address that DHCP gave it, because another host of its link uses the address. Look "
	"for that host on the guest's bridge, or give the guest another address.");

// DUID-LL of the port's own MAC, which is the same on every node: a guest that moves keeps its server.
struct dhcp6_duid {
	rte_be16_t type, hardware;
	struct rte_ether_addr mac;
} __rte_packed __rte_aligned(2);

struct dhcp6_answer {
	const struct port *port;
	const struct dhcp6_request *request;
	struct boot_lease lease;
	struct dhcp6_duid server;
	struct dhcp6_writer w;
	uint8_t message[DHCP6_LONGEST];
};

static bool dhcp6_is_leased(const struct dhcp6_answer *a, const uint8_t address[16])
{
	return a->lease.addr.addr.family == IPV6 && memcmp(a->lease.addr.addr.bytes, address, 16) == 0;
}

// --- Identity associations. ---

static void dhcp6_append_address(struct dhcp6_answer *a, const uint8_t address[16], uint32_t seconds)
{
	uint8_t *o = dhcp6_reserve(&a->w, DHCP6_ADDRESS, 24);

	if (o == NULL)
		return;
	memcpy(o, address, 16);
	dhcp6_number(o + 16, seconds);
	dhcp6_number(o + 20, seconds);
}

// Other addresses than the guest's end at once (18.3.4).
static void dhcp6_end_addresses(struct dhcp6_answer *a, const struct dhcp6_ia *ia)
{
	const uint8_t *address;
	unsigned at = 0;

	while (dhcp6_next_address(ia, &at, &address))
		if (!dhcp6_is_leased(a, address))
			dhcp6_append_address(a, address, 0);
}

// The first IA_NA gets the address; what else the guest wants it does not get. `known`: it says what it has.
static void dhcp6_append_ia(struct dhcp6_answer *a, const struct dhcp6_ia *ia, bool first, bool known)
{
	const struct boot_config *b = boot_config(&a->port->cfg);
	uint32_t seconds = b->lease_seconds ? b->lease_seconds : BOOT_LEASE_SECONDS;
	bool leases = first && a->lease.addr.addr.family == IPV6;
	unsigned head = ia->option == DHCP6_IA_TA ? 4 : 12;
	uint8_t *o = dhcp6_reserve(&a->w, (enum dhcp6_option)ia->option, head);
	size_t len;

	if (o == NULL)
		return;
	memset(o, 0, head);
	memcpy(o, ia->id, 4);
	if (leases) {
		dhcp6_number(o + 4, seconds / 2);
		dhcp6_number(o + 8, (uint32_t)(seconds * 7ull / 8));
		dhcp6_append_address(a, a->lease.addr.addr.bytes, seconds);
	}
	if (known)
		dhcp6_end_addresses(a, ia);
	if (!leases)
		dhcp6_append_status(&a->w, ia->option == DHCP6_IA_PD ? DHCP6_NO_PREFIX : DHCP6_NO_ADDRESS);
	len = (size_t)(a->w.at - o);
	o[-2] = (uint8_t)(len >> 8);
	o[-1] = (uint8_t)len;
}

static void dhcp6_append_ias(struct dhcp6_answer *a)
{
	const struct dhcp6_request *r = a->request;
	bool known = r->header->type == DHCP6_RENEW || r->header->type == DHCP6_REBIND, given = false, first;
	unsigned i;

	for (i = 0; i < r->n_ias; i++) {
		first = !given && r->ias[i].option == DHCP6_IA_NA;
		dhcp6_append_ia(a, &r->ias[i], first, known && r->ias[i].option == DHCP6_IA_NA);
		given |= first;
	}
}

// --- What else the guest is told. ---

static void dhcp6_append_domains(struct dhcp6_answer *a, const char *domain)
{
	uint8_t labels[DNS_NAME_LONGEST];
	size_t len = dns_labels(domain, labels);

	labels[len] = 0;
	if (len > 0 && dhcp6_wants(a->request, DHCP6_DOMAINS))
		dhcp6_append(&a->w, DHCP6_DOMAINS, labels, len + 1);
}

// A whole name, or one without its end (RFC 4704, 4.2). The server updates no DNS: flag N.
static void dhcp6_append_name(struct dhcp6_answer *a, const struct boot_config *b)
{
	uint8_t value[1 + 2 * DNS_NAME_LONGEST] = {0x04};
	size_t len = 1 + dns_labels(b->host, value + 1);

	if (len == 1 || !dhcp6_wants(a->request, DHCP6_FQDN))
		return;
	if (*b->domain) {
		len += dns_labels(b->domain, value + len);
		value[len++] = 0;
	}
	dhcp6_append(&a->w, DHCP6_FQDN, value, len);
}

static void dhcp6_append_time(struct dhcp6_answer *a, const struct boot_config *b)
{
	uint8_t value[20] = {0, 1, 0, 16}; // one suboption: a server's address
	unsigned i;

	for (i = 0; i < b->n_ntp && dhcp6_wants(a->request, DHCP6_NTP); i++) {
		memcpy(value + 4, b->ntp[i].bytes, 16);
		if (b->ntp[i].family == IPV6)
			dhcp6_append(&a->w, DHCP6_NTP, value, sizeof(value));
	}
}

// The most important options come first: what does not fit is left out.
static void dhcp6_append_settings(struct dhcp6_answer *a)
{
	const struct boot_config *b = boot_config(&a->port->cfg);
	uint32_t seconds = b->lease_seconds ? b->lease_seconds : BOOT_LEASE_SECONDS;
	uint8_t refresh[4];

	if (dhcp6_wants(a->request, DHCP6_DNS))
		dhcp6_append_addresses(&a->w, DHCP6_DNS, b->dns, b->n_dns);
	dhcp6_append_domains(a, b->domain);
	if (*b->file && dhcp6_wants(a->request, DHCP6_BOOT_FILE))
		dhcp6_append(&a->w, DHCP6_BOOT_FILE, b->file, strlen(b->file));
	dhcp6_append_time(a, b);
	dhcp6_append_name(a, b);
	dhcp6_number(refresh, RTE_MAX(seconds, 600u)); // RFC 8415, 21.23
	if (a->request->header->type == DHCP6_INFORMATION)
		dhcp6_append(&a->w, DHCP6_REFRESH, refresh, sizeof(refresh));
}

// --- Answers. ---

static void dhcp6_begin(struct dhcp6_answer *a, enum dhcp6_type type)
{
	const struct dhcp6_request *r = a->request;
	unsigned room = RTE_MIN((unsigned)DHCP6_LONGEST, a->port->cfg.mtu - 48u); // behind IPv6 and UDP

	a->w = (struct dhcp6_writer){a->message + sizeof(*r->header), a->message + room};
	a->message[0] = (uint8_t)type;
	memcpy(a->message + 1, r->header->xid, sizeof(r->header->xid));
	dhcp6_append(&a->w, DHCP6_SERVER, &a->server, sizeof(a->server));
	if (r->client)
		dhcp6_append(&a->w, DHCP6_CLIENT, r->client, r->client_len);
}

static void dhcp6_offer(struct dhcp6_answer *a)
{
	static const uint8_t highest = 255; // the guest need not wait for other servers
	bool at_once = a->request->rapid_commit;

	dhcp6_begin(a, at_once ? DHCP6_REPLY : DHCP6_ADVERTISE);
	if (at_once)
		dhcp6_reserve(&a->w, DHCP6_RAPID_COMMIT, 0);
	else
		dhcp6_append(&a->w, DHCP6_PREFERENCE, &highest, 1);
	dhcp6_append_ias(a);
	dhcp6_append_settings(a);
}

static void dhcp6_reply(struct dhcp6_answer *a)
{
	dhcp6_begin(a, DHCP6_REPLY);
	dhcp6_append_ias(a);
	dhcp6_append_settings(a);
}

static void dhcp6_reply_status(struct dhcp6_answer *a, enum dhcp6_status status)
{
	dhcp6_begin(a, DHCP6_REPLY);
	dhcp6_append_status(&a->w, status);
}

// A guest that may have moved: its addresses fit if they are what this port gives it (18.3.3).
static const struct drop_reason *dhcp6_confirm(struct dhcp6_answer *a)
{
	bool any = false, fit = true;
	const uint8_t *address;
	unsigned i, at;

	for (i = 0; i < a->request->n_ias; i++) {
		if (a->request->ias[i].option == DHCP6_IA_PD)
			continue;
		for (at = 0; dhcp6_next_address(&a->request->ias[i], &at, &address); any = true)
			fit &= dhcp6_is_leased(a, address);
	}
	if (!any)
		return &drop_dhcp6_nothing_to_confirm;
	dhcp6_reply_status(a, fit ? DHCP6_SUCCESS : DHCP6_NOT_ON_LINK);
	return NULL;
}

static void dhcp6_decline(struct dhcp6_answer *a)
{
	uint64_t now = rte_rdtsc(), *last = &boot_port_counts(a->port->id)->dhcp6_declined_at;
	char subject[64], text[IP_TEXT];

	dhcp6_reply_status(a, DHCP6_SUCCESS);
	if (a->lease.addr.addr.family == 0 || (*last && now - *last < DECLINED_SECONDS * rte_get_tsc_hz()))
		return;
	*last = now;
	snprintf(subject, sizeof(subject), "port %s", a->port->cfg.name);
	event_report(dhcp6_declined, subject, "the guest says that another host uses %s",
		     ip_format_addr(&a->lease.addr.addr, text));
}

static const struct drop_reason *dhcp6_answer_to(struct dhcp6_answer *a)
{
	switch (a->request->header->type) {
	case DHCP6_SOLICIT:
		dhcp6_offer(a);
		return NULL;
	case DHCP6_CONFIRM:
		return dhcp6_confirm(a);
	case DHCP6_RELEASE: // the address stays the guest's
		dhcp6_reply_status(a, DHCP6_SUCCESS);
		return NULL;
	case DHCP6_DECLINE:
		dhcp6_decline(a);
		return NULL;
	default: // request, renew, rebind, information
		dhcp6_reply(a);
		return NULL;
	}
}

const struct drop_reason *dhcp6_receive(const struct port *p, const struct rte_ether_addr *mac, const uint8_t guest[16],
					const uint8_t *message, unsigned len)
{
	struct dhcp6_answer a = {.port = p, .server = {RTE_BE16(3), RTE_BE16(1), port_fwds[p->id]->mac}};
	const struct drop_reason *refused;
	struct dhcp6_request r;

	if (!dhcp6_parse(message, len, &r))
		return &drop_dhcp6_malformed;
	if (r.server && (r.server_len != sizeof(a.server) || memcmp(r.server, &a.server, sizeof(a.server)) != 0))
		return &drop_dhcp6_other_server;
	a.request = &r;
	boot_lease_of(&p->cfg, IPV6, &a.lease);
	refused = dhcp6_answer_to(&a);
	if (refused)
		return refused;
	boot_send6(p, mac, guest, a.message, (unsigned)(a.w.at - a.message));
	boot_port_counts(p->id)->dhcp6++;
	return NULL;
}
