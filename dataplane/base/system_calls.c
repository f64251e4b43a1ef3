// SPDX-License-Identifier: Apache-2.0
#include "base/system_calls.h"

__thread uint64_t system_calls;
