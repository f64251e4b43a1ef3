// SPDX-License-Identifier: Apache-2.0
// Tests of real threads wait for conditions. Their verdict does not depend on how long that takes: the patience is only
// there so that a test ends when the condition never holds.
#pragma once

#include <stdbool.h>
#include <unistd.h>

#define PATIENCE_MS 180000
#define PATIENCE_QUICK 20 // naps of 10 us, before those of a millisecond

// Evaluates the condition until it holds. False: it did not hold within PATIENCE_MS. The naps are counted, so that time
// in which the whole process is stopped does not count.
#define wait_until(condition)                                            \
	({                                                               \
		unsigned naps_ = 0;                                      \
		bool holds_;                                             \
		while (!(holds_ = (condition)) && naps_++ < PATIENCE_MS) \
			usleep(naps_ < PATIENCE_QUICK ? 10 : 1000);      \
		holds_;                                                  \
	})
