// SPDX-License-Identifier: Apache-2.0
// Faults on purpose (debug/), for tests and labs. The daemon that is installed is linked without them, and main sees it here.
#pragma once

#include <stdbool.h>

struct fault_injection {
	bool allowed;       // --allow-debug; set once, before workers start
	void (*stop)(void); // master: ends what has a thread of its own
};

extern struct fault_injection *fault_injection; // NULL: linked without; set before main()
