// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "port/port.h"

// Arguments of DPDK's memif driver, such as "net_memif0,role=server,id=0,socket=/run/x.sock", make a port of kind
// memif, which survives a peer that dies under load. Returns 1 when cfg is filled, 0 when devargs are another driver's,
// -EINVAL with err.
int devargs_memif(const char *devargs, struct port_config *cfg, struct error *err);
