// SPDX-License-Identifier: Apache-2.0
// The thread gen-poll: its start, its wake-ups and its quiescent states.
#include "poll.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_lcore.h>

#include "base/loop.h"
#include "base/thread.h"
#include "trial.h"

static struct {
	pthread_t thread;
	unsigned cpu;
	int started; // 1, or the -errno of a failed start
	int wake, news;
	struct event *event;
	void (*on_news)(void);
	struct trial *trial; // the control thread sets it; gen-poll clears it after the trial
	bool quit;
	uint64_t turns __rte_cache_aligned; // gen-poll: w
} poll;

void poll_turn(void)
{
	__atomic_store_n(&poll.turns, poll.turns + 1, __ATOMIC_RELEASE);
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		perror("eventfd");
}

void poll_notify(void)
{
	signal_fd(poll.news);
}

bool poll_idle(void)
{
	return __atomic_load_n(&poll.trial, __ATOMIC_ACQUIRE) == NULL;
}

void poll_quiesce(void)
{
	uint64_t seen = __atomic_load_n(&poll.turns, __ATOMIC_ACQUIRE);

	while (!poll_idle() && __atomic_load_n(&poll.turns, __ATOMIC_ACQUIRE) - seen < 2)
		usleep(50);
}

void poll_run(struct trial *t)
{
	__atomic_store_n(&poll.trial, t, __ATOMIC_RELEASE);
	signal_fd(poll.wake);
}

static void *poll_main(void *arg)
{
	int ret = thread_pin(pthread_self(), poll.cpu);
	struct trial *t;
	uint64_t n;

	pthread_setname_np(pthread_self(), "gen-poll");
	if (ret == 0 && rte_thread_register() < 0)
		ret = -ENOTSUP;
	__atomic_store_n(&poll.started, ret < 0 ? ret : 1, __ATOMIC_RELEASE);
	while (ret == 0 && !__atomic_load_n(&poll.quit, __ATOMIC_ACQUIRE)) {
		t = __atomic_load_n(&poll.trial, __ATOMIC_ACQUIRE);
		if (t != NULL) {
			trial_run(t);
			__atomic_store_n(&poll.trial, NULL, __ATOMIC_RELEASE);
			poll_notify();
		} else if (read(poll.wake, &n, sizeof(n)) < 0 && errno != EINTR) {
			break;
		}
	}
	if (ret == 0)
		rte_thread_unregister();
	return NULL;
}

static void poll_on_event(evutil_socket_t fd, short what, void *arg)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) == sizeof(n))
		poll.on_news();
}

int poll_start(unsigned cpu, void (*on_news)(void), struct error *err)
{
	char text[16];
	int ret;

	poll.cpu = cpu;
	poll.on_news = on_news;
	poll.wake = eventfd(0, EFD_CLOEXEC);
	poll.news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	poll.event = event_new(loop_base(), poll.news, EV_READ | EV_PERSIST, poll_on_event, NULL);
	if (poll.wake < 0 || poll.news < 0 || poll.event == NULL || event_add(poll.event, NULL) < 0)
		return error_set(err, ENOMEM, NULL, NULL, NULL, "no event for the polling thread");
	ret = -pthread_create(&poll.thread, NULL, poll_main, NULL);
	if (ret < 0)
		return error_set(err, -ret, NULL, NULL, NULL, "no polling thread: %s", strerror(-ret));
	while (__atomic_load_n(&poll.started, __ATOMIC_ACQUIRE) == 0)
		usleep(100);
	if (poll.started == 1)
		return 0;
	pthread_join(poll.thread, NULL);
	snprintf(text, sizeof(text), "%u", cpu);
	return error_set(err, -poll.started, "--cpu", text, "a CPU that this process may use", "cannot poll there: %s",
			 strerror(-poll.started));
}

void poll_stop(void)
{
	__atomic_store_n(&poll.quit, true, __ATOMIC_RELEASE);
	signal_fd(poll.wake);
	pthread_join(poll.thread, NULL);
	event_free(poll.event);
	close(poll.wake);
	close(poll.news);
}
