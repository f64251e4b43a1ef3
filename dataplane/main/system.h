// SPDX-License-Identifier: Apache-2.0
// The process as a whole: status, settings.
#pragma once

#include "base/error.h"
#include "main/options.h"

int system_init(const struct options *o, struct error *err);
