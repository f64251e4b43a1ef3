// SPDX-License-Identifier: Apache-2.0
// The daemon's command line: arguments that end with a newline. A refusal says what is wrong; numbers and texts that
// are accepted stay within their bounds. The machine is always the same, and has the group "daemon" only.
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fuzz_frame.h"
#include "main/options_private.h"

#define ARGUMENTS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
void __wrap_machine_read(const char *root, struct machine *m);
void __wrap_machine_read_process(struct machine *m);
struct group *__wrap_getgrnam(const char *name);

void __wrap_machine_read(const char *root, struct machine *m)
{
	*m = (struct machine){0};
	FUZZ_ASSERT(cpu_list_parse("0-7,32-39", &m->possible) == 0);
	m->online = m->possible;
}

void __wrap_machine_read_process(struct machine *m)
{
	m->allowed = m->started = m->online;
}

struct group *__wrap_getgrnam(const char *name)
{
	static struct group daemons;

	return strcmp(name, "daemon") == 0 ? &daemons : NULL;
}

// The usage and the version are of no interest.
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(freopen("/dev/null", "w", stdout));
	return 0;
}

static bool within(uint32_t v, const struct number_limits *l)
{
	return v >= l->min && v <= l->max;
}

static void check(const struct options *o)
{
	unsigned i;

	FUZZ_ASSERT(memchr(o->run_dir, 0, sizeof(o->run_dir)) && memchr(o->socket, 0, sizeof(o->socket)));
	FUZZ_ASSERT(memchr(o->user, 0, sizeof(o->user)) && memchr(o->log_level, 0, sizeof(o->log_level)));
	FUZZ_ASSERT(within(o->memory_mb, &memory_sizes) && within(o->fib_mb, &fib_sizes) &&
		    within(o->flows, &flow_counts));
	FUZZ_ASSERT(o->mbufs == 0 || within(o->mbufs, &mbuf_counts));
	FUZZ_ASSERT(o->mbuf_size == 0 || within(o->mbuf_size, &mbuf_sizes));
	FUZZ_ASSERT(o->placement.n_workers > 0 && o->n_eal <= EAL_MORE);
	for (i = 0; i < o->placement.n_workers; i++)
		FUZZ_ASSERT(o->placement.worker_cpus[i] < CPU_LIST_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *at = text, *next, *argv[ARGUMENTS + 2] = {"corelaned"};
	struct error err = {0};
	struct options o;
	int argc = 1, ret;

	memcpy(text, data, size);
	text[size] = '\0';
	for (; argc <= ARGUMENTS && (next = strchr(at, '\n')) != NULL; at = next) {
		*next++ = '\0';
		argv[argc++] = at;
	}
	optind = 0; // restarts getopt
	ret = options_parse(argc, argv, &o, &err);
	FUZZ_ASSERT(ret <= 1);
	if (ret == 0)
		check(&o);
	else if (ret < 0)
		FUZZ_ASSERT(err.code && err.message[0]);
	free(text);
	return 0;
}
