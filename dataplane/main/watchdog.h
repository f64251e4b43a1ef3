// SPDX-License-Identifier: Apache-2.0
// systemd's watchdog (WatchdogSec=, sd_watchdog_enabled(3)): systemd restarts a daemon that does not notify it in time.
// A master that hangs does not notify it, nor one that sees a worker hang. A worker that others keep from its CPU does
// not count: a restart would not give it the CPU.
#pragma once

void watchdog_init(void); // reads from the environment whether systemd expects notifications
void watchdog_poll(void); // the master, each 100 ms after worker_watch_poll()
