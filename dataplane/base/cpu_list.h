// SPDX-License-Identifier: Apache-2.0
// Sets of CPUs, by the kernel's numbers.
//
// A plain value: no memory to free, and empty when zeroed. No kernel is built for more than 8,192 CPUs; numbers from CPU_LIST_MAX on
// are refused, never left out.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CPU_LIST_MAX 16384
#define CPU_LIST_TEXT 128 // for messages: longer lists are cut

struct cpu_list {
	uint64_t bits[CPU_LIST_MAX / 64];
};

// Three ways to write a set, told apart by their beginning:
//	2,4-7    CPUs and ranges, decimal, each CPU once; (2,4-7) is the same
//	0xf0     a mask in hexadecimal, of any width; 0xff,00000000: in groups of 32 bits, as the kernel writes masks
// Returns 0; -EINVAL: neither, or empty; -EEXIST: a CPU twice; -ERANGE: CPU_LIST_MAX or more. *out is empty then.
int cpu_list_parse(const char *text, struct cpu_list *out);
// A mask that may lack its 0x, as in the kernel's files: "f0" is CPUs 4-7, "10" is CPU 4.
int cpu_mask_parse(const char *text, struct cpu_list *out);
// As cpu_list_parse(), in the order that is written; -ENOSPC: more than max.
int cpu_list_order(const char *text, unsigned *cpus, unsigned max, unsigned *n);

// "2,4-7", "none" when empty; what does not fit ends with "...". Returns buf.
char *cpu_list_format(const struct cpu_list *l, char *buf, size_t size);

void cpu_list_add(struct cpu_list *l, unsigned cpu);
bool cpu_list_has(const struct cpu_list *l, unsigned cpu);
unsigned cpu_list_count(const struct cpu_list *l);
unsigned cpu_list_next(const struct cpu_list *l, unsigned from); // the lowest one from there on; CPU_LIST_MAX: none
unsigned cpu_list_last(const struct cpu_list *l);                // CPU_LIST_MAX: none
bool cpu_list_empty(const struct cpu_list *l);
bool cpu_list_eq(const struct cpu_list *a, const struct cpu_list *b);
bool cpu_list_within(const struct cpu_list *a, const struct cpu_list *b); // all of a is in b
struct cpu_list cpu_list_both(const struct cpu_list *a, const struct cpu_list *b);
struct cpu_list cpu_list_without(const struct cpu_list *a, const struct cpu_list *b);

// Of a thread; tid 0: the calling one. Return 0 or -errno; setting fails with -EINVAL when the thread may use none of the CPUs.
int cpu_list_get_affinity(int tid, struct cpu_list *out);
int cpu_list_set_affinity(int tid, const struct cpu_list *l);
