// SPDX-License-Identifier: Apache-2.0
// Text forms of the fields of a flow key.
#pragma once

#include "base/ip.h"
#include "flow/key.h"

// Accepts a name, or 0 to 255; else -EINVAL with err.
int flow_proto_parse(const char *text, const char *field, uint8_t *out, struct error *err);
const char *flow_proto_name(uint8_t proto, char text[8]); // the number if the protocol has no name here
struct ip_addr flow_source(const struct flow_key *k);
struct ip_addr flow_destination(const struct flow_key *k);
