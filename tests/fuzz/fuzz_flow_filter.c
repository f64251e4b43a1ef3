// SPDX-License-Identifier: Apache-2.0
// The filter of flows in requests: a flow (its keys, then the rest of struct flow that a filter reads), then the
// message. A filter that names nothing matches every flow, and a refusal says why.
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "control/flow_filter.h"
#include "fuzz_frame.h"
#include "testing/router_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(router_setup(NULL) == 0);
	return 0;
}

// In the order of the bytes of an input.
struct flow_bytes {
	struct flow_key key[2];
	uint8_t flags, tcp, port[2], nat, packets;
} __rte_packed;

static struct flow make_flow(const uint8_t *data)
{
	struct flow f = {0};
	struct flow_bytes b;
	unsigned i;

	memcpy(&b, data, sizeof(b));
	for (i = 0; i < 2; i++) {
		f.dir[i].key = b.key[i];
		f.dir[i].key.family = b.key[i].family & 1 ? IPV6 : IPV4;
		f.dir[i].packets = b.packets >> 4 * i & 15;
		f.port[i] = b.port[i] % PORTS_END;
	}
	f.dir[0].flags = b.flags;
	f.tcp = b.tcp % TCP_STATES;
	f.nat = b.nat;
	return f;
}

static void check(const struct flow *f, const Corelane__V1__FlowFilter *in)
{
	struct error err = {0};
	struct flow_filter out;

	if (flow_filter_decode(in, &out, &err) < 0) {
		FUZZ_ASSERT(err.code && err.message[0] && err.field[0]);
		return;
	}
	if (*in->vrf == '\0' && *in->port == '\0' && *in->protocol == '\0' && *in->prefix == '\0' && !in->action &&
	    !in->state && !out.l4_port && !in->nat)
		FUZZ_ASSERT(flow_filter_match(&out, f));
	else if (flow_filter_match(&out, f))
		FUZZ_ASSERT((!in->nat || f->nat == in->nat) && (!in->state || flow_state(f) == in->state));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Corelane__V1__FlowFilter *in;
	struct error err = {0};
	struct flow f;

	if (size < sizeof(struct flow_bytes))
		return 0;
	f = make_flow(data);
	in = corelane__v1__flow_filter__unpack(NULL, size - sizeof(struct flow_bytes),
					       data + sizeof(struct flow_bytes));
	if (in == NULL)
		return 0;
	if (api_check(&in->base, &err) == 0)
		check(&f, in);
	corelane__v1__flow_filter__free_unpacked(in, NULL);
	return 0;
}
