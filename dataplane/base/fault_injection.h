// SPDX-License-Identifier: Apache-2.0
// Fault injection (debug/), for tests and labs. The installed daemon is linked without it.
#pragma once

#include <stdbool.h>

struct fault_injection {
	bool allowed;       // --allow-debug; set once, before workers start
	void (*stop)(void); // master: ends the threads that inject faults
};

extern struct fault_injection *fault_injection; // NULL: this program cannot inject faults; set before main()
