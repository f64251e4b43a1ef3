// SPDX-License-Identifier: Apache-2.0
// Starts DPDK: with the main lcore only, control threads off the workers' CPUs, and hugepages where enough are free.
#pragma once

#include "base/error.h"
#include "main/options.h"

int eal_start(const struct options *o, struct error *err);
bool eal_has_hugepages(void);
