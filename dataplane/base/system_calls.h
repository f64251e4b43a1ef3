// SPDX-License-Identifier: Apache-2.0
// How many system calls a thread has made. Whoever makes one for a worker adds it here.
#pragma once

#include <stdint.h>

extern __thread uint64_t system_calls; // the calling thread's
