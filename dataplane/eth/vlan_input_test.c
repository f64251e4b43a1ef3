// SPDX-License-Identifier: Apache-2.0
// Sub-ports: what comes in by them, what leaves by them, and their coming and going.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/offload.h"
#include "graph/counters.h"
#include "offload/offload_fixture.h"
#include "testing/router_fixture.h"
#include "worker/worker.h"

#define MACS "00005e000101 020000000003"

static uint16_t once, twice; // ids of the sub-ports of RED0: tag 10 in VRF blue; tags 100 and 7 in bridge lan
static struct error err;

static struct port_config subport(const char *name, uint16_t parent, uint16_t outer, uint16_t tag)
{
	struct port_config c = {.role = PORT_TENANT,
				.kind = "subport",
				.parent = parent,
				.tag = tag,
				.outer_tag = outer,
				.vrf = UINT16_MAX,
				.bridge = LAN};

	snprintf(c.name, sizeof(c.name), "%s", name);
	return c;
}

static uint16_t add(const struct port_config *c)
{
	struct port *p = port_add(c, &err);

	if (p == NULL)
		fail_msg("%s", err.message);
	return p->id;
}

static int setup(void **state)
{
	struct port_config c = subport("sub10", RED0, 0, 10);
	int ret = router_setup(state);

	c.vrf = BLUE;
	c.bridge = UINT16_MAX;
	once = add(&c);
	c = subport("sub100.7", RED0, 100, 7);
	twice = add(&c);
	return ret;
}

static int reset(void **state)
{
	router_forget();
	router_tx = NULL;
	return 0;
}

static struct rte_mbuf *received(const char *hex)
{
	struct rte_mbuf *m = router_hex(hex);

	m->port = RED0;
	return m;
}

// The frame leaves the node as that of this port, with these bytes.
static void assert_enters(const char *hex, uint16_t port, const char *bytes)
{
	struct rte_mbuf *m = received(hex);

	assert_string_equal(node_test_one("vlan_input", m), "tenant_input");
	assert_int_equal(m->port, port);
	assert_bytes(m, bytes);
	rte_pktmbuf_free(m);
}

static void assert_dropped(const char *hex, const char *reason)
{
	struct rte_mbuf *m = received(hex);

	assert_string_equal(node_test_one("vlan_input", m), "drop");
	assert_string_equal(node_test_reason(m), reason);
	rte_pktmbuf_free(m);
}

static void tags_name_the_port(void **state)
{
	assert_enters(MACS "0800 4500", RED0, MACS "0800 4500");
	assert_enters(MACS "8100 000a 0800 4500", once, MACS "0800 4500");
	assert_enters(MACS "8100 f00a 0800 4500", once, MACS "0800 4500"); // with a priority
	assert_enters(MACS "88a8 0064 8100 0007 86dd 6000", twice, MACS "86dd 6000");
	// The sub-port's own guest may tag: what is behind the sub-port's tag is left alone.
	assert_enters(MACS "8100 000a 8100 0007 0800", once, MACS "8100 0007 0800");
}

static void unknown_tags(void **state)
{
	assert_dropped(MACS "8100 000b 0800", "vlan_unknown");
	assert_dropped(MACS "8100 0064 8100 0007 0800", "vlan_unknown"); // the outer tag must be that of 802.1ad
	assert_dropped(MACS "88a8 000a 0800 4500", "vlan_unknown");
	assert_dropped(MACS "88a8 0064 8100 0008 0800", "vlan_unknown");
	assert_dropped(MACS "88a8 0064 88a8 0007 0800", "vlan_unknown");
	assert_dropped(MACS "88a8 0064 0800 4500", "vlan_unknown");
	// They end within their tags.
	assert_dropped(MACS "8100", "vlan_unknown");
	assert_dropped(MACS "8100 000a", "vlan_unknown");
	assert_dropped(MACS "88a8 0064 8100 00", "vlan_unknown");
}

// A tag with id 0 is none, and does not hide another one.
static void priorities(void **state)
{
	assert_enters(MACS "8100 e000 0800 4500", RED0, MACS "0800 4500");
	assert_enters(MACS "88a8 0000 0800 4500", RED0, MACS "0800 4500");
	assert_enters(MACS "8100 e000 8100 000a 0800", once, MACS "0800");
	assert_dropped(MACS "8100 e000 8100 000b 0800", "vlan_unknown");
	assert_dropped(MACS "8100 e000 8100 e000 0800", "vlan_unknown");
}

static void own_settings_and_counters(void **state)
{
	struct port_config c = router_config(once), old = c;
	struct port_counters before, after;

	counters_port(once, &before);
	assert_enters(MACS "8100 000a 0800 4500", once, MACS "0800 4500");
	counters_port(once, &after);
	assert_int_equal(after.rx_packets, before.rx_packets + 1);
	assert_int_equal(after.rx_bytes, before.rx_bytes + 16);
	c.disabled = true;
	router_set(once, &c);
	assert_dropped(MACS "8100 000a 0800 4500", "port_disabled");
	assert_false(port_get(once)->up);
	assert_enters(MACS "0800 4500", RED0, MACS "0800 4500");
	router_set(once, &old);
	assert_enters(MACS "8100 000a 0800 4500", once, MACS "0800 4500");
}

static void longest_frame(void **state)
{
	struct port_config c = router_config(once), old = c;
	char hex[2 * 700] = MACS "8100 000a 0800";
	struct rte_mbuf *m;
	unsigned len;

	c.mtu = 576;
	router_set(once, &c);
	for (len = 576 + PORT_L2_OVERHEAD; len <= 576 + PORT_L2_OVERHEAD + 1; len++) {
		m = received(hex);
		rte_pktmbuf_append(m, (uint16_t)(len + 4 - m->pkt_len));
		assert_string_equal(node_test_one("vlan_input", m),
				    len > 576 + PORT_L2_OVERHEAD ? "drop" : "tenant_input");
		rte_pktmbuf_free(m);
	}
	router_set(once, &old);
}

static void the_worker_reads_the_tags(void **state)
{
	struct rx_list *list = calloc(1, sizeof(*list) + sizeof(list->q[0]));
	struct rx_list *none = router_worker()->rx;
	struct port *p = port_get(RED0);

	assert_int_equal(p->input, PORT_INPUT_TRUNK);
	assert_int_equal(port_get(RED1)->input, PORT_TENANT);
	assert_int_equal(port_fwds[RED0]->input, PORT_INPUT_TRUNK);
	assert_int_equal(port_get(once)->queues[0].rx_worker, WORKER_NONE);
	list->n = 1;
	list->q[0] = &p->queues[0];
	router_worker()->rx = list;
	assert_int_equal(node_test_run("port_rx", NULL, 0), 0);
	router_worker()->rx = none;
	free(list);
}

static void send_by(uint16_t port, struct rte_mbuf *m)
{
	meta(m)->out_port = port;
	assert_int_equal(node_test_run("port_tx", &m, 1), 0);
}

static void sent_with_tags(void **state)
{
	struct port_counters sub, parent, sub2, parent2;

	counters_port(once, &sub);
	counters_port(RED0, &parent);
	send_by(once, router_hex(MACS "0800 4500"));
	send_by(twice, router_hex(MACS "0806 0001"));
	assert_int_equal(router_n_sent, 2);
	assert_int_equal(router_sent[0].port, RED0);
	assert_bytes(router_sent[0].m, MACS "8100 000a 0800 4500");
	assert_bytes(router_sent[1].m, MACS "88a8 0064 8100 0007 0806 0001");
	counters_port(once, &sub2);
	counters_port(RED0, &parent2);
	assert_int_equal(sub2.tx_packets, sub.tx_packets + 1);
	assert_int_equal(sub2.tx_bytes, sub.tx_bytes + 16);
	assert_int_equal(parent2.tx_packets, parent.tx_packets + 2);
	assert_int_equal(parent2.tx_bytes, parent.tx_bytes + 20 + 24);
}

static void no_headroom(void **state)
{
	uint64_t drops = router_drops(RED1, "vlan_no_headroom");
	struct rte_mbuf *pkts[3];
	unsigned i;

	for (i = 0; i < 3; i++) {
		pkts[i] = router_hex(MACS "0800 4500");
		pkts[i]->port = RED1;
		meta(pkts[i])->out_port = once;
	}
	rte_pktmbuf_prepend(pkts[1], pkts[1]->data_off - 3);
	pkts[2]->data_off = 4;
	assert_int_equal(node_test_run("port_tx", pkts, 3), 0);
	assert_int_equal(router_n_sent, 2);
	assert_ptr_equal(router_sent[0].m, pkts[0]);
	assert_ptr_equal(router_sent[1].m, pkts[2]);
	assert_int_equal(router_drops(RED1, "vlan_no_headroom"), drops + 1);
}

static uint16_t tx_one(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	router_sent[router_n_sent++] = (struct router_sent){q->port->id, q->index, pkts[0]};
	return 1;
}

// What the parent's queue does not take is counted as it was before it got its tag.
static void parent_is_full(void **state)
{
	struct port_counters before, after;
	struct rte_mbuf *pkts[3];
	unsigned i;

	counters_port(once, &before);
	for (i = 0; i < 3; i++) {
		pkts[i] = router_hex(MACS "0800 4500");
		meta(pkts[i])->out_port = once;
	}
	router_tx = tx_one;
	assert_int_equal(node_test_run("port_tx", pkts, 3), 0);
	counters_port(once, &after);
	assert_int_equal(after.tx_packets, before.tx_packets + 1);
	assert_int_equal(after.tx_bytes, before.tx_bytes + 16);
	assert_int_equal(after.tx_refused, before.tx_refused + 2);
}

// The guest takes the parent's tags for those of its sub-ports, so that no other port of a bridge may send them there.
static void no_tags_from_others(void **state)
{
	uint64_t drops = router_drops(RED1, "port_tx_tagged");
	struct rte_mbuf *m = router_hex(MACS "8100 000a 0800 4500");

	m->port = RED1;
	send_by(RED0, m);
	m = router_hex(MACS "88a8 0064 8100 0007 0800");
	m->port = RED1;
	send_by(RED0, m);
	assert_int_equal(router_n_sent, 0);
	assert_int_equal(router_drops(RED1, "port_tx_tagged"), drops + 2);
	send_by(RED0, router_hex(MACS "0800 4500"));
	send_by(LAN0, router_hex(MACS "8100 000a 0800 4500"));
	assert_int_equal(router_n_sent, 2);
}

// The marks of large segments say nothing about the place of the IP header, so that they stay right with tags.
static void large_segments(void **state)
{
	const struct offload_packet p = {.payload = 5000, .size = 1300, .tcp_flags = 0x10, .tags = 1};
	struct rte_mbuf *m = offload_make(&p);

	m->port = RED0;
	offload_mark(m, 0);
	*rte_pktmbuf_mtod_offset(m, rte_be16_t *, 14) = RTE_BE16(10);
	assert_string_equal(node_test_one("vlan_input", m), "tenant_input");
	assert_int_equal(m->port, once);
	assert_int_equal(frame_ip(m), 14);
	port_get(RED0)->takes = port_get(once)->takes = PORT_TAKES_CHECKSUM | PORT_TAKES_TCP4;
	send_by(twice, m); // it does not know yet what the peer takes: the first packets are lost
	assert_int_equal(router_n_sent, 0);
	m = offload_make(&p);
	send_by(once, m);
	assert_int_equal(router_n_sent, 1);
	assert_true(offload_is_large(router_sent[0].m));
	assert_int_equal(frame_ip(router_sent[0].m), 22);
	port_get(RED0)->takes = port_get(once)->takes = port_get(twice)->takes = 0;
	router_forget();
	send_by(once, offload_make(&p));
	assert_int_equal(router_n_sent, 4);
	assert_true(router_l4_ok(router_sent[3].m, 22));
}

static void assert_refused(struct port_config c, const char *message)
{
	assert_null(port_add(&c, &err));
	assert_string_equal(err.message, message);
}

static void refused(void **state)
{
	struct port_config c = subport("sub", RED0, 0, 10), parent = router_config(RED0);

	assert_refused(c, "port.subport.vlan '10': is the tag of the sub-port 'sub10'; valid: a tag that no other "
			  "sub-port has");
	c = subport("sub", FABRIC0, 0, 10);
	assert_refused(c, "port.subport.parent 'fabric0': cannot have sub-ports; valid: a tenant port with a device");
	c = subport("sub", once, 0, 10);
	assert_refused(c, "port.subport.parent 'sub10': cannot have sub-ports; valid: a tenant port with a device");
	c = subport("sub", RED0, 0, 11);
	c.mtu = 1501;
	assert_refused(c, "port.mtu '1501': is larger than that of the parent 'red0'; valid: up to 1500");
	c.mtu = 0;
	c.queues = 2;
	assert_refused(c, "port.queues: a sub-port uses the queues of its parent; valid: no queues");
	parent.mtu = 1400;
	assert_int_equal(port_set(port_get(RED0), &parent, &err), -EINVAL);
	assert_string_equal(err.message, "port.mtu '1400': is smaller than that of the sub-port 'sub10'; valid: 1500 "
					 "or more");
	assert_int_equal(port_del("red0", &err), -EBUSY);
	assert_string_equal(err.message, "port.name 'red0': has the sub-port 'sub10'; valid: remove its sub-ports "
					 "first");
}

static void follows_the_parent(void **state)
{
	port_link_changed(port_get(RED0), false, false);
	assert_false(port_get(once)->up);
	port_get(RED0)->takes = PORT_TAKES_CHECKSUM;
	port_link_changed(port_get(RED0), true, true);
	assert_true(port_get(once)->up && port_get(once)->peer_connected);
	assert_int_equal(port_get(once)->takes, PORT_TAKES_CHECKSUM);
	port_get(RED0)->takes = 0;
	port_link_changed(port_get(RED0), false, false);
	port_link_changed(port_get(RED0), true, true);
}

// Without sub-ports the port is what it was before.
static void the_last_one_goes(void **state)
{
	struct port_config c = subport("first", RED1, 0, 1), d = subport("second", RED1, 4094, 4094);
	unsigned i;

	for (i = 0; i < 3; i++) {
		add(&c);
		add(&d);
		assert_int_equal(port_del("first", &err), 0);
		assert_int_equal(port_get(RED1)->input, PORT_INPUT_TRUNK);
		assert_int_equal(port_get(RED1)->tx_flags & PORT_TX_TRUNK, PORT_TX_TRUNK);
		assert_int_equal(port_del("second", &err), 0);
		assert_int_equal(port_get(RED1)->input, PORT_TENANT);
		assert_int_equal(port_get(RED1)->tx_flags & PORT_TX_TRUNK, 0);
		assert_null(port_trunks[RED1]);
	}
}

// The list of an 802.1ad tag goes with the last sub-port that has this tag, and not with another one.
static void lists_of_outer_tags(void **state)
{
	struct port_config c = subport("five", RED0, 200, 5), d = subport("six", RED0, 200, 6);
	unsigned i;

	for (i = 0; i < 3; i++) {
		add(&c);
		assert_enters(MACS "88a8 00c8 8100 0006 0800", add(&d), MACS "0800");
		assert_int_equal(port_del("five", &err), 0);
		assert_non_null(port_trunks[RED0]->twice[200]);
		assert_dropped(MACS "88a8 00c8 8100 0005 0800", "vlan_unknown");
		assert_int_equal(port_del("six", &err), 0);
		assert_null(port_trunks[RED0]->twice[200]);
		assert_dropped(MACS "88a8 00c8 8100 0006 0800", "vlan_unknown");
		assert_non_null(port_trunks[RED0]->twice[100]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tags_name_the_port),
		cmocka_unit_test(unknown_tags),
		cmocka_unit_test(priorities),
		cmocka_unit_test(own_settings_and_counters),
		cmocka_unit_test(longest_frame),
		cmocka_unit_test(the_worker_reads_the_tags),
		cmocka_unit_test_setup(sent_with_tags, reset),
		cmocka_unit_test_setup(no_headroom, reset),
		cmocka_unit_test_setup(parent_is_full, reset),
		cmocka_unit_test_setup(no_tags_from_others, reset),
		cmocka_unit_test_setup(large_segments, reset),
		cmocka_unit_test(refused),
		cmocka_unit_test(follows_the_parent),
		cmocka_unit_test(the_last_one_goes),
		cmocka_unit_test(lists_of_outer_tags),
	};

	return cmocka_run_group_tests(tests, setup, router_teardown);
}
