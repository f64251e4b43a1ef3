// SPDX-License-Identifier: Apache-2.0
// Listens to the ports: the queues of a port get pollers when it is added, and lose them before it closes.
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

// Registered as the first listener: shared_tx of a port must be set before another listener leads packets to it.
RTE_INIT(worker_port)
{
	port_listen(&worker_port_listener);
}
