// SPDX-License-Identifier: Apache-2.0
// FIB: counts removals of routes from any FIB, each before it can be seen (see fib.c).
#pragma once

#include <stdint.h>

extern uint32_t fib_removals; // master: rw, workers: ro
