// SPDX-License-Identifier: Apache-2.0
// Peers that break the protocol in the shared memory. Each must get the reason and be disconnected.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/event.h"
#include "base/loop.h"
#include "port/memif/memif_testlib.h"

#define RING 64

// An ordinary interface, whose memory the test then corrupts.
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

static void liar_start(struct liar *l, bool client, uint8_t log2_ring)
{
	struct error err = {0};

	*l = (struct liar){.mif = {.base = loop_base(),
				   .client = client,
				   .queues = 1,
				   .log2_ring = log2_ring,
				   .buffer_size = 2048,
				   .up = liar_up,
				   .down = liar_down,
				   .name = "liar"}};
	l->mif.arg = l;
	snprintf(l->mif.socket, sizeof(l->mif.socket), "%s", test_path("liar"));
	assert_int_equal(memif_if_start(&l->mif, &err), 0);
}

struct victim {
	struct port *port;
	struct liar liar;
	unsigned mbufs, fds;
};

static void victim_start_with(struct victim *v, bool client, uint32_t ring_size, uint8_t log2_ring)
{
	struct port_config cfg = test_config("victim", client, "liar");

	cfg.ring_size = ring_size;
	v->mbufs = test_mbufs();
	if (client)
		liar_start(&v->liar, false, log2_ring);
	v->port = test_open(&cfg);
	if (!client)
		liar_start(&v->liar, true, log2_ring);
	assert_true(test_wait(v->port, true));
	while (v->liar.shm == NULL)
		test_pump(1);
}

static void victim_start(struct victim *v, bool client)
{
	victim_start_with(v, client, RING, 6);
}

// Polls and sends, as a worker does, until the victim has noticed the violation.
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

static void desc(struct memif_ring *ring, uint32_t slot, uint16_t flags, uint16_t region, uint32_t length,
		 uint32_t offset)
{
	ring->desc[slot] = (struct memif_desc){.flags = flags, .region = region, .length = length, .offset = offset};
}

static void publish(uint16_t *index, uint16_t value)
{
	__atomic_store_n(index, value, __ATOMIC_RELEASE);
}

// A client's lies to a server. The liar's region is a bit larger than 2 * 64 * 2048 bytes.
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
			desc(ring, slot, client_lies[i].flags, client_lies[i].region, client_lies[i].length,
			     client_lies[i].offset);
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

// A frame may have 128 descriptors; 129 are a lie although the ring has room for more, because each poll would walk
// them again.
static void long_chains(void **state)
{
	static const struct {
		unsigned slots;
		bool ends, lie;
	} cases[] = {
		{128, true, false}, {127, false, false}, {128, false, true}, {129, true, true}, {256, false, true}};
	unsigned i, slot;

	for (i = 0; i < RTE_DIM(cases); i++) {
		struct memif_ring *ring;
		struct rte_mbuf *m = NULL;
		struct victim v;
		uint16_t n;

		victim_start_with(&v, false, 256, 8);
		ring = v.liar.shm->tx[0].ring;
		for (slot = 0; slot < cases[i].slots; slot++) {
			ring->desc[slot].length = 10;
			ring->desc[slot].flags = slot + 1 < cases[i].slots || !cases[i].ends ? MEMIF_DESC_NEXT : 0;
		}
		publish(&ring->head, (uint16_t)cases[i].slots);
		n = port_memif_ops.rx(&v.port->queues[0], &m, 1);
		assert_int_equal(n, cases[i].ends && !cases[i].lie);
		if (n > 0) {
			assert_int_equal(m->pkt_len, 10 * cases[i].slots);
			rte_pktmbuf_free(m);
		}
		if (cases[i].lie) {
			victim_notices(&v, "128 descriptors");
			continue;
		}
		test_pump(250);
		assert_true(v.port->link_up);
		memif_if_stop(&v.liar.mif);
		test_close(v.port);
	}
}

// Frames that the port's MTU does not allow are counted and not copied, and no more of them in one poll than it asks
// for.
static void long_frames(void **state)
{
	static const uint32_t lengths[] = {64, 1519, 1518, 9000};
	struct rte_mbuf *pkts[BATCH];
	struct memif_ring *ring;
	struct port_queue *q;
	struct victim v;
	unsigned slot;
	uint16_t i, n;

	victim_start(&v, false);
	v.port->longest = 1518;
	test_too_long = 0;
	q = &v.port->queues[0];
	ring = v.liar.shm->tx[0].ring;
	for (slot = 0; slot < 4; slot++) {
		ring->desc[slot].length = lengths[slot];
		ring->desc[slot].flags = 0;
	}
	for (; slot < 8; slot++) { // a chain of 8000 bytes
		ring->desc[slot].length = 2000;
		ring->desc[slot].flags = slot < 7 ? MEMIF_DESC_NEXT : 0;
	}
	ring->desc[slot++] = ring->desc[0];
	publish(&ring->head, (uint16_t)slot);
	n = port_memif_ops.rx(q, pkts, BATCH);
	for (i = 0; i < n; i++)
		assert_true(pkts[i]->pkt_len <= 1519);
	assert_int_equal(n, 4); // one of 1519 bytes fits a buffer: port_rx drops it
	assert_int_equal(test_too_long, 2);
	assert_int_equal(ring->tail, slot);
	rte_pktmbuf_free_bulk(pkts, n);
	for (; slot < 30; slot++) {
		ring->desc[slot].length = 9000;
		ring->desc[slot].flags = 0;
	}
	publish(&ring->head, (uint16_t)slot);
	assert_int_equal(port_memif_ops.rx(q, pkts, 10), 0);
	assert_int_equal(ring->tail, 19);
	assert_int_equal(test_too_long, 12);
	test_pump(250);
	assert_true(v.port->link_up);
	assert_int_equal(test_mbufs(), v.mbufs);
	memif_if_stop(&v.liar.mif);
	test_close(v.port);
}

// A poll ends when it has copied 64 KiB, so that long frames do not take the time of other ports.
static void bytes_of_a_poll(void **state)
{
	static const uint32_t lengths[] = {64, 1500, 9000};
	struct rte_mbuf *pkts[BATCH];
	struct memif_ring *ring;
	struct victim v;
	unsigned i, slot, sum;
	uint16_t n;

	for (i = 0; i < RTE_DIM(lengths); i++) {
		victim_start_with(&v, false, 256, 8);
		ring = v.liar.shm->tx[0].ring;
		for (slot = 0; slot < 200; slot++) {
			ring->desc[slot].length = lengths[i];
			ring->desc[slot].flags = 0;
			ring->desc[slot].offset = ring->desc[0].offset;
		}
		publish(&ring->head, 200);
		for (sum = 0; sum < 200; sum += n) {
			n = port_memif_ops.rx(&v.port->queues[0], pkts, BATCH);
			assert_in_range(n, 1, RTE_MIN(200u, 65536 / lengths[i] + 32));
			if (sum + n < 200)
				assert_true(n * lengths[i] >= 65536);
			rte_pktmbuf_free_bulk(pkts, n);
		}
		assert_int_equal(sum, 200);
		assert_int_equal(test_mbufs(), v.mbufs);
		memif_if_stop(&v.liar.mif);
		test_close(v.port);
	}
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
	uint64_t before = event_last();
	const struct event_record *e;
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
	e = event_after(before);
	assert_non_null(e);
	assert_string_equal(e->kind->name, "port_memory_lost");
	assert_string_equal(e->subject, "port victim");
	assert_null(event_after(e->number));
	close(uffd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client_lies_to_server), cmocka_unit_test(server_lies_to_client),
		cmocka_unit_test(long_chains),           cmocka_unit_test(chain_in_pieces),
		cmocka_unit_test(bytes_of_a_poll),       cmocka_unit_test(long_frames),
		cmocka_unit_test(random_memory),         cmocka_unit_test(memory_taken_away),
	};

	return cmocka_run_group_tests(tests, test_setup, test_teardown);
}
