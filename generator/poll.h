// SPDX-License-Identifier: Apache-2.0
// gen-poll, the thread that sends and receives. It sleeps until there is a trial.
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct trial;

// Control thread. on_news is called on the control thread, from loop_base(), after gen-poll has written a window or
// ended a trial.
int poll_start(unsigned cpu, void (*on_news)(void), struct error *err);
void poll_stop(void);
void poll_run(struct trial *t); // returns at once; only when poll_idle()
bool poll_idle(void);
void poll_quiesce(void); // waits until gen-poll holds no reference that it took before the call

// gen-poll.
void poll_turn(void);   // quiescent state: gen-poll holds no references
void poll_notify(void); // makes the control thread call on_news
