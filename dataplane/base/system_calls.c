// SPDX-License-Identifier: Apache-2.0
// The counter of the calling thread.
#include "base/system_calls.h"

__thread uint64_t system_calls;
