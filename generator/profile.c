// SPDX-License-Identifier: Apache-2.0
// Replaces the profile as a whole.
#include "profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct profile profile;

int refuse_number(struct error *err, const char *field, uint64_t value, const char *valid, const char *why)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", (unsigned long)value);
	return error_set(err, EINVAL, field, text, valid, "%s", why);
}

void stream_free(struct stream *s)
{
	free(s->heads);
	free(s->expected);
	free(s->plan.list);
	pages_free(s->flows, s->n_flows * sizeof(*s->flows));
	pages_free(s->seen, s->n_flows * sizeof(*s->seen));
}

static void free_streams(struct stream *streams, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		stream_free(&streams[i]);
	free(streams);
}

static int make_streams(const Corelane__V1__GeneratorProfile *in, struct stream *streams, struct port_config *ports,
			struct error *err)
{
	uint64_t flows = 0;
	unsigned i;
	int ret = 0;

	for (i = 0; i < in->n_streams && ret == 0; i++) {
		streams[i].index = (uint16_t)i;
		ret = profile_stream(in->streams[i], &streams[i], ports, (unsigned)in->n_ports, err);
		flows += streams[i].n_flows;
		if (ret == 0 && flows > PROFILE_FLOWS)
			ret = refuse_number(err, "stream.flows.count", flows, "67108864 in all streams",
					    "are too many flows");
		if (ret < 0)
			err->index = i;
	}
	return ret;
}

static bool same_device(const struct port_config *a, const struct port_config *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->devargs, b->devargs) == 0 &&
	       strcmp(a->socket, b->socket) == 0 && a->id == b->id && a->server == b->server &&
	       a->ring_size == b->ring_size && a->queues == b->queues && b->room <= a->room;
}

// Takes over an unchanged port, so that its peer need not connect again.
static struct gen_port *take_old(const struct port_config *cfg)
{
	struct gen_port *p;
	unsigned i;

	for (i = 0; i < profile.n_ports; i++) {
		p = profile.ports[i];
		if (!same_device(&p->cfg, cfg))
			continue;
		profile.ports[i] = profile.ports[--profile.n_ports];
		return p;
	}
	return NULL;
}

static int open_ports(struct profile *new, const struct port_config *cfg, unsigned n, struct error *err)
{
	unsigned i;
	int ret = 0;

	for (i = 0; i < n; i++)
		new->ports[i] = take_old(&cfg[i]);
	profile_clear(); // closes the remaining ports before new ones use their devices
	for (i = 0; i < n && ret == 0; i++) {
		if (new->ports[i] == NULL)
			ret = gen_port_open(&new->ports[i], &cfg[i], err);
		if (ret < 0)
			err->index = i;
	}
	new->n_ports = n;
	return ret;
}

static void close_ports(struct profile *p)
{
	unsigned i;

	for (i = 0; i < p->n_ports; i++)
		if (p->ports[i] != NULL)
			gen_port_close(p->ports[i]);
	p->n_ports = 0;
}

// Replaces the port indices in the streams by the open ports.
static void connect_ports(struct profile *new)
{
	struct stream *s;
	unsigned i;

	for (i = 0; i < new->n_ports; i++)
		new->ports[i]->head = 0;
	for (i = 0; i < new->n_streams; i++) {
		s = &new->streams[i];
		s->tx = new->ports[s->tx_index];
		s->rx = new->ports[s->rx_index];
		s->block = stream_block(s->n_flows, s->tx->n_tx);
		s->tx->head = RTE_MAX(s->tx->head, (uint16_t)RTE_ALIGN(s->layout.size + PROBE_SIZE, 64));
		s->rx->probe = s->rx_probe;
	}
	for (i = 0; i < new->n_streams; i++) {
		s = &new->streams[i];
		s->copy = s->tx->head; // also overwrites what another stream's longer head left in the buffer
		s->usual_rx = s->rx_probe == s->rx->probe ? s->rx : NULL;
	}
	for (i = 0; i < new->n_ports; i++)
		new->ports[i]->ops->lay(new->ports[i]);
}

int profile_set(const Corelane__V1__GeneratorProfile *in, struct error *err)
{
	struct port_config *ports = calloc(PROFILE_PORTS, sizeof(*ports));
	struct profile new = {0};
	int ret = ports == NULL ? error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory")
				: profile_ports(in, ports, err);

	if (ret == 0) {
		new.streams = aligned_alloc(RTE_CACHE_LINE_SIZE, in->n_streams * sizeof(*new.streams));
		ret = new.streams == NULL ? error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory") : 0;
	}
	if (ret == 0) {
		new.n_streams = (unsigned)in->n_streams;
		memset(new.streams, 0, new.n_streams * sizeof(*new.streams));
		ret = make_streams(in, new.streams, ports, err);
	}
	if (ret == 0)
		ret = open_ports(&new, ports, (unsigned)in->n_ports, err);
	free(ports);
	if (ret < 0) {
		close_ports(&new);
		free_streams(new.streams, new.n_streams);
		return ret;
	}
	connect_ports(&new);
	profile = new;
	return 0;
}

void profile_clear(void)
{
	close_ports(&profile);
	free_streams(profile.streams, profile.n_streams);
	profile.streams = NULL;
	profile.n_streams = 0;
}
