// SPDX-License-Identifier: Apache-2.0
// NUMA nodes: where a CPU is, and where memory can be had.
#pragma once

#include <stdint.h>

int numa_of_cpu(const char *root, uint32_t cpu); // root: "" or a captured tree. -1: the kernel does not say

// Where memory for what runs on this node should come from: the node itself when some MiB can be had there now, else SOCKET_ID_ANY.
int numa_memory(int numa);
