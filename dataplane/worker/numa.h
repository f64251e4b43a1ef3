// SPDX-License-Identifier: Apache-2.0
// NUMA nodes: the node of a CPU, and the node to allocate memory from.
#pragma once

#include <stdint.h>

int numa_of_cpu(const char *root, uint32_t cpu); // root: "" or a captured tree. -1: unknown to the kernel

// The node to allocate from for code that runs on node numa: that node when some MiB are free there now, else
// SOCKET_ID_ANY.
int numa_memory(int numa);
