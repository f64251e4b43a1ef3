// SPDX-License-Identifier: Apache-2.0
// Ports on DPDK devices.
#pragma once

#include "gen_port.h"

int dpdk_port_open(struct gen_port **port, const struct port_config *cfg, struct error *err);
