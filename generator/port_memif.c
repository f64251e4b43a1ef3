// SPDX-License-Identifier: Apache-2.0
// memif client ports: their connections and rings.
#include "port_memif.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "memif_place.h"
#include "poll.h"
#include "port/memif/memif_conn.h"

struct memif_port {
	struct gen_port port;
	struct memif_if mif;
	struct memif_shm *shm; // NULL: no peer. Control thread: w, gen-poll: r
	char reason[128];      // reason why there is no peer
	struct memif_counters count;
	struct place_tx tx[PORT_QUEUES];
	struct place_rx rx[PORT_QUEUES];
};

static struct memif_shm *port_memif_shm_of(const struct memif_port *m)
{
	return __atomic_load_n(&m->shm, __ATOMIC_ACQUIRE);
}

static void port_memif_touch(struct gen_port *p, unsigned queue)
{
	struct memif_port *m = (struct memif_port *)p;
	const struct memif_shm *shm = port_memif_shm_of(m);

	if (unlikely(shm == NULL))
		return;
	if (queue < shm->n_tx)
		place_touch_tx(&m->tx[queue]);
	if (queue < shm->n_rx)
		place_touch_rx(&m->rx[queue]);
}

static void port_memif_look(struct gen_port *p, unsigned queue)
{
	struct memif_port *m = (struct memif_port *)p;
	const struct memif_shm *shm = port_memif_shm_of(m);

	if (likely(shm != NULL && queue < shm->n_rx))
		place_look(&m->rx[queue], p->probe);
}

static unsigned port_memif_reserve(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n)
{
	struct memif_port *m = (struct memif_port *)p;
	const struct memif_shm *shm = port_memif_shm_of(m);

	return likely(shm != NULL && queue < shm->n_tx) ? place_reserve(&m->tx[queue], frames, n, p->head) : 0;
}

static unsigned port_memif_commit(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n)
{
	struct memif_port *m = (struct memif_port *)p;

	return place_commit(&m->tx[queue], frames, n);
}

static unsigned port_memif_peek(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n)
{
	struct memif_port *m = (struct memif_port *)p;
	const struct memif_shm *shm = port_memif_shm_of(m);

	return likely(shm != NULL && queue < shm->n_rx) ? place_peek(&m->rx[queue], frames, n, p->probe) : 0;
}

static void port_memif_release(struct gen_port *p, unsigned queue, unsigned n)
{
	struct memif_port *m = (struct memif_port *)p;

	place_release(&m->rx[queue], n);
}

static bool port_memif_is_up(const struct gen_port *p)
{
	return port_memif_shm_of((const struct memif_port *)p) != NULL;
}

static void port_memif_lay(struct gen_port *p)
{
	struct memif_port *m = (struct memif_port *)p;
	const struct memif_shm *shm = port_memif_shm_of(m);
	unsigned i;

	for (i = 0; shm != NULL && i < shm->n_tx; i++)
		place_lay(&m->tx[i]);
}

static void free_rings(struct memif_port *m)
{
	unsigned i;

	for (i = 0; i < PORT_QUEUES; i++) {
		place_tx_fini(&m->tx[i]);
		place_rx_fini(&m->rx[i]);
		m->tx[i] = (struct place_tx){0};
		m->rx[i] = (struct place_rx){0};
	}
}

static int make_rings(struct memif_port *m, struct memif_shm *shm)
{
	unsigned i;
	int ret = 0;

	for (i = 0; i < shm->n_tx && ret == 0; i++) {
		memif_queue_attach_tx(&shm->tx[i], &m->count, false);
		ret = place_tx_init(&m->tx[i], &shm->tx[i]);
	}
	for (i = 0; i < shm->n_rx && ret == 0; i++)
		ret = place_rx_init(&m->rx[i], &shm->rx[i]);
	return ret;
}

static void port_memif_on_up(struct memif_if *mif, struct memif_shm *shm)
{
	struct memif_port *m = mif->arg;

	if (make_rings(m, shm) < 0) {
		LOG(ERR, "port %s: out of memory", m->port.cfg.name);
		return;
	}
	__atomic_store_n(&m->shm, shm, __ATOMIC_RELEASE);
	LOG(INFO, "port %s: connected to %s", m->port.cfg.name, memif_if_peer(mif));
}

static void port_memif_on_down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	struct memif_port *m = mif->arg;

	__atomic_store_n(&m->shm, NULL, __ATOMIC_RELEASE);
	poll_quiesce();
	free_rings(m);
	memif_shm_free(shm);
	gen_port_down(&m->port, reason);
}

static void port_memif_on_failed(struct memif_if *mif, const char *reason)
{
	struct memif_port *m = mif->arg;

	if (strcmp(m->reason, reason) != 0)
		LOG(INFO, "port %s: %s", m->port.cfg.name, reason);
	snprintf(m->reason, sizeof(m->reason), "%s", reason);
}

static void port_memif_close(struct gen_port *p)
{
	struct memif_port *m = (struct memif_port *)p;

	memif_if_stop(&m->mif);
	free(m);
}

// Offsets in the shared memory are 32 bits.
static int port_memif_check_size(const struct memif_port *m, struct error *err)
{
	char text[16];

	if (memif_shm_size(2u * m->mif.queues, m->mif.log2_ring, m->mif.buffer_size) <= UINT32_MAX)
		return 0;
	snprintf(text, sizeof(text), "%u", m->port.cfg.ring_size);
	return error_set(err, EINVAL, "port.memif.ring_size", text, "ring_size * queues * frame size below 2 GiB",
			 "is too large");
}

static const struct gen_port_ops ops = {.touch = port_memif_touch,
					.look = port_memif_look,
					.reserve = port_memif_reserve,
					.commit = port_memif_commit,
					.peek = port_memif_peek,
					.release = port_memif_release,
					.up = port_memif_is_up,
					.lay = port_memif_lay,
					.close = port_memif_close};

void memif_config(struct memif_if *mif, const struct port_config *cfg, void *arg)
{
	*mif = (struct memif_if){.base = loop_base(),
				 .id = cfg->id,
				 .client = !cfg->server,
				 .queues = (uint16_t)cfg->queues,
				 .arg = arg};
	mif->log2_ring = (uint8_t)rte_log2_u32(cfg->ring_size);
	mif->buffer_size = cfg->room;
	snprintf(mif->name, sizeof(mif->name), "corelane-gen %.16s", cfg->name);
	memcpy(mif->socket, cfg->socket, sizeof(mif->socket));
}

int memif_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err)
{
	struct memif_port *m = port_new(sizeof(*m));
	int ret;

	if (m == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	m->port = (struct gen_port){.ops = &ops, .cfg = *cfg, .n_tx = cfg->queues, .n_rx = cfg->queues};
	memif_config(&m->mif, cfg, m);
	m->mif.up = port_memif_on_up;
	m->mif.down = port_memif_on_down;
	m->mif.failed = port_memif_on_failed;
	ret = port_memif_check_size(m, err);
	if (ret == 0)
		ret = memif_if_start(&m->mif, err);
	if (ret < 0) {
		free(m);
		return ret;
	}
	*port = &m->port;
	return 0;
}
