// SPDX-License-Identifier: Apache-2.0
// systemd stops a service before it starts it again. ExecStop starts a standby: a daemon that takes over and forwards
// until the new main process takes over from it.
#pragma once

#include <stdbool.h>

#include "base/error.h"

#define STANDBY_S 30 // without a successor, before it ends

// Whether systemd is about to start the service of this process again, once it has ended; false also if this is not
// known.
bool standby_wanted(void);
// This process is a standby of the run directory from now on. Returns 0, or -errno with err.
int standby_claim(const char *run_dir, struct error *err);
// Whether the file of the claim has been removed. systemd removes the run directory once the service was stopped: there
// will be no successor.
bool standby_forsaken(void);
bool standby_runs(const char *run_dir); // whether another process is the standby
