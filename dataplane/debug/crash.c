// SPDX-License-Identifier: Apache-2.0
// A change that is accepted and ends each start that repeats it: the process ends when a port of this name and MTU is
// added, and not when the port gets the MTU later.
#include <stdlib.h>
#include <string.h>

#include "base/fault_injection.h"
#include "port/registry.h"

#define CRASH_NAME "debug-crash"
#define CRASH_MTU 1400

static int crash_check(const struct port *old, const struct port_config *cfg, struct error *err)
{
	if (fault_injection->allowed && old == NULL && cfg->mtu == CRASH_MTU && strcmp(cfg->name, CRASH_NAME) == 0)
		abort();
	return 0;
}

__attribute__((constructor)) static void crash_register(void)
{
	static struct port_listener listener = {.check = crash_check};

	port_listen(&listener);
}
