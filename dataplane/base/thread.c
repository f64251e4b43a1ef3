// SPDX-License-Identifier: Apache-2.0
// Pins threads with a set of CPUs that is larger than cpu_set_t.
#include "base/thread.h"

#include <errno.h>
#include <sched.h>

#include "base/cpu_list.h"

int thread_pin(pthread_t thread, unsigned cpu)
{
	struct cpu_list l = {0};

	if (cpu >= CPU_LIST_MAX)
		return -EINVAL;
	cpu_list_add(&l, cpu);
	return -pthread_setaffinity_np(thread, sizeof(l), (const cpu_set_t *)(const void *)&l);
}
