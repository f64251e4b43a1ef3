// SPDX-License-Identifier: Apache-2.0
// A flow's key in words that people read and type.
#pragma once

#include "base/ip.h"
#include "flow/key.h"

int flow_proto_parse(const char *text, const char *field, uint8_t *out, struct error *err); // a name, or 0 to 255; -EINVAL with err
const char *flow_proto_name(uint8_t proto, char text[8]); // of a protocol without a name: its number
struct ip_addr flow_source(const struct flow_key *k);
struct ip_addr flow_destination(const struct flow_key *k);
