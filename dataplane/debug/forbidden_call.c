// SPDX-License-Identifier: Apache-2.0
// Makes a worker call the kernel in a way that its filter forbids.
#include "debug/forbidden_call.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "debug/debug.h"
#include "worker/orders.h"
#include "worker/worker.h"

static void forbidden_call_once(struct worker *w)
{
	worker_set_fault(w, NULL);
	syscall(SYS_execve, NULL, NULL, NULL);
}

int forbidden_call(struct worker *w, struct error *err)
{
	int ret = debug_check_allowed(err);

	if (ret < 0)
		return ret;
	LOG(NOTICE, "worker %u makes a forbidden system call", w->id);
	worker_set_fault(w, forbidden_call_once);
	return 0;
}
