// SPDX-License-Identifier: Apache-2.0
// The addresses of a flow key.
#include "flow/flow_text.h"

struct ip_addr flow_source(const struct flow_key *k)
{
	return k->family == 4 ? ip4_addr(k->src4) : ip6_addr(k->src6);
}

struct ip_addr flow_destination(const struct flow_key *k)
{
	return k->family == 4 ? ip4_addr(k->dst4) : ip6_addr(k->dst6);
}
