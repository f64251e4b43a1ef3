// SPDX-License-Identifier: Apache-2.0
// Uses poll() and not a lasting epoll instance: when queues or their peers come, go or move to another worker, only the
// doorbell has to be rung. Arming visits all queues anyway.
#include "worker/wait.h"

#include <errno.h>

#include "base/doorbell.h"
#include "base/rcu.h"
#include "base/system_calls.h"
#include "port/port.h"
#include "worker/spread.h"
#include "worker/worker.h"
#include "worker/worker_private.h"

int wait_max_ms = WAIT_MAX_MS;

// True: the queue would be polled now, and it is not moving to another worker.
static bool wait_is_settled(const struct worker *w, const struct port_queue *q)
{
	const struct spread_view *v = rcu_read(q->view);

	if (__atomic_load_n(&q->rx_worker, __ATOMIC_RELAXED) != w->id)
		return false;
	if (v == NULL)
		return true;
	return v->n_waits == 0 && v->epoch == __atomic_load_n(&spread_epoch, __ATOMIC_ACQUIRE) &&
	       (v->full != SPREAD_FULL_WAIT || spread_room(w, v, BATCH) > 0);
}

static int wait_arm_queue(struct worker *w, struct port_queue *q)
{
	struct wait *wait = w->wait;
	int fd;

	if (__atomic_load_n(&q->owner, __ATOMIC_ACQUIRE) != w->id)
		return 0; // its owner rings when it hands it over
	if (!wait_is_settled(w, q))
		return -EAGAIN;
	if (wait->n == WAIT_FDS)
		return -ENOSPC;
	fd = q->port->ops->arm ? q->port->ops->arm(q) : -ENOTSUP;
	if (fd == -ENOTCONN)
		return 0; // not connected: connecting it rings
	if (fd < 0)
		return fd;
	q->armed = (uint16_t)wait->n;
	wait->fds[wait->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return 0;
}

static void wait_set_timer_queue(struct worker *w, const struct port_queue *q)
{
	__atomic_store_n(&w->wait->timer_queue, q ? (uint32_t)q->port->id << 16 | q->index : 0, __ATOMIC_RELAXED);
}

bool wait_arm(struct worker *w)
{
	struct wait *wait = w->wait;
	const struct rx_list *l;
	unsigned i;
	int ret = 0;

	if (!rcu_passed(__atomic_load_n(&wait->token, __ATOMIC_RELAXED)) || worker_unfinished(w))
		return false;
	doorbell_listen(w->id); // before the list is read: later changes of it ring
	w->idle_state.armed = true;
	wait->fds[0] = (struct pollfd){.fd = doorbells[w->id].fd, .events = POLLIN};
	wait->n = 1;
	l = rcu_read(w->rx);
	for (i = 0; i < l->n && ret == 0; i++)
		ret = wait_arm_queue(w, l->q[i]);
	if (ret != -EAGAIN)
		wait_set_timer_queue(w, ret < 0 ? l->q[i - 1] : NULL);
	if (ret < 0)
		wait_disarm(w);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); // peers see the queues armed before these are polled
	return ret == 0;
}

// Returns -EIO when its descriptor reports an error.
static int wait_disarm_one(struct worker *w, struct port_queue *q, bool waited)
{
	bool signalled = waited && w->wait->fds[q->armed].revents != 0;

	q->armed = 0;
	return q->port->ops->disarm(q, signalled);
}

static int wait_disarm_all(struct worker *w, bool waited)
{
	const struct rx_list *l = rcu_read(w->rx);
	unsigned i;
	int ret = 0;

	doorbell_leave(w->id);
	w->idle_state.armed = false;
	for (i = 0; i < l->n; i++)
		if (__atomic_load_n(&l->q[i]->owner, __ATOMIC_ACQUIRE) == w->id && l->q[i]->armed &&
		    wait_disarm_one(w, l->q[i], waited) < 0)
			ret = -EIO;
	return ret;
}

void wait_disarm(struct worker *w)
{
	wait_disarm_all(w, false);
}

void wait_disarm_queue(struct worker *w, struct port_queue *q)
{
	if (q->armed)
		wait_disarm_one(w, q, false);
}

bool wait_wait(struct worker *w)
{
	struct wait *wait = w->wait;
	int n;

	rcu_reader_rest(w->id);
	system_calls++;
	n = poll(wait->fds, wait->n, wait_max_ms);
	rcu_reader_resume(w->id);
	__atomic_store_n(&wait->waits, wait->waits + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&wait->timeouts, wait->timeouts + (n == 0), __ATOMIC_RELAXED);
	if (n > 0 && wait->fds[0].revents)
		doorbell_silence(w->id);
	return wait_disarm_all(w, n > 0) == 0;
}
