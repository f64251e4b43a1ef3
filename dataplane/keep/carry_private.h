// SPDX-License-Identifier: Apache-2.0
// The file: a line that names format and version, and blocks. Numbers are in the order of the machine, which is the
// only one that reads them.
#pragma once

#include <assert.h>

#include "keep/carry.h"

#define CARRY_MAGIC "corelane carry1\n"
#define CARRY_MAGIC_SIZE (sizeof(CARRY_MAGIC) - 1)
#define CARRY_BLOCK 65536 // bytes of a block at most, with its head
#define CARRY_LAST "end"  // the name of the last block, which has no records and the time

struct carry_block {
	char part[12]; // padded with zeros
	uint16_t version, size;
	uint32_t length; // of the records
	uint32_t crc;    // CRC-32C of the fields before and of the records
	uint64_t time;   // CLOCK_BOOTTIME, ns
};
static_assert(sizeof(struct carry_block) == 32, "no gaps");
static_assert(CARRY_MAGIC_SIZE == 16, "blocks are aligned");

extern struct carry_part *carry_parts;
extern uint64_t (*carry_memory_left)(const char *root); // memory_left(); tests replace it

uint64_t carry_clock(void); // CLOCK_BOOTTIME, ns
uint32_t carry_crc(const struct carry_block *b, const void *records);
