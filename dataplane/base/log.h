// SPDX-License-Identifier: Apache-2.0
// Logging of the control plane. Nodes never log. DPDK logs to the same stream.
#pragma once

#include <rte_log.h>

extern int corelane_logtype;

#define LOG(level, fmt, ...) rte_log(RTE_LOG_##level, corelane_logtype, fmt "\n", ##__VA_ARGS__)
