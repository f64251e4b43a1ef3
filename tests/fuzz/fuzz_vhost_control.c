// SPDX-License-Identifier: Apache-2.0
// A vhost-user front end whose messages are the fuzzer. It connects over a real socket and sends messages that are
// ordinary, or changed in some places, with the descriptors that belong to them or with others. When it stops, it has
// to be disconnected, and the next guest has to be served.
//
// Input: a byte, how many messages of an ordinary start come first. Then messages:
//	request | ring << 6
//	which descriptors (enum descriptors) | 128: then the port receives and sends
//	n; the ordinary message is changed in n % 8 places, and cut after n / 8 * 2 bytes if that is not 0
//	n % 8 times: a position in the message, header included, and a byte that is XORed there
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_eal.h>
#include <rte_vhost.h>

#include "base/loop.h"
#include "base/rcu.h"
#include "port/vhost.h"
#include "port/vhost_guest.h"

#define RINGS 4
#define RING 64
#define MEMORY (1u << 20)
#define RING_AT(i) (16384u * (i))
#define SERVED_EVERY 256
#define PORT_INPUTS 16      // then it is opened anew: the messages of a port would have to wait
#define POLLER 0            // RCU's reader
#define DESCRIPTORS_MOST 64 // that the process may have more than at the start

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	GET_FEATURES = 1,
	SET_FEATURES,
	SET_OWNER,
	RESET_OWNER,
	SET_MEM_TABLE,
	SET_LOG_BASE,
	SET_LOG_FD,
	SET_VRING_NUM,
	SET_VRING_ADDR,
	SET_VRING_BASE,
	GET_VRING_BASE,
	SET_VRING_KICK,
	SET_VRING_CALL,
	SET_VRING_ERR,
	GET_PROTOCOL_FEATURES,
	SET_PROTOCOL_FEATURES,
	GET_QUEUE_NUM,
	SET_VRING_ENABLE,
	SEND_RARP,
	NET_SET_MTU,
	SET_BACKEND_REQ_FD,
	IOTLB_MSG,
	GET_CONFIG = 24,
	SET_CONFIG,
	GET_INFLIGHT_FD = 31,
	SET_INFLIGHT_FD,
	SET_STATUS = 39,
};

enum descriptors {
	ORDINARY,
	NONE,
	EVENT,
	MEMORY_FILE,
	SHORT_FILE,
	PIPE,
	SOCKET,
	DIRECTORY,
	EIGHT,
	NINE,
	N_DESCRIPTORS
};

struct message {
	uint32_t request, flags, size;
	union {
		uint64_t u64[34];
		uint32_t u32[68];
		uint16_t u16[136];
		uint8_t bytes[272];
	};
} __attribute__((packed));

static const uint8_t start[] = {
	SET_OWNER,
	GET_FEATURES,
	GET_PROTOCOL_FEATURES,
	SET_PROTOCOL_FEATURES,
	SET_FEATURES,
	SET_MEM_TABLE,
	SET_VRING_NUM,
	SET_VRING_BASE,
	SET_VRING_ADDR,
	SET_VRING_CALL,
	SET_VRING_KICK,
	1 << 6 | SET_VRING_NUM,
	1 << 6 | SET_VRING_BASE,
	1 << 6 | SET_VRING_ADDR,
	1 << 6 | SET_VRING_CALL,
	1 << 6 | SET_VRING_KICK,
	SET_VRING_ENABLE,
	1 << 6 | SET_VRING_ENABLE,
};

static struct port *port;
static char path[64];
static uint8_t *memory;
static int files[N_DESCRIPTORS], sock = -1;
static unsigned descriptors_at_start;

void port_link_changed(struct port *p, bool link_up, bool peer_connected)
{
	p->link_up = link_up;
}

void port_refused(const struct port *p, struct rte_mbuf *m, const struct drop_reason *why)
{
	rte_pktmbuf_free(m);
}

void port_no_buffer(const struct port *p)
{
}

void port_refused_too_long(const struct port *p)
{
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void open_files(void)
{
	int ends[2];

	files[EVENT] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	files[MEMORY_FILE] = memfd_create("guest", MFD_CLOEXEC);
	files[SHORT_FILE] = memfd_create("short", MFD_CLOEXEC);
	if (pipe2(ends, O_CLOEXEC) < 0)
		abort();
	files[PIPE] = ends[0];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		abort();
	files[SOCKET] = ends[0];
	files[DIRECTORY] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ftruncate(files[MEMORY_FILE], MEMORY) < 0 || ftruncate(files[SHORT_FILE], 4096) < 0)
		abort();
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, files[MEMORY_FILE], 0);
	if (memory == MAP_FAILED)
		abort();
}

static void open_port(void)
{
	static struct port_config cfg = {
		.name = "fuzz", .kind = "vhost", .role = PORT_TENANT, .queues = 1, .mtu = 1500};
	struct error err = {};

	strcpy(cfg.socket, path);
	if (port != NULL)
		port->ops->close(port);
	free(port);
	port = calloc(1, sizeof(*port));
	port->id = 1;
	port->ops = &port_vhost_ops;
	port->queues[0].port = port;
	port->queues[0].owner = UINT32_MAX;
	if (port->ops->open(port, &cfg, &err) < 0)
		abort();
}

static void set_up(void)
{
	static char *argv[] = {"fuzz_vhost_control", "--no-huge", "-m", "96",          "--no-pci", "--no-telemetry",
			       "--no-shconf",        "-l",        "0",  "--log-level", "emergency"};

	if (rte_eal_init(RTE_DIM(argv), argv) < 0 || rcu_init() < 0)
		abort();
	rcu_reader_online(POLLER);
	rcu_reader_rest(POLLER);
	port_pool_init(4096, 0);
	loop_set_base(event_base_new());
	snprintf(path, sizeof(path), "/tmp/fuzz_vhost_control.%d", getpid());
	open_port();
	rte_log_set_level_pattern("lib.vhost.*", RTE_LOG_EMERG);
	open_files();
}

static void turn(void)
{
	event_base_loop(loop_base(), EVLOOP_NONBLOCK);
}

static void wait_link(bool up)
{
	unsigned tries;

	for (tries = 0; port->link_up != up; tries++) {
		turn();
		usleep(20);
		if (tries == 200000)
			abort();
	}
}

// The port is polled as by a worker: it holds nothing of it between two polls.
static uint16_t poll_port(struct rte_mbuf **pkts)
{
	uint16_t n;

	rcu_reader_resume(POLLER);
	n = port->ops->rx(&port->queues[0], pkts, BATCH);
	rcu_reader_rest(POLLER);
	return n;
}

static void receive(void)
{
	struct rte_mbuf *pkts[BATCH];
	uint16_t n = poll_port(pkts);

	while (n > 0) {
		rte_mbuf_sanity_check(pkts[--n], 1);
		if (pkts[n]->nb_segs != 1 || pkts[n]->pkt_len != pkts[n]->data_len)
			abort();
		rte_pktmbuf_free(pkts[n]);
	}
}

static void transmit(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(port_pool(SOCKET_ID_ANY));

	rte_pktmbuf_append(m, 64);
	rcu_reader_resume(POLLER);
	if (port->ops->tx(&port->queues[0], &m, 1) == 0)
		rte_pktmbuf_free(m);
	rcu_reader_rest(POLLER);
}

// An ordinary guest: its first frames arrive.
static void serves(void)
{
	struct rte_mbuf *pkts[BATCH];
	unsigned tries, got = 0;
	struct guest g;

	for (tries = 0; guest_start(&g, path, false, 1) < 0; tries++) {
		if (tries == 1000)
			abort();
		if (g.sock >= 0)
			close(g.sock);
		usleep(200);
	}
	wait_link(true);
	for (tries = 0; got < GUEST_RING; tries++) {
		uint16_t n = poll_port(pkts);

		rte_pktmbuf_free_bulk(pkts, n);
		got += n;
		if (tries == 10000)
			abort();
	}
	guest_stop(&g);
	wait_link(false);
	if (descriptors_at_start == 0)
		descriptors_at_start = count_descriptors();
	if (count_descriptors() > descriptors_at_start + DESCRIPTORS_MOST)
		abort();
}

static void connect_front_end(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(un.sun_path, path);
	if (sock < 0 || connect(sock, (struct sockaddr *)&un, sizeof(un)) < 0)
		abort();
}

// The router ends the connection, whatever was sent, and be it the half of a message.
static void disconnect_front_end(void)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint8_t answers[4096];
	unsigned tries;

	shutdown(sock, SHUT_WR);
	for (tries = 0; poll(&p, 1, 10) <= 0 || recv(sock, answers, sizeof(answers), MSG_DONTWAIT) > 0; tries++)
		if (tries == 2000)
			abort();
	close(sock);
	wait_link(false);
}

static void ordinary_addresses(struct message *m, unsigned ring)
{
	uint64_t at = (uintptr_t)memory + RING_AT(ring);

	m->size = 40;
	m->u32[0] = ring;
	m->u64[1] = at;
	m->u64[2] = at + 8192;
	m->u64[3] = at + 4096;
	m->u64[4] = 0;
}

static enum descriptors ordinary_memory(struct message *m)
{
	m->size = 40;
	m->u32[0] = 1;
	m->u64[1] = 0;
	m->u64[2] = MEMORY;
	m->u64[3] = (uintptr_t)memory;
	m->u64[4] = 0;
	return MEMORY_FILE;
}

static enum descriptors ordinary_word(struct message *m, uint64_t value, enum descriptors which)
{
	m->size = 8;
	m->u64[0] = value;
	return which;
}

static enum descriptors ordinary_state(struct message *m, unsigned ring, uint32_t num)
{
	m->size = 8;
	m->u32[0] = ring;
	m->u32[1] = num;
	return NONE;
}

static enum descriptors ordinary_inflight(struct message *m)
{
	m->size = 24;
	m->u64[0] = 65536;
	m->u64[1] = 0;
	m->u16[8] = RINGS;
	m->u16[9] = RING;
	return m->request == SET_INFLIGHT_FD ? MEMORY_FILE : NONE;
}

static enum descriptors ordinary(struct message *m, unsigned request, unsigned ring)
{
	// VERSION_1, PROTOCOL_FEATURES, INDIRECT_DESC, LOG_ALL, MQ, MRG_RXBUF
	const uint64_t features = 1ULL << 32 | 1ULL << 30 | 1ULL << 28 | 1ULL << 26 | 1ULL << 22 | 1ULL << 15;

	*m = (struct message){.request = request, .flags = 1};
	switch (request) {
	case SET_FEATURES:
		return ordinary_word(m, features, NONE);
	case SET_MEM_TABLE:
		return ordinary_memory(m);
	case SET_LOG_BASE:
		ordinary_word(m, 65536, NONE);
		m->size = 16;
		return MEMORY_FILE;
	case SET_LOG_FD:
		return EVENT;
	case SET_VRING_NUM:
		return ordinary_state(m, ring, RING);
	case SET_VRING_ADDR:
		ordinary_addresses(m, ring);
		return NONE;
	case SET_VRING_BASE:
	case GET_VRING_BASE:
		return ordinary_state(m, ring, 0);
	case SET_VRING_ENABLE:
		return ordinary_state(m, ring, 1);
	case SET_VRING_KICK:
	case SET_VRING_CALL:
	case SET_VRING_ERR:
		return ordinary_word(m, ring, EVENT);
	case SET_PROTOCOL_FEATURES:
		return ordinary_word(m, 1 | 1 << 3, NONE); // MQ, REPLY_ACK
	case SEND_RARP:
	case NET_SET_MTU:
	case SET_STATUS:
		return ordinary_word(m, 1500, NONE);
	case SET_BACKEND_REQ_FD:
		return SOCKET;
	case IOTLB_MSG:
		m->size = 32;
		m->u64[1] = MEMORY;
		return NONE;
	case GET_CONFIG:
	case SET_CONFIG:
		m->size = 12 + 8;
		m->u32[1] = 8;
		return NONE;
	case GET_INFLIGHT_FD:
	case SET_INFLIGHT_FD:
		return ordinary_inflight(m);
	default:
		return NONE;
	}
}

static unsigned choose_files(enum descriptors which, int *fds)
{
	unsigned i, n = which == NONE ? 0 : which == EIGHT ? 8 : which == NINE ? 9 : 1;

	for (i = 0; i < n; i++)
		fds[i] = n == 1 ? files[which] : files[MEMORY_FILE];
	return n;
}

static bool send_bytes(const struct message *m, size_t len, enum descriptors which)
{
	char control[CMSG_SPACE(9 * sizeof(int))] = {};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)m, .iov_len = len};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	uint8_t answers[512];
	struct cmsghdr *c;
	int fds[9];
	unsigned n = choose_files(which, fds);

	if (n > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	while (recv(sock, answers, sizeof(answers), MSG_DONTWAIT) > 0)
		;
	return sendmsg(sock, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

// Returns the rest of the input, NULL: the connection has ended.
static const uint8_t *send_changed(const uint8_t *at, const uint8_t *end)
{
	enum descriptors own, which = at[1] % 128 % N_DESCRIPTORS;
	unsigned n = at[2] % 8, cut = at[2] / 8 * 2;
	bool use = at[1] & 128;
	struct message m;
	size_t len;

	own = ordinary(&m, at[0] % 64, at[0] / 64);
	for (at += 3; n > 0 && end - at >= 2; n--, at += 2)
		((uint8_t *)&m)[at[0] % sizeof(m)] ^= at[1];
	which = which == ORDINARY ? own : which;
	len = 12 + RTE_MIN(m.size, (uint32_t)sizeof(m.bytes));
	if (!send_bytes(&m, cut > 0 ? RTE_MIN(cut, len) : len, which))
		return NULL;
	if (use) {
		turn();
		receive();
		transmit();
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data + 1, *end = data + size;
	static unsigned inputs;
	unsigned total, in_use, i;
	enum descriptors own;
	struct message m;

	if (size < 1)
		return 0;
	if (port == NULL)
		set_up();
	else if (inputs % PORT_INPUTS == 0)
		open_port();
	if (inputs++ % SERVED_EVERY == 0)
		serves();
	memset(memory, 0, RING_AT(RINGS));
	connect_front_end();
	for (i = 0; i < data[0] % (RTE_DIM(start) + 1); i++) {
		own = ordinary(&m, start[i] % 64, start[i] / 64);
		if (!send_bytes(&m, 12 + m.size, own))
			abort();
	}
	while (at != NULL && end - at >= 3)
		at = send_changed(at, end);
	disconnect_front_end();
	port_pool_usage(&total, &in_use);
	if (in_use != 0)
		abort();
	return 0;
}
