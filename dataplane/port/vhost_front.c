// SPDX-License-Identifier: Apache-2.0
#include "port/vhost_front.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_lcore.h>

#include "base/bucket.h"
#include "base/rcu.h"
#include "port/vhost.h"
#include "port/vhost_closer.h"
#include "port/vhost_wire.h"

#define FRONT_RATE 500   // messages per second of a port
#define FRONT_BURST 1000 // and at once
#define FRONT_COST 10    // a connection counts as so many messages
#define FRONT_RETRY_MS 100
#define FRONT_REST_MS 10 // between looks at a port that has sent too many messages
#define FRONT_SPIN_US 50 // for the workers to let go of the rings
#define FRONT_STOP_MS 1  // and then between looks at them
#define FRONT_EVENTS 64
#define FRONT_NEED_REPLY 8u // flag of a message

enum { SET_LOG_BASE = 6, SET_VRING_NUM = 8 }; // of the vhost-user protocol

enum front_state {
	FRONT_ALONE, // there is no front end, or the library has not ended the last one's device yet
	FRONT_READS,
	FRONT_STOPS, // the workers may still use the rings
	FRONT_ASKS,  // the library has not answered yet
};

struct front;

struct front_source { // what epoll reports
	void (*ready)(struct front *f, uint32_t events);
	struct front *front;
};

struct front {
	struct vhost *vhost;
	struct front *next;
	enum front_state state;
	int listener;            // -1: client
	struct vhost_wire outer; // to the front end
	struct vhost_wire inner; // to the library
	bool ending, ended;      // inner: the library is to close its side, has closed it
	bool paid;               // for the next message
	bool rests;              // nothing is read, because its bucket is empty
	uint64_t rests_until;    // TSC
	uint64_t met_in;         // the turn in which the front end came: what epoll reported in it was of the last one
	struct vhost_closer *closer;
	uint64_t token;    // FRONT_STOPS: the grace period
	uint64_t retry_at; // TSC; of a client
	struct bucket bucket;
	struct vhost_session session;
	struct front_source on_listener, on_outer, on_inner;
};

struct front_order { // of the master
	struct vhost *vhost;
	bool add;
	int listener, ret;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct front_order *order; // under lock, NULL = none
	bool runs;                 // master
	int poll, wake;
	bool lost;         // a guest has taken memory away
	uint64_t turn;     // the thread's
	struct front *all; // this and what it points to: the thread's
} front = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static int front_watch(struct front_source *s, int fd, uint32_t events, int op)
{
	struct epoll_event e = {.events = events, .data.ptr = s};

	return epoll_ctl(front.poll, op, fd, &e) < 0 ? -errno : 0;
}

static void front_rest(struct front *f, bool rests)
{
	f->rests = rests;
	f->rests_until = rte_rdtsc() + rte_get_tsc_hz() / 1000 * FRONT_REST_MS;
	if (f->listener >= 0)
		front_watch(&f->on_listener, f->listener, rests ? 0 : EPOLLIN, EPOLL_CTL_MOD);
	if (f->outer.fd >= 0)
		front_watch(&f->on_outer, f->outer.fd, !rests && f->state == FRONT_READS ? EPOLLIN : 0, EPOLL_CTL_MOD);
}

static void front_enter(struct front *f, enum front_state state)
{
	f->state = state;
	front_rest(f, f->rests);
}

static bool front_pay(struct front *f, uint32_t messages)
{
	bool paid = vhost_closer_is_free(f->closer) &&
		    bucket_take(&f->bucket, rte_rdtsc(), messages, FRONT_RATE, FRONT_BURST, rte_get_tsc_hz());

	if (!paid)
		front_rest(f, true);
	return paid;
}

static void front_end_inner(struct front *f)
{
	int fds[VHOST_WIRE_FDS];
	unsigned n = vhost_wire_end(&f->inner, fds);

	while (n > 0)
		close(fds[--n]);
}

static void front_end_outer(struct front *f)
{
	int fds[VHOST_WIRE_FDS];
	unsigned n;

	if (f->outer.fd < 0)
		return;
	epoll_ctl(front.poll, EPOLL_CTL_DEL, f->outer.fd, NULL);
	shutdown(f->outer.fd, SHUT_RDWR); // it is seen at once, however long the end takes
	n = vhost_wire_end(&f->outer, fds);
	vhost_closer_close(f->closer, fds, n);
}

// The library destroys the device when it reads the end, and closes its side. Until then it has the port's rings.
static void front_hang_up(struct front *f)
{
	front_end_outer(f);
	if (f->inner.fd >= 0 && !f->ending)
		shutdown(f->inner.fd, SHUT_WR);
	f->ending = f->inner.fd >= 0;
	f->state = FRONT_ALONE;
}

static bool front_is_bad_ring(const struct vhost_message *m)
{
	return m->request == SET_VRING_NUM && m->size == sizeof(m->state) &&
	       (m->state.num < VHOST_SHORTEST_RING || m->state.num > VHOST_LONGEST_RING);
}

static void front_refuse(struct front *f, const struct vhost_message *m, const char *why)
{
	vhost_conn_pause(f->vhost);
	vhost_conn_refused(f->vhost, front_is_bad_ring(m), m->request, why);
	front_hang_up(f);
}

// The connection is over, whatever the front end still says. The library's answer may tell of zeroes that it has read.
static void front_lose(struct front *f)
{
	if (f->inner.fd < 0 || f->ending || !vhost_conn_is_lost(f->vhost))
		return;
	vhost_conn_pause(f->vhost);
	front_hang_up(f);
}

static void front_find_lost(void)
{
	struct front *f;

	if (!__atomic_exchange_n(&front.lost, false, __ATOMIC_ACQ_REL))
		return;
	vhost_conn_find_lost();
	for (f = front.all; f != NULL; f = f->next)
		front_lose(f);
}

static int front_connect(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(un.sun_path, path, strlen(path));
	if (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	close(fd);
	return -1;
}

// The library gets one connection of a port after the other.
static void front_begin(struct front *f)
{
	vhost_conn_begin(f->vhost);
	vhost_wire_begin(&f->inner, front_connect(f->vhost->inside), true);
	f->ending = f->ended = f->paid = false;
	vhost_session_begin(&f->session);
	if (f->inner.fd >= 0 && front_watch(&f->on_inner, f->inner.fd, EPOLLIN, EPOLL_CTL_ADD) < 0)
		front_end_inner(f);
	if (f->inner.fd < 0)
		front_hang_up(f);
	else
		front_enter(f, FRONT_READS);
}

// Goes on once the library has done with the last connection.
static void front_settle(struct front *f)
{
	if (f->inner.fd >= 0 && f->ended && vhost_conn_is_over(f->vhost)) {
		front_end_inner(f);
		vhost_calls_end(&f->vhost->calls);
		f->ending = false;
	}
	if (f->inner.fd < 0 && f->outer.fd >= 0 && vhost_conn_is_over(f->vhost))
		front_begin(f);
}

// The latest front end wins.
static void front_meet(struct front *f, int fd)
{
	front_hang_up(f);
	f->met_in = front.turn;
	vhost_wire_begin(&f->outer, fd, false);
	if (front_watch(&f->on_outer, fd, 0, EPOLL_CTL_ADD) < 0)
		front_hang_up(f);
	front_settle(f);
}

static void front_on_listener(struct front *f, uint32_t events)
{
	int fd;

	if (!front_pay(f, FRONT_COST))
		return;
	fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		front_meet(f, fd);
	else if (errno != EAGAIN)
		front_rest(f, true); // there are too many descriptors, and will be fewer
}

static void front_retry(struct front *f)
{
	uint64_t now = rte_rdtsc();
	int fd;

	if (f->listener >= 0 || f->outer.fd >= 0 || now < f->retry_at || !vhost_closer_is_free(f->closer))
		return;
	f->retry_at = now + rte_get_tsc_hz() / 1000 * FRONT_RETRY_MS;
	fd = front_connect(f->vhost->path);
	if (fd >= 0)
		front_meet(f, fd);
}

// The library answers each message that asks for it, so that each one's end is known.
static void front_ask(struct front *f)
{
	struct vhost_message m = f->outer.m;

	m.flags |= FRONT_NEED_REPLY;
	if (vhost_call_pass(&f->vhost->calls, &m) < 0)
		front_refuse(f, &f->outer.m, "the router has no room for its descriptor");
	else if (vhost_wire_send(&f->inner, &m) < 0)
		front_hang_up(f);
	else
		front_enter(f, FRONT_ASKS);
}

// Frames to the guest are dropped meanwhile, and workers are mostly done within microseconds.
static void front_stop(struct front *f)
{
	bool runs = vhost_conn_pause(f->vhost), passed;
	uint64_t end = rte_rdtsc() + rte_get_tsc_hz() / 1000000 * FRONT_SPIN_US;

	f->token = runs ? rcu_token() : 0;
	while (!(passed = !runs || rcu_passed(f->token)) && rte_rdtsc() < end)
		rte_pause();
	if (passed)
		front_ask(f);
	else
		front_enter(f, FRONT_STOPS);
}

static void front_on_message(struct front *f)
{
	const struct vhost_message *m = &f->outer.m;
	const char *why = "the message is not allowed";
	enum vhost_verdict verdict = vhost_session_check(&f->session, m, &why);

	if (verdict == VHOST_REFUSE)
		front_refuse(f, m, why);
	else if (verdict == VHOST_PASS_STOPPED)
		front_stop(f);
	else
		front_ask(f);
}

static void front_read(struct front *f)
{
	const char *why = NULL;
	int ret;

	if (!f->paid)
		f->paid = front_pay(f, 1);
	if (!f->paid)
		return;
	ret = vhost_wire_read(&f->outer, &why);
	if (ret == -EPROTO)
		front_refuse(f, &f->outer.m, why);
	else if (ret < 0)
		front_hang_up(f);
	else if (ret > 0)
		front_on_message(f);
}

static void front_on_outer(struct front *f, uint32_t events)
{
	if (f->outer.fd < 0 || f->met_in == front.turn)
		return;
	if (f->state == FRONT_READS && !f->rests)
		front_read(f);
	else if ((events & (EPOLLHUP | EPOLLERR)))
		front_hang_up(f);
}

static bool front_has_failed(const struct vhost_message *m, const struct vhost_message *answer)
{
	if (m->request == SET_LOG_BASE)
		return answer->size != 0;
	return !vhost_message_has_answer(m) && (answer->size != sizeof(answer->u64) || answer->u64 != 0);
}

static void front_on_answer(struct front *f)
{
	const struct vhost_message *m = &f->outer.m;
	struct vhost_message *answer = &f->inner.m;
	int ret = 0;

	if (f->state != FRONT_ASKS || answer->request != m->request || front_has_failed(m, answer)) {
		front_refuse(f, m, "librte_vhost refused it");
		return;
	}
	vhost_session_accepted(&f->session, m, answer);
	vhost_call_passed(&f->vhost->calls, m);
	vhost_conn_resume(f->vhost);
	if (vhost_message_has_answer(m) || (m->flags & FRONT_NEED_REPLY)) {
		vhost_message_mask_answer(m, answer);
		ret = vhost_wire_send(&f->outer, answer);
	}
	if (ret < 0) {
		front_refuse(f, m, "its answer was not read");
		return;
	}
	vhost_wire_next(&f->outer);
	f->paid = false;
	front_enter(f, FRONT_READS);
}

// The library has closed its side.
static void front_on_end(struct front *f)
{
	epoll_ctl(front.poll, EPOLL_CTL_DEL, f->inner.fd, NULL);
	f->ended = true;
	if (!f->ending && f->state == FRONT_ASKS)
		front_refuse(f, &f->outer.m, "librte_vhost ended the connection");
	else if (!f->ending)
		front_hang_up(f);
	front_settle(f);
}

static void front_on_inner(struct front *f, uint32_t events)
{
	const char *why = NULL;
	int ret;

	if (f->inner.fd < 0 || f->ended)
		return;
	ret = vhost_wire_read(&f->inner, &why);
	if (ret > 0 && !f->ending)
		front_on_answer(f);
	if (ret > 0)
		vhost_wire_next(&f->inner);
	if (ret < 0)
		front_on_end(f);
}

static int front_add(struct vhost *v, int listener)
{
	struct front *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->vhost = v;
	f->listener = listener;
	vhost_wire_begin(&f->outer, -1, false);
	vhost_wire_begin(&f->inner, -1, true);
	f->on_listener = (struct front_source){front_on_listener, f};
	f->on_outer = (struct front_source){front_on_outer, f};
	f->on_inner = (struct front_source){front_on_inner, f};
	f->closer = vhost_closer_new();
	if (f->closer == NULL ||
	    (listener >= 0 && front_watch(&f->on_listener, listener, EPOLLIN, EPOLL_CTL_ADD) < 0)) {
		if (f->closer != NULL)
			vhost_closer_put(f->closer);
		free(f);
		return -ENOSPC;
	}
	f->next = front.all;
	front.all = f;
	return 0;
}

static int front_remove(const struct vhost *v)
{
	struct front **p, *f;
	int library;

	for (p = &front.all; (*p)->vhost != v; p = &(*p)->next)
		;
	f = *p;
	*p = f->next;
	front_end_outer(f);
	library = f->inner.fd;
	if (library >= 0 && !f->ended)
		epoll_ctl(front.poll, EPOLL_CTL_DEL, library, NULL);
	vhost_wire_next(&f->inner);
	if (f->listener >= 0)
		close(f->listener);
	vhost_closer_put(f->closer);
	free(f);
	return library;
}

// After the events of a turn, which may be of the port that is removed here.
static void front_obey(void)
{
	struct front_order *o;

	pthread_mutex_lock(&front.lock);
	o = front.order;
	if (o != NULL && o->add)
		o->ret = front_add(o->vhost, o->listener);
	else if (o != NULL)
		o->ret = front_remove(o->vhost);
	front.order = NULL;
	pthread_cond_signal(&front.done);
	pthread_mutex_unlock(&front.lock);
}

static void front_on_time(struct front *f)
{
	front_settle(f);
	if (f->rests && rte_rdtsc() >= f->rests_until)
		front_rest(f, false);
	if (f->state == FRONT_STOPS && rcu_passed(f->token))
		front_ask(f);
	front_retry(f);
}

static int front_timeout_ms(void)
{
	const struct front *f;
	int ms = -1;

	if (__atomic_load_n(&front.lost, __ATOMIC_ACQUIRE)) // the last turn may have read what should wake this one
		return 0;
	for (f = front.all; f != NULL; f = f->next) {
		if (f->state == FRONT_STOPS)
			return FRONT_STOP_MS;
		if (f->rests)
			ms = FRONT_REST_MS;
		else if (ms < 0 && f->listener < 0 && f->outer.fd < 0)
			ms = FRONT_RETRY_MS;
	}
	return ms;
}

static void front_turn(void)
{
	struct epoll_event events[FRONT_EVENTS];
	int n = epoll_wait(front.poll, events, FRONT_EVENTS, front_timeout_ms()), i;
	const struct front_source *s;
	struct front *f;
	eventfd_t wakes;

	front.turn++;
	front_find_lost(); // before the library's answers
	for (i = 0; i < n; i++) {
		s = events[i].data.ptr;
		if (s == NULL)
			eventfd_read(front.wake, &wakes);
		else
			s->ready(s->front, events[i].events);
	}
	front_obey();
	for (f = front.all; f != NULL; f = f->next)
		front_on_time(f);
}

static void *front_main(void *arg)
{
	for (;;)
		front_turn();
	return NULL;
}

void vhost_front_wake(void)
{
	eventfd_write(front.wake, 1);
}

void vhost_front_lost(void)
{
	__atomic_store_n(&front.lost, true, __ATOMIC_RELEASE);
	vhost_front_wake();
}

static int front_start(void)
{
	pthread_t thread;

	front.poll = epoll_create1(EPOLL_CLOEXEC);
	front.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (front.poll >= 0 && front.wake >= 0 && front_watch(NULL, front.wake, EPOLLIN, EPOLL_CTL_ADD) == 0 &&
	    rte_ctrl_thread_create(&thread, "vhost-front", NULL, front_main, NULL) == 0) {
		front.runs = true;
		return 0;
	}
	if (front.poll >= 0)
		close(front.poll);
	if (front.wake >= 0)
		close(front.wake);
	return -EAGAIN;
}

static void front_order(struct front_order *o)
{
	pthread_mutex_lock(&front.lock);
	front.order = o;
	vhost_front_wake();
	while (front.order != NULL)
		pthread_cond_wait(&front.done, &front.lock);
	pthread_mutex_unlock(&front.lock);
}

int vhost_front_add(struct vhost *v, int listener)
{
	struct front_order o = {.vhost = v, .add = true, .listener = listener};

	o.ret = front.runs ? 0 : front_start();
	if (o.ret == 0)
		front_order(&o);
	if (o.ret < 0 && listener >= 0)
		close(listener);
	return o.ret;
}

int vhost_front_remove(struct vhost *v)
{
	struct front_order o = {.vhost = v};

	front_order(&o);
	return o.ret;
}
