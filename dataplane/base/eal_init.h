// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls rte_eal_init(). When the process ends, the directory that DPDK has made for it is removed.
int eal_init(int argc, char **argv);
