// SPDX-License-Identifier: Apache-2.0
#include "port/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

struct call {
	int netns;
	int (*fn)(void *arg);
	void *arg;
	int ret;
};

static void *netns_run(void *arg)
{
	struct call *call = arg;

	call->ret = setns(call->netns, CLONE_NEWNET) < 0 ? -errno : call->fn(call->arg);
	return NULL;
}

int netns_call(int netns, int (*fn)(void *arg), void *arg)
{
	struct call call = {.netns = netns, .fn = fn, .arg = arg};
	pthread_t thread;
	int ret;

	if (netns < 0)
		return fn(arg);
	ret = pthread_create(&thread, NULL, netns_run, &call);
	if (ret != 0)
		return -ret;
	pthread_join(thread, NULL);
	return call.ret;
}

int netns_open(const char *name, struct error *err)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : "/run/netns/", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, errno, "tap.netns", name, "a name of `ip netns list`, or a path",
				 "cannot be opened (%s): %s", path, strerror(errno));
	return fd;
}
