// SPDX-License-Identifier: Apache-2.0
// Rules as messages of the API.
#pragma once

#include "api/api.h"
#include "policy/rules.h"
#include "rule.pb-c.h"

// Decodes all fields except the list. Returns 0, or -errno with err if the fields contradict each other or name objects
// that do not exist.
int rule_decode(const Corelane__V1__Rule *in, struct rule *out, struct error *err);
void rule_encode(struct api_call *call, const char *list, const struct rule *r, Corelane__V1__Rule *out);
