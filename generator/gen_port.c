// SPDX-License-Identifier: Apache-2.0
// Opens a port of the configured kind.
#include "gen_port.h"

#include <stdlib.h>
#include <string.h>

#include "port_dpdk.h"
#include "port_memif.h"

int gen_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err)
{
	if (cfg->devargs[0])
		return dpdk_port_open(port, cfg, err);
	return cfg->server ? memif_server_open(port, cfg, err) : memif_port_open(port, cfg, err);
}

void gen_port_close(struct gen_port *p)
{
	p->ops->close(p);
}

void *port_new(size_t size)
{
	void *p = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN(size, (size_t)RTE_CACHE_LINE_SIZE));

	return p == NULL ? NULL : memset(p, 0, size);
}
