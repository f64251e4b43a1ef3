// SPDX-License-Identifier: Apache-2.0
// Peers that lie: in their messages, in their memory. Each must be told why and disconnected; nothing may break.
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/loop.h"
#include "port/memif/memif_testlib.h"

#define RING 64

// One of our own interfaces whose memory we then spoil.
struct liar {
	struct memif_if mif;
	struct memif_shm *shm;
	char reason[128];
	unsigned downs;
	struct memif_counters count;
};

static void liar_up(struct memif_if *mif, struct memif_shm *shm)
{
	struct liar *l = mif->arg;

	memif_queue_attach_tx(&shm->tx[0], &l->count, false);
	memif_queue_attach_rx(&shm->rx[0], test_pool, 0, &l->count);
	l->shm = shm;
}

static void liar_down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	struct liar *l = mif->arg;

	l->shm = NULL;
	l->downs++;
	snprintf(l->reason, sizeof(l->reason), "%s", reason);
	memif_shm_free(shm);
}

static void liar_start(struct liar *l, bool client)
{
	struct error err = {0};

	*l = (struct liar){.mif = {.base = loop_base(), .client = client, .queues = 1, .log2_ring = 6, .buffer_size = 2048,
				   .up = liar_up, .down = liar_down, .name = "liar"}};
	l->mif.arg = l;
	snprintf(l->mif.socket, sizeof(l->mif.socket), "%s", test_path("liar"));
	assert_int_equal(memif_if_start(&l->mif, &err), 0);
}

struct victim {
	struct port *port;
	struct liar liar;
	unsigned mbufs, fds;
};

static void victim_start(struct victim *v, bool client)
{
	struct port_config cfg = test_config("victim", client, "liar");

	cfg.ring_size = RING;
	v->mbufs = test_mbufs();
	if (client)
		liar_start(&v->liar, false);
	v->port = test_open(&cfg);
	if (!client)
		liar_start(&v->liar, true);
	assert_true(test_wait(v->port, true));
	while (v->liar.shm == NULL)
		test_pump(1);
}

// Until the victim has noticed. Polls and sends all the while, as a worker does.
static void victim_notices(struct victim *v, const char *reason)
{
	struct rte_mbuf *pkts[BATCH], *m;
	unsigned tries = 0;
	uint16_t n;

	while (v->port->link_up && tries++ < 2000) {
		n = port_memif_ops.rx(&v->port->queues[0], pkts, BATCH);
		if (n > 0)
			rte_pktmbuf_free_bulk(pkts, n);
		m = test_frame(3000, 1, 2);
		if (port_memif_ops.tx(&v->port->queues[0], &m, 1) == 0)
			rte_pktmbuf_free(m);
		test_pump(1);
	}
	assert_false(v->port->link_up);
	if (strstr(v->port->last_error, reason) == NULL)
		fail_msg("'%s' where '%s' was expected", v->port->last_error, reason);
	assert_true(test_wait_text(v->liar.reason, reason));
	assert_int_equal(test_mbufs(), v->mbufs);
	memif_if_stop(&v->liar.mif);
	test_close(v->port);
}

static void desc(struct memif_ring *ring, uint32_t slot, uint16_t flags, uint16_t region, uint32_t length, uint32_t offset)
{
	ring->desc[slot] = (struct memif_desc){.flags = flags, .region = region, .length = length, .offset = offset};
}

static void publish(uint16_t *index, uint16_t value)
{
	__atomic_store_n(index, value, __ATOMIC_RELEASE);
}

// A client's lies to a server. The region of liar's shape is a bit larger than 2 * 64 * 2048 bytes.
static const struct {
	const char *what, *reason;
	bool s2c; // in the ring that the server writes to
	uint16_t flags, region;
	uint32_t length, offset;
	uint16_t head; // client's index after the lie
} client_lies[] = {
	{"head beyond", "ring index", false, 0, 0, 64, 0, 65},
	{"head far beyond", "ring index", false, 0, 0, 64, 0, 0xffff},
	{"unknown region", "unknown region", false, 0, 1, 64, 0, 1},
	{"region beyond the table", "unknown region", false, 0, 0xffff, 64, 0, 1},
	{"offset beyond", "outside its region", false, 0, 0, 64, 0x7fffffff, 1},
	{"offset at the end", "outside its region", false, 0, 0, 64, 0xffffffc0, 1},
	{"length beyond", "outside its region", false, 0, 0, 0x7fffffff, 0, 1},
	{"length and offset that overflow", "outside its region", false, 0, 0, 0xffffffff, 0xffffffff, 1},
	{"frame of 70000 bytes", "65535", false, 0, 0, 70000, 0, 1},
	{"endless chain", "without an end", false, MEMIF_DESC_NEXT, 0, 64, 0, 64},
	{"endless chain of nothing", "without an end", false, MEMIF_DESC_NEXT, 0, 0, 0, 64},
	{"chain above 65535", "65535", false, MEMIF_DESC_NEXT, 0, 2048, 0, 63},
	{"head beyond", "ring index", true, 0, 0, 2048, 0, 0x8000},
	{"unknown region", "unknown region", true, 0, 77, 2048, 0, 64},
	{"offset beyond", "outside its region", true, 0, 0, 2048, 0xfffff000, 64},
	{"length beyond", "outside its region", true, 0, 0, 0xfffff000, 64, 64},
	{"no room", "no room", true, 0, 0, 0, 0, 64},
};

static void client_lies_to_server(void **state)
{
	unsigned i, slot, fds = test_fds();

	for (i = 0; i < RTE_DIM(client_lies); i++) {
		struct memif_ring *ring;
		struct victim v;

		victim_start(&v, false);
		ring = client_lies[i].s2c ? v.liar.shm->rx[0].ring : v.liar.shm->tx[0].ring;
		for (slot = 0; slot < RING; slot++)
			desc(ring, slot, client_lies[i].flags, client_lies[i].region, client_lies[i].length, client_lies[i].offset);
		publish(&ring->head, client_lies[i].head);
		victim_notices(&v, client_lies[i].reason);
	}
	assert_int_equal(test_fds(), fds);
}

static const struct {
	const char *what, *reason;
	bool s2c;
	uint16_t flags;
	uint32_t length;
	uint16_t tail;
} server_lies[] = {
	{"tail beyond", "ring index", true, 0, 64, 65},
	{"length beyond the buffer", "outside its region", true, 0, 2049, 1},
	{"length of 4 GiB", "outside its region", true, 0, 0xffffffff, 1},
	{"endless chain", "without an end", true, MEMIF_DESC_NEXT, 64, 64},
	{"tail ahead of head", "ring index", false, 0, 64, 7},
};

static void server_lies_to_client(void **state)
{
	unsigned i, slot, fds = test_fds();

	for (i = 0; i < RTE_DIM(server_lies); i++) {
		struct memif_ring *ring;
		struct victim v;

		victim_start(&v, true);
		ring = server_lies[i].s2c ? v.liar.shm->tx[0].ring : v.liar.shm->rx[0].ring;
		for (slot = 0; slot < RING; slot++)
			desc(ring, slot, server_lies[i].flags, 99, server_lies[i].length, 0xffffffff);
		publish(&ring->tail, server_lies[i].tail);
		victim_notices(&v, server_lies[i].reason);
	}
	assert_int_equal(test_fds(), fds);
}

// An unfinished chain is not a lie as long as it can still be finished.
static void chain_in_pieces(void **state)
{
	struct rte_mbuf *m = NULL;
	struct memif_ring *ring;
	struct victim v;
	unsigned slot;

	victim_start(&v, false);
	ring = v.liar.shm->tx[0].ring;
	for (slot = 0; slot < 3; slot++) {
		ring->desc[slot].length = 1000;
		ring->desc[slot].flags = slot < 2 ? MEMIF_DESC_NEXT : 0;
		publish(&ring->head, slot + 1);
		assert_int_equal(port_memif_ops.rx(&v.port->queues[0], &m, 1), slot == 2);
	}
	assert_int_equal(m->pkt_len, 3000);
	assert_int_equal(m->nb_segs, 2);
	rte_pktmbuf_free(m);
	test_pump(250);
	assert_true(v.port->link_up);
	publish(&ring->head, 4); // an empty frame is dropped, not delivered
	ring->desc[3].length = 0;
	assert_int_equal(port_memif_ops.rx(&v.port->queues[0], &m, 1), 0);
	assert_int_equal(ring->tail, 4);
	assert_int_equal(test_mbufs(), v.mbufs);
	memif_if_stop(&v.liar.mif);
	test_close(v.port);
}

// Memory and index words that change at random while the victim works on them.
static void random_memory(void **state)
{
	struct rte_mbuf *pkts[BATCH], *m;
	unsigned round, i, n, fds = test_fds();

	srand(1);
	for (round = 0; round < 300; round++) {
		bool client = round % 2;
		struct victim v;

		victim_start(&v, client);
		for (i = 0; i < 200; i++) {
			struct memif_ring *ring = rand() % 2 ? v.liar.shm->tx[0].ring : v.liar.shm->rx[0].ring;
			uint32_t length = rand() % 4 ? rand() % 2048 : rand();
			uint32_t offset = rand() % 4 ? rand() % 200000 : rand();

			desc(ring, rand() % RING, rand() % 2, rand() % 8 ? 0 : rand(), length, offset);
			publish(rand() % 2 ? &ring->head : &ring->tail, rand() % 16 ? rand() % 128 : rand());
			n = port_memif_ops.rx(&v.port->queues[0], pkts, 1 + rand() % BATCH);
			rte_pktmbuf_free_bulk(pkts, n);
			m = test_frame(1 + rand() % 4000, 1, 2);
			if (port_memif_ops.tx(&v.port->queues[0], &m, 1) == 0)
				rte_pktmbuf_free(m);
		}
		memif_if_stop(&v.liar.mif);
		test_close(v.port);
		assert_int_equal(test_mbufs(), v.mbufs);
	}
	assert_int_equal(test_fds(), fds);
}

// The kernel cannot provide a page of the peer's memory.
static void memory_taken_away(void **state)
{
	struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	const struct memif_region *r;
	struct victim v;

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) < 0) {
		print_message("# no userfaultfd on this machine\n");
		skip();
	}
	victim_start(&v, false);
	r = (*(struct memif_queue **)v.port->queues[0].priv)->regions;
	reg.range.start = (uintptr_t)r->addr;
	reg.range.len = r->mapped;
	assert_int_equal(ioctl(uffd, UFFDIO_REGISTER, &reg), 0);
	assert_int_equal(fallocate(v.liar.shm->region_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, r->mapped), 0);
	victim_notices(&v, "taken away");
	close(uffd);
}

// --- control messages, from a raw socket ---

static int raw_connect(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, test_path("raw"));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void raw_send(int fd, const void *data, size_t size, int pass)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass >= 0) {
		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), &pass, sizeof(pass));
	}
	assert_int_equal(sendmsg(fd, &mh, MSG_NOSIGNAL), size);
}

// The next message that is neither HELLO nor ACK; type 0 when the connection has been closed.
static struct memif_msg raw_answer(int fd)
{
	struct memif_msg msg = {0};
	unsigned tries;
	ssize_t n;

	for (tries = 0; tries < 1000; tries++) {
		n = recv(fd, &msg, sizeof(msg), MSG_DONTWAIT);
		if (n == 0)
			return (struct memif_msg){0};
		if (n == sizeof(msg) && msg.type != MEMIF_HELLO && msg.type != MEMIF_ACK)
			return msg;
		test_pump(1);
	}
	fail_msg("no answer");
	return msg;
}

static int sealed_memfd(uint64_t size, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

enum raw_fd { NO_FD, GOOD_MEMFD, UNSEALED_MEMFD, READ_ONLY_MEMFD, EVENTFD, PIPE, DEV_ZERO, DISK_FILE };

static int raw_fd(enum raw_fd kind)
{
	char path[] = "/tmp/memif_hostile.XXXXXX";
	int fds[2];

	switch (kind) {
	case GOOD_MEMFD:
		return sealed_memfd(65536, F_SEAL_SHRINK);
	case UNSEALED_MEMFD:
		return sealed_memfd(65536, F_SEAL_GROW);
	case READ_ONLY_MEMFD:
		return sealed_memfd(65536, F_SEAL_SHRINK | F_SEAL_WRITE);
	case EVENTFD:
		return eventfd(0, 0);
	case PIPE:
		assert_int_equal(pipe(fds), 0);
		close(fds[0]);
		return fds[1];
	case DEV_ZERO:
		return open("/dev/zero", O_RDWR);
	case DISK_FILE:
		fds[0] = mkstemp(path);
		unlink(path);
		assert_int_equal(ftruncate(fds[0], 65536), 0);
		return fds[0];
	default:
		return -1;
	}
}

#define INIT {.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 5, .secret = "s"}}
#define REGION(i, bytes) {.type = MEMIF_ADD_REGION, .add_region = {.index = i, .size = bytes}}
#define RING_MSG(i, r, o, l) {.type = MEMIF_ADD_RING, .add_ring = {.flags = 1, .index = i, .region = r, .offset = o, .log2_size = l}}

static const struct {
	struct memif_msg msg[4];
	enum raw_fd fd[4];
	const char *reason;
} scripts[] = {
	{{{.type = MEMIF_ACK}}, {0}, "unexpected message 1"},
	{{{.type = MEMIF_HELLO}}, {0}, "unexpected message 2"},
	{{{.type = MEMIF_CONNECT}}, {0}, "unexpected message 6"},
	{{{.type = 0xffff}}, {0}, "unexpected message 65535"},
	{{REGION(0, 65536)}, {GOOD_MEMFD}, "unexpected message 4"},
	{{{.type = MEMIF_INIT, .init = {.version = 0x0100, .id = 5}}}, {0}, "version"},
	{{{.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 6}}}, {0}, "no interface with id 6"},
	{{{.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 5}}}, {0}, "wrong secret"},
	{{{.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION, .id = 5, .mode = 1, .secret = "s"}}}, {0}, "only Ethernet"},
	{{INIT, INIT}, {0}, "unexpected message 3"},
	{{INIT, {.type = MEMIF_CONNECT}}, {0}, "no rings"},
	{{INIT, {.type = MEMIF_CONNECTED}}, {0}, "unexpected message 7"},
	{{INIT, REGION(0, 65536)}, {0}, "without file descriptor"},
	{{INIT, REGION(1, 65536)}, {NO_FD, GOOD_MEMFD}, "out of order"},
	{{INIT, REGION(0, 65537)}, {NO_FD, GOOD_MEMFD}, "Invalid argument"},
	{{INIT, REGION(0, UINT64_MAX)}, {NO_FD, GOOD_MEMFD}, "Invalid argument"},
	{{INIT, REGION(0, 0)}, {NO_FD, GOOD_MEMFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536)}, {NO_FD, UNSEALED_MEMFD}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, READ_ONLY_MEMFD}, "writable"},
	{{INIT, REGION(0, 65536)}, {NO_FD, EVENTFD}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, PIPE}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, DEV_ZERO}, "sealed"},
	{{INIT, REGION(0, 65536)}, {NO_FD, DISK_FILE}, "sealed"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 5)}, {NO_FD, GOOD_MEMFD}, "without eventfd"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Protocol error"}, // no cookie
	{{INIT, REGION(0, 65536), RING_MSG(1, 0, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "at most 1 rings"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 1, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0xffff, 0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 65536, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0xfffffff0, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 1, 5)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 12)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, REGION(0, 65536), RING_MSG(0, 0, 0, 255)}, {NO_FD, GOOD_MEMFD, EVENTFD}, "Invalid argument"},
	{{INIT, {.type = MEMIF_DISCONNECT}}, {0}, NULL},
};

static void lying_messages(void **state)
{
	struct port_config cfg = test_config("raw", false, "raw");
	unsigned i, k, fds;
	struct port *port;

	cfg.memif_id = 5;
	strcpy(cfg.secret, "s");
	port = test_open(&cfg);
	fds = test_fds();
	for (i = 0; i < RTE_DIM(scripts); i++) {
		int fd = raw_connect(), pass;
		struct memif_msg answer;

		for (k = 0; k < 4 && scripts[i].msg[k].type != 0; k++) {
			pass = raw_fd(scripts[i].fd[k]);
			raw_send(fd, &scripts[i].msg[k], sizeof(scripts[i].msg[k]), pass);
			if (pass >= 0)
				close(pass);
			test_pump(1);
		}
		answer = raw_answer(fd);
		if (scripts[i].reason == NULL)
			assert_int_equal(answer.type, 0);
		else if (answer.type != MEMIF_DISCONNECT || strstr(answer.disconnect.reason, scripts[i].reason) == NULL)
			fail_msg("script %u: '%s' where '%s' was expected", i, answer.disconnect.reason, scripts[i].reason);
		close(fd);
		test_pump(1);
		assert_int_equal(test_fds(), fds);
	}
	test_close(port);
}

static void garbage_and_silence(void **state)
{
	struct port_config cfg = test_config("raw", false, "raw");
	struct port *port = test_open(&cfg);
	uint8_t junk[300] = {3};
	int fds[MEMIF_MAX_STRANGERS + 20], fd;
	unsigned i;

	for (i = 1; i <= sizeof(junk); i++) { // every length but the right one
		if (i == sizeof(struct memif_msg))
			continue;
		fd = raw_connect();
		raw_send(fd, junk, i, -1);
		assert_int_equal(raw_answer(fd).type, MEMIF_DISCONNECT);
		close(fd);
	}
	for (i = 0; i < RTE_DIM(fds); i++) { // more strangers than we listen to: the last ones are turned away
		fds[i] = raw_connect();
		test_pump(1);
	}
	assert_int_equal(raw_answer(fds[RTE_DIM(fds) - 1]).type, 0);
	for (i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
	fd = raw_connect(); // says nothing
	test_pump(MEMIF_HANDSHAKE_MS + 500);
	assert_true(strstr(raw_answer(fd).disconnect.reason, "5000 ms") != NULL);
	close(fd);
	test_close(port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_lies_to_server), cmocka_unit_test(server_lies_to_client), cmocka_unit_test(chain_in_pieces),
		cmocka_unit_test(random_memory),         cmocka_unit_test(memory_taken_away),     cmocka_unit_test(lying_messages),
		cmocka_unit_test(garbage_and_silence),
	};

	return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
