// SPDX-License-Identifier: Apache-2.0
// Notifies systemd four times in the time that it allows, unless a worker hangs.
#include "main/watchdog.h"

#include <stdbool.h>
#include <stdint.h>

#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "threads/worker_watch.h"

#define PER_TIMEOUT 4 // notifications, so that a late one does no harm

static bool expected;
static uint64_t interval_us, next_us;

void watchdog_init(void)
{
	uint64_t timeout_us = 0;

	expected = sd_watchdog_enabled(0, &timeout_us) > 0;
	interval_us = timeout_us / PER_TIMEOUT;
	next_us = 0;
}

void watchdog_poll(void)
{
	uint64_t now = clock_now_ns(CLOCK_MONOTONIC) / 1000;

	if (!expected || now < next_us || worker_watch_hangs())
		return;
	next_us = now + interval_us;
	sd_notify(0, "WATCHDOG=1");
}
