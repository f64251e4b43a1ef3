// SPDX-License-Identifier: Apache-2.0
// Streams of captures and traces.
#pragma once

void streams_poll(void); // every millisecond, from the master's loop: wakes the streams that have packets
void capture_streams_poll(void);
void trace_streams_poll(void);
