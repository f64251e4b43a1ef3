// SPDX-License-Identifier: Apache-2.0
// A vhost-user front end that says anything, in any pieces, or nothing: it delays and takes nothing of what others
// need, and the next one is served.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/event.h"
#include "port/port_fixture.h"
#include "port/port_kinds.h"
#include "port/vhost.h"
#include "port/vhost_fixture.h"
#include "port/vhost_message.h"
#include "testing/wait_until.h"

static int connect_socket(const char *name)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", dir, name);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

// One thread serves the front ends of all ports. One that stops in the middle of a message does not hold it, and may go
// on with the message later.
static void half_a_message(void **state)
{
	static const uint32_t get_features[] = {1, 1, 0}; // request, version, length of the payload
	uint32_t answer[5];
	struct port *held = open_port("held");
	int fd = connect_socket("held");
	size_t some;

	for (some = 1; some < sizeof(get_features); some++) {
		assert_int_equal(write(fd, get_features, some), some);
		connect_guest(state); // on another port
		serves();
		disconnect_guest(state);
		assert_int_equal(recv(fd, answer, sizeof(answer), MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN); // it is still connected
		assert_int_equal(write(fd, (const char *)get_features + some, sizeof(get_features) - some),
				 sizeof(get_features) - some);
		assert_int_equal(recv(fd, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
		assert_int_equal(answer[0], get_features[0]);
	}
	close(fd);
	fixture_close(held);
}

// The latest front end of a port wins, whatever the one before has left unsaid.
static void half_a_message_before(void **state)
{
	static const uint32_t half[] = {2, 1, 8}; // SET_FEATURES without the features
	struct port_config cfg = fixture_config("vhost", PORT_TENANT, 1);
	char byte;
	int fd;

	snprintf(cfg.socket, sizeof(cfg.socket), "%s/hostile", dir);
	port = fixture_must_open(&cfg);
	fd = connect_socket("hostile");
	assert_int_equal(write(fd, half, sizeof(half)), sizeof(half));
	assert_int_equal(guest_start(&g, cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(port, true, PATIENCE_MS));
	drain(GUEST_RING);
	serves();
	assert_true(recv(fd, &byte, 1, 0) <= 0); // it was disconnected
	close(fd);
	disconnect_guest(state);
}

// Whoever sends requests and reads no answer is disconnected when the socket is full.
static void answers_that_are_not_read(void **state)
{
	static const uint32_t get_features[] = {1, 1, 0};
	uint64_t event = event_last();
	struct port *full = open_port("full");
	int fd = connect_socket("full");

	while (send(fd, get_features, sizeof(get_features), MSG_NOSIGNAL) == sizeof(get_features))
		;
	assert_true(errno == EPIPE || errno == ECONNRESET);
	close(fd);
	connect_guest(state);
	serves();
	disconnect_guest(state);
	fixture_loop_ms(1);
	assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
	fixture_close(full);
}

// Front ends that come and go in any order, some after a part of a message.
static void storm_of_connections(void **state)
{
	enum { AT_ONCE = 8, CONNECTIONS = 150 };
	static const uint32_t get_features[] = {1, 1, 0};
	unsigned i, k, fds, seed = 1;
	int sockets[AT_ONCE];

	connect_guest(state); // for what is opened only once
	disconnect_guest(state);
	port = open_port("hostile");
	fds = fixture_fds();
	memset(sockets, -1, sizeof(sockets));
	for (i = 0; i < CONNECTIONS; i++) {
		k = (unsigned)rand_r(&seed) % AT_ONCE;
		if (sockets[k] >= 0)
			close(sockets[k]);
		sockets[k] = connect_socket("hostile");
		send(sockets[k], get_features, (unsigned)rand_r(&seed) % (sizeof(get_features) + 1), MSG_NOSIGNAL);
	}
	for (k = 0; k < AT_ONCE; k++)
		close(sockets[k]);
	assert_int_equal(guest_start(&g, port->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(port, true, PATIENCE_MS));
	drain(GUEST_RING);
	serves();
	guest_stop(&g);
	assert_true(fixture_wait_link(port, false, PATIENCE_MS));
	assert_true(wait_until(fixture_fds() <= fds));
	fixture_close(port);
}

static uint64_t drain_calls(int fd)
{
	eventfd_t n = 0;

	return eventfd_read(fd, &n) < 0 ? 0 : n;
}

static void frame_leaves(void)
{
	struct rte_mbuf *m = fixture_packet(60, 0);

	assert_true(wait_until(port->ops->tx(&port->queues[0], &m, 1) == 1));
}

// Neither ring's driver polls: the router is to notify it.
static void ask_for_calls(void)
{
	unsigned ring;

	for (ring = 0; ring < 2; ring++)
		__atomic_store_n(&g.rings[ring].avail->flags, 0, __ATOMIC_SEQ_CST);
}

// The front end makes its file blocking again and fills it. The worker, here the test itself, would sleep in a write
// for ever, and its other ports with it.
static void notification_that_would_block(void **state)
{
	struct port *other = open_port("other");
	int full = eventfd(0, EFD_NONBLOCK);
	struct guest neighbor;
	unsigned i;

	assert_int_equal(guest_start(&neighbor, other->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(other, true, PATIENCE_MS));
	for (i = 0; i < 2; i++)
		guest_set_call(&g, i, full);
	assert_int_not_equal(guest_features(&g), 0); // the messages before it were handled
	drain_calls(full);
	assert_int_equal(fcntl(full, F_SETFL, 0), 0);
	assert_int_equal(eventfd_write(full, UINT64_MAX - 1), 0);
	ask_for_calls();
	alarm(PATIENCE_MS / 1000);
	for (i = 0; i < 3; i++) {
		serves();
		frame_leaves();
		frame_arrives(other, &neighbor);
	}
	assert_true(drain_calls(full) == UINT64_MAX); // it was signalled, and stays at its maximum
	serves();
	assert_int_equal(drain_calls(full), 1);
	frame_leaves();
	assert_int_equal(drain_calls(full), 1);
	alarm(0);
	close(full);
	guest_stop(&neighbor);
	assert_true(fixture_wait_link(other, false, PATIENCE_MS));
	fixture_close(other);
}

static void take_one(void)
{
	struct rte_mbuf *m;

	assert_int_equal(fixture_receive(port, 0, &m, 1, PATIENCE_MS), 1);
	rte_pktmbuf_free(m);
}

// A worker and a guest exchange frames while the front end replaces the descriptors of both rings. Nothing is lost:
// the new ones are signalled at once, because the old ones may just have been, and then for each burst.
static void notification_after_a_replacement(void **state)
{
	enum { ROUNDS = 50 };
	int calls[2] = {-1, -1}, before[2];
	unsigned round, i;

	ask_for_calls();
	for (round = 0; round < ROUNDS; round++) {
		fixture_poll(port, true);
		for (i = 0; i < 2; i++) {
			before[i] = calls[i];
			calls[i] = eventfd(0, EFD_NONBLOCK);
			guest_step(&g);
			guest_set_call(&g, i, calls[i]);
			guest_step(&g);
		}
		assert_int_not_equal(guest_features(&g), 0);
		for (i = 0; i < 2; i++)
			assert_true(drain_calls(calls[i]) > 0);
		fixture_poll(NULL, false);
		for (i = 0; i < 2; i++) {
			drain_calls(calls[i]);
			drain_calls(before[i]);
		}
		guest_step(&g); // all frames and buffers are the router's now
		take_one();
		assert_int_equal(drain_calls(calls[TX]), 1);
		frame_leaves();
		assert_int_equal(drain_calls(calls[RX]), 1);
		for (i = 0; i < 2; i++) {
			assert_int_equal(drain_calls(before[i]), 0);
			close(before[i]);
		}
	}
	for (i = 0; i < 2; i++)
		close(calls[i]);
}

static void notification_of_no_eventfd(void **state)
{
	int pipes[2], files[2];
	uint64_t event;
	unsigned i;

	assert_int_equal(pipe2(pipes, O_NONBLOCK), 0);
	while (write(pipes[1], "full", 4) > 0)
		;
	fcntl(pipes[1], F_SETFL, 0);
	files[0] = pipes[1];
	files[1] = memfd_create("file", 0);
	for (i = 0; i < RTE_DIM(files); i++) {
		connect_guest(state);
		event = event_last();
		guest_set_call(&g, TX, files[i]);
		assert_true(fixture_wait_link(port, false, PATIENCE_MS));
		if (i == 0)
			assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
		disconnect_guest(state);
	}
	assert_int_equal(lseek(files[1], 0, SEEK_END), 0); // nothing was written
	close(pipes[0]);
	close(pipes[1]);
	close(files[1]);
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

// Returns false if the router has ended the connection already.
static bool send_message(int sock, uint32_t request, uint64_t size, uint16_t queues, uint16_t queue_size, int fd,
			 unsigned n)
{
	struct {
		uint32_t request, flags, size;
		uint64_t mmap_size, offset;
		uint16_t queues, queue_size;
		uint32_t padding;
	} __attribute__((packed)) m = {.request = request,
				       .flags = 1 | 8,
				       .size = 24,
				       .mmap_size = size,
				       .queues = queues,
				       .queue_size = queue_size};
	char control[CMSG_SPACE(8 * sizeof(int))] = {};
	struct iovec iov = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = (struct cmsghdr *)control;
	unsigned i;

	if (n > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
		for (i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) == sizeof(m))
		return true;
	assert_int_equal(errno, EPIPE);
	return false;
}

#define GET_INFLIGHT 31
#define SET_INFLIGHT 32
#define SET_VRING_NUM 8

// Of a feature that is never offered: GET would allocate what it says, SET would write to a file of the guest for as
// many queues as it says, and keep descriptors. The connection ends, with an event, and the next guest is served.
static void messages_of_inflight_buffers(void **state)
{
	const struct {
		uint32_t request;
		uint64_t size;
		uint16_t queues, queue_size;
		bool empty;
		unsigned fds;
	} cases[] = {
		{SET_INFLIGHT, 4096, 2, 64, true, 1},   // the file is shorter than the mapping
		{SET_INFLIGHT, 4096, 200, 1, false, 1}, // more than the file has room for
		{SET_INFLIGHT, UINT64_MAX / 2, 1, 1, false, 1},
		{SET_INFLIGHT, 4096, 1, 64, false, 8},
		{SET_INFLIGHT, 4096, 1, 64, false, 0},
		{GET_INFLIGHT, 0, UINT16_MAX, 1024, false, 0},
		{GET_INFLIGHT, 0, 1, 64, false, 3},
	};
	int files[2] = {memfd_create("empty", 0), memfd_create("page", 0)};
	unsigned i, fds;
	uint64_t event;

	assert_int_equal(ftruncate(files[1], 4096), 0);
	for (i = 0; i < RTE_DIM(cases); i++) {
		connect_guest(state);
		fds = fixture_fds();
		event = event_last();
		send_message(g.sock, cases[i].request, cases[i].size, cases[i].queues, cases[i].queue_size,
			     files[!cases[i].empty], cases[i].fds);
		assert_true(fixture_wait_link(port, false, PATIENCE_MS));
		assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
		assert_true(wait_until(fixture_fds() <= fds)); // those of the connection are closed as well
		disconnect_guest(state);
	}
	close(files[0]);
	close(files[1]);
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

// The descriptors of messages that are refused do not stay open, however many they are, and the port serves its guest
// when it behaves.
static void descriptors_that_are_refused(void **state)
{
	struct port *p = open_port("lost");
	int pipes[2], sock;
	unsigned i, fds;
	char byte;

	assert_int_equal(pipe(pipes), 0);
	fds = fixture_fds();
	for (i = 0; i < 100; i++) {
		sock = connect_socket("lost");
		send_message(sock, i % 2 == 0 ? SET_INFLIGHT : SET_VRING_NUM, 4096, 1, 64, pipes[0], 1 + i % 8);
		while (recv(sock, &byte, 1, 0) > 0)
			;
		close(sock);
	}
	assert_true(wait_until(fixture_fds() <= fds));
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(guest_start(&g, p->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(p, true, PATIENCE_MS));
	guest_stop(&g);
	assert_true(fixture_wait_link(p, false, PATIENCE_MS));
	fixture_close(p);
}

// A TCP socket that waits at its end until its peer, peers[1], has read what is on its way.
static void lingering_socket(int peers[2])
{
	const struct linger waits = {.l_onoff = 1, .l_linger = 3600};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[65536];
	socklen_t len = sizeof(in);

	assert_int_equal(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&in, &len);
	peers[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(peers[0], (struct sockaddr *)&in, sizeof(in)), 0);
	peers[1] = accept(listener, NULL, NULL);
	close(listener);
	setsockopt(peers[0], SOL_SOCKET, SO_LINGER, &waits, sizeof(waits));
	while (send(peers[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void *close_one(void *fd)
{
	close(*(int *)fd);
	return NULL;
}

// The descriptors of a message end on no thread that others need. Some are read with the message, some never. The
// test's own are closed by threads, because the router may have closed its own already.
static void descriptors_that_linger(void **state)
{
	struct port *p = open_port("lingers");
	int peers[4][2], sock = connect_socket("lingers");
	pthread_t closers[RTE_DIM(peers)];
	unsigned i, fds = fixture_fds();
	char byte;

	for (i = 0; i < RTE_DIM(peers); i++) {
		lingering_socket(peers[i]);
		send_message(sock, SET_INFLIGHT, 4096, 1, 64, peers[i][0], 1 + i % 8);
		assert_int_equal(pthread_create(&closers[i], NULL, close_one, &peers[i][0]), 0);
	}
	while (recv(sock, &byte, 1, 0) > 0)
		;
	close(sock);
	connect_guest(state); // on another port
	serves();
	disconnect_guest(state);
	for (i = 0; i < RTE_DIM(peers); i++) {
		close(peers[i][1]);
		pthread_join(closers[i], NULL);
	}
	assert_true(wait_until(fixture_fds() <= fds));
	assert_int_equal(guest_start(&g, p->cfg.socket, false, 1), 0);
	assert_true(fixture_wait_link(p, true, PATIENCE_MS));
	guest_stop(&g);
	assert_true(fixture_wait_link(p, false, PATIENCE_MS));
	fixture_close(p);
}

enum {
	GET_FEATURES = 1,
	SET_FEATURES,
	SET_OWNER,
	RESET_OWNER,
	SET_MEM_TABLE,
	SET_LOG_BASE,
	SET_LOG_FD,
	SET_VRING_ADDR = 9,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL,
	SET_VRING_ERR
};
#define MESSAGE_WORDS 80
#define FILES 5

struct any_message {
	uint32_t request, flags, size;
	uint32_t words[MESSAGE_WORDS];
};

static void say(const struct any_message *m, unsigned bytes, const int *fds, unsigned n)
{
	char control[CMSG_SPACE(8 * sizeof(int))] = {};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = bytes};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = (struct cmsghdr *)control;

	if (n > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int))};
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	sendmsg(g.sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT); // the router may have ended the connection
}

// Returns an eventfd's number in the kernel, or "" of another file.
static const char *eventfd_id(const char *fd)
{
	static char line[128];
	bool found = false;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", fd);
	f = fopen(path, "r");
	while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
		found = strncmp(line, "eventfd-id:", 11) == 0;
	if (f != NULL)
		fclose(f);
	return found ? line : "";
}

// How many descriptors of this process, the front end's and the router's, refer to the eventfd.
static unsigned holders(int fd)
{
	DIR *all_fds = opendir("/proc/self/fd");
	const struct dirent *e;
	char id[128], own[16];
	unsigned n = 0;

	snprintf(own, sizeof(own), "%d", fd);
	snprintf(id, sizeof(id), "%s", eventfd_id(own));
	assert_int_not_equal(id[0], '\0');
	while ((e = readdir(all_fds)) != NULL)
		n += strcmp(eventfd_id(e->d_name), id) == 0;
	closedir(all_fds);
	return n;
}

// The router keeps a front end's descriptor as long as the ring has it.
static void descriptors_of_notifications(void **state)
{
	const struct any_message none = {
		.request = SET_VRING_CALL, .flags = 1, .size = 8, .words = {TX | VHOST_MESSAGE_NO_FD}};
	const struct any_message halt = {.request = GET_VRING_BASE, .flags = 1, .size = 8, .words = {RX}};
	int first = eventfd(0, EFD_NONBLOCK), second = eventfd(0, EFD_NONBLOCK);
	char answer[20];

	connect_guest(state);
	ask_for_calls();
	guest_set_call(&g, TX, first);
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(first), 2);
	guest_set_call(&g, TX, second);
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(first), 1);
	assert_int_equal(holders(second), 2);
	say(&none, 20, NULL, 0);
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(second), 1);
	drain_calls(second);
	serves();
	assert_int_equal(drain_calls(second), 0);
	guest_set_call(&g, TX, first);
	guest_set_call(&g, RX, second);
	assert_int_not_equal(guest_features(&g), 0);
	drain_calls(first);
	serves();
	assert_int_equal(drain_calls(first), 1);
	say(&halt, 20, NULL, 0);
	assert_int_equal(recv(g.sock, answer, sizeof(answer), MSG_WAITALL), sizeof(answer));
	assert_int_not_equal(guest_features(&g), 0);
	assert_int_equal(holders(second), 1);
	assert_int_equal(holders(first), 2);
	disconnect_guest(state);
	assert_int_equal(holders(first), 1);
	close(first);
	close(second);
}

// A table of memory that no file has, while the rings run and a worker polls them.
static void memory_that_cannot_be_mapped(void **state)
{
	static const char *const files[] = {"/dev/null", "/proc/self/cmdline", "/dev/zero"};
	struct any_message m = {.request = SET_MEM_TABLE, .flags = 1, .size = 40, .words = {1}};
	uint64_t event;
	unsigned i;
	int fd;

	m.words[4] = 256 * MIB;
	for (i = 0; i < RTE_DIM(files); i++) {
		connect_guest(state);
		event = event_last();
		fixture_poll(port, true);
		fd = open(files[i], i == 1 ? O_RDONLY : O_RDWR);
		say(&m, 12 + 40, &fd, 1);
		close(fd);
		assert_true(fixture_wait_link(port, false, PATIENCE_MS));
		assert_string_equal(event_after(event)->kind->name, "vhost_message_refused");
		fixture_poll(NULL, false);
		disconnect_guest(state);
	}
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

static uint32_t any_word(unsigned *seed)
{
	static const uint32_t words[] = {0,          1,          2,      32,     64,         255,       256,
					 257,        0x7fff,     0xffff, 0x1000, 0x10000,    0x4000000, 0x10000000,
					 0x7fffffff, 0xffffffff, 40,     72,     0x80000000, 1024};
	unsigned i = (unsigned)rand_r(seed) % (RTE_DIM(words) + 1);

	return i < RTE_DIM(words) ? words[i] : (uint32_t)rand_r(seed) * 2u;
}

static void put_word64(uint32_t *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

// What an ordinary front end would say about its memory, a ring or itself.
static void ordinary_message(struct any_message *m, unsigned *seed)
{
	unsigned ring = (unsigned)rand_r(seed) % 2;

	m->size = 8;
	m->words[0] = ring;
	m->words[1] = (uint32_t)rand_r(seed) % 2 * GUEST_RING;
	if (m->request == SET_MEM_TABLE) {
		m->size = 40;
		put_word64(&m->words[0], 1);
		put_word64(&m->words[4], (2u + (unsigned)rand_r(seed) % 127) * MIB);
		put_word64(&m->words[6], (uintptr_t)g.mem);
	} else if (m->request == SET_VRING_ADDR) {
		m->size = 40;
		put_word64(&m->words[2], (uintptr_t)g.rings[ring].desc);
		put_word64(&m->words[4], (uintptr_t)g.rings[ring].used);
		put_word64(&m->words[6], (uintptr_t)g.rings[ring].avail);
	} else if (m->request == SET_LOG_BASE) {
		m->size = 16;
		put_word64(&m->words[0], MIB);
	} else if (m->request == GET_FEATURES || m->request == SET_OWNER || m->request == SET_LOG_FD ||
		   m->request == 15 || m->request == 17 || m->request == 40) {
		m->size = 0;
	} else if (m->request == 18) {
		m->words[1] = (uint32_t)rand_r(seed) % 2;
	} else if (m->request != SET_VRING_NUM && m->request != 10) {
		m->words[1] = 0;
	}
}

static unsigned ordinary_files(const struct any_message *m, const int *files, int *fds)
{
	if (m->request == SET_MEM_TABLE)
		fds[0] = g.mem_fd;
	else if (m->request == SET_LOG_BASE)
		fds[0] = files[1];
	else
		fds[0] = files[0];
	return m->request == SET_MEM_TABLE || m->request == SET_LOG_BASE || m->request == SET_LOG_FD ||
	       (m->request >= SET_VRING_KICK && m->request <= SET_VRING_ERR);
}

// Changes words, the length, flags or descriptors. Returns the bytes to send.
static unsigned spoil(struct any_message *m, const int *files, int *fds, unsigned *n_fds, unsigned *seed)
{
	static const uint32_t sizes[] = {0, 4, 8, 12, 16, 20, 40, 72, 256, 264, 272, 4096, UINT32_MAX};
	static const uint32_t flags[] = {1, 1, 1, 1, 9, 9, 5, 0, 2};
	unsigned i, bytes;

	if (rand_r(seed) % 4 == 0)
		m->request = (uint32_t)rand_r(seed) % 45;
	m->flags = flags[(unsigned)rand_r(seed) % RTE_DIM(flags)];
	for (i = (unsigned)rand_r(seed) % 3; i > 0; i--)
		m->words[(unsigned)rand_r(seed) % 12] = any_word(seed);
	bytes = 12 + m->size;
	if (rand_r(seed) % 4 == 0)
		m->size = sizes[(unsigned)rand_r(seed) % RTE_DIM(sizes)];
	if (rand_r(seed) % 4 == 0)
		bytes = 12 + RTE_MIN(m->size, 4u * MESSAGE_WORDS);
	if (rand_r(seed) % 4 == 0)
		*n_fds = (unsigned)rand_r(seed) % 9;
	for (i = 0; i < *n_fds; i++)
		if (i > 0 || rand_r(seed) % 4 == 0)
			fds[i] = files[(unsigned)rand_r(seed) % FILES];
	return bytes;
}

// One message: an ordinary one, or one that is spoilt. Returns whether it is as long as it says.
static bool random_message(const int *files, unsigned *seed)
{
	static const uint32_t requests[] = {GET_FEATURES,
					    SET_OWNER,
					    SET_MEM_TABLE,
					    SET_MEM_TABLE,
					    SET_LOG_BASE,
					    SET_LOG_FD,
					    SET_VRING_NUM,
					    SET_VRING_ADDR,
					    SET_VRING_ADDR,
					    10,
					    11,
					    SET_VRING_KICK,
					    13,
					    SET_VRING_ERR,
					    15,
					    17,
					    18,
					    18,
					    19,
					    40};
	struct any_message m = {.request = requests[(unsigned)rand_r(seed) % RTE_DIM(requests)],
				.flags = rand_r(seed) % 2 == 0 ? 1 : 9};
	unsigned n, bytes;
	int fds[8];

	ordinary_message(&m, seed);
	n = ordinary_files(&m, files, fds);
	bytes = rand_r(seed) % 8 == 0 ? spoil(&m, files, fds, &n, seed) : 12 + m.size;
	say(&m, bytes, fds, n);
	return bytes == 12 + m.size;
}

static void random_front_end(const int *files, unsigned seed)
{
	char answers[4096];
	bool whole = true;
	unsigned n;

	assert_int_equal(guest_start(&g, port->cfg.socket, false, 1), 0);
	for (n = 1 + (unsigned)rand_r(&seed) % 60; n > 0; n--) {
		whole = random_message(files, &seed) && whole;
		if (rand_r(&seed) % 4 == 0)
			guest_step(&g);
		if (whole && rand_r(&seed) % 16 == 0)
			guest_features(&g); // waits until the messages before it were handled
		while (recv(g.sock, answers, sizeof(answers), MSG_DONTWAIT) > 0)
			;
	}
	if (rand_r(&seed) % 8 == 0)
		guest_shrink_memory(&g);
	guest_stop(&g);
}

// Front ends that say anything once their rings run, while a worker polls the rings.
static void random_messages(void **state)
{
	enum { SEEDS = 200, PORT_SEEDS = 10 };            // more messages of one port would have to wait
	const char *only = getenv("CORELANE_VHOST_SEED"); // the first of 10
	int files[FILES] = {eventfd(0, 0), memfd_create("log", 0), open("/dev/null", O_RDWR)};
	unsigned i, first = only ? (unsigned)atoi(only) : 0, end = only ? first + PORT_SEEDS : SEEDS;

	assert_int_equal(ftruncate(files[1], MIB), 0);
	assert_int_equal(pipe2(files + 3, O_NONBLOCK), 0);
	for (i = first; i < end; i++) {
		if (i % PORT_SEEDS == 0 || i == first) {
			port = open_port("hostile");
			fixture_poll(port, true);
		}
		random_front_end(files, i);
		fixture_loop_ms(1);
		if ((i + 1) % PORT_SEEDS == 0 || i + 1 == end)
			fixture_close(port);
	}
	for (i = 0; i < FILES; i++)
		close(files[i]);
	connect_guest(state);
	serves();
	disconnect_guest(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_a_message),
		cmocka_unit_test(half_a_message_before),
		cmocka_unit_test(answers_that_are_not_read),
		cmocka_unit_test(storm_of_connections),
		cmocka_unit_test(memory_that_cannot_be_mapped),
		cmocka_unit_test(random_messages),
		with_guest(notification_that_would_block),
		with_guest(notification_after_a_replacement),
		cmocka_unit_test(descriptors_of_notifications),
		cmocka_unit_test(notification_of_no_eventfd),
		cmocka_unit_test(messages_of_inflight_buffers),
		cmocka_unit_test(descriptors_that_are_refused),
		cmocka_unit_test(descriptors_that_linger),
	};

	fixture_require();
	return cmocka_run_group_tests(tests, start_hostile, stop_hostile);
}
