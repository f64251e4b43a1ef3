// SPDX-License-Identifier: Apache-2.0
// Private to the command line.
#pragma once

#include "main/options.h"

void options_usage(void);

// Parsers of option values: each returns 0, or -EINVAL with err. name is the option as it was typed.
int option_number(const char *name, const char *text, unsigned long min, unsigned long max, unsigned long *out,
		  struct error *err);
int option_path(const char *name, char *dst, size_t size, const char *src, struct error *err);
int option_ring_size(const char *name, const char *text, uint32_t *out, struct error *err);
int option_cpus(const char *name, const char *text, struct cpu_list *out, const struct machine *m, struct error *err);
int option_workers(const char *name, const char *text, struct options *o, struct error *err);
int option_idle(const char *name, const char *text, struct options *o, struct error *err);
int option_yield(const char *name, const char *text, struct options *o, struct error *err);
int option_allow_debug(const char *name, struct error *err); // refused by a program that cannot inject faults
int option_group(const char *name, const char *text, const char **out, struct error *err);
int option_system_calls(const char *name, const char *text, struct options *o, struct error *err);
int option_level(const char *name, const char *text, struct options *o, struct error *err);
