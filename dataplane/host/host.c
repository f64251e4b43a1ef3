// SPDX-License-Identifier: Apache-2.0
// Host ports: attaches them to their fabric ports and selects the worker that serves them. Master thread only.
#include "host/host.h"

#include <errno.h>

#include "base/log.h"
#include "host/steer.h"
#include "worker/handoff.h"
#include "worker/spread.h"
#include "worker/worker.h"

static int host_on_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	const struct port *fabric = cfg->role == PORT_HOST ? port_get(cfg->fabric) : NULL;

	if (fabric && fabric->host && (old == NULL || fabric->host != old->id))
		return error_set(err, EEXIST, "port.fabric", fabric->cfg.name, "a fabric port without a host port",
				 "has the host port '%s'", port_get(fabric->host)->cfg.name);
	return 0;
}

static void set_host(uint16_t fabric, uint16_t host)
{
	struct error err = {0};

	if (port_set_host(port_get(fabric), host, &err) < 0)
		LOG(ERR, "port %s: %s", port_get(fabric)->cfg.name, err.message);
}

// --- The worker that exchanges packets with the kernel. ---

static struct worker *host_least_loaded(const struct worker *leaving)
{
	struct worker *w, *best = NULL;

	for (w = worker_next(NULL); w; w = worker_next(w))
		if (w != leaving && !w->leaving && w->role == WORKER_HOST_PATH &&
		    (best == NULL || w->rx->n < best->rx->n))
			best = w;
	return best;
}

static struct worker *host_choose(const struct port *fabric, const struct worker *leaving)
{
	struct worker *now = fabric->host_worker == SPREAD_LOCAL ? NULL : worker_get(fabric->host_worker);

	return now && now != leaving && !now->leaving && now->role == WORKER_HOST_PATH ? now
										       : host_least_loaded(leaving);
}

static int host_connect(struct worker *to, struct error *err)
{
	struct worker *from;
	int ret = 0;

	for (from = worker_next(NULL); from && ret == 0; from = worker_next(from))
		ret = handoff_connect(from, to, err);
	return ret;
}

static int host_take(struct port *host, struct worker *w, struct error *err)
{
	unsigned i;
	int ret = host_connect(w, err);

	for (i = 0; i < host->n_queues && ret == 0; i++)
		ret = worker_assign(&host->queues[i], w, err);
	return ret;
}

// If there is a host-path worker, it polls the host port and is the only one that sends to the kernel.
static void host_place(struct port *host, const struct worker *leaving)
{
	struct port *fabric = port_get(host->cfg.fabric);
	struct worker *w = host_choose(fabric, leaving);
	struct error err = {0};
	uint16_t i;

	for (i = 0; i < host->n_queues; i++)
		host->queues[i].host = w != NULL;
	if (w && host_take(host, w, &err) < 0)
		LOG(ERR, "port %s: %s", host->cfg.name, err.message);
	__atomic_store_n(&fabric->host_worker, w ? (uint8_t)w->id : SPREAD_LOCAL, __ATOMIC_RELEASE);
}

static void host_on_workers(const struct worker *leaving)
{
	struct error err = {0};
	struct port *p;

	for (p = port_next(NULL); p; p = port_next(p))
		if (p->role == PORT_HOST)
			host_place(p, leaving);
	steer_apply();
	if (spread_refresh(&err) < 0)
		LOG(ERR, "%s", err.message);
}

// --- Ports. ---

static void host_on_added(struct port *p)
{
	if (p->role != PORT_HOST)
		return;
	host_place(p, NULL);
	set_host(p->cfg.fabric, p->id);
}

// The kernel's interface takes the MTU of the fabric port.
static void host_on_changed(struct port *p, const struct port_config *old)
{
	struct port *host = p->host ? port_get(p->host) : NULL;
	struct port_config cfg;
	struct error err = {0};

	if (host == NULL || p->cfg.mtu == old->mtu)
		return;
	cfg = host->cfg;
	cfg.mtu = p->cfg.mtu;
	if (port_set(host, &cfg, &err) < 0)
		LOG(ERR, "port %s keeps its MTU of %u: %s", host->cfg.name, host->cfg.mtu, err.message);
}

static int host_on_check_del(const struct port *p, struct error *err)
{
	if (p->host)
		return error_set(err, EBUSY, "port.name", p->cfg.name, "remove its host port first",
				 "has the host port '%s'", port_get(p->host)->cfg.name);
	if (p->role == PORT_HOST && steer_count(p->cfg.fabric))
		return error_set(err, EBUSY, "port.name", p->cfg.name, "see `corelane host steer list`",
				 "has %u steered addresses", steer_count(p->cfg.fabric));
	return 0;
}

static void host_on_removed(struct port *p)
{
	if (p->role != PORT_HOST || port_get(p->cfg.fabric) == NULL) // fabric port gone: shutdown
		return;
	port_get(p->cfg.fabric)->host_worker = SPREAD_LOCAL;
	set_host(p->cfg.fabric, 0);
}

void host_init(void)
{
	static struct port_listener listener = {.check = host_on_check,
						.added = host_on_added,
						.changed = host_on_changed,
						.check_del = host_on_check_del,
						.removed = host_on_removed};
	static struct worker_listener workers = {.set_changed = host_on_workers};

	port_listen(&listener);
	worker_listen(&workers);
}
