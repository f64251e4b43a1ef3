// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

// Binds a thread to one CPU below CPU_LIST_MAX. Returns 0, or -errno when the CPU is not online or this process may not
// use it.
int thread_pin(pthread_t thread, unsigned cpu);
