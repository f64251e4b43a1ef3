// SPDX-License-Identifier: Apache-2.0
#include "gen_port.h"

#include "port_memif.h"

int gen_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err)
{
	return memif_port_open(port, cfg, err);
}

void gen_port_close(struct gen_port *p)
{
	p->ops->close(p);
}
