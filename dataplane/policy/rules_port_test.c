// SPDX-License-Identifier: Apache-2.0
// No packet passes a port with rules unchecked while guests send and the port is added, changed and removed.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_ip.h>

#include "base/rcu.h"
#include "flow/flow.h"
#include "policy/rules.h"
#include "testing/router_fixture.h"
#include "testing/wait_until.h"
#include "worker/worker.h"

#define ROUNDS 40
#define LONG_LIST 100 // rules; svc-rules compiles such a list
#define NAP_US 300    // of the slow listeners

static struct error err;
static uint64_t polled, passed; // frames of the port "extra"; UDP packets from and to it

static struct rte_mbuf *frame(const struct port *p)
{
	bool extra = p->id >= PORTS_END;

	return router_frame(p->id, GATEWAY, extra ? "02:00:00:00:00:77" : "02:00:00:00:00:03",
			    extra ? &(struct packet){.src = "10.0.0.77", .dst = "10.0.0.2", .proto = 17}
				  : &(struct packet){.src = "10.0.0.2", .dst = "10.0.0.77", .proto = 17});
}

// The guest of "extra", and a guest in each VRF to which it may belong, send to each other without end.
static uint16_t rx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	if (q->port->id != RED0 && q->port->id != BLUE0 && q->port->id < PORTS_END)
		return 0;
	for (i = 0; i < RTE_MIN(n, 4); i++)
		pkts[i] = frame(q->port);
	if (q->port->id >= PORTS_END)
		__atomic_fetch_add(&polled, i, __ATOMIC_RELAXED);
	return i;
}

static bool is_udp(const struct rte_mbuf *m) // others are ICMP errors of the router
{
	const struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);

	return ip->next_proto_id == 17;
}

static uint16_t tx(struct port_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n; i++)
		if (is_udp(pkts[i]))
			__atomic_fetch_add(&passed, 1, __ATOMIC_RELAXED);
	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static uint64_t n_passed(void)
{
	return __atomic_load_n(&passed, __ATOMIC_RELAXED);
}

// Listeners around all others make the steps of a change long enough for workers to poll in between.
static void nap(struct port *p)
{
	usleep(NAP_US);
}

static bool nap_guard(struct port *p, const struct port_config *cfg)
{
	usleep(NAP_US);
	return false;
}

static void nap_changed(struct port *p, const struct port_config *cfg)
{
	usleep(NAP_US);
}

#define SLOW                                                                                                     \
	{                                                                                                        \
		.guard = nap_guard, .unguard = nap_changed, .added = nap, .changed = nap_changed, .removed = nap \
	}
static struct port_listener first = SLOW, last = SLOW;

static struct rule_list *deny(const char *name)
{
	struct rule_list *l = rule_list_add(name, false, &err);
	struct rule r[LONG_LIST];
	unsigned i;

	assert_non_null(l);
	for (i = 0; i < LONG_LIST; i++)
		r[i] = (struct rule){.id = i + 1, .allow = true, .proto = 6, .ports = {{0, 65535}, {i, i}}};
	assert_int_equal(rules_add(l, r, LONG_LIST, false, &err), 0);
	return l;
}

static struct rule_list *lists[2];

static int setup(void **state)
{
	cpu_set_t set;
	unsigned i, n = 0;

	port_listen(&first);
	router_rx = rx;
	router_tx = tx;
	if (router_setup(state) < 0)
		return -1;
	port_listen(&last);
	lists[0] = deny("one");
	lists[1] = deny("two");
	sched_getaffinity(0, sizeof(set), &set);
	for (i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set) &&
		    worker_add(n++, &(struct worker_config){.cpu = i, .idle = IDLE_YIELD}, &err) == NULL)
			return -1;
	return 0;
}

static int teardown(void **state)
{
	worker_del_all();
	return router_teardown(state);
}

static struct port_config extra(uint16_t vrf, const struct rule_list *l)
{
	struct port_config c = {.name = "extra",
				.kind = "tap",
				.role = PORT_TENANT,
				.vrf = vrf,
				.bridge = UINT16_MAX,
				.stateful = true,
				.guest_mac = router_mac("02:00:00:00:00:77"),
				.n_guests = 1,
				.guests = {{.addr = router_addr("10.0.0.77"), .len = 32}}};

	rules_config_edit(&c)->lists[RULES_EGRESS] = rules_config_edit(&c)->lists[RULES_INGRESS] = l ? l->id : 0;
	return c;
}

// As the master's loop does between two requests.
static void loop(void)
{
	flow_changes_take_effect();
	rules_poll();
	router_poll();
}

static void until_polled(void)
{
	uint64_t want = __atomic_load_n(&polled, __ATOMIC_RELAXED) + 100;

	assert_true(wait_until(__atomic_load_n(&polled, __ATOMIC_RELAXED) >= want));
}

// A change is refused, and changes nothing, if the machine has not run a worker for too long.
#define TRIES 20

static void must_add(uint16_t vrf, const struct rule_list *l)
{
	struct port_config c = extra(vrf, l);
	unsigned i;

	for (i = 0; i < TRIES && port_add(&c, &err) == NULL; i++)
		assert_int_equal(err.code, EAGAIN);
	assert_true(i < TRIES);
}

static void must_set(uint16_t vrf, const struct rule_list *l)
{
	struct port_config c = extra(vrf, l);
	unsigned i;

	for (i = 0; i < TRIES && port_set(port_find("extra"), &c, &err) < 0; i++)
		assert_int_equal(err.code, EAGAIN);
	assert_true(i < TRIES);
	loop();
}

static void must_del(void)
{
	assert_int_equal(port_del("extra", &err), 0);
	loop();
}

// BLUE has no other port with flows, so that it begins and ceases to keep flows with the port.
static void added_and_deleted(void **state)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		must_add(i % 2 ? RED : BLUE, lists[0]);
		loop();
		until_polled();
		must_del();
	}
	assert_int_equal(n_passed(), 0);
}

static void from_one_list_and_vrf_to_another(void **state)
{
	static const uint16_t vrfs[] = {BLUE, BLUE, RED, RED};
	unsigned i;

	must_add(BLUE, lists[0]);
	for (i = 0; i < ROUNDS; i++) {
		must_set(vrfs[i % 4], lists[i % 3 % 2]);
		until_polled();
	}
	must_del();
	assert_int_equal(n_passed(), 0);
}

static void while_a_list_changes_and_is_compiled(void **state)
{
	struct rule r = {.allow = true, .proto = 6, .ports = {{0, 65535}, {9, 9}}};
	unsigned i;

	must_add(BLUE, lists[0]);
	for (i = 0; i < ROUNDS; i++) {
		r.id = 1000 + i;
		assert_int_equal(rules_add(lists[0], &r, 1, true, &err), 0);
		loop();
		until_polled();
		if (i % 2)
			assert_int_equal(rules_del(lists[0], &r.id, 1, &err), 0);
	}
	must_del();
	assert_int_equal(n_passed(), 0);
}

// The packets pass without rules, and are dropped once rules are attached again.
static void without_rules(void **state)
{
	uint64_t before = n_passed();

	must_add(BLUE, NULL);
	loop();
	until_polled();
	assert_true(n_passed() > before);
	must_set(BLUE, lists[0]);
	assert_true(rcu_wait(10000)); // packets in flight
	before = n_passed();
	until_polled();
	must_del();
	assert_int_equal(n_passed(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(added_and_deleted),
		cmocka_unit_test(from_one_list_and_vrf_to_another),
		cmocka_unit_test(while_a_list_changes_and_is_compiled),
		cmocka_unit_test(without_rules),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
