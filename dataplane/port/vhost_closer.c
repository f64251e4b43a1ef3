// SPDX-License-Identifier: Apache-2.0
#include "port/vhost_closer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOSER_THREADS 2
#define CLOSER_STACK (256 << 10) // the address sanitizer takes over 64 KiB to start a thread

struct vhost_closer {
	unsigned refs;
	unsigned threads;
};

struct closer_work {
	struct vhost_closer *closer;
	unsigned n;
	int fds[];
};

struct vhost_closer *vhost_closer_new(void)
{
	struct vhost_closer *c = calloc(1, sizeof(*c));

	if (c != NULL)
		c->refs = 1;
	return c;
}

void vhost_closer_put(struct vhost_closer *c)
{
	if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) == 0)
		free(c);
}

bool vhost_closer_is_free(const struct vhost_closer *c)
{
	return __atomic_load_n(&c->threads, __ATOMIC_ACQUIRE) < CLOSER_THREADS;
}

static void closer_close(const int *fds, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		close(fds[i]);
}

static void *closer_main(void *arg)
{
	struct closer_work *w = arg;

	pthread_setname_np(pthread_self(), "vhost-close");
	closer_close(w->fds, w->n);
	__atomic_sub_fetch(&w->closer->threads, 1, __ATOMIC_ACQ_REL);
	vhost_closer_put(w->closer);
	free(w);
	return NULL;
}

static int closer_start(struct closer_work *w)
{
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	ret = pthread_create(&thread, &attr, closer_main, w);
	pthread_attr_destroy(&attr);
	return ret;
}

void vhost_closer_close(struct vhost_closer *c, const int *fds, unsigned n)
{
	struct closer_work *w = n > 0 ? malloc(sizeof(*w) + n * sizeof(fds[0])) : NULL;

	if (w == NULL) {
		closer_close(fds, n);
		return;
	}
	w->closer = c;
	w->n = n;
	memcpy(w->fds, fds, n * sizeof(fds[0]));
	__atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&c->threads, 1, __ATOMIC_RELAXED);
	if (closer_start(w) == 0)
		return;
	closer_close(fds, n);
	__atomic_sub_fetch(&c->threads, 1, __ATOMIC_RELAXED);
	vhost_closer_put(c);
	free(w);
}
