// SPDX-License-Identifier: Apache-2.0
// A daemon that goes on in the background of the process that was started. That process waits until the daemon has
// taken over, and tells the service manager which process the service is now. So a service manager that starts it to
// reload the service keeps the service, with another process.
#pragma once

#include <stdbool.h>

#include "base/error.h"

// Returns 0 in the background. The process that was started never returns: it ends with 0 once the daemon has taken
// over, and with 1 if the daemon ends before. standby: the service manager is told nothing, because the service ends.
int detach_begin(bool standby, struct error *err);
// The service is this process from now on, before its predecessor ends. Neither this nor detach_end() does anything
// without detach_begin().
int detach_main(struct error *err);
void detach_end(void); // has taken over
