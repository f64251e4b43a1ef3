// SPDX-License-Identifier: Apache-2.0
// Which worker polls which queue while addresses are steered and workers are added and removed. Real workers, ports
// without packets.
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "host/host_fixture.h"
#include "host/steer.h"
#include "worker/spread.h"

#define FORWARDS 0
#define HOSTS 5

static struct error err;
static unsigned rules, limit; // of the NIC

static void *rule(struct port *p, const struct ip_addr *addr, uint16_t queue, struct error *e)
{
	assert_int_equal(queue, p->n_queues - 1);
	if (rules == limit) {
		error_set(e, ENOTSUP, NULL, NULL, NULL, "the table is full");
		return NULL;
	}
	rules++;
	return &rules;
}

static void unrule(struct port *p, void *r)
{
	assert_ptr_equal(r, &rules);
	rules--;
}

static struct worker *add(uint32_t id, enum worker_role role)
{
	struct worker_config cfg = {
		.cpu = (unsigned)sched_getcpu(), .idle = IDLE_SLEEP, .role = role, .target = WORKER_NONE};
	struct worker *w = worker_add(id, &cfg, &err);

	if (w == NULL)
		fail_msg("%s", err.message);
	return w;
}

static void del(uint32_t id)
{
	assert_int_equal(worker_del(id, &err), 0);
}

static int setup(void **state)
{
	limit = 0;
	if (host_setup(state) < 0)
		return -1;
	router_steer = rule;
	router_unsteer = unrule;
	add(FORWARDS, WORKER_FORWARDING);
	return 0;
}

static int teardown(void **state)
{
	worker_del_all();
	return router_teardown(state);
}

static void steer(const char *addr)
{
	struct ip_addr a = router_addr(addr);

	assert_non_null(steer_add(port_get(FABRIC0), &a, &err));
}

static void unsteer(const char *addr)
{
	struct ip_addr a = router_addr(addr);

	assert_int_equal(steer_del(port_get(FABRIC0), &a, &err), 0);
}

static uint32_t polls(uint16_t port, unsigned queue)
{
	return port_get(port)->queues[queue].rx_worker;
}

static void assert_state(enum steer_mode mode, const char *why, uint32_t queues)
{
	const struct steer_state *s = steer_state(FABRIC0);

	assert_int_equal(s->mode, mode);
	assert_string_equal(s->why, why);
	assert_int_equal(s->queues, queues);
}

static void without_worker(void **state)
{
	steer("192.0.2.1");
	assert_state(STEER_NONE, "there is no worker of role host-path", 0);
	assert_null(steer_tables[FABRIC0]);
	assert_int_equal(polls(FABRIC0, 0), FORWARDS);
	unsteer("192.0.2.1");
	assert_state(STEER_NONE, "", 0);
}

static void worker_takes_the_host_ports(void **state)
{
	add(HOSTS, WORKER_HOST_PATH);
	assert_int_equal(polls(host_port(FABRIC0), 0), HOSTS);
	assert_int_equal(polls(host_port(FABRIC1), 0), HOSTS);
	assert_int_equal(port_get(FABRIC0)->host_worker, HOSTS);
	assert_int_equal(polls(FABRIC0, 0), FORWARDS);
	assert_int_equal(polls(RED0, 0), FORWARDS);
	del(HOSTS);
	assert_int_equal(polls(host_port(FABRIC0), 0), FORWARDS);
	assert_int_equal(port_get(FABRIC0)->host_worker, SPREAD_LOCAL);
}

static void in_software(void **state)
{
	add(HOSTS, WORKER_HOST_PATH);
	steer("2001:db8::1");
	steer("192.0.2.1");
	assert_state(STEER_SOFTWARE, "the table is full", 3);
	assert_int_equal(polls(FABRIC0, 0), HOSTS);
	assert_int_equal(polls(FABRIC0, 1), HOSTS);
	assert_int_equal(polls(FABRIC1, 0), FORWARDS);
	assert_int_equal(steer_tables[FABRIC0]->n, 2);
	assert_int_equal(steer_tables[FABRIC0]->addr[0].family, IPV4); // sorted
	unsteer("2001:db8::1");
	assert_int_equal(polls(FABRIC0, 0), HOSTS);
	assert_int_equal(steer_tables[FABRIC0]->n, 1);
	unsteer("192.0.2.1");
	assert_null(steer_tables[FABRIC0]);
	assert_int_equal(polls(FABRIC0, 0), FORWARDS);
	assert_int_equal(polls(FABRIC0, 1), FORWARDS);
	del(HOSTS);
}

static void in_hardware(void **state)
{
	limit = 2;
	add(HOSTS, WORKER_HOST_PATH);
	steer("192.0.2.1");
	assert_state(STEER_HARDWARE, "", 2);
	assert_int_equal(rules, 1);
	assert_int_equal(polls(FABRIC0, 0), FORWARDS);
	assert_int_equal(polls(FABRIC0, 1), HOSTS);
	steer("192.0.2.77");
	assert_int_equal(rules, 2);
	steer("192.0.2.78"); // one more than the NIC accepts: all are steered in software
	assert_state(STEER_SOFTWARE, "the table is full", 3);
	assert_int_equal(rules, 0);
	assert_int_equal(polls(FABRIC0, 0), HOSTS);
	unsteer("192.0.2.77");
	assert_state(STEER_HARDWARE, "", 2);
	assert_int_equal(rules, 2);
	assert_int_equal(polls(FABRIC0, 0), FORWARDS);
	unsteer("192.0.2.1");
	unsteer("192.0.2.78");
	assert_int_equal(rules, 0);
	assert_int_equal(polls(FABRIC0, 1), FORWARDS);
	del(HOSTS);
	limit = 0;
}

static void workers_come_and_go(void **state)
{
	add(HOSTS, WORKER_HOST_PATH);
	steer("192.0.2.1");
	add(HOSTS + 1, WORKER_HOST_PATH);
	assert_int_equal(polls(FABRIC0, 0), HOSTS); // it stays where it is
	del(HOSTS);
	assert_int_equal(polls(host_port(FABRIC0), 0), HOSTS + 1);
	assert_int_equal(polls(FABRIC0, 0), HOSTS + 1);
	assert_int_equal(steer_state(FABRIC0)->worker->id, HOSTS + 1);
	del(HOSTS + 1);
	assert_state(STEER_NONE, "there is no worker of role host-path", 0);
	assert_int_equal(polls(FABRIC0, 0), FORWARDS);
	assert_int_equal(polls(FABRIC0, 1), FORWARDS);
	add(HOSTS, WORKER_HOST_PATH);
	assert_state(STEER_SOFTWARE, "the table is full", 3);
	unsteer("192.0.2.1");
	del(HOSTS);
}

static void roles_change(void **state)
{
	struct worker *w = add(HOSTS, WORKER_FORWARDING);

	steer("192.0.2.1");
	assert_state(STEER_NONE, "there is no worker of role host-path", 0);
	assert_int_equal(worker_set_role(w, WORKER_HOST_PATH, &err), 0);
	assert_state(STEER_SOFTWARE, "the table is full", 3);
	assert_int_equal(polls(host_port(FABRIC0), 0), HOSTS);
	assert_int_equal(worker_set_role(w, WORKER_FORWARDING, &err), 0);
	assert_state(STEER_NONE, "there is no worker of role host-path", 0);
	assert_int_equal(port_get(FABRIC0)->host_worker, SPREAD_LOCAL);
	assert_int_equal(polls(FABRIC0, 0), FORWARDS);
	unsteer("192.0.2.1");
	del(HOSTS);
}

static void refused(void **state)
{
	const struct ip_addr good = router_addr("192.0.2.1");
	struct ip_addr a = router_addr("192.0.2.1");
	unsigned i;

	assert_null(steer_add(port_get(RED0), &good, &err));
	assert_int_equal(steer_del(port_get(FABRIC0), &good, &err), -ENOENT);
	for (i = 0; i < STEER_MAX; i++) {
		a.bytes[3] = (uint8_t)(i + 1);
		assert_non_null(steer_add(port_get(FABRIC0), &a, &err));
	}
	assert_null(steer_add(port_get(FABRIC0), &a, &err));
	assert_int_equal(err.code, EEXIST);
	a.bytes[3] = STEER_MAX + 1;
	assert_null(steer_add(port_get(FABRIC0), &a, &err));
	assert_int_equal(err.code, ENOSPC);
	assert_int_equal(port_del("host0", &err), -EBUSY);
	assert_int_equal(port_del("fabric0", &err), -EBUSY);
	for (i = 0; i < STEER_MAX; i++) {
		a.bytes[3] = (uint8_t)(i + 1);
		assert_int_equal(steer_del(port_get(FABRIC0), &a, &err), 0);
	}
	assert_int_equal(steer_count(FABRIC0), 0);
}

static void found(void **state)
{
	struct steer_table t = {.n = 5};
	static struct steer_count counts[5];
	static const char *const all[] = {"10.0.0.1", "10.0.0.200", "192.0.2.1", "2001:db8::1", "2001:db8::ff"};
	struct ip_addr a;
	unsigned i;

	for (i = 0; i < t.n; i++) {
		t.addr[i] = router_addr(all[i]);
		t.count[i] = &counts[i];
	}
	for (i = 0; i < 5; i++) {
		for (t.n = 0; t.n <= 5; t.n++) {
			a = router_addr(all[i]);
			assert_ptr_equal(steer_find(&t, &a), i < t.n ? &counts[i] : NULL);
		}
	}
	t.n = 5;
	a = router_addr("10.0.0.2");
	assert_null(steer_find(&t, &a));
	a = router_addr("2001:db8::100");
	assert_null(steer_find(&t, &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_worker),
		cmocka_unit_test(worker_takes_the_host_ports),
		cmocka_unit_test(in_software),
		cmocka_unit_test(in_hardware),
		cmocka_unit_test(workers_come_and_go),
		cmocka_unit_test(roles_change),
		cmocka_unit_test(refused),
		cmocka_unit_test(found),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
