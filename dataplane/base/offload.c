// SPDX-License-Identifier: Apache-2.0
#include "base/offload.h"

bool offload_seen;
