// SPDX-License-Identifier: Apache-2.0
#include "worker/health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/doorbell.h"
#include "worker/numa.h"
#include "base/rcu.h"
#include "worker/orders.h"
#include "worker/wait.h"
#include "worker/worker.h"

static int health_read_file(const char *root, const char *path, char *text, size_t size)
{
	char full[256];
	size_t n;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "re");
	if (f == NULL)
		return -errno;
	n = fread(text, 1, size - 1, f);
	fclose(f);
	text[n] = '\0';
	return n > 0 ? 0 : -EIO;
}

static const char *health_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : "";
}

// The 39th field of stat; the second one, in brackets, may contain blanks and brackets.
static uint32_t health_last_cpu(const char *stat)
{
	const char *at = strrchr(stat, ')');
	unsigned field;

	for (field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	return at ? (uint32_t)strtoul(at, NULL, 10) : 0;
}

int health_read(struct worker_health *h, const char *root, int tid)
{
	char path[64], status[4096], stat[1024], sched[128] = "";
	int ret;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	ret = health_read_file(root, path, status, sizeof(status));
	if (ret < 0)
		return ret;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	ret = health_read_file(root, path, stat, sizeof(stat));
	if (ret < 0)
		return ret;
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	if (health_read_file(root, path, sched, sizeof(sched)) == 0) // not in every kernel
		sscanf(sched, "%*u %lu", &h->waited_ns);
	if (sscanf(health_after(status, "Cpus_allowed_list:"), "%127s", h->affinity) != 1)
		h->affinity[0] = '\0';
	h->voluntary = strtoull(health_after(status, "\nvoluntary_ctxt_switches:"), NULL, 10);
	h->involuntary = strtoull(health_after(status, "nonvoluntary_ctxt_switches:"), NULL, 10);
	h->last_cpu = health_last_cpu(stat);
	h->numa = numa_of_cpu(root, h->last_cpu);
	return 0;
}

uint64_t health_behind(const struct worker *w)
{
	uint64_t behind = rcu_behind(w->id), stands;

	if (w->health->moving_at == 0 || __atomic_load_n(&w->loops, __ATOMIC_RELAXED) != w->health->loops)
		return behind;
	stands = rte_rdtsc() - w->health->moving_at;
	if (doorbell_waits(w->id) && stands < rte_get_tsc_hz() / 1000 * WAIT_MAX_MS * 2)
		return behind; // it may wait for packets that long
	return RTE_MAX(behind, stands);
}

static void health_update(struct worker *w)
{
	struct history_sample now = {.tsc = rte_rdtsc(),
				     .packets = w->packets,
				     .loops = w->loops,
				     .busy_loops = w->busy_loops,
				     .busy_cycles = w->busy_cycles,
				     .idle_cycles = w->idle_cycles};

	health_read(w->health, "", w->tid);
	now.waited_ns = w->health->waited_ns;
	history_add(&w->health->history, &now, rte_get_tsc_hz());
	worker_measure(w);
}

static void health_check_progress(struct worker *w)
{
	uint64_t loops = __atomic_load_n(&w->loops, __ATOMIC_RELAXED);

	if (w->health->moving_at == 0 || loops != w->health->loops)
		w->health->moving_at = rte_rdtsc();
	w->health->loops = loops;
}

void worker_health_poll(void)
{
	static uint64_t looked;
	uint64_t now = rte_rdtsc();
	bool second = now - looked >= rte_get_tsc_hz();
	struct worker *w;

	for (w = worker_next(NULL); w; w = worker_next(w)) {
		health_check_progress(w);
		if (second || w->health->affinity[0] == '\0') // at once when it is new
			health_update(w);
	}
	if (second)
		looked = now;
}
