// SPDX-License-Identifier: Apache-2.0
// Converts the counts of gen-poll to API messages.
#pragma once

#include "api/api.h"
#include "generator.pb-c.h"
#include "trial.h"

void answer_ports(struct api_call *call, Corelane__V1__GeneratorProfile *out); // the profile's ports with their state
void answer_window(const struct trial *t, const struct window *w, Corelane__V1__GeneratorWindow *out);
void answer_total(struct api_call *call, const struct trial *t, Corelane__V1__GeneratorWindow *out);
