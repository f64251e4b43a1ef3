// SPDX-License-Identifier: Apache-2.0
// Sets of CPUs, by the kernel's numbers.
//
// A set is a plain value: there is no memory to free, and a zeroed set is empty. No kernel supports more than 8,192
// CPUs; numbers from CPU_LIST_MAX on are refused, never ignored.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CPU_LIST_MAX 16384
#define CPU_LIST_TEXT 128 // room for a list in a message; longer lists are cut

struct cpu_list {
	uint64_t bits[CPU_LIST_MAX / 64];
};

// Parses a set. The beginning tells the notations apart:
//	2,4-7    CPUs and ranges, decimal, each CPU once; (2,4-7) is the same
//	0xf0     a mask in hexadecimal, of any width; 0xff,00000000 is one in groups of 32 bits, as the kernel writes it
// Returns 0; -EINVAL: neither of the two, or an empty set; -EEXIST: a CPU is named twice; -ERANGE: a CPU is
// CPU_LIST_MAX or higher. After an error *out is empty.
int cpu_list_parse(const char *text, struct cpu_list *out);
// Parses a mask that may lack its 0x, as in the kernel's files: "f0" is CPUs 4-7, "10" is CPU 4.
int cpu_mask_parse(const char *text, struct cpu_list *out);
// Like cpu_list_parse(), but keeps the order of the text; -ENOSPC: there are more than max CPUs.
int cpu_list_order(const char *text, unsigned *cpus, unsigned max, unsigned *n);

// Writes "2,4-7", or "none" for an empty set; a text that does not fit ends with "...". Returns buf.
char *cpu_list_format(const struct cpu_list *l, char *buf, size_t size);

void cpu_list_add(struct cpu_list *l, unsigned cpu);
bool cpu_list_has(const struct cpu_list *l, unsigned cpu);
unsigned cpu_list_count(const struct cpu_list *l);
unsigned cpu_list_next(const struct cpu_list *l, unsigned from); // the lowest CPU >= from; CPU_LIST_MAX: none
unsigned cpu_list_last(const struct cpu_list *l);                // the highest CPU; CPU_LIST_MAX: none
bool cpu_list_empty(const struct cpu_list *l);
bool cpu_list_eq(const struct cpu_list *a, const struct cpu_list *b);
bool cpu_list_within(const struct cpu_list *a, const struct cpu_list *b); // all of a is in b
struct cpu_list cpu_list_both(const struct cpu_list *a, const struct cpu_list *b);
struct cpu_list cpu_list_without(const struct cpu_list *a, const struct cpu_list *b);

// The affinity of a thread; tid 0 is the calling one. Both return 0 or -errno. Setting fails with -EINVAL when the
// thread may use none of the CPUs.
int cpu_list_get_affinity(int tid, struct cpu_list *out);
int cpu_list_set_affinity(int tid, const struct cpu_list *l);
int cpu_list_get_allowed(struct cpu_list *out); // the CPUs that the calling thread may be given
