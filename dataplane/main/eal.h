// SPDX-License-Identifier: Apache-2.0
// Bringing DPDK up: the main lcore only, control threads kept off the workers' CPUs, hugepages where there are some.
#pragma once

#include "base/error.h"
#include "main/options.h"

int eal_start(const struct options *o, struct error *err);
bool eal_has_hugepages(void);
