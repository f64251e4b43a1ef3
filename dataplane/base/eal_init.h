// SPDX-License-Identifier: Apache-2.0
#pragma once

// rte_eal_init(), and at the end of the process the directory that DPDK has made for it goes.
int eal_init(int argc, char **argv);
