// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <rte_cycles.h>

#include "policy/meter.h"
#include "testing/router_fixture.h"

static struct error err;

static struct meter *add(const char *name, uint64_t bit_rate, uint64_t burst_bytes, uint64_t packet_rate,
			 uint64_t burst_packets)
{
	struct meter_config c = {.bit_rate = bit_rate,
				 .burst_bytes = burst_bytes,
				 .packet_rate = packet_rate,
				 .burst_packets = burst_packets};

	snprintf(c.name, sizeof(c.name), "%s", name);
	return meter_add(&c, &err);
}

// Number of packets of a size that pass if they arrive evenly over some time, from an empty bucket on.
static unsigned passed_in(struct meter *m, double seconds, unsigned packets, uint32_t bytes)
{
	uint64_t start = m->bucket.time, span = (uint64_t)(seconds * (double)rte_get_tsc_hz());
	unsigned i, n = 0;

	m->bucket.tc = 0;
	for (i = 0; i < packets; i++)
		n += meter_pass(m->id, 1, bytes, start + span * (i + 1) / packets);
	return n;
}

static void bytes(void **state)
{
	struct meter *m = add("bytes", 8000000, 10000, 0, 0); // a million bytes per second
	struct meter_count passed, dropped;
	unsigned i, n = 0;

	for (i = 0; i < 20; i++) // the burst
		n += meter_pass(m->id, 1, 1000, m->bucket.time);
	assert_int_equal(n, 10);
	meter_count(m, &passed, &dropped);
	assert_int_equal(passed.packets, 10);
	assert_int_equal(passed.bytes, 10000);
	assert_int_equal(dropped.packets, 10);
	n = passed_in(m, 1, 2000, 1000);
	assert_in_range(n, 980, 1020);
	n = passed_in(m, 0.1, 500, 1000);
	assert_in_range(n, 97, 103);
	assert_false(meter_pass(m->id, 1, 10001, m->bucket.time + rte_get_tsc_hz() * 100)); // larger than the burst
	assert_int_equal(meter_del("bytes", &err), 0);
}

static void packets(void **state)
{
	struct meter *m = add("packets", 0, 0, 100, 5);
	unsigned i, n = 0;

	for (i = 0; i < 20; i++)
		n += meter_pass(m->id, 1, 9600, m->bucket.time);
	assert_int_equal(n, 5);
	assert_in_range(passed_in(m, 1, 1000, 64), 98, 102);
	assert_int_equal(meter_del("packets", &err), 0);
}

// Large segments have the meter's rate, too, and small packets beside them do not keep them out.
static void large_segments(void **state)
{
	struct meter *m = add("large", 8000000, 10000, 0, 0), *p = add("parts", 0, 0, 1000, 5);
	uint64_t start = m->bucket.time, hz = rte_get_tsc_hz();
	unsigned i, n = 0, parts = 0;

	assert_true(meter_pass(m->id, 45, 65000, start));
	assert_false(meter_pass(m->id, 1, 1000, start + hz / 1000 * 55)); // 55 ms later, of which 55,000 bytes are owed
	assert_true(meter_pass(m->id, 1, 1000, start + hz / 1000 * 57));
	start = RTE_MAX(m->bucket.time, p->bucket.time);
	for (i = 1; i <= 10000; i++) {
		n += meter_pass(m->id, 45, 65000, start + hz / 1000 * i);
		parts += meter_pass(p->id, 45, 65000, start + hz / 1000 * i) * 45;
	}
	assert_in_range(n, 151, 156); // of 10 s, in each of which 1,000,000 bytes pass
	assert_in_range(parts, 9900, 10100);
	start = m->bucket.time + hz;
	for (i = 2, n = parts = 0; i <= 20000; i++) { // small packets alone would have more than the rate
		n += meter_pass(m->id, 1, 600, start + hz / 2000 * i);
		parts += i % 7 == 0 && meter_pass(m->id, 45, 9000, start + hz / 2000 * i);
	}
	assert_in_range(n * 600 + parts * 9000, 9900000, 10100000);
	assert_true(n > 1000 && parts > 100);
	assert_int_equal(meter_del("large", &err), 0);
	assert_int_equal(meter_del("parts", &err), 0);
}

static void fast(void **state)
{
	struct meter *m = add("fast", 100000000000, 0, 0, 0); // 100 Gbit/s
	unsigned n = passed_in(m, 0.001, 20000, 1250);

	assert_in_range(n, 9890, 10110);
	assert_int_equal(m->burst, 625000000);
	assert_int_equal(meter_del("fast", &err), 0);
}

// A batch of another worker may have begun before the bucket's last packet.
static void time_runs_one_way(void **state)
{
	struct meter *m = add("time", 0, 0, 1, 2);
	uint64_t now = m->bucket.time;

	assert_true(meter_pass(m->id, 1, 64, now));
	assert_true(meter_pass(m->id, 1, 64, now));
	assert_false(meter_pass(m->id, 1, 64, now - 1000000));
	assert_false(meter_pass(m->id, 1, 64, now - 1));
	assert_int_equal(meter_del("time", &err), 0);
	assert_true(meter_pass(9999, 1, 64, now)); // none of that id
	assert_true(meter_pass(0, 1, 64, now));
}

#define THREADS 4
#define PER_THREAD 100000

struct load {
	struct meter *meter;
	uint64_t now;
};

static void *hammer(void *arg)
{
	const struct load *l = arg;
	unsigned i;

	for (i = 0; i < PER_THREAD; i++)
		meter_pass(l->meter->id, 1, 100, l->now);
	return NULL;
}

static void workers_share_it(void **state)
{
	struct meter *m = add("shared", 0, 0, 1, 50000);
	struct load l = {m, m->bucket.time};
	struct meter_count passed, dropped;
	pthread_t t[THREADS];
	unsigned i;

	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammer, &l), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	meter_count(m, &passed, &dropped);
	assert_int_equal(passed.packets, 50000);
	assert_int_equal(passed.packets + dropped.packets, THREADS * PER_THREAD);
	assert_int_equal(meter_del("shared", &err), 0);
}

static void changes(void **state)
{
	struct meter *m = add("m", 8000000, 100000, 0, 0);
	struct meter_config c = m->cfg;

	m->bucket.tc = 60000;
	c.burst_bytes = 50000;
	assert_int_equal(meter_set(m, &c, &err), 0);
	assert_int_equal(m->bucket.tc, 50000);
	m->bucket.tc = 100;
	c.bit_rate = 16000000;
	c.burst_bytes = 0;
	assert_int_equal(meter_set(m, &c, &err), 0);
	assert_int_equal(m->bucket.tc, 100); // no additional tokens
	assert_int_equal(m->burst, 100000);  // 50 ms
	c = (struct meter_config){.name = "m", .packet_rate = 10};
	assert_int_equal(meter_set(m, &c, &err), 0);
	assert_int_equal(m->bucket.tc, 32);
	assert_int_equal(meter_del("m", &err), 0);
}

static void refused(void **state)
{
	static const struct {
		struct meter_config c;
		int code;
		const char *field;
	} bad[] = {
		{{.name = "a"}, EINVAL, "meter.bit_rate"},
		{{.name = "a", .bit_rate = 8000, .packet_rate = 1}, EINVAL, "meter.bit_rate"},
		{{.name = "a", .bit_rate = 8000, .burst_packets = 1}, EINVAL, "meter.burst_packets"},
		{{.name = "a", .packet_rate = 8, .burst_bytes = 9600}, EINVAL, "meter.burst_bytes"},
		{{.name = "taken", .packet_rate = 8}, EEXIST, "meter.name"},
	};
	unsigned i;

	add("taken", 8000, 0, 0, 0);
	for (i = 0; i < RTE_DIM(bad); i++) {
		assert_null(meter_add(&bad[i].c, &err));
		assert_int_equal(err.code, bad[i].code);
		assert_string_equal(err.field, bad[i].field);
	}
	assert_int_equal(meter_del("taken", &err), 0);
	assert_int_equal(meter_del("taken", &err), -ENOENT);
	assert_null(meter_next(NULL));
}

static void ports_hold_it(void **state)
{
	struct meter *m = add("held", 8000, 0, 0, 0);
	struct port_config c = router_config(RED0), irb = router_config(IRB0);

	meters_config_edit(&irb)->ingress = m->id; // it keeps no flows
	assert_int_equal(port_set(port_get(IRB0), &irb, &err), -EINVAL);
	assert_string_equal(err.field, "port.ingress_meter");
	meters_config_edit(&c)->egress = m->id;
	assert_int_equal(port_set(port_get(RED0), &c, &err), -EINVAL); // it keeps no flows
	assert_string_equal(err.field, "port.egress_meter");
	c.stateful = true;
	meters_config_edit(&c)->ingress = m->id;
	router_set(RED0, &c);
	assert_int_equal(m->refs, 2);
	assert_int_equal(port_fwds[RED0]->egress_meter, m->id);
	assert_int_equal(meter_del("held", &err), -EBUSY);
	assert_non_null(strstr(err.message, "red0"));
	c.stateful = false;
	assert_int_equal(port_set(port_get(RED0), &c, &err), -EINVAL);
	*meters_config_edit(&c) = (struct meters_config){0};
	router_set(RED0, &c);
	assert_int_equal(m->refs, 0);
	assert_int_equal(meter_del("held", &err), 0);
}

static int setup(void **state)
{
	meter_init();
	return router_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes),   cmocka_unit_test(packets),           cmocka_unit_test(large_segments),
		cmocka_unit_test(fast),    cmocka_unit_test(time_runs_one_way), cmocka_unit_test(workers_share_it),
		cmocka_unit_test(changes), cmocka_unit_test(refused),           cmocka_unit_test(ports_hold_it),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
