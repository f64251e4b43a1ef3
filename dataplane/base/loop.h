// SPDX-License-Identifier: Apache-2.0
// The event loop of the master thread, for modules that wait for sockets and timers.
#pragma once

struct event_base;

// Set once by main before any module runs; loop_base() is NULL before.
void loop_set_base(struct event_base *base);
struct event_base *loop_base(void);
