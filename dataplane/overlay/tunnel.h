// SPDX-License-Identifier: Apache-2.0
// Building the headers of tunnels. They lie at the end of nexthop.hdr and are written from the last byte on: what is pushed first is
// next to the payload.
#pragma once

#include "l3/nexthop.h"

void *tunnel_push(struct nexthop *nh, unsigned n);                              // room for n bytes in front of what is there
void tunnel_push_router_eth(struct nexthop *nh, const struct tunnel_config *t); // of routed traffic, between the routers' MACs

int tunnel_check_vni(const struct tunnel_config *t, struct error *err); // encap_ops.check of those that have a VNI

// -ERANGE with err, which names the field and the valid range.
int tunnel_check_number(const char *field, uint32_t v, uint32_t min, uint32_t max, struct error *err);
