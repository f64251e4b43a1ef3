// SPDX-License-Identifier: Apache-2.0
// How much memory the process may still take.
#pragma once

#include <stdint.h>

// Bytes: what the machine has available (MemAvailable), or what the control groups of the process leave below their
// limits (memory controller of version 1 or 2), whichever is less. Memory that the kernel can reclaim from files counts
// as free. UINT64_MAX: nothing says. Reads files below root.
uint64_t memory_left(const char *root);
