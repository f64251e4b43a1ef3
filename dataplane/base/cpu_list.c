// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_list.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define WORDS (CPU_LIST_MAX / 64)
#define GROUP 8 // digits between the commas of a mask

void cpu_list_add(struct cpu_list *l, unsigned cpu)
{
	l->bits[cpu / 64] |= 1ull << cpu % 64;
}

bool cpu_list_has(const struct cpu_list *l, unsigned cpu)
{
	return cpu < CPU_LIST_MAX && (l->bits[cpu / 64] >> cpu % 64 & 1);
}

// Parses a decimal number; one that is too large gives CPU_LIST_MAX or more. NULL: there is no digit.
static const char *cpu_list_number(const char *s, unsigned *out)
{
	if (*s < '0' || *s > '9')
		return NULL;
	for (*out = 0; *s >= '0' && *s <= '9'; s++)
		if (*out < CPU_LIST_MAX)
			*out = *out * 10 + (unsigned)(*s - '0');
	return s;
}

// Parses a CPU or a range. NULL: the text is neither.
static const char *cpu_list_range(const char *s, unsigned *first, unsigned *last)
{
	s = cpu_list_number(s, first);
	*last = *first;
	if (s && *s == '-')
		s = cpu_list_number(s + 1, last);
	return s && *first <= *last ? s : NULL;
}

struct order { // the CPUs in the order of the text; NULL where it does not matter
	unsigned *cpus, max, n;
};

static int add_range(struct cpu_list *l, struct order *o, unsigned first, unsigned last)
{
	unsigned cpu;

	if (last >= CPU_LIST_MAX)
		return -ERANGE;
	for (cpu = first; cpu <= last; cpu++) {
		if (cpu_list_has(l, cpu))
			return -EEXIST;
		if (o && o->n == o->max)
			return -ENOSPC;
		if (o)
			o->cpus[o->n++] = cpu;
		cpu_list_add(l, cpu);
	}
	return 0;
}

static int parse_ranges(const char *s, struct cpu_list *l, struct order *o)
{
	bool bracket = *s == '(';
	unsigned first = 0, last;
	int ret = 0;

	s += bracket;
	do {
		s = cpu_list_range(s, &first, &last);
		ret = s ? add_range(l, o, first, last) : -EINVAL;
	} while (ret == 0 && *s++ == ',');
	if (ret < 0)
		return ret;
	if (bracket && *--s == ')')
		return s[1] == '\0' ? 0 : -EINVAL;
	return !bracket && s[-1] == '\0' ? 0 : -EINVAL;
}

static int cpu_list_digit(char c)
{
	const char *at = strchr("0123456789abcdef", c >= 'A' && c <= 'F' ? c + 32 : c);

	return c && at ? (int)(at - "0123456789abcdef") : -1;
}

// True for hexadecimal digits, either without commas or in groups of 8, of which the first may be shorter.
static bool mask_shape(const char *s, const char *end)
{
	unsigned n = 0;
	bool groups = memchr(s, ',', (size_t)(end - s)) != NULL;

	while (end > s) {
		end--;
		if (*end == ',' && n == GROUP)
			n = 0;
		else if (cpu_list_digit(*end) < 0 || (groups && n == GROUP))
			return false;
		else
			n++;
	}
	return n > 0;
}

int cpu_mask_parse(const char *text, struct cpu_list *out)
{
	const char *s = strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0 ? text + 2 : text,
		   *end = s + strlen(s);
	unsigned bit = 0;

	memset(out, 0, sizeof(*out));
	if (!mask_shape(s, end))
		return -EINVAL;
	for (end--; end >= s; end--) {
		if (*end == ',')
			continue;
		if (bit >= CPU_LIST_MAX && *end != '0') {
			memset(out, 0, sizeof(*out));
			return -ERANGE;
		}
		if (bit < CPU_LIST_MAX)
			out->bits[bit / 64] |= (uint64_t)cpu_list_digit(*end) << bit % 64;
		bit += 4;
	}
	return cpu_list_empty(out) ? -EINVAL : 0;
}

static int base_cpu_list_parse(const char *text, struct cpu_list *out, struct order *o)
{
	unsigned cpu;
	int ret;

	memset(out, 0, sizeof(*out));
	if (strncmp(text, "0x", 2) != 0 && strncmp(text, "0X", 2) != 0) {
		ret = parse_ranges(text, out, o);
		if (ret < 0)
			memset(out, 0, sizeof(*out));
		return ret;
	}
	ret = cpu_mask_parse(text, out);
	if (ret < 0 || o == NULL)
		return ret;
	if (cpu_list_count(out) > o->max)
		return -ENOSPC;
	for (cpu = cpu_list_next(out, 0); cpu < CPU_LIST_MAX; cpu = cpu_list_next(out, cpu + 1))
		o->cpus[o->n++] = cpu;
	return 0;
}

int cpu_list_parse(const char *text, struct cpu_list *out)
{
	return base_cpu_list_parse(text, out, NULL);
}

int cpu_list_order(const char *text, unsigned *cpus, unsigned max, unsigned *n)
{
	struct order o = {.cpus = cpus, .max = max};
	struct cpu_list l;
	int ret = base_cpu_list_parse(text, &l, &o);

	*n = ret < 0 ? 0 : o.n;
	return ret;
}

char *cpu_list_format(const struct cpu_list *l, char *buf, size_t size)
{
	unsigned first = cpu_list_next(l, 0), last;
	char item[32];
	size_t n = 0;
	int len;

	snprintf(buf, size, "%s", first == CPU_LIST_MAX ? "none" : "");
	for (; first < CPU_LIST_MAX; first = cpu_list_next(l, last + 1)) {
		for (last = first; cpu_list_has(l, last + 1); last++)
			;
		len = snprintf(item, sizeof(item), first == last ? "%s%u" : "%s%u-%u", n ? "," : "", first, last);
		if (n + (size_t)len + sizeof("...") > size) {
			snprintf(buf + n, size - n, "...");
			break;
		}
		memcpy(buf + n, item, (size_t)len + 1);
		n += (size_t)len;
	}
	return buf;
}

unsigned cpu_list_count(const struct cpu_list *l)
{
	unsigned i, n = 0;

	for (i = 0; i < WORDS; i++)
		n += (unsigned)__builtin_popcountll(l->bits[i]);
	return n;
}

unsigned cpu_list_next(const struct cpu_list *l, unsigned from)
{
	unsigned i = from / 64;
	uint64_t word;

	if (from >= CPU_LIST_MAX)
		return CPU_LIST_MAX;
	word = l->bits[i] & ~0ull << from % 64;
	while (word == 0 && ++i < WORDS)
		word = l->bits[i];
	return word ? i * 64 + (unsigned)__builtin_ctzll(word) : CPU_LIST_MAX;
}

unsigned cpu_list_last(const struct cpu_list *l)
{
	unsigned i;

	for (i = WORDS; i-- > 0;)
		if (l->bits[i])
			return i * 64 + 63 - (unsigned)__builtin_clzll(l->bits[i]);
	return CPU_LIST_MAX;
}

bool cpu_list_empty(const struct cpu_list *l)
{
	return cpu_list_next(l, 0) == CPU_LIST_MAX;
}

bool cpu_list_eq(const struct cpu_list *a, const struct cpu_list *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool cpu_list_within(const struct cpu_list *a, const struct cpu_list *b)
{
	struct cpu_list rest = cpu_list_without(a, b);

	return cpu_list_empty(&rest);
}

struct cpu_list cpu_list_both(const struct cpu_list *a, const struct cpu_list *b)
{
	struct cpu_list l;
	unsigned i;

	for (i = 0; i < WORDS; i++)
		l.bits[i] = a->bits[i] & b->bits[i];
	return l;
}

struct cpu_list cpu_list_without(const struct cpu_list *a, const struct cpu_list *b)
{
	struct cpu_list l;
	unsigned i;

	for (i = 0; i < WORDS; i++)
		l.bits[i] = a->bits[i] & ~b->bits[i];
	return l;
}

int cpu_list_get_affinity(int tid, struct cpu_list *out)
{
	memset(out, 0, sizeof(*out));
	return sched_getaffinity(tid, sizeof(*out), (cpu_set_t *)(void *)out) < 0 ? -errno : 0;
}

int cpu_list_set_affinity(int tid, const struct cpu_list *l)
{
	return sched_setaffinity(tid, sizeof(*l), (const cpu_set_t *)(const void *)l) < 0 ? -errno : 0;
}

// The kernel keeps those CPUs of a set that the thread's cpuset has.
int cpu_list_get_allowed(struct cpu_list *out)
{
	struct cpu_list before, all;
	int ret = cpu_list_get_affinity(0, &before);

	memset(&all, 0xff, sizeof(all));
	*out = before;
	if (ret == 0 && cpu_list_set_affinity(0, &all) == 0) {
		ret = cpu_list_get_affinity(0, out);
		cpu_list_set_affinity(0, &before);
	}
	return ret;
}
