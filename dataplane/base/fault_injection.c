// SPDX-License-Identifier: Apache-2.0
// The pointer is NULL unless debug/ is linked, which sets it before main().
#include "base/fault_injection.h"

#include <stddef.h>

struct fault_injection *fault_injection;
