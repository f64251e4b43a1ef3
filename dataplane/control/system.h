// SPDX-License-Identifier: Apache-2.0
// The process as a whole: status.
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct system_process {
	const char *socket, *run_dir;
	const char *router_mac; // "": derived from the host and the run directory
	bool hugepages;
};
int system_init(const struct system_process *p, struct error *err);
