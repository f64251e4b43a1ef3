// SPDX-License-Identifier: Apache-2.0
// Whole trials through a router that loses, duplicates, damages and reorders frames: each fault is found and counted
// exactly.
#include <string.h>

#include "gen_router.h"

#define PACKETS 50000

static unsigned seen, faults; // by the router

static const struct stream_count *total(const struct trial *t)
{
	return &t->total.count;
}

static bool each(unsigned n)
{
	if (seen++ % n != n - 1)
		return false;
	faults++;
	return true;
}

static int loses(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	return each(97) ? -1 : !side;
}

static int doubles(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	*copies = each(89);
	return !side;
}

static int damages(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	if (each(101))
		rte_pktmbuf_mtod(m, uint8_t *)[42 + seen % 16] ^= 1 << seen % 8;
	return !side;
}

static int damages_payload(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	if (each(101))
		rte_pktmbuf_mtod(m, uint8_t *)[m->pkt_len - 1] ^= 0x10;
	return !side;
}

static int changes_header(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	if (each(103))
		rte_pktmbuf_mtod(m, uint8_t *)[5] ^= 1;
	return !side;
}

static int misplaces(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	return each(107) ? side : !side;
}

static int overtakes(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	*hold = each(109);
	return !side;
}

static int adds_noise(int side, struct rte_mbuf *m, unsigned *copies, bool *hold)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);

	if (each(113)) { // an ARP request instead of the frame
		memset(p, 0, 64);
		memset(p, 0xff, 6);
		p[12] = 8;
		p[13] = 6;
	}
	return !side;
}

static const struct trial *run_faulty(router_fn fn, uint32_t size)
{
	struct test_header h = header_plain(false, 1);
	Corelane__V1__GeneratorStream *m = message_stream(&h, size);
	struct trial_plan plan = router_plan(PACKETS);
	static uint8_t mask[42];
	const struct trial *t;

	memset(mask, 0xff, 14);
	m->expected = m->header;
	m->expected_mask = (ProtobufCBinaryData){.data = mask, .len = sizeof(mask)};
	plan.drain = router_ms(100);
	seen = faults = 0;
	router_connect(1, 1, &m);
	t = router_run(&plan, fn);
	assert_int_equal(total(t)->sent, PACKETS);
	assert_true(faults > 400);
	router_disconnect(NULL);
	return t;
}

static void loss_is_counted(void **state)
{
	const struct trial *t = run_faulty(loses, 64);

	assert_int_equal(total(t)->received, PACKETS - faults);
	assert_int_equal(total(t)->reordered + total(t)->duplicated + t->sink.corrupt, 0);
}

static void doubles_are_counted(void **state)
{
	const struct trial *t = run_faulty(doubles, 64);

	assert_int_equal(total(t)->duplicated, faults);
	assert_int_equal(total(t)->received, PACKETS);
}

static void damage_is_counted(void **state)
{
	const struct trial *t = run_faulty(damages, 64);

	assert_int_equal(t->sink.corrupt, faults);
	assert_int_equal(total(t)->received, PACKETS - faults);
	t = run_faulty(damages_payload, 300);
	assert_int_equal(total(t)->corrupt, faults);
	assert_int_equal(total(t)->received, PACKETS);
}

static void wrong_headers_are_counted(void **state)
{
	const struct trial *t = run_faulty(changes_header, 64);

	assert_int_equal(total(t)->wrong_header, faults);
	assert_int_equal(t->sink.wrong.bytes[5], 0);
}

static void wrong_ports_are_counted(void **state)
{
	const struct trial *t = run_faulty(misplaces, 64);

	assert_int_equal(total(t)->misplaced, faults);
	assert_int_equal(total(t)->received, PACKETS - faults);
}

static void reordering_is_counted(void **state)
{
	const struct trial *t = run_faulty(overtakes, 64);

	assert_int_equal(total(t)->reordered, faults);
	assert_int_equal(total(t)->received, PACKETS);
}

static void others_frames_are_counted(void **state)
{
	const struct trial *t = run_faulty(adds_noise, 64);

	assert_int_equal(t->sink.foreign, faults);
	assert_int_equal(t->sink.corrupt, 0);
	assert_int_equal(total(t)->received, PACKETS - faults);
}

#define TEST(f) cmocka_unit_test_teardown(f, router_disconnect)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(loss_is_counted),           TEST(doubles_are_counted),     TEST(damage_is_counted),
		TEST(wrong_headers_are_counted), TEST(wrong_ports_are_counted), TEST(reordering_is_counted),
		TEST(others_frames_are_counted),
	};

	return cmocka_run_group_tests(tests, router_setup, router_teardown);
}
