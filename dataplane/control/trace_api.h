// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/api.h"

int trace_next(struct api_call *call, const void *req, void *cursor, void *item, struct error *err);
void trace_done(void *cursor);
