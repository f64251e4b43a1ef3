// SPDX-License-Identifier: Apache-2.0
// Private to debug/.
#pragma once

#include "base/error.h"

int debug_check_allowed(struct error *err); // 0, or -EPERM: the process was started without --allow-debug
