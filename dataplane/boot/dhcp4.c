// SPDX-License-Identifier: Apache-2.0
// DHCPv4 (RFC 2131) for the one guest of a port. Its address is configured, so nothing is allocated or stored, and the
// same request always gets the same answer.
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/event.h"
#include "boot/boot_private.h"
#include "boot/dhcp4_message.h"

#define DHCP4_LONGEST 1200     // bytes of an answer
#define DECLINED_SECONDS 60    // between two events about the same port
#define ROUTES_BYTES UINT8_MAX // of option 121

DROP_REASON(dhcp4_malformed, "The guest sent a DHCPv4 message whose options exceed it, have wrong lengths or lack a "
			     "message type of a client.");
DROP_REASON(dhcp4_other_server, "The guest accepted the offer of another DHCPv4 server than its port's.");

EVENT_KIND(
	dhcp4_declined, WARNING,
	"A guest refused the IPv4 address that DHCP gave it, because another host of its link uses the address. Look "
	"for that host on the guest's bridge, or give the guest another address.");

struct dhcp4_answer {
	struct dhcp4_header header;
	uint8_t options[DHCP4_LONGEST - sizeof(struct dhcp4_header)];
} __rte_aligned(2);

// The routes of the port, and the default one, because a client that gets this option ignores DHCP4_ROUTER. A router
// outside of the guest's subnet needs a route of its own, on the link. Without any of them, DHCP4_ROUTER says it all.
static unsigned dhcp4_routes(const struct boot_config *b, const struct boot_lease *lease, uint8_t out[ROUTES_BYTES])
{
	const struct ip_prefix all = {.addr.family = IPV4}, router = {lease->router, 32},
			       subnet = ip_prefix_of(&lease->addr.addr, lease->addr.len);
	bool off_link = lease->router.family != 0 && !ip_prefix_covers(&subnet, &lease->router), has_default = false;
	unsigned i, n = 0;

	if (off_link)
		n += dhcp4_route(out, &router, 0);
	for (i = 0; i < b->n_routes; i++) {
		if (b->routes[i].to.addr.family != IPV4)
			continue;
		n += dhcp4_route(out + n, &b->routes[i].to, ip4_be(&b->routes[i].via));
		has_default |= b->routes[i].to.len == 0;
	}
	if (n > 0 && !has_default && lease->router.family != 0)
		n += dhcp4_route(out + n, &all, ip4_be(&lease->router));
	return n;
}

static_assert((LIMIT_PORT_BOOT_ROUTES_ITEMS + 2) * 9 <= ROUTES_BYTES, "fits one option");

static void dhcp4_append_lease(struct dhcp4_writer *w, const struct boot_config *b)
{
	uint32_t seconds = b->lease_seconds ? b->lease_seconds : BOOT_LEASE_SECONDS;

	dhcp4_append_number(w, DHCP4_LEASE, seconds, 4);
	dhcp4_append_number(w, DHCP4_T1, seconds / 2, 4);
	dhcp4_append_number(w, DHCP4_T2, (uint32_t)(seconds * 7ull / 8), 4);
}

// The most important options come first: what does not fit is left out.
static void dhcp4_append_settings(struct dhcp4_writer *w, const struct port_config *cfg, const struct boot_lease *lease)
{
	const struct boot_config *b = boot_config(cfg);
	uint8_t routes[ROUTES_BYTES];
	char text[IP_TEXT];
	unsigned n = dhcp4_routes(b, lease, routes);

	dhcp4_append_number(w, DHCP4_MASK, lease->addr.len ? UINT32_MAX << (32 - lease->addr.len) : 0, 4);
	if (n > 0)
		dhcp4_append(w, DHCP4_ROUTES, routes, n);
	dhcp4_append_addresses(w, DHCP4_ROUTER, &lease->router, 1);
	dhcp4_append_number(w, DHCP4_MTU, cfg->mtu, 2);
	dhcp4_append_addresses(w, DHCP4_DNS, b->dns, b->n_dns);
	dhcp4_append_text(w, DHCP4_BOOT_FILE, b->file);
	if (b->server.family)
		dhcp4_append_text(w, DHCP4_TFTP_SERVER, ip_format_addr(&b->server, text));
	dhcp4_append_addresses(w, DHCP4_NTP, b->ntp, b->n_ntp);
	dhcp4_append_text(w, DHCP4_HOST_NAME, b->host);
	dhcp4_append_text(w, DHCP4_DOMAIN, b->domain);
}

static void dhcp4_send(const struct port *p, const struct boot_lease *lease, const struct dhcp4_request *r,
		       enum dhcp4_type type)
{
	const struct boot_config *b = boot_config(&p->cfg);
	unsigned packet = RTE_MIN(r->max_size, p->cfg.mtu);
	unsigned room = RTE_MIN(packet - DHCP4_HEADERS, (unsigned)DHCP4_LONGEST);
	struct dhcp4_answer a = {.header = {.op = 2, .htype = 1, .hlen = RTE_ETHER_ADDR_LEN, .cookie = DHCP4_COOKIE}};
	struct dhcp4_header *h = &a.header;
	unsigned relay = r->relay ? r->relay_len + 2u : 0; // comes last (RFC 3046, 2.2)
	struct dhcp4_writer w = {a.options, (uint8_t *)&a + room - 1 - relay};
	bool to_all = type == DHCP4_NAK || (r->header->client == 0 && (r->header->flags & DHCP4_BROADCAST));

	h->xid = r->header->xid;
	h->flags = r->header->flags;
	h->mac = r->header->mac;
	dhcp4_append_number(&w, DHCP4_TYPE, type, 1);
	dhcp4_append(&w, DHCP4_SERVER, lease->gateway.bytes, 4);
	if (r->client) // RFC 6842
		dhcp4_append(&w, DHCP4_CLIENT, r->client, r->client_len);
	if (type == DHCP4_NAK) {
		dhcp4_append_text(&w, DHCP4_MESSAGE, "the guest has another address");
	} else {
		h->client = type == DHCP4_ACK ? r->header->client : 0;
		h->next = b->server.family ? ip4_be(&b->server) : 0;
		memcpy(h->file, b->file, strlen(b->file));
		if (r->type != DHCP4_INFORM) {
			h->your = ip4_be(&lease->addr.addr);
			dhcp4_append_lease(&w, b);
		}
		dhcp4_append_settings(&w, &p->cfg, lease);
	}
	w.end += relay;
	if (r->relay)
		dhcp4_append(&w, DHCP4_RELAY, r->relay, r->relay_len);
	*w.at++ = DHCP4_END;
	boot_send4(p, &h->mac, ip4_be(&lease->gateway),
		   to_all           ? UINT32_MAX
		   : h->client != 0 ? h->client
				    : h->your,
		   &a, RTE_MAX((unsigned)(w.at - (uint8_t *)&a), (unsigned)DHCP4_SHORTEST));
	boot_port_counts(p->id)->dhcp4++;
}

// A guest asks for an address that it has been offered (with `server`), had before (`requested`) or has (ciaddr).
static const struct drop_reason *dhcp4_on_request(const struct port *p, const struct boot_lease *lease,
						  const struct dhcp4_request *r)
{
	rte_be32_t wanted = r->requested ? r->requested : r->header->client;

	if (r->server != 0 && r->server != ip4_be(&lease->gateway))
		return &drop_dhcp4_other_server;
	dhcp4_send(p, lease, r, wanted == ip4_be(&lease->addr.addr) ? DHCP4_ACK : DHCP4_NAK);
	return NULL;
}

static void dhcp4_on_decline(const struct port *p, const struct boot_lease *lease)
{
	uint64_t now = rte_rdtsc(), *last = &boot_port_counts(p->id)->dhcp4_declined_at;
	char subject[64], text[IP_TEXT];

	if (*last && now - *last < DECLINED_SECONDS * rte_get_tsc_hz())
		return;
	*last = now;
	snprintf(subject, sizeof(subject), "port %s", p->cfg.name);
	event_report(dhcp4_declined, subject, "the guest says that another host uses %s",
		     ip_format_addr(&lease->addr.addr, text));
}

const struct drop_reason *dhcp4_receive(const struct port *p, const uint8_t *message, unsigned len)
{
	struct dhcp4_request r;
	struct boot_lease lease;

	if (!dhcp4_parse(message, len, &r))
		return &drop_dhcp4_malformed;
	boot_lease_of(&p->cfg, IPV4, &lease);
	switch (r.type) {
	case DHCP4_DISCOVER:
		dhcp4_send(p, &lease, &r, DHCP4_OFFER);
		return NULL;
	case DHCP4_REQUEST:
		return dhcp4_on_request(p, &lease, &r);
	case DHCP4_INFORM:
		dhcp4_send(p, &lease, &r, DHCP4_ACK);
		return NULL;
	case DHCP4_DECLINE:
		dhcp4_on_decline(p, &lease);
		return NULL;
	case DHCP4_RELEASE: // the address stays the guest's
		return NULL;
	default:
		return &drop_dhcp4_malformed;
	}
}
