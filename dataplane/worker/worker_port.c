// SPDX-License-Identifier: Apache-2.0
// Workers follow the ports: their queues get pollers, and lose them before the port closes.
#include "port/registry.h"
#include "worker/spread.h"
#include "worker/worker.h"

static int worker_port_settle(struct port *port, struct error *err)
{
	worker_spread(port);
	return spread_refresh(err);
}

static struct port_listener worker_port_listener = {
	.check_open = worker_may_spread,
	.added = worker_spread,
	.settle = worker_port_settle,
	.unused = worker_forget,
	.closed = spread_port_gone,
};

// It is the first listener: a port says whether workers share its transmit queues (shared_tx) before another listener leads packets to it.
RTE_INIT(worker_port)
{
	port_listen(&worker_port_listener);
}
