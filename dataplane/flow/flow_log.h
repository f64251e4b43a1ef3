// SPDX-License-Identifier: Apache-2.0
// New flows that a rule with `log` decided about: workers note them, the master writes them to the log.
#pragma once

#include "flow/decide.h"

void flow_log_add(unsigned worker, const struct flow_question *q, const struct flow_answer *a); // worker; counts what does not fit
void flow_log_poll(void);                                                                       // master
