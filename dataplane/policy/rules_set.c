// SPDX-License-Identifier: Apache-2.0
// Sets, the form of a list that workers read. Each change makes a new set on top of the base that was compiled last;
// svc-rules compiles the next base.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rcu.h"
#include "policy/rules_acl.h"
#include "policy/rules_private.h"

// --- Bases. ---

static void rules_base_free(struct rules_base *b)
{
	unsigned f;

	for (f = 0; f < 2; f++) {
		rte_acl_free(b->acl[f]);
		free(b->m[f]);
	}
	free(b);
}

static void rules_base_unref(struct rules_base *b)
{
	if (b && --b->refs == 0)
		rules_base_free(b);
}

static uint32_t rules_set_entries_of(const struct rule *rules, size_t n, unsigned f, uint64_t since)
{
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (rules[i].seq > since)
			sum += rule_entries(&rules[i], f);
	return sum;
}

// Expands the rules with a seq above `since`.
static int rules_set_take(const struct rule *rules, size_t n, unsigned f, uint64_t since, struct rule_match **out,
			  uint32_t *n_out)
{
	uint32_t sum = rules_set_entries_of(rules, n, f, since), at = 0;
	size_t i;

	if (sum == 0)
		return 0;
	*out = malloc(sum * sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		if (rules[i].seq > since)
			at += rule_expand(&rules[i], f, *out + at);
	*n_out = at;
	return 0;
}

static struct rules_base *rules_base_take(const struct rule_list *l)
{
	struct rules_base *b = calloc(1, sizeof(*b));
	unsigned f;

	if (b == NULL)
		return NULL;
	b->seq = l->seq;
	b->refs = 1;
	for (f = 0; f < 2; f++) {
		if (rules_set_take(l->rules, l->n, f, 0, &b->m[f], &b->n[f]) < 0) {
			rules_base_free(b);
			return NULL;
		}
	}
	return b;
}

// --- Sets. ---

void rules_set_free(struct rules_set *s)
{
	unsigned f;

	if (s == NULL)
		return;
	for (f = 0; f < 2; f++) {
		free(s->dead[f]);
		free(s->m[f]);
	}
	rules_base_unref(s->base);
	free(s);
}

// Marks the base's entries of rules that were deleted or changed. Entries and rules are in the order of ids.
static int rules_set_bury(struct rules_set *s, const struct rule *rules, size_t n, unsigned f)
{
	const struct rules_base *b = s->base;
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < b->n[f]; i++) {
		uint32_t id = b->m[f][i].id;

		while (at < n && rules[at].id < id)
			at++;
		if (at < n && rules[at].id == id && rules[at].seq <= b->seq)
			continue;
		if (s->dead[f] == NULL)
			s->dead[f] = calloc(b->n[f] / 64 + 1, sizeof(uint64_t));
		if (s->dead[f] == NULL)
			return -ENOMEM;
		s->dead[f][i / 64] |= UINT64_C(1) << i % 64;
	}
	return 0;
}

struct rules_set *rules_set_make(const struct rule_list *l, const struct rule *rules, size_t n, bool allow,
				 struct rules_base *base)
{
	struct rules_set *s = calloc(1, sizeof(*s));
	unsigned f;
	int ret = 0;

	if (s == NULL)
		return NULL;
	*s = (struct rules_set){.allow = allow, .slot = l->slot, .base = base};
	if (base)
		base->refs++;
	for (f = 0; f < 2 && ret == 0; f++) {
		ret = rules_set_take(rules, n, f, base ? base->seq : 0, &s->m[f], &s->n[f]);
		if (ret == 0 && base)
			ret = rules_set_bury(s, rules, n, f);
	}
	if (ret == 0)
		return s;
	rules_set_free(s);
	return NULL;
}

bool rules_set_stale(const struct rules_set *s)
{
	if (s->base)
		return s->dead[0] || s->dead[1] || s->n[0] + s->n[1] > RULES_BESIDE;
	return s->n[0] > RULES_LINEAR || s->n[1] > RULES_LINEAR;
}

// --- svc-rules: compiles one list at a time. ---

static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool running, stop;
	struct rules_base *todo, *done; // master -> thread, thread -> master
	int error;
	// Master only.
	bool busy;
	uint16_t list;
	const struct rule_list *who;
} svc = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static int rules_set_compile(struct rules_base *b)
{
	unsigned f;

	for (f = 0; f < 2; f++) {
		if (b->n[f] <= RULES_LINEAR)
			continue;
		b->acl[f] = acl_build(b->m[f], b->n[f], f);
		if (b->acl[f] == NULL)
			return -errno;
	}
	return 0;
}

static void *rules_set_svc_main(void *arg)
{
	struct rules_base *b;
	int ret;

	pthread_setname_np(pthread_self(), "svc-rules");
	pthread_mutex_lock(&svc.lock);
	while (!svc.stop) {
		b = svc.todo;
		svc.todo = NULL;
		if (b == NULL) {
			pthread_cond_wait(&svc.cond, &svc.lock);
			continue;
		}
		pthread_mutex_unlock(&svc.lock);
		ret = rules_set_compile(b);
		pthread_mutex_lock(&svc.lock);
		svc.done = b;
		svc.error = ret;
	}
	pthread_mutex_unlock(&svc.lock);
	return NULL;
}

int rules_compile_start(void)
{
	int ret;

	svc.stop = svc.busy = false;
	ret = pthread_create(&svc.thread, NULL, rules_set_svc_main, NULL);
	svc.running = ret == 0;
	return -ret;
}

void rules_compile_stop(void)
{
	if (!svc.running)
		return;
	pthread_mutex_lock(&svc.lock);
	svc.stop = true;
	pthread_cond_signal(&svc.cond);
	pthread_mutex_unlock(&svc.lock);
	pthread_join(svc.thread, NULL);
	svc.running = false;
	rules_base_unref(svc.todo);
	rules_base_unref(svc.done);
	svc.todo = svc.done = NULL;
}

static void rules_set_hand_over(struct rule_list *l)
{
	struct rules_base *b = rules_base_take(l);

	l->wanted = false;
	if (b == NULL)
		return; // no memory: searched as before; the next change of the list retries
	l->running = svc.busy = true;
	svc.list = l->id;
	svc.who = l;
	pthread_mutex_lock(&svc.lock);
	svc.todo = b;
	pthread_cond_signal(&svc.cond);
	pthread_mutex_unlock(&svc.lock);
}

// The list may have changed meanwhile, or been deleted and its id reused.
static void rules_set_take_back(struct rules_base *b, int error)
{
	struct rule_list *l = rule_list_get(svc.list);
	struct rules_set *s;

	svc.busy = false;
	if (l == NULL || l != svc.who || !l->running) {
		rules_base_unref(b);
		return;
	}
	l->running = false;
	s = error == 0 ? rules_set_make(l, l->rules, l->n, l->allow, b) : NULL;
	rules_base_unref(b);
	if (s == NULL) {
		snprintf(l->last_error, sizeof(l->last_error), "cannot be compiled, so it is searched rule by rule: %s",
			 strerror(error ? -error : ENOMEM));
		LOG(ERR, "rule list %s %s", l->name, l->last_error);
		return;
	}
	l->last_error[0] = '\0';
	rules_publish(l, s, NULL, 0, false);
}

void rules_compile_poll(void)
{
	static uint16_t last; // lists take turns
	struct rules_base *b;
	struct rule_list *l;
	unsigned i;
	int error;

	if (svc.busy) {
		pthread_mutex_lock(&svc.lock);
		b = svc.done;
		error = svc.error;
		svc.done = NULL;
		pthread_mutex_unlock(&svc.lock);
		if (b)
			rules_set_take_back(b, error);
	}
	for (i = 0; !svc.busy && i < RULE_LISTS_MAX; i++) {
		last = (uint16_t)((last + 1) % RULE_LISTS_MAX);
		l = rule_list_get(last);
		if (l && l->wanted)
			rules_set_hand_over(l);
	}
}
