// SPDX-License-Identifier: Apache-2.0
// Makes fault injection available to the programs that this is linked into.
#include "debug/debug.h"

#include <errno.h>
#include <stddef.h>

#include "base/fault_injection.h"
#include "debug/disturb.h"

static struct fault_injection debug_injection = {.stop = disturb_stop};

__attribute__((constructor)) static void debug_register(void)
{
	fault_injection = &debug_injection;
}

int debug_check_allowed(struct error *err)
{
	if (debug_injection.allowed)
		return 0;
	return error_set(err, EPERM, NULL, NULL, "corelaned --allow-debug",
			 "this daemon was started without debugging");
}
