// SPDX-License-Identifier: Apache-2.0
// The process as a whole: its status, and what follows each request.
#pragma once

#include <stdbool.h>

void system_init(const char *socket, bool with_hugepages);
