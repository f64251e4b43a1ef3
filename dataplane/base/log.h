// SPDX-License-Identifier: Apache-2.0
// Log lines of the control plane. Nodes never log. DPDK's own lines come out of the same stream.
#pragma once

#include <rte_log.h>

extern int corelane_logtype;

#define LOG(level, fmt, ...) rte_log(RTE_LOG_##level, corelane_logtype, fmt "\n", ##__VA_ARGS__)
