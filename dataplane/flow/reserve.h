// SPDX-License-Identifier: Apache-2.0
// Address ranges for tables that grow in place: reserved as a whole, backed with memory as the table grows, in huge
// pages where possible.
#pragma once

#include <stdbool.h>
#include <stdint.h>

void *reserve_range(uint64_t bytes); // aligned to 2 MiB; accessing it before it is filled is a fault. NULL with errno

// Makes bytes from..to-1 readable and writable, zeroed, with all of their memory allocated now. Pages that are filled
// already keep their contents. Returns 0, or -ENOMEM and leaves the range as it was.
int reserve_fill(void *range, uint64_t from, uint64_t to);
bool reserve_available(uint64_t bytes); // whether the process can have this much memory (memory_left())
void reserve_release(void *range, uint64_t bytes);
