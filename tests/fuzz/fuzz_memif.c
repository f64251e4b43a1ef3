// SPDX-License-Identifier: Apache-2.0
// A memif peer that is the fuzzer: control messages with descriptors of all kinds, then the contents of the shared
// memory, to a server and to a client of this code over real sockets.
//
// Input: role (odd: the victim is a client; enum way adds more), then records of one byte and a message: what to pass
// with it (see pass_fds), or SHORT and a length, or LATE: the time of the handshake is over, or DEAF: the peer reads no
// more, or MEMORY: the rest is written over the rings, and the victim polls and sends.
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

#include "offload/whole.h"
#include "port/memif/memif_conn.h"

enum { NO_FD, MEMFD, EVENTFD, UNSEALED, DEV_NULL, SHORT, MEMORY, TWO, NINE, LATE, DEAF, N_KINDS };
enum way { CLIENT = 1, SECRET = 2, CROWD = 4, EMPTY_POOL = 8, SHARED = 16, WHOLE = 32 };

#define REGION_SIZE 65536
#define POOL 1023
#define MOST_FDS 9
#define FRAMES 5 // that the victim sends in a round
#define L3 14    // of the tunnel

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct event_base *base;
static struct rte_mempool *pool;
static struct memif_if victim;
static struct memif_shm *shared;
static struct memif_counters counters;
static char path[64];
static int memfd, unsealed, kick, null, listener = -1;
static uint8_t ways;

static void up(struct memif_if *mif, struct memif_shm *shm)
{
	uint16_t i;

	for (i = 0; i < shm->n_rx; i++) {
		memif_queue_attach_rx(&shm->rx[i], pool, 0, &counters);
		shm->rx[i].whole = shm->whole;
	}
	for (i = 0; i < shm->n_tx; i++) {
		memif_queue_attach_tx(&shm->tx[i], &counters, (ways & SHARED) != 0);
		shm->tx[i].whole = shm->whole;
	}
	shared = shm;
}

static void down(struct memif_if *mif, struct memif_shm *shm, const char *reason)
{
	shared = NULL;
	memif_shm_free(shm);
}

static void failed(struct memif_if *mif, const char *reason)
{
	if (*reason == '\0')
		abort();
}

static void set_up(void)
{
	static char *argv[] = {"fuzz_memif",  "--no-huge", "-m", "64",          "--no-pci", "--no-telemetry",
			       "--no-shconf", "-l",        "0",  "--log-level", "error"};

	if (rte_eal_init(RTE_DIM(argv), argv) < 0)
		abort();
	pool = rte_pktmbuf_pool_create("fuzz", POOL, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
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

static unsigned pass_fds(uint8_t kind, int fds[MOST_FDS])
{
	const int one[] = {[MEMFD] = memfd, [EVENTFD] = kick, [UNSEALED] = unsealed, [DEV_NULL] = null};
	unsigned i, n = kind == TWO ? 2 : kind == NINE ? MOST_FDS : kind < RTE_DIM(one) && kind != NO_FD;

	for (i = 0; i < n; i++)
		fds[i] = n == 1 ? one[kind] : i ? kick : memfd;
	return n;
}

static void send_message(int fd, const void *data, size_t size, uint8_t kind)
{
	char control[CMSG_SPACE(MOST_FDS * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = size};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[MOST_FDS];
	unsigned n = pass_fds(kind, fds);

	if (n > 0) {
		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		*CMSG_FIRSTHDR(&mh) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&mh)), fds, n * sizeof(int));
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

// A packet that the peer has marked as a whole segment of a tunnel, with what it says of it, is cut, or opened as if it
// had left the tunnel, or dropped. Nothing that the mark says may lead out of the packet.
static void take_whole(struct rte_mbuf *m)
{
	struct rte_mbuf *out[OFFLOAD_SEGMENTS_MAX];
	unsigned inner = L3 + m->outer_l3_len;
	bool agreed = (ways & WHOLE) && shared->whole;
	int n;

	if (!agreed)
		abort();
	if (m->data_len > 0 && *rte_pktmbuf_mtod(m, uint8_t *) & 1) { // one of two ways, as the frame says
		if (whole_open(m, inner) && inner + m->l3_len + m->l4_len > m->data_len)
			abort();
		rte_pktmbuf_free(m);
		return;
	}
	n = whole_cut(m, L3, out);
	if (n < 0) {
		rte_pktmbuf_free(m);
		return;
	}
	while (n > 0) {
		rte_mbuf_sanity_check(out[--n], 1);
		if (offload_is_whole(out[n]))
			abort();
		rte_pktmbuf_free(out[n]);
	}
}

static void receive(void)
{
	struct rte_mbuf *pkts[256];
	unsigned i;
	uint16_t n;

	for (i = 0; shared != NULL && i < shared->n_rx; i++) {
		n = memif_rx(&shared->rx[i], pkts, RTE_DIM(pkts));
		while (n > 0) {
			rte_mbuf_sanity_check(pkts[--n], 1);
			if (offload_is_whole(pkts[n]))
				take_whole(pkts[n]);
			else
				rte_pktmbuf_free(pkts[n]);
		}
	}
}

// All buffers are elsewhere, but some.
static void receive_without_buffers(unsigned left)
{
	static void *taken[POOL];

	if (rte_mempool_get_bulk(pool, taken, POOL - left) < 0)
		abort();
	receive();
	rte_mempool_put_bulk(pool, taken, POOL - left);
}

// Frames of many lengths, the last of them in two buffers, of which the second may be empty. To a peer that takes whole
// packets it is one, and also to one that does not: the peer may have changed since it was asked.
static void transmit(unsigned round)
{
	static const uint16_t lengths[FRAMES] = {14, 60, 100, 300, 1500};
	struct rte_mbuf *pkts[FRAMES], *more;
	unsigned i, k, sent;

	for (i = 0; shared != NULL && i < shared->n_tx; i++) {
		for (k = 0; k < FRAMES; k++) {
			pkts[k] = rte_pktmbuf_alloc(pool);
			memset(rte_pktmbuf_append(pkts[k], lengths[k]), 'x', lengths[k]);
		}
		more = rte_pktmbuf_alloc(pool);
		rte_pktmbuf_append(more, (uint16_t)(round * 100));
		rte_pktmbuf_chain(pkts[FRAMES - 1], more);
		if (ways & WHOLE) {
			pkts[FRAMES - 1]->ol_flags |= OFFLOAD_WHOLE;
			pkts[FRAMES - 1]->tso_segsz = 1448;
			pkts[FRAMES - 1]->outer_l3_len = 50;
		}
		sent = memif_tx(&shared->tx[i], pkts, FRAMES);
		if ((ways & WHOLE) && !shared->whole && sent == FRAMES)
			abort();
		rte_pktmbuf_free_bulk(pkts + sent, FRAMES - sent);
	}
}

static void poll_and_send(void)
{
	unsigned round;

	if (ways & EMPTY_POOL) {
		receive_without_buffers(0);
		receive_without_buffers(32);
	}
	for (round = 0; round < 3; round++) {
		receive();
		transmit(round);
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
			break;
		}
		if (kind == DEAF || kind == LATE) {
			if (kind == DEAF)
				shutdown(fd, SHUT_RD);
			else if (victim.conn != NULL)
				event_active(victim.conn->event, EV_TIMEOUT, 0);
			turn();
			continue;
		}
		memcpy(&msg, data, n);
		send_message(fd, &msg, kind == SHORT && n > 0 ? msg.type % 200u % sizeof(msg) : sizeof(msg), kind);
		turn();
		data += n;
		size -= n;
	}
	poll_and_send();
	if (shared != NULL || victim.conn == NULL)         // during the handshake the timer rests
		event_active(victim.timer, EV_TIMEOUT, 0); // looks at faults, or connects again
	turn();
}

// More peers than may wait, one of which goes at once, and one that names the interface of another.
static void crowd(void)
{
	struct memif_msg init = {.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION}};
	int fds[MEMIF_MAX_PENDING + 2];
	struct sockaddr_un addr;
	unsigned i;

	address(&addr);
	for (i = 0; i < RTE_DIM(fds); i++) {
		fds[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(fds[i], (struct sockaddr *)&addr, sizeof(addr)) < 0)
			abort();
		if (i == 0)
			shutdown(fds[i], SHUT_RDWR);
		turn();
	}
	send_message(fds[1], &init, sizeof(init), NO_FD);
	turn();
	for (i = 0; i < RTE_DIM(fds); i++)
		close(fds[i]);
	turn();
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
	ways = data[0];
	victim = (struct memif_if){.base = base,
				   .name = "fuzz",
				   .secret = {ways & SECRET ? 's' : 0},
				   .client = ways & CLIENT,
				   .queues = 2,
				   .log2_ring = 5,
				   .buffer_size = 128,
				   .whole = (ways & WHOLE) != 0,
				   .up = up,
				   .down = down,
				   .failed = failed};
	strcpy(victim.socket, path);
	fd = victim.client ? peer_of_client() : peer_of_server();
	turn();
	play(fd, data + 1, size - 1);
	if (ways == CROWD)
		crowd();
	memif_if_stop(&victim);
	close(fd);
	turn();
	if (rte_mempool_in_use_count(pool) != 0 || shared != NULL)
		abort();
	return 0;
}
