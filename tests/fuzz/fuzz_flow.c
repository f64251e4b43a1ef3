// SPDX-License-Identifier: Apache-2.0
// Frames of guests whose ports keep flows, and of tunnels to them, with addresses that are translated. The first byte
// chooses the port; its highest bit advances the clock.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "flow/flow_private.h"
#include "fuzz_router.h"
#include "policy/nat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const uint16_t ports[] = {RED0, RED1, BLUE0, IRB0, FABRIC0, FABRIC1};

static void must(int ret, const struct error *err)
{
	if (ret < 0) {
		fprintf(stderr, "fuzz_flow: %s\n", err->message);
		abort();
	}
}

static void translate(uint32_t id, const char *inside, uint8_t len, const char *outside)
{
	struct error err = {0};
	struct nat_config c = {
		.id = id, .vrf = RED, .external = RED, .kind = len == 32 || len == 128 ? NAT_FLOATING : NAT_SOURCE};

	c.inside = (struct ip_prefix){router_addr(inside), len};
	c.outside = router_addr(outside);
	if (c.kind == NAT_SOURCE)
		c.last = c.outside;
	must(nat_add(&c, &err), &err);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct port_config cfg;
	unsigned i;

	fuzz_router_setup();
	flow_secret_init(&(struct flow_secret){
		.add = {1, 2, 3, 4, 5}, .mul = {7, 9, 11, 13, 15}, .seed = {17, 19}}); // the same each time
	for (i = 0; i < 4; i++) {
		cfg = router_config(ports[i]);
		cfg.stateful = ports[i] != RED1;
		router_set(ports[i], &cfg);
	}
	translate(1, "10.0.0.2", 32, "198.18.0.2");
	translate(2, "fd00::2", 128, "fd00:18::2");
	translate(3, "10.0.0.0", 24, "198.18.0.3");
	flow_changes_take_effect();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t tsc;

	if (size == 0)
		return 0;
	fuzz_router_frame(ports[*data % RTE_DIM(ports)], data + 1, size - 1);
	if (*data & 0x40)
		flow_zone_changed(RED);
	flow_changes_take_effect();
	if (*data & 0x80) {
		tsc += flow_tsc_hz; // so that the ager scans every flow
		flow_poll();
		flow_age(0, tsc);
	}
	return 0;
}
