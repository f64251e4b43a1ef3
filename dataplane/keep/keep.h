// SPDX-License-Identifier: Apache-2.0
// The kept state: every change of the API that was accepted is appended to a file before its client gets the answer. A
// start repeats the changes of the file by the same methods, so that a daemon that was killed comes back as it was,
// without a client.
//
// What the death of the process would lose is never in a buffer of the process. A crash of the machine may lose the
// changes of its last seconds.
#pragma once

#include <stdint.h>

#include "base/error.h"

struct keep_status {
	const char *directory;      // NULL: nothing is kept
	uint64_t bytes, changes;    // in the file
	uint64_t restored, refused; // changes at the start
	uint64_t restore_ns;
	char problem[256]; // why changes are not kept; empty: they are
};

// Claims the directory, creating it if need be. An empty name: nothing is kept. -EBUSY with err: another daemon keeps
// its state there. A directory that cannot be used is an event, and nothing is kept: the start goes on.
int keep_start(const char *directory, struct error *err);
// Repeats the changes of the file, and keeps those that are accepted from now on. Calls between() after some of them:
// it does what the loop would do. What cannot be restored is an event, and no failure of the start; -ESTALE with err:
// keep_warm() has repeated changes that are not in the file any more.
int keep_restore(void (*between)(void), struct error *err);
// Before keep_start(), while another daemon still keeps its state there: repeats its changes but for ports, and what
// names them. keep_restore() then repeats the rest. A file that this version cannot read is a failure, with err: the
// other daemon goes on.
int keep_warm(const char *directory, void (*between)(void), struct error *err);
void keep_poll(void); // each second
void keep_stop(void); // the daemon ends by request
// After keep_stop(), when the daemon has nothing that a successor waits for: returns once the successor, if there is
// one, has restored the state, so that this process takes no time from it for giving back its memory. 5 s at most.
void keep_leave(void);
const struct keep_status *keep_status(void);
