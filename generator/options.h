// SPDX-License-Identifier: Apache-2.0
// Command line of corelane-gen.
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct options {
	char socket[108];
	int cpu;
	int round_trip_cpu; // -1: none
	unsigned memory_mb;
};

// Returns 0, 1 if the process must exit (--help, --version), or -EINVAL with err.
int options_parse(int argc, char **argv, struct options *o, struct error *err);
