// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "policy/mirror.h"
#include "testing/router_fixture.h"

static struct error err;

static struct mirror_config to_port(const char *name, uint16_t port)
{
	struct mirror_config c = {.target = MIRROR_PORT, .port = port};

	snprintf(c.name, sizeof(c.name), "%s", name);
	return c;
}

static struct mirror_config to_collector(const char *name, const char *encap, const char *remote, uint32_t number)
{
	struct mirror_config c = {
		.target = MIRROR_TUNNEL,
		.tunnel = {
			.encap = encap_find(encap), .remote = router_addr(remote), .vni = number, .session = number}};

	snprintf(c.name, sizeof(c.name), "%s", name);
	return c;
}

// A mirror adds, changes and removes the next hops of its collectors.
static void next_hops(void **state)
{
	struct mirror_config c = to_collector("m", "erspan", "203.0.113.9", 1023);
	struct mirror *m = mirror_add(&c, &err);
	const struct nexthop *nh;
	uint32_t id;

	assert_non_null(m);
	id = m->nexthop;
	assert_true(id > NEXTHOP_API_MAX);
	nh = nexthop_table[id];
	assert_string_equal(graph_edge_of("mirror_output", nh->edge), "encap_erspan4");
	assert_int_equal(nh->hdr_len, 20 + 8 + 8);
	assert_int_equal(nh->mtu, 1500 - 36);
	assert_memory_equal(nh->hdr + TUNNEL_HDR_MAX - 16, "\x10\x00\x88\xbe\0\0\0\0\x10\x00\x03\xff\0\0\0\0", 16);
	c = to_collector("m", "vxlan", "2001:db8:f::9", 77);
	assert_int_equal(mirror_set(m, &c, &err), 0);
	assert_int_equal(m->nexthop, id);
	assert_string_equal(graph_edge_of("mirror_output", nexthop_table[id]->edge), "encap_vxlan6");
	c = to_collector("m", "geneve", "203.0.113.9", 77);
	assert_int_equal(mirror_set(m, &c, &err), 0);
	assert_string_equal(graph_edge_of("mirror_output", nexthop_table[id]->edge), "encap_geneve4");
	c = to_port("m", RED1);
	assert_int_equal(mirror_set(m, &c, &err), 0);
	assert_null(nexthop_get(id));
	assert_int_equal(m->nexthop, 0);
	c = to_collector("m", "erspan", "2001:db8:f::9", 0);
	assert_int_equal(mirror_set(m, &c, &err), 0);
	id = m->nexthop;
	assert_string_equal(graph_edge_of("mirror_output", nexthop_table[id]->edge), "encap_erspan6");
	assert_int_equal(mirror_del("m", &err), 0);
	assert_null(nexthop_get(id));
}

static void refused(void **state)
{
	struct mirror_config c = to_collector("m", "erspan", "203.0.113.9", 1);

	c.tunnel.local = router_addr("2001:db8::1");
	assert_null(mirror_add(&c, &err));
	assert_string_equal(err.field, "mirror.erspan.local");
	assert_memory_equal(err.message, "mirror.erspan.local '2001:db8::1': ", 35);
	c = to_collector("m", "vxlan", "203.0.113.9", 0);
	assert_null(mirror_add(&c, &err));
	assert_string_equal(err.field, "mirror.vxlan.vni");
	assert_int_equal(mirror_del("m", &err), -ENOENT);
}

static void ports_hold_it(void **state)
{
	struct mirror_config c = to_port("m", RED1);
	struct mirror *m = mirror_add(&c, &err);
	struct port_config p = router_config(RED0);

	assert_null(mirror_add(&c, &err));
	assert_int_equal(err.code, EEXIST);
	assert_int_equal(port_del("red1", &err), -EBUSY);
	assert_non_null(strstr(err.message, "mirror 'm'"));
	mirroring_config_edit(&p)->mirror = m->id;
	assert_int_equal(port_set(port_get(RED0), &p, &err), -EINVAL);
	assert_string_equal(err.field, "port.mirror");
	p.stateful = true;
	router_set(RED0, &p);
	assert_int_equal(m->refs, 1);
	assert_int_equal(port_fwds[RED0]->mirror, m->id);
	assert_int_equal(mirror_del("m", &err), -EBUSY);
	assert_non_null(strstr(err.message, "port 'red0'"));
	mirroring_config_edit(&p)->mirror = 0;
	p.stateful = false;
	router_set(RED0, &p);
	assert_int_equal(mirror_del("m", &err), 0);
}

static struct rte_mbuf *copy_of(struct mirror *m, enum mirror_direction dir, unsigned payload)
{
	static const uint8_t eth[14] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 3};
	struct rte_mbuf *p =
		router_packet(RED, &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.3", .payload = payload});
	struct rte_mbuf *c = mirror_copy(m->id, dir, p, eth);

	if (c) {
		assert_memory_equal(rte_pktmbuf_mtod(c, void *), eth, 12);
		assert_memory_equal(rte_pktmbuf_mtod_offset(c, void *, 14), rte_pktmbuf_mtod(p, void *),
				    c->data_len - 14u);
		assert_int_equal(meta(c)->arg, m->id);
	}
	rte_pktmbuf_free(p);
	return c;
}

static void copies(void **state)
{
	struct mirror_config c = to_port("m", RED1);
	struct mirror *m = mirror_add(&c, &err);
	struct rte_mbuf *copy = copy_of(m, MIRROR_EGRESS, 200);

	assert_int_equal(copy->pkt_len, 14 + 20 + 200);
	assert_false(meta(copy)->cut);
	rte_pktmbuf_free(copy);
	c.snap = 64;
	c.direction = MIRROR_INGRESS;
	assert_int_equal(mirror_set(m, &c, &err), 0);
	copy = copy_of(m, MIRROR_INGRESS, 200);
	assert_int_equal(copy->pkt_len, 64);
	assert_true(meta(copy)->cut);
	rte_pktmbuf_free(copy);
	copy = copy_of(m, MIRROR_INGRESS, 30); // just fits
	assert_int_equal(copy->pkt_len, 64);
	assert_false(meta(copy)->cut);
	rte_pktmbuf_free(copy);
	assert_null(copy_of(m, MIRROR_EGRESS, 200));
	assert_int_equal(mirror_del("m", &err), 0);
}

static int setup(void **state)
{
	mirror_init();
	return router_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(next_hops), cmocka_unit_test(refused),
					   cmocka_unit_test(ports_hold_it), cmocka_unit_test(copies)};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
