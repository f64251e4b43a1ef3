// SPDX-License-Identifier: Apache-2.0
// A client that uses its rings in place; the test itself acts as the peer.
#include <string.h>

#include <rte_eal.h>

#include "base/event_signal.h"
#include "gen_testlib.h"
#include "memif_place.h"

#define RING 64

static struct memif_shm *shm;
static struct memif_counters count;
static struct place_tx tx;
static struct place_rx rx;
static struct frame frames[PORT_FRAMES];

static int setup(void **state)
{
	static char *argv[] = {"place_test",  "--no-huge", "-m", "64",          "--no-pci", "--no-telemetry",
			       "--no-shconf", "-l",        "0",  "--log-level", "error"};

	pattern_init();
	return rte_eal_init(RTE_DIM(argv), argv) < 0 || event_signal_init() < 0 ? -1 : 0;
}

static int make(void **state)
{
	shm = memif_shm_new();
	assert_int_equal(memif_shm_build(shm, 1, 1, 6, 2048), 0);
	memif_shm_offer(shm);
	count = (struct memif_counters){0};
	memif_queue_attach_tx(&shm->tx[0], &count, false);
	shm->tx[0].ring->flags = MEMIF_RING_MASK_INT;
	return place_tx_init(&tx, &shm->tx[0]) < 0 || place_rx_init(&rx, &shm->rx[0]) < 0 ? -1 : 0;
}

static int drop(void **state)
{
	place_tx_fini(&tx);
	place_rx_fini(&rx);
	memif_shm_free(shm);
	return 0;
}

static struct memif_desc *desc_of(struct memif_queue *q, unsigned slot)
{
	return &q->ring->desc[slot & (RING - 1)];
}

static uint8_t *data_of(const struct memif_desc *d)
{
	return shm->regions[d->region].addr + d->offset;
}

static void send(unsigned n, uint8_t first)
{
	unsigned i;

	assert_int_equal(place_reserve(&tx, frames, n, 64), n);
	for (i = 0; i < n; i++) {
		frames[i].data[0] = (uint8_t)(first + i);
		frames[i].length = 100 + i;
	}
	assert_int_equal(place_commit(&tx, frames, n), n);
}

static void frames_are_where_the_peer_reads_them(void **state)
{
	unsigned turn, i, n = 0;

	for (turn = 0; turn < 3000; turn++) { // indexes wrap
		unsigned k = 1 + turn % 63;

		send(k, (uint8_t)n);
		assert_int_equal((uint16_t)(shm->tx[0].ring->head - shm->tx[0].ring->tail), k);
		for (i = 0; i < k; i++) {
			const struct memif_desc *d = desc_of(&shm->tx[0], n + i);

			assert_int_equal(d->flags, 0);
			assert_int_equal(d->length, 100 + i);
			assert_int_equal(data_of(d)[0], (uint8_t)(n + i));
			assert_memory_equal(data_of(d) + 1, pattern + 1, 2047);
		}
		n += k;
		shm->tx[0].ring->tail = (uint16_t)n;
	}
	assert_int_equal(count.kicks, 0);
}

static void no_more_than_there_is_room_for(void **state)
{
	send(50, 0);
	assert_int_equal(place_reserve(&tx, frames, 64, 64), 14);
	send(14, 0);
	assert_int_equal(place_reserve(&tx, frames, 64, 64), 0);
	shm->tx[0].ring->tail = 3;
	assert_int_equal(place_reserve(&tx, frames, 64, 64), 3);
}

static void a_peer_that_sleeps_is_woken(void **state)
{
	shm->tx[0].ring->flags = 0;
	send(5, 0);
	assert_int_equal(count.kicks, 1);
}

// Acts as the peer.
static void fill(unsigned slot, uint32_t length, uint16_t flags)
{
	struct memif_desc *d = desc_of(&shm->rx[0], slot);

	assert_int_equal(d->length, 2048); // offered with its whole size
	assert_int_equal(d->flags, 0);
	memset(data_of(d), (int)(slot & 0xff), length);
	d->length = length;
	d->flags = flags;
}

static void frames_are_read_and_offered_again(void **state)
{
	unsigned turn, i, n = 0;

	for (turn = 0; turn < 3000; turn++) {
		unsigned k = 1 + turn % 64, got;

		for (i = 0; i < k; i++)
			fill(n + i, 60 + i, 0);
		shm->rx[0].ring->tail = (uint16_t)(n + k);
		for (i = 0; i < k; i += got) {
			unsigned j;

			got = place_peek(&rx, frames, 1 + turn % PORT_BURST, 42);
			assert_in_range(got, 1, k - i);
			for (j = 0; j < got; j++) {
				assert_int_equal(frames[j].length, 60 + i + j);
				assert_int_equal(frames[j].data[59], (uint8_t)(n + i + j));
			}
			place_release(&rx, got);
		}
		n += k;
		assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 0);
		assert_int_equal(shm->rx[0].ring->head, (uint16_t)(n + RING));
	}
}

static void a_frame_in_pieces(void **state)
{
	fill(0, 60, 0);
	fill(1, 2048, MEMIF_DESC_NEXT);
	fill(2, 1000, 0);
	fill(3, 61, 0);
	fill(4, 10, MEMIF_DESC_NEXT); // the rest has not arrived
	shm->rx[0].ring->tail = 5;
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 1);
	place_release(&rx, 1);
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 1);
	assert_int_equal(frames[0].length, 3048);
	assert_int_equal(frames[0].data[2047], 1);
	assert_int_equal(frames[0].data[2048], 2);
	place_release(&rx, 1);
	assert_int_equal(shm->rx[0].ring->head, 3 + RING);
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 1);
	assert_int_equal(frames[0].length, 61);
	place_release(&rx, 1);
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 0);
	fill(5, 20, 0);
	shm->rx[0].ring->tail = 6;
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 1);
	assert_int_equal(frames[0].length, 30);
	place_release(&rx, 1);
	assert_int_equal(memif_shm_fault(shm), MEMIF_FAULT_NONE);
}

static void a_peer_that_lies(void **state)
{
	shm->rx[0].ring->tail = RING + 1;
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 0);
	assert_int_equal(memif_shm_fault(shm), MEMIF_FAULT_INDEX);
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 0);
	send(RING, 0);
	shm->tx[0].ring->tail = RING + 1;
	assert_int_equal(place_reserve(&tx, frames, 64, 64), 0);
	assert_int_equal(shm->tx[0].fault, MEMIF_FAULT_INDEX);
}

static void a_length_beyond_the_buffer(void **state)
{
	fill(0, 60, 0);
	desc_of(&shm->rx[0], 0)->length = 2049;
	shm->rx[0].ring->tail = 1;
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 0);
	assert_int_equal(memif_shm_fault(shm), MEMIF_FAULT_CHAIN);
}

static void a_chain_without_end(void **state)
{
	unsigned i;

	for (i = 0; i < RING; i++)
		fill(i, 64, MEMIF_DESC_NEXT);
	shm->rx[0].ring->tail = RING;
	assert_int_equal(place_peek(&rx, frames, PORT_BURST, 42), 0);
	assert_int_equal(memif_shm_fault(shm), MEMIF_FAULT_CHAIN);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_are_where_the_peer_reads_them),
		TEST(no_more_than_there_is_room_for),
		TEST(a_peer_that_sleeps_is_woken),
		TEST(frames_are_read_and_offered_again),
		TEST(a_frame_in_pieces),
		TEST(a_peer_that_lies),
		TEST(a_length_beyond_the_buffer),
		TEST(a_chain_without_end),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
