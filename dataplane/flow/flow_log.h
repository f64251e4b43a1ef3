// SPDX-License-Identifier: Apache-2.0
// Logs new flows that a rule with `log` decided about. Workers record them; the master writes the records to the log.
#pragma once

#include "flow/decide.h"

// Worker. A record that finds the ring full is only counted.
void flow_log_add(unsigned worker, const struct flow_question *q, const struct flow_answer *a);
void flow_log_poll(void); // master
