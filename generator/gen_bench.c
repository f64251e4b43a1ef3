// SPDX-License-Identifier: Apache-2.0
// Measures the TSC cycles per frame of building and of checking, with a router on the same core that only copies. Run
// it pinned: taskset -c 0 build/generator/gen_bench. No cache line crosses cores, so this is the pure work.
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "memif_place.h"
#include "sink.h"

#define WINDOWS 200
#define TURNS 100 // per window

static struct memif_shm *shm; // one ring in each direction
static struct place_tx tx;
static struct place_rx rx;

static unsigned reserve(struct gen_port *p, unsigned queue, struct frame *frames, unsigned n)
{
	return place_reserve(&tx, frames, n, p->head);
}

static const struct gen_port_ops ops = {.reserve = reserve};
static struct gen_port port = {.ops = &ops, .n_tx = 1, .n_rx = 1};

static void make_stream(struct stream *s, uint32_t flows, uint16_t size)
{
	struct {
		struct rte_ether_hdr eth;
		struct rte_ipv4_hdr ip;
		struct rte_udp_hdr udp;
	} __attribute__((packed)) h = {.ip = {.version_ihl = 0x45, .next_proto_id = 17, .time_to_live = 64}};
	const struct length_field lengths[] = {{16, 14}, {38, 34}};
	const uint16_t ip4 = 14;
	struct error err;
	uint32_t i;

	memset(s, 0, sizeof(*s));
	h.eth.ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
	if (layout_parse(&s->layout, (const uint8_t *)&h, sizeof(h), 14, 0, &err) < 0)
		exit(1);
	s->heads = aligned_alloc(64, sizeof(*s->heads));
	head_build(s->heads, &s->layout, (const uint8_t *)&h, size, lengths, 2, &ip4, 1);
	s->tx = s->rx = &port;
	s->usual_rx = &port;
	s->n_turns = s->weight = s->sequence = 1;
	s->copy = port.head = 64;
	s->rx_probe = port.probe = s->layout.size;
	s->block = PORT_BURST;
	s->n_flows = flows;
	s->plan = (struct flow_plan){
		.source_ports = 10000, .destination_ports = 2000, .sources = 1, .destinations = 1, .source_port = 1000};
	s->flows = pages_alloc(flows * sizeof(*s->flows));
	s->seen = pages_alloc(flows * sizeof(*s->seen));
	flow_fill(&s->plan, s->flows, flows, false);
	for (i = 0; i < flows; i++)
		s->seen[i].window = UINT32_MAX;
}

static void router(void)
{
	struct memif_queue *in = &shm->tx[0], *out = &shm->rx[0];
	uint16_t head = *in->own_index, from = in->ring->tail, to = out->ring->tail;

	for (; from != head; from++, to++) {
		const struct memif_desc *a = &in->ring->desc[from & (in->size - 1)];
		struct memif_desc *b = &out->ring->desc[to & (out->size - 1)];

		memcpy(shm->regions[0].addr + b->offset, shm->regions[0].addr + a->offset, a->length);
		b->length = a->length;
		b->flags = 0;
	}
	in->ring->tail = from;
	out->ring->tail = to;
}

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void turn(struct stream *s, struct sink *k, uint64_t cycles[2])
{
	struct frame frames[PORT_FRAMES];
	uint64_t t = rte_rdtsc();
	unsigned n = place_reserve(&tx, frames, PORT_BURST, port.head);

	stream_build(s, frames, n, k->trial, clock_stamp(&k->clock, t));
	place_commit(&tx, frames, n);
	cycles[0] += rte_rdtsc() - t;
	router();
	t = rte_rdtsc();
	n = place_peek(&rx, frames, PORT_BURST, port.probe);
	sink_take(k, &port, frames, n, clock_stamp(&k->clock, t));
	place_release(&rx, n);
	cycles[1] += rte_rdtsc() - t;
}

static void measure(uint32_t flows, uint16_t size, bool latency)
{
	static double cost[2][WINDOWS];
	static struct stream s;
	static struct sink k;
	unsigned w, i;

	make_stream(&s, flows, size);
	sink_start(&k, &s, 1, 1);
	k.clock = clock_of(rte_get_tsc_hz());
	k.latency = k.timing = latency;
	for (w = 0; w < WINDOWS; w++) {
		uint64_t cycles[2] = {0};

		for (i = 0; i < TURNS; i++)
			turn(&s, &k, cycles);
		for (i = 0; i < 2; i++)
			cost[i][w] = (double)cycles[i] / TURNS / PORT_BURST;
	}
	for (i = 0; i < 2; i++)
		qsort(cost[i], WINDOWS, sizeof(double), by_value);
	printf("%8u %6u %8s %8.1f %8.1f\n", flows, size, latency ? "yes" : "no", cost[0][WINDOWS / 10],
	       cost[1][WINDOWS / 10]);
	if (s.count.received != (uint64_t)WINDOWS * TURNS * PORT_BURST)
		printf("lost frames: %lu received\n", (unsigned long)s.count.received);
	pages_free(s.flows, flows * sizeof(*s.flows));
	pages_free(s.seen, flows * sizeof(*s.seen));
	free(s.heads);
}

int main(int argc, char **argv)
{
	char *eal[] = {argv[0],       "--no-huge",   "-m",    "64", "--no-pci", "--no-telemetry",
		       "--no-shconf", "--log-level", "error", "-l", "0"};
	static struct memif_counters count;

	if (rte_eal_init(RTE_DIM(eal), eal) < 0)
		return 1;
	pattern_init();
	shm = memif_shm_new();
	if (shm == NULL || memif_shm_build(shm, 1, 1, 10, 2048) < 0)
		return 1;
	memif_shm_offer(shm);
	memif_queue_attach_tx(&shm->tx[0], &count, false);
	shm->tx[0].ring->flags = MEMIF_RING_MASK_INT;
	if (place_tx_init(&tx, &shm->tx[0]) < 0 || place_rx_init(&rx, &shm->rx[0]) < 0)
		return 1;
	printf("%8s %6s %8s %8s %8s  cycles per frame, TSC at %lu MHz\n", "flows", "bytes", "latency", "send",
	       "receive", (unsigned long)(rte_get_tsc_hz() / 1000000));
	measure(1, 64, false);
	measure(1000, 64, false);
	measure(1000, 64, true);
	measure(1000000, 64, false);
	measure(16000000, 64, false);
	measure(1000, 1500, false);
	memif_shm_free(shm);
	return 0;
}
