// SPDX-License-Identifier: Apache-2.0
// The number of system calls that each thread has made. Code that makes one for a worker adds it here.
#pragma once

#include <stdint.h>

extern __thread uint64_t system_calls; // the calling thread's
