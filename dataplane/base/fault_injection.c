// SPDX-License-Identifier: Apache-2.0
#include "base/fault_injection.h"

#include <stddef.h>

struct fault_injection *fault_injection;
