// SPDX-License-Identifier: Apache-2.0
// Following packets node by node: a filter marks packets as they are received, node_pass() records each decision about a marked one.
#pragma once

#include <rte_mbuf.h>

void trace_start(struct rte_mbuf **pkts, unsigned n); // worker: marks those that the filter matches
