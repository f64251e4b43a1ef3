// SPDX-License-Identifier: Apache-2.0
// What the running data plane has learnt and counted, such as flows and counters, is carried over a restart in a file
// of the run directory. Each kind is a part: a list of records of one size. The file is written whole when the daemon
// ends by request, and twice a second before, in shares of the master's time, for a daemon that is killed.
//
// Unlike the kept state (keep.h), it may be lost: a file that is missing, damaged or of another version is left out,
// and each part takes from its records what still fits the configuration.
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

struct carry_part {
	const char *name; // at most 11 characters
	uint16_t version; // of the record's format
	uint16_t size;    // of a record, at most CARRY_RECORD_MAX
	// Writes n records at most, from the place *at on (0: the first one), and moves *at; CARRY_END: there are no
	// more. Takes some 100 us at most. Returns their number.
	unsigned (*save)(uint64_t *at, void *records, unsigned n);
	// A record that may be anything. Returns whether it was taken. seconds: since it was written.
	bool (*load)(const void *record, uint32_t seconds);
	void (*loaded)(unsigned taken, unsigned all); // the last record was; may be NULL
	struct carry_part *next;
};

#define CARRY_RECORD_MAX 256
#define CARRY_END UINT64_MAX

void carry_add(struct carry_part *part);          // at the start. Parts are written in this order
void carry_start(const char *directory);          // the parts are complete, and the file is written from now on
void carry_load(const char *directory);           // once all objects are there that records name
void carry_poll(void);                            // each millisecond
void carry_stop(void);                            // no worker runs any more: writes the file for the last time
int carry_read(const uint8_t *data, size_t size); // the bytes of a file. -EBADMSG: nothing of them was taken
