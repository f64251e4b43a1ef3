// SPDX-License-Identifier: Apache-2.0
// Probes, their time stamps, the histogram of the latencies, and the number of frames that are due.
#include "clock.h"
#include "gen_testlib.h"
#include "histogram.h"
#include "pace.h"
#include "probe.h"

static struct probe make(uint16_t stream, uint8_t trial, uint32_t flow, uint32_t sequence, uint32_t time)
{
	struct probe_maker m = probe_maker(probe_base(stream, trial), sequence, time);
	uint8_t bytes[PROBE_SIZE];

	probe_write(&m, bytes, flow);
	return probe_read(bytes);
}

static const struct {
	uint16_t stream;
	uint8_t trial;
	uint32_t flow, sequence, time;
} samples[] = {
	{0, 1, 0, 0, 0},
	{0, 1, 0xffff, 1, 0},
	{4095, 255, PROBE_MAX_FLOWS - 1, UINT32_MAX, UINT32_MAX},
	{1, 1, 0x10000, 0xffff0000, 0xffff},
	{0xffff, 255, 0xffffff, 0xffff, 0xffff0000},
	{17, 3, 123456, 987654321, 0xdeadbeef},
};

static uint16_t sum_of(const void *p, unsigned n)
{
	const uint16_t *words = p;
	uint32_t s = 0;

	for (; n > 0; n -= 2)
		s += *words++;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

static void all_that_is_written_is_read(void **state)
{
	unsigned i;

	for (i = 0; i < RTE_DIM(samples); i++) {
		struct probe p = make(samples[i].stream, samples[i].trial, samples[i].flow, samples[i].sequence,
				      samples[i].time);

		assert_true(probe_intact(p));
		assert_int_equal(sum_of(&p, sizeof(p)), 0xffff);
		assert_int_equal(probe_stream(p), samples[i].stream);
		assert_int_equal(probe_trial(p), samples[i].trial);
		assert_int_equal(probe_flow(p), samples[i].flow);
		assert_int_equal(probe_sequence(p), samples[i].sequence);
		assert_int_equal(probe_time(p), samples[i].time);
	}
}

static void every_flipped_bit_is_noticed(void **state)
{
	unsigned i, bit;

	for (i = 0; i < RTE_DIM(samples); i++) {
		struct probe p = make(samples[i].stream, samples[i].trial, samples[i].flow, samples[i].sequence,
				      samples[i].time);

		for (bit = 0; bit < 128; bit++) {
			struct probe damaged = p;

			*(bit < 64 ? &damaged.id : &damaged.stamp) ^= 1ull << bit % 64;
			assert_false(probe_intact(damaged));
		}
	}
}

static void time_has_enough_range_and_resolution(void **state)
{
	static const uint64_t rates[] = {1000000000, 2000000000, 2595124000, 3700000000, 5000000000};
	unsigned i;

	for (i = 0; i < RTE_DIM(rates); i++) {
		struct clock c = clock_of(rates[i]);

		assert_true(clock_ns(&c, 1) <= 10);
		assert_true(clock_ns(&c, UINT32_MAX) >= 10e9);
		assert_int_equal(clock_stamp(&c, 1000ull << c.shift), 1000);
	}
}

static void bars_are_narrow_and_without_gaps(void **state)
{
	unsigned bar;
	uint64_t v;

	for (bar = 0; bar + 1 < HISTOGRAM_BARS; bar++) {
		uint64_t low = histogram_low(bar), next = histogram_low(bar + 1);

		assert_true(next > low && (next - low) * HISTOGRAM_STEPS <= RTE_MAX(low, (uint64_t)HISTOGRAM_STEPS));
		assert_int_equal(histogram_bar((uint32_t)low), bar);
		assert_int_equal(histogram_bar((uint32_t)(next - 1)), bar);
	}
	assert_int_equal(histogram_bar(UINT32_MAX), HISTOGRAM_BARS - 1);
	for (v = 1; v <= UINT32_MAX; v = v * 3 + 1)
		assert_true(histogram_low(histogram_bar((uint32_t)v)) <= v);
}

static void frames_fall_due_evenly(void **state)
{
	struct pace p = pace_of(1e7, 2e9, 1, 64, UINT64_MAX);
	uint64_t i;

	assert_int_equal(pace_due(&p, 0), 0);
	for (i = 1; i < 1000; i++) // one each 200 cycles
		assert_in_range(pace_due(&p, i * 200 + 100), i, i);
	assert_int_equal(pace_due(&p, 2000000000ull * 3600), 36000000000);
	p = pace_of(1000, 2e9, 1, 64, UINT64_MAX);
	assert_int_equal(pace_due(&p, 120000000), 60);
	p = pace_of(1e7, 2e9, 1, 64, 100);
	assert_int_equal(pace_due(&p, 1000000000), 100);
}

static void bursts_keep_the_rate(void **state)
{
	struct pace p = pace_of(1e6, 2e9, 32, 64, UINT64_MAX); // 64000 cycles each, in which frames follow by 56
	uint64_t spacing = 56, i;

	for (i = 0; i < 100; i++) {
		assert_int_equal(pace_due(&p, i * 64000), i * 32);
		assert_int_equal(pace_due(&p, i * 64000 + 20), i * 32 + 1);
		assert_int_equal(pace_due(&p, i * 64000 + 10 * spacing + 20), i * 32 + 11);
		assert_int_equal(pace_due(&p, i * 64000 + 32 * spacing), i * 32 + 32);
		assert_int_equal(pace_due(&p, i * 64000 + 63900), i * 32 + 32);
	}
}

static void one_long_burst(void **state)
{
	struct pace p = pace_of(100000, 2e9, 100000, 64, 100000);

	assert_in_range(pace_due(&p, 56 * 1000), 1000, 1001);
	assert_int_equal(pace_due(&p, 56 * 100000), 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_written_is_read),
		cmocka_unit_test(every_flipped_bit_is_noticed),
		cmocka_unit_test(time_has_enough_range_and_resolution),
		cmocka_unit_test(bars_are_narrow_and_without_gaps),
		cmocka_unit_test(frames_fall_due_evenly),
		cmocka_unit_test(bursts_keep_the_rate),
		cmocka_unit_test(one_long_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
