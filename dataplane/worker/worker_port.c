// SPDX-License-Identifier: Apache-2.0
// Listens to the ports: the queues of a port get pollers when it is added, and lose them before it closes.
#include <errno.h>

#include "port/registry.h"
#include "worker/spread.h"
#include "worker/worker.h"

bool spread_never;

PORT_SETTINGS(spread_config)

static int worker_port_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	const char *mode = spread_config(cfg)->mode == PORT_HYBRID ? "hybrid" : "auto";

	if (spread_config(cfg)->mode == PORT_RUN_TO_COMPLETION)
		return 0;
	if (spread_never)
		return error_set(err, EINVAL, "port.mode", mode, "run_to_completion",
				 "is not possible: the daemon was started with --run-to-completion");
	if (cfg->role == PORT_HOST)
		return error_set(err, EINVAL, "port.mode", mode, "run_to_completion", "a host port is not spread");
	if (cfg->parent)
		return error_set(err, EINVAL, "port.mode", mode, "run_to_completion",
				 "packets of a sub-port are spread with those of its parent");
	return 0;
}

static void worker_port_forward(const struct port_config *cfg, struct port_fwd *out)
{
	out->ring_full = spread_config(cfg)->ring_full;
}

static int worker_port_settle(struct port *port, struct error *err)
{
	worker_spread(port);
	return spread_refresh(err);
}

static struct port_listener worker_port_listener = {
	.check = worker_port_check,
	.check_open = worker_may_spread,
	.forward = worker_port_forward,
	.added = worker_share_tx,
	.settle = worker_port_settle,
	.unused = worker_forget,
	.closed = spread_port_gone,
};

// Registered as the first listener: PORT_TX_SHARED of a port must be set before another listener leads packets to it.
RTE_INIT(worker_port)
{
	port_listen(&worker_port_listener);
}
