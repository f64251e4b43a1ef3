// SPDX-License-Identifier: Apache-2.0
// The register of encapsulations.
#include "l3/encap.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include <rte_debug.h>

#include "graph/node.h"

uint8_t encap_by_udp[65536];
uint8_t encap_by_proto[256];

struct encap {
	const struct encap_ops *ops;
	uint8_t send;    // place of the first send node
	uint8_t receive; // place of the receive node, plus one
	uint16_t ports[ENCAP_UDP_PORTS];
	unsigned n_ports;
};

static struct encap encaps[ENCAP_MAX]; // by name
static unsigned n_encaps;
static const struct encap_ops *received[ENCAP_MAX + 1]; // by place, plus one

static struct encap *encap_of(const struct encap_ops *ops)
{
	unsigned i;

	for (i = 0; i < n_encaps; i++)
		if (encaps[i].ops == ops)
			return &encaps[i];
	return NULL;
}

void encap_set_ports(const struct encap_ops *ops, const uint32_t *ports, unsigned n)
{
	struct encap *e = encap_of(ops);
	unsigned i;

	for (i = 0; i < e->n_ports; i++)
		if (encap_by_udp[e->ports[i]] == e->receive)
			encap_by_udp[e->ports[i]] = 0;
	for (i = 0; i < n; i++) {
		e->ports[i] = (uint16_t)ports[i];
		encap_by_udp[ports[i]] = e->receive;
	}
	e->n_ports = n;
}

static void encap_receive(struct encap *e)
{
	uint32_t port = e->ops->udp_port;

	e->receive = (uint8_t)(node_list_add(ENCAP_RECEIVE_NODES, e->ops->receive_node) + 1);
	received[e->receive] = e->ops;
	if (e->ops->proto == IPPROTO_UDP)
		encap_set_ports(e->ops, &port, 1);
	else
		encap_by_proto[e->ops->proto] = e->receive;
}

void encap_register(const struct encap_ops *ops)
{
	unsigned i;

	if (n_encaps == ENCAP_MAX)
		rte_panic("no room for encapsulation %s\n", ops->name);
	for (i = n_encaps++; i > 0 && strcmp(encaps[i - 1].ops->name, ops->name) > 0; i--)
		encaps[i] = encaps[i - 1];
	encaps[i] = (struct encap){.ops = ops};
	encaps[i].send = (uint8_t)node_list_add(ENCAP_SEND_NODES, ops->send_node[0]);
	node_list_add(ENCAP_SEND_NODES, ops->send_node[1]);
	if (ops->receive_node)
		encap_receive(&encaps[i]);
}

enum encap_inner encap_inner(unsigned of, const uint8_t *p, unsigned n, unsigned *at)
{
	return of ? received[of]->inner(p, n, at) : ENCAP_INNER_NONE;
}

unsigned encap_send_place(const struct encap_ops *ops, bool v6)
{
	return encap_of(ops)->send + v6;
}

uint16_t encap_udp_port(const struct encap_ops *ops)
{
	return encap_of(ops)->ports[0];
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
	const struct encap *e = after ? encap_of(after) + 1 : encaps;

	return e < encaps + n_encaps ? e->ops : NULL;
}

const char *encap_names(void)
{
	static char names[256];
	unsigned i, at = 0;

	names[0] = '\0';
	for (i = 0; i < n_encaps && at < sizeof(names); i++)
		if (!encaps[i].ops->mirrors_only)
			at += (unsigned)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "", encaps[i].ops->name);
	return names;
}

const uint16_t *encap_ports(const struct encap_ops *ops, unsigned *n)
{
	const struct encap *e = encap_of(ops);

	*n = e->n_ports;
	return e->ports;
}
