// SPDX-License-Identifier: Apache-2.0
#include "host/host_fixture.h"

#include <stdio.h>

#include <rte_debug.h>

static void add(const char *name, uint16_t fabric)
{
	struct port_config c = {
		.role = PORT_HOST, .kind = "tap", .fabric = fabric, .vrf = UINT16_MAX, .bridge = UINT16_MAX};
	struct error err = {0};

	snprintf(c.name, sizeof(c.name), "%s", name);
	if (port_add(&c, &err) == NULL)
		rte_panic("%s: %s\n", name, err.message);
}

uint16_t host_port(uint16_t fabric)
{
	return port_get(fabric)->host;
}

int host_setup(void **state)
{
	if (router_setup(state) < 0)
		return -1;
	host_init();
	add("host0", FABRIC0);
	add("host1", FABRIC1);
	return 0;
}
