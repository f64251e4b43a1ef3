// SPDX-License-Identifier: Apache-2.0
// A memif peer that is the fuzzer: control messages with descriptors of all kinds, then the contents of the shared
// memory, to a server and to a client of this code over real sockets.
//
// Input: role (odd: the victim is a client), then records of one byte and a message: what to pass with it (see
// pass_fd), or SHORT and a length, or MEMORY: the rest is written over the rings, and the victim polls and sends.
#include <fcntl.h>
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

#include "port/memif/memif_conn.h"

enum { NO_FD, MEMFD, EVENTFD, UNSEALED, DEV_NULL, SHORT, MEMORY };

#define REGION_SIZE 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct event_base *base;
static struct rte_mempool *pool;
static struct memif_if victim;
static struct memif_shm *shared;
static struct memif_counters counters;
static char path[64];
static int memfd, unsealed, kick, null, listener = -1;

static void up(struct memif_if *mif, struct memif_shm *shm)
{
	uint16_t i;

	for (i = 0; i < shm->n_rx; i++)
		memif_queue_attach_rx(&shm->rx[i], pool, 0, &counters);
	for (i = 0; i < shm->n_tx; i++)
		memif_queue_attach_tx(&shm->tx[i], &counters, false);
	shared = shm;
}

static void down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	shared = NULL;
	memif_shm_free(shm);
}

static void set_up(void)
{
	static char *argv[] = {"fuzz_memif",  "--no-huge", "-m", "64",          "--no-pci", "--no-telemetry",
			       "--no-shconf", "-l",        "0",  "--log-level", "error"};

	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		abort();
	pool = rte_pktmbuf_pool_create("fuzz", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	base = event_base_new();
	memfd = memfd_create("fuzz", MFD_ALLOW_SEALING);
	unsealed = memfd_create("fuzz", 0);
	kick = eventfd(0, EFD_NONBLOCK);
	null = open("/dev/null", O_RDWR);
	if (pool == NULL || ftruncate(memfd, REGION_SIZE) < 0 || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		abort();
	snprintf(path, sizeof(path), "/tmp/fuzz_memif.%d", getpid());
}

static void turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static int pass_fd(uint8_t kind)
{
	const int fds[] = {[NO_FD] = -1, [MEMFD] = memfd, [EVENTFD] = kick, [UNSEALED] = unsealed, [DEV_NULL] = null};

	return kind < RTE_DIM(fds) ? fds[kind] : -1;
}

static void send_message(int fd, const void *data, size_t size, int pass)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass >= 0) {
		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), &pass, sizeof(pass));
	}
	sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT); // the victim may have disconnected already
}

static void address(struct sockaddr_un *addr)
{
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	strcpy(addr->sun_path, path);
}

static int peer_of_server(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct sockaddr_un addr;
	struct error err;

	address(&addr);
	if (memif_if_start(&victim, &err) < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		abort();
	return fd;
}

static int peer_of_client(void)
{
	struct sockaddr_un addr;
	struct error err;
	int fd;

	address(&addr);
	listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (bind(listener, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(listener, 1) < 0 ||
	    memif_if_start(&victim, &err) < 0)
		abort();
	fd = accept(listener, NULL, NULL);
	close(listener);
	unlink(path);
	return fd;
}

static void poll_and_send(void)
{
	struct rte_mbuf *pkts[256], *m;
	unsigned i, round;
	uint16_t n;

	for (round = 0; round < 3; round++) {
		for (i = 0; shared != NULL && i < shared->n_rx; i++) {
			n = memif_rx(&shared->rx[i], pkts, RTE_DIM(pkts));
			while (n > 0) {
				rte_mbuf_sanity_check(pkts[--n], 1);
				rte_pktmbuf_free(pkts[n]);
			}
		}
		for (i = 0; shared != NULL && i < shared->n_tx; i++) {
			m = rte_pktmbuf_alloc(pool);
			rte_pktmbuf_append(m, 64 + 900 * round);
			if (memif_tx(&shared->tx[i], &m, 1) == 0)
				rte_pktmbuf_free(m);
		}
	}
}

// Writes over the rings, wherever they are, from the head of each on.
static void lay_over(const uint8_t *data, size_t size)
{
	uint8_t *memory = shared->regions[0].addr;
	size_t at;

	for (at = 0; at < size && at < shared->regions[0].size; at++)
		memory[at] ^= data[at];
}

static void play(int fd, const uint8_t *data, size_t size)
{
	while (size > 0) {
		struct memif_msg msg = {0};
		uint8_t kind = *data++;
		size_t n = RTE_MIN(--size, sizeof(msg));

		if (kind == MEMORY) {
			if (shared != NULL)
				lay_over(data, size);
			poll_and_send();
			return;
		}
		memcpy(&msg, data, n);
		send_message(fd, &msg, kind == SHORT && n > 0 ? msg.type % 200u % sizeof(msg) : sizeof(msg),
			     pass_fd(kind));
		turn();
		data += n;
		size -= n;
	}
	poll_and_send();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd;

	if (base == NULL)
		set_up();
	if (size < 1)
		return 0;
	if (fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, REGION_SIZE) < 0)
		abort();
	if (pwrite(memfd, &(uint32_t){MEMIF_COOKIE}, 4, 0) < 0 || pwrite(memfd, &(uint32_t){MEMIF_COOKIE}, 4, 4096) < 0)
		abort();
	victim = (struct memif_if){.base = base,
				   .name = "fuzz",
				   .client = data[0] & 1,
				   .queues = 2,
				   .log2_ring = 5,
				   .buffer_size = 128,
				   .up = up,
				   .down = down};
	strcpy(victim.socket, path);
	fd = victim.client ? peer_of_client() : peer_of_server();
	turn();
	play(fd, data + 1, size - 1);
	memif_if_stop(&victim);
	close(fd);
	turn();
	if (rte_mempool_in_use_count(pool) != 0 || shared != NULL)
		abort();
	return 0;
}
