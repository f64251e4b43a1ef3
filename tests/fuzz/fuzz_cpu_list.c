// SPDX-License-Identifier: Apache-2.0
// Lists and masks of CPUs. An accepted set is not empty, and its text parses as the same set; a refused one is empty.
#include <errno.h>
#include <stdlib.h>

#include "base/cpu_list.h"
#include "fuzz_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, int ret, const struct cpu_list *l)
{
	static char buf[8 * CPU_LIST_MAX];
	struct cpu_list again;

	FUZZ_ASSERT(cpu_list_empty(l) == (ret < 0));
	if (ret < 0)
		return;
	FUZZ_ASSERT(cpu_list_parse(cpu_list_format(l, buf, sizeof(buf)), &again) == 0);
	FUZZ_ASSERT(cpu_list_eq(l, &again));
	FUZZ_ASSERT(cpu_list_last(l) < CPU_LIST_MAX && cpu_list_count(l) > 0);
}

static void ordered(const char *text, int ret, const struct cpu_list *l)
{
	static unsigned cpus[CPU_LIST_MAX];
	struct cpu_list again = {0};
	unsigned n, i;

	FUZZ_ASSERT(cpu_list_order(text, cpus, CPU_LIST_MAX, &n) == ret);
	for (i = 0; i < n; i++)
		cpu_list_add(&again, cpus[i]);
	FUZZ_ASSERT(n == cpu_list_count(l) && cpu_list_eq(l, &again) && cpu_list_within(l, &again));
	if (n > 1)
		FUZZ_ASSERT(cpu_list_order(text, cpus, n - 1, &i) == -ENOSPC && i == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), small[CPU_LIST_TEXT];
	struct cpu_list l;
	int ret;

	memcpy(text, data, size);
	text[size] = '\0';
	ret = cpu_list_parse(text, &l);
	FUZZ_ASSERT(ret == 0 || ret == -EINVAL || ret == -EEXIST || ret == -ERANGE);
	check(text, ret, &l);
	ordered(text, ret, &l);
	FUZZ_ASSERT(strlen(cpu_list_format(&l, small, sizeof(small))) < sizeof(small));
	ret = cpu_mask_parse(text, &l);
	FUZZ_ASSERT(ret == 0 || ret == -EINVAL || ret == -ERANGE);
	check(text, ret, &l);
	free(text);
	return 0;
}
