// SPDX-License-Identifier: Apache-2.0
// Address ranges for tables that grow in place: reserved whole, filled as they are used, with huge pages where there are any.
#pragma once

#include <stdint.h>

void *reserve_range(uint64_t bytes); // NULL with errno. Aligned to 2 MiB; reading it before it is filled ends the process

// Makes bytes from..to-1 readable and writable, zeroed, all of it taken from the system now. Pages that are filled already stay as they
// are. Returns 0 or -ENOMEM: then the range is as before.
int reserve_fill(void *range, uint64_t from, uint64_t to);
void reserve_release(void *range, uint64_t bytes);
