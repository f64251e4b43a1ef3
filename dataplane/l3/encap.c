// SPDX-License-Identifier: Apache-2.0
// The register of encapsulations.
#include "l3/encap.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_debug.h>

#include "base/setting.h"
#include "graph/node.h"
#include "l3/nexthop.h"

uint8_t encap_by_udp[65536];
uint8_t encap_by_proto[256];

struct encap {
	const struct encap_ops *ops;
	struct encap *next; // by name
	uint8_t send;       // place of the first send node
	uint8_t receive;    // place of the receive node, plus one
	struct setting_list ports;
	struct setting setting;
};

static struct encap encaps[ENCAP_MAX], *first;
static unsigned n_encaps;
static const struct encap_ops *received[ENCAP_RECEIVE_PLACES]; // by place, plus one

static struct encap *encap_of(const struct encap_ops *ops)
{
	unsigned i;

	for (i = 0; i < n_encaps; i++)
		if (encaps[i].ops == ops)
			return &encaps[i];
	return NULL;
}

// Writes the new ports before it clears the old ones, so that a port that stays is in the table at any time.
static void encap_publish_ports(const struct encap *e)
{
	uint32_t port, i;

	for (i = 0; i < e->ports.n; i++)
		encap_by_udp[e->ports.values[i]] = e->receive;
	for (port = 0; port < RTE_DIM(encap_by_udp); port++) {
		for (i = 0; i < e->ports.n && e->ports.values[i] != port; i++)
			;
		if (i == e->ports.n && encap_by_udp[port] == e->receive)
			encap_by_udp[port] = 0;
	}
}

static void encap_ports_changed(const struct setting *own)
{
	encap_publish_ports(container_of(own, struct encap, setting));
	nexthop_underlay_changed(); // tunnels carry the ports in their headers
}

void encap_set_ports(const struct encap_ops *ops, const uint32_t *ports, unsigned n)
{
	setting_set_list(&encap_of(ops)->setting, ports, n);
}

static void encap_receive_udp(struct encap *e)
{
	e->ports = (struct setting_list){1, {e->ops->udp_port}};
	e->setting = (struct setting){.name = e->ops->udp_setting,
				      .type = SETTING_LIST,
				      .value = &e->ports,
				      .exclusive = "UDP ports",
				      .changed = encap_ports_changed};
	setting_register(&e->setting);
	encap_by_udp[e->ops->udp_port] = e->receive;
}

static void encap_receive(struct encap *e)
{
	e->receive = (uint8_t)(node_list_add(ENCAP_RECEIVE_NODES, e->ops->receive_node) + 1);
	received[e->receive] = e->ops;
	if (e->ops->proto == IPPROTO_UDP)
		encap_receive_udp(e);
	else
		encap_by_proto[e->ops->proto] = e->receive;
}

void encap_register(const struct encap_ops *ops)
{
	struct encap **at = &first, *e;

	if (n_encaps == ENCAP_MAX)
		rte_panic("no room for encapsulation %s\n", ops->name);
	while (*at && strcmp((*at)->ops->name, ops->name) < 0)
		at = &(*at)->next;
	e = &encaps[n_encaps++];
	*e = (struct encap){.ops = ops, .next = *at};
	*at = e;
	e->send = (uint8_t)node_list_add(ENCAP_SEND_NODES, ops->send_node[0]);
	node_list_add(ENCAP_SEND_NODES, ops->send_node[1]);
	if (ops->receive_node)
		encap_receive(e);
}

enum encap_inner encap_inner(unsigned of, const uint8_t *p, unsigned n, unsigned *at)
{
	return of ? received[of]->inner(p, n, at) : ENCAP_INNER_NONE;
}

unsigned encap_send_place(const struct encap_ops *ops, bool v6)
{
	return encap_of(ops)->send + v6;
}

unsigned encap_receive_place(const struct encap_ops *ops)
{
	return encap_of(ops)->receive;
}

uint16_t encap_udp_port(const struct encap_ops *ops)
{
	return (uint16_t)encap_of(ops)->ports.values[0];
}

const struct encap_ops *encap_find(const char *name)
{
	const struct encap_ops *ops;

	for (ops = encap_next(NULL); ops && strcmp(ops->name, name) != 0; ops = encap_next(ops))
		;
	return ops;
}

const struct encap_ops *encap_next(const struct encap_ops *after)
{
	const struct encap *e = after ? encap_of(after)->next : first;

	return e ? e->ops : NULL;
}

const char *encap_names(void)
{
	static char names[256];
	const struct encap *e;
	unsigned at = 0;

	names[0] = '\0';
	for (e = first; e && at < sizeof(names); e = e->next)
		if (!e->ops->mirrors_only)
			at += (unsigned)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", e->ops->name);
	return names;
}
