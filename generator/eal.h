// SPDX-License-Identifier: Apache-2.0
// Bringing DPDK up, with hugepages where there are some.
#pragma once

#include "options.h"

int eal_start(const struct options *o, struct error *err);
