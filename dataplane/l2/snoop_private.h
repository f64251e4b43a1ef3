// SPDX-License-Identifier: Apache-2.0
// Private to multicast snooping: the querier. Master thread.
#pragma once

#include "l2/snoop.h"

// Whether another querier is on the link of this domain: the domain's own one is silent then.
bool snoop_is_queried(uint16_t bridge, uint8_t family);

void snoop_query_soon(uint16_t port);                               // general queries, at once
void snoop_query_never(uint16_t port);                              // it has left
void snoop_query_group(uint16_t port, const struct ip_addr *group); // who of the port is still a member?
void snoop_query_poll(void);
