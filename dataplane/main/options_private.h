// SPDX-License-Identifier: Apache-2.0
// Private to the command line.
#pragma once

#include "main/options.h"

void options_usage(void);

#define MEMORY_DEFAULT 512
#define FIB_DEFAULT 4096
extern const struct number_limits memory_sizes, mbuf_counts, mbuf_sizes, fib_sizes, flow_counts;

struct option_row;

struct option_given {
	const char *name; // as it was typed
	const char *text;
	const struct option_row *row;
};

// Reads the value of an option. Returns 0, or -EINVAL with err.
typedef int option_parse(const struct option_given *g, struct options *o, struct error *err);

struct option_row {
	const char *name;
	option_parse *parse; // NULL: sets a bool, and takes no value
	size_t at, size;     // of the member of struct options
	const struct number_limits *limits;
};

option_parse option_path, option_number, option_cpus, option_workers, option_idle, option_yield, option_mac;
option_parse option_group, option_system_calls, option_kinds, option_level;
