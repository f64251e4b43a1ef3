// SPDX-License-Identifier: Apache-2.0
// The thread that sends and receives: sleeps until there is a trial.
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct trial;

// Control thread. on_news is called on it, from loop_base(), after the trial has written a window or has ended.
int poll_start(unsigned cpu, void (*on_news)(void), struct error *err);
void poll_stop(void);
void poll_run(struct trial *t); // returns at once; only when poll_idle()
bool poll_idle(void);
void poll_quiesce(void); // gen-poll has left all that it was looking at

// gen-poll.
void poll_turn(void);   // looks at nothing
void poll_notify(void); // there is news
