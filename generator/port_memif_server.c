// SPDX-License-Identifier: Apache-2.0
// memif server ports. The peer owns the memory and may change it at any time, so frames are copied, with the functions
// of the data plane.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "poll.h"
#include "port/memif/memif_conn.h"
#include "port_mbuf.h"
#include "port_memif.h"

struct server_port {
	struct mbuf_port m;
	struct memif_if mif;
	struct memif_shm *shm; // NULL: no peer. Control thread: w, gen-poll: r
	struct memif_counters count;
};

static struct memif_shm *port_memif_server_shm_of(const void *p)
{
	return __atomic_load_n(&((const struct server_port *)p)->shm, __ATOMIC_ACQUIRE);
}

static uint16_t port_memif_server_rx(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct memif_shm *shm = port_memif_server_shm_of(m);

	return shm != NULL && queue < shm->n_rx ? memif_rx(&shm->rx[queue], pkts, n) : 0;
}

static uint16_t port_memif_server_tx(struct mbuf_port *m, unsigned queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct memif_shm *shm = port_memif_server_shm_of(m);

	return shm != NULL && queue < shm->n_tx ? memif_tx(&shm->tx[queue], pkts, n) : 0;
}

static bool port_memif_server_is_up(const struct gen_port *p)
{
	return port_memif_server_shm_of(p) != NULL;
}

static void port_memif_server_on_up(struct memif_if *mif, struct memif_shm *shm)
{
	struct server_port *s = mif->arg;
	uint16_t i;

	for (i = 0; i < shm->n_rx; i++)
		memif_queue_attach_rx(&shm->rx[i], s->m.rx_pool, 0, &s->count);
	for (i = 0; i < shm->n_tx; i++)
		memif_queue_attach_tx(&shm->tx[i], &s->count, false);
	__atomic_store_n(&s->shm, shm, __ATOMIC_RELEASE);
	LOG(INFO, "port %s: connected to %s", s->m.port.cfg.name, memif_if_peer(mif));
}

static void port_memif_server_on_down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	struct server_port *s = mif->arg;

	__atomic_store_n(&s->shm, NULL, __ATOMIC_RELEASE);
	poll_quiesce();
	memif_shm_free(shm);
	gen_port_down(&s->m.port, reason);
}

static void server_close(struct gen_port *p)
{
	struct server_port *s = (struct server_port *)p;

	if (s->mif.timer != NULL)
		memif_if_stop(&s->mif);
	mbuf_port_fini(&s->m);
	free(s);
}

static const struct gen_port_ops ops = {.reserve = mbuf_port_reserve,
					.commit = mbuf_port_commit,
					.peek = mbuf_port_peek,
					.release = mbuf_port_release,
					.up = port_memif_server_is_up,
					.lay = mbuf_port_lay,
					.close = server_close};

int memif_server_open(struct gen_port **port, const struct port_config *cfg, struct error *err)
{
	struct server_port *s = port_new(sizeof(*s));
	int ret;

	if (s == NULL)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "out of memory");
	s->m.port = (struct gen_port){.ops = &ops, .cfg = *cfg, .n_tx = cfg->queues, .n_rx = cfg->queues};
	s->m.rx = port_memif_server_rx;
	s->m.tx = port_memif_server_tx;
	ret = mbuf_port_init(&s->m, cfg->queues * cfg->ring_size, SOCKET_ID_ANY, err);
	if (ret == 0) {
		memif_config(&s->mif, cfg, s);
		s->mif.up = port_memif_server_on_up;
		s->mif.down = port_memif_server_on_down;
		ret = memif_if_start(&s->mif, err);
		if (ret < 0)
			s->mif.timer = NULL; // already freed
	}
	if (ret < 0) {
		server_close(&s->m.port);
		return ret;
	}
	*port = &s->m.port;
	return 0;
}
