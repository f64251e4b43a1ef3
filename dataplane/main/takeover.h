// SPDX-License-Identifier: Apache-2.0
// A corelaned takes over from another one of the same run directory, which forwards until everything but the ports is
// ready.
#pragma once

#include "base/error.h"

// The process of the daemon that listens on this socket. Or -errno with err: nobody listens there (-ENOENT,
// -ECONNREFUSED), it has just ended (-ESRCH), it is not the process that the service manager knows as the service
// (-EBUSY), or it cannot be asked to stop.
int takeover_find(const char *socket_path, int *pid, struct error *err);
void takeover_ask(int pid);  // to stop
int takeover_wait(int lock); // until the lock is this process's; -ETIMEDOUT
