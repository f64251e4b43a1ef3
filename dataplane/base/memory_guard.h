// SPDX-License-Identifier: Apache-2.0
// Memory that another process can take away.
//
// A process that shrinks the file behind a mapping that it shares kills the process that touches it next (SIGBUS). A
// hole in the file does the same if the kernel has no page for it. In guarded memory, a signal handler replaces the
// region with private zeroes instead: the thread goes on, and the region is lost. It does the same for an access that
// the mapping does not allow (SIGSEGV). Whoever shares the memory ends that connection.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// size: whole pages of the mapping. told: the signal handler calls it when the region is lost, on the thread that
// touched it; may be NULL. Returns an id, or -ENOSPC or -errno.
int memory_guard_add(void *addr, uint64_t size, void (*told)(void));
bool memory_guard_lost(int id);   // < 0: false
void memory_guard_remove(int id); // < 0: nothing

// The calling thread maps memory of other processes by a library that touches it before it can be guarded. What it
// touches is replaced page by page. Costs the process a mapping for each page, so threads of the packet path must not.
void memory_guard_thread(void);
bool memory_guard_thread_lost(void); // whether one of its pages was replaced since it asked last
