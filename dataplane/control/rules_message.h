// SPDX-License-Identifier: Apache-2.0
// Rules as messages of the API.
#pragma once

#include "api/api.h"
#include "policy/rules.h"
#include "rule.pb-c.h"

// All but the list. Returns 0 or -errno with err: nothing that it lets through can be without sense.
int rule_decode(const Corelane__V1__Rule *in, struct rule *out, struct error *err);
void rule_encode(struct api_call *call, const char *list, const struct rule *r, Corelane__V1__Rule *out);
