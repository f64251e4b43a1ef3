// SPDX-License-Identifier: Apache-2.0
// Encodes the durations of loops.
#include "control/loop_times.h"

#include "api/api.h"

static void loop_times_encode_buckets(struct api_call *call, const struct histogram *h, uint64_t (*to_ns)(uint64_t),
				      Corelane__V1__LoopTimes *out)
{
	Corelane__V1__LoopBucket *b;
	unsigned i;

	out->buckets = api_alloc(call, HISTOGRAM_BUCKETS * sizeof(*out->buckets));
	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (h->count[i] == 0)
			continue;
		b = api_alloc(call, sizeof(*b));
		corelane__v1__loop_bucket__init(b);
		b->from_ns = to_ns(histogram_least(i));
		b->to_ns = to_ns(histogram_most(i));
		b->loops = h->count[i];
		out->buckets[out->n_buckets++] = b;
	}
}

Corelane__V1__LoopTimes *loop_times_encode(struct api_call *call, const struct histogram *h, uint64_t max,
					   uint64_t (*to_ns)(uint64_t value))
{
	Corelane__V1__LoopTimes *out = api_alloc(call, sizeof(*out));

	corelane__v1__loop_times__init(out);
	out->loops = histogram_total(h);
	out->p50_ns = to_ns(histogram_quantile(h, 500000));
	out->p90_ns = to_ns(histogram_quantile(h, 900000));
	out->p99_ns = to_ns(histogram_quantile(h, 990000));
	out->p999_ns = to_ns(histogram_quantile(h, 999000));
	out->max_ns = to_ns(max);
	loop_times_encode_buckets(call, h, to_ns, out);
	return out;
}
