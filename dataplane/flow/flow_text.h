// SPDX-License-Identifier: Apache-2.0
// The addresses of a flow key.
#pragma once

#include "base/ip.h"
#include "flow/key.h"

struct ip_addr flow_source(const struct flow_key *k);
struct ip_addr flow_destination(const struct flow_key *k);
