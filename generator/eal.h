// SPDX-License-Identifier: Apache-2.0
// Starts DPDK, with hugepages if enough of them are free.
#pragma once

#include "options.h"

int eal_start(const struct options *o, struct error *err);
