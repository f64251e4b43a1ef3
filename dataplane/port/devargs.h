// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "port/port.h"

// "net_memif0,role=server,id=0,socket=/run/x.sock" as DPDK's own memif driver takes it: becomes a port of kind memif, which survives a
// peer that dies under load. Returns 0 when devargs is none of these, 1 when cfg is filled, -EINVAL with err.
int devargs_memif(const char *devargs, struct port_config *cfg, struct error *err);
