// SPDX-License-Identifier: Apache-2.0
// Multicast snooping, from a guest's report to who gets the group's frames.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ip.h>

#include "graph/node_test.h"
#include "l2/bridge_fixture.h"
#include "l2/snoop.h"

#define A "02:00:00:00:00:0a"
#define NONE UINT16_MAX

static struct bridge *lan; // ports 1 to 4, tunnel 101
static unsigned sent_before;

static void set_snooping(struct bridge *b, bool on)
{
	struct bridge_config c = b->cfg;

	c.snooping = on;
	assert_int_equal(bridge_set(b, &c, NULL), 0);
}

// The domain's hosts have answered its first queries.
static int setup(void **state)
{
	uint16_t i;

	fixture_reset(state);
	lan = fixture_bridge("lan", 1);
	set_snooping(lan, true);
	for (i = 1; i <= 4; i++)
		fixture_join(i, lan->id, NONE);
	fixture_wait(5);
	sent_before = fixture_n_sent;
	return 0;
}

// --- Frames. ---

static struct rte_mbuf *frame(const char *group, const uint8_t *payload, unsigned len, uint8_t proto)
{
	struct ip_addr a = fixture_addr(group);
	bool v4 = a.family == IPV4;
	unsigned head = 14 + (v4 ? 20 : 40);
	uint8_t data[2048] = {1, 0, 0x5e, a.bytes[1] & 0x7f, a.bytes[2], a.bytes[3], 2, 0, 0, 0, 0, 0xa, 8};

	if (v4) {
		memcpy(data + 14, (const uint8_t[]){0x45, 0, (uint8_t)((20 + len) >> 8), (uint8_t)(20 + len)}, 4);
		memcpy(data + 22, (const uint8_t[]){1, proto, 0, 0, 10, 0, 0, 2}, 8);
		memcpy(data + 30, a.bytes, 4);
	} else {
		memcpy(data, (const uint8_t[]){0x33, 0x33, a.bytes[12], a.bytes[13], a.bytes[14], a.bytes[15]}, 6);
		memcpy(data + 12,
		       (const uint8_t[]){0x86, 0xdd, 0x60, 0, 0, 0, (uint8_t)(len >> 8), (uint8_t)len, proto, 1, 0xfe,
					 0x80},
		       12);
		data[37] = 2;
		memcpy(data + 38, a.bytes, 16);
	}
	memcpy(data + head, payload, len);
	return node_test_packet(data, head + len);
}

static struct rte_mbuf *received(struct rte_mbuf *m, uint16_t port)
{
	m->port = port;
	meta(m)->bridge = lan->id;
	meta(m)->vrf = UINT16_MAX;
	meta(m)->l3 = 0;
	return m;
}

static struct rte_mbuf *data_frame(const char *group)
{
	static const uint8_t udp[16];

	return frame(group, udp, sizeof(udp), 17);
}

static struct rte_mbuf *igmp(uint8_t type, const char *group, const char *dst)
{
	uint8_t message[8] = {type, 100};
	uint16_t sum;

	if (group)
		memcpy(message + 4, fixture_addr(group).bytes, 4);
	sum = (uint16_t)~rte_raw_cksum(message, sizeof(message));
	memcpy(message + 2, &sum, sizeof(sum));
	return frame(dst, message, sizeof(message), 2);
}

static struct rte_mbuf *mld(uint8_t type, const char *group, const char *dst)
{
	uint8_t message[32] = {58, 0, 5, 2, 0, 0, 1, 0, type, [12] = 0x27};
	uint32_t sum = 24 << 8; // 24 and 58 in network byte order
	struct rte_mbuf *m;
	uint16_t folded;

	if (group)
		memcpy(message + 16, fixture_addr(group).bytes, 16);
	m = frame(dst, message, sizeof(message), 0);
	sum = __rte_raw_cksum(rte_pktmbuf_mtod_offset(m, uint8_t *, 22), 32, sum + (58 << 8));
	folded = (uint16_t)~__rte_raw_cksum_reduce(__rte_raw_cksum(message + 8, 24, sum));
	memcpy(rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + 40 + 10), &folded, sizeof(folded));
	return m;
}

static struct rte_mbuf *report(const char *group, bool joins)
{
	if (strchr(group, ':'))
		return mld(joins ? 131 : 132, group, joins ? group : "ff02::2");
	return igmp(joins ? 0x16 : 0x17, group, joins ? group : "224.0.0.2");
}

// Who gets the frame: local ports as digits, T for the tunnel; or why nobody does.
static const char *who_gets(struct rte_mbuf *m)
{
	static char text[64];
	char *end = text;
	unsigned i, port, n = node_test_run("bridge_flood", &m, 1);

	for (port = 1; port <= 8; port++)
		for (i = 0; i < n; i++)
			if (strcmp(node_test_outs[i].edge, "port_tx") == 0 &&
			    meta(node_test_outs[i].m)->out_port == port)
				*end++ = (char)('0' + port);
	for (i = 0; i < n; i++) {
		if (strcmp(node_test_outs[i].edge, "encap_vxlan4") == 0)
			*end++ = 'T';
		if (strcmp(node_test_outs[i].edge, "drop") == 0)
			end = stpcpy(text, node_test_reason(node_test_outs[i].m));
		rte_pktmbuf_free(node_test_outs[i].m);
	}
	*end = '\0';
	return text;
}

#define assert_gets(m, port, want) assert_string_equal(who_gets(received(m, port)), want)

static void joins(uint16_t port, const char *group)
{
	who_gets(received(report(group, true), port));
	bridge_tick();
}

static void leaves(uint16_t port, const char *group)
{
	who_gets(received(report(group, false), port));
	bridge_tick();
}

static const char *const groups[] = {"239.1.1.1", "ff0e::1"};
static const char *const others[] = {"239.1.1.2", "ff0e::2"};
static const char *const links[] = {"224.0.0.251", "ff02::fb"};

// --- Tests. ---

static void members_get_the_group(void **state)
{
	unsigned v;

	for (v = 0; v < 2; v++) {
		assert_gets(data_frame(groups[v]), 1, "234T"); // nobody has joined
		joins(2, groups[v]);
		assert_gets(data_frame(groups[v]), 1, "2T");
		joins(4, groups[v]);
		assert_gets(data_frame(groups[v]), 1, "24T");
		assert_gets(data_frame(groups[v]), 2, "4T");
		assert_gets(data_frame(others[v]), 1, "234T");
		joins(2, links[v]);
		assert_gets(data_frame(links[v]), 1, "234T");
	}
	assert_int_equal(snoop_count(lan->id), 4);
	set_snooping(lan, false);
	assert_gets(data_frame(groups[0]), 1, "234T");
	assert_int_equal(snoop_count(lan->id), 0);
}

static void frames_from_tunnels(void **state)
{
	struct rte_mbuf *m;

	joins(2, groups[0]);
	m = received(data_frame(groups[0]), FABRIC);
	meta(m)->flags |= META_FROM_TUNNEL;
	assert_string_equal(who_gets(m), "2");
	m = received(report(others[0], true), FABRIC); // noted by the other end
	meta(m)->flags |= META_FROM_TUNNEL;
	assert_string_equal(who_gets(m), "bridge_report_kept");
	bridge_tick();
	assert_int_equal(snoop_count(lan->id), 1);
}

// A member hears no report of another one, or it would not send its own (RFC 4541, 2.1.1, 1).
static void reports_go_to_routers(void **state)
{
	struct bridge_config c = lan->cfg;
	unsigned v;

	for (v = 0; v < 2; v++)
		assert_gets(report(groups[v], true), 1, "T");
	c.n_flood = 0;
	assert_int_equal(bridge_set(lan, &c, NULL), 0);
	assert_gets(report(groups[0], true), 1, "bridge_report_kept");
	assert_gets(igmp(0x11, NULL, "224.0.0.1"), 3, "124"); // a router asks
	assert_gets(mld(130, NULL, "ff02::1"), 3, "124");
	bridge_tick();
	assert_true(snoop_is_router(3));
	for (v = 0; v < 2; v++) {
		joins(2, groups[v]);
		assert_gets(report(groups[v], true), 1, "3");
		assert_gets(report(groups[v], true), 3, "bridge_report_kept");
		assert_gets(data_frame(groups[v]), 1, "23");
	}
	fixture_wait(257);
	assert_false(snoop_is_router(3));
	assert_gets(report(groups[0], true), 1, "bridge_report_kept");
}

static void only_the_sender_is_a_member(void **state)
{
	struct bridge_config c = lan->cfg;

	joins(2, groups[0]);
	c.n_flood = 0;
	assert_int_equal(bridge_set(lan, &c, NULL), 0);
	assert_gets(data_frame(groups[0]), 2, "bridge_group_empty");
}

static unsigned count_sent(uint16_t port, uint8_t type)
{
	unsigned i, n = 0;

	assert_true(fixture_n_sent - sent_before <= FIXTURE_SENT);
	for (i = sent_before; i != fixture_n_sent; i++) {
		const struct fixture_sent *s = &fixture_sent[i % FIXTURE_SENT];

		n += s->port == port && s->bytes[type == 0x11 ? 14 + 24 : 14 + 48] == type;
	}
	sent_before = fixture_n_sent;
	return n;
}

static void leaving(void **state)
{
	unsigned v;

	for (v = 0; v < 2; v++) {
		joins(2, groups[v]);
		joins(3, groups[v]);
		leaves(3, groups[v]);
		leaves(3, groups[v]);
		assert_int_equal(count_sent(3, v ? 130 : 0x11), 1); // are there other members?
		assert_gets(data_frame(groups[v]), 1, "23T");
		joins(3, groups[v]); // yes
		fixture_wait(4);
		assert_gets(data_frame(groups[v]), 1, "23T");
		leaves(3, groups[v]);
		fixture_wait(4);
		assert_gets(data_frame(groups[v]), 1, "2T");
		count_sent(3, 0x11);
	}
}

static void ageing(void **state)
{
	unsigned v;

	for (v = 0; v < 2; v++)
		joins(2, groups[v]);
	fixture_wait(200);
	joins(3, groups[0]);
	fixture_wait(62);
	assert_gets(data_frame(groups[0]), 1, "3T");
	assert_gets(data_frame(groups[1]), 1, "234T");
	assert_int_equal(snoop_count(lan->id), 1);
}

// Hosts are asked before their membership ends, also where another querier is heard, which may be a guest's lie.
static void last_question(void **state)
{
	unsigned v;

	for (v = 0; v < 2; v++)
		joins(2, groups[v]);
	fixture_wait(100);
	who_gets(received(igmp(0x11, NULL, "224.0.0.1"), 3));
	who_gets(received(mld(130, NULL, "ff02::1"), 3));
	fixture_wait(150);
	count_sent(2, 0x11);
	count_sent(2, 130);
	fixture_wait(9);
	assert_true(count_sent(2, 0x11) > 0);
	for (v = 0; v < 2; v++)
		joins(2, groups[v]);
	fixture_wait(20);
	for (v = 0; v < 2; v++)
		assert_gets(data_frame(groups[v]), 1, "23T");
}

// Queries come twice to a new port, and then every 125 seconds; while another querier is there, none do.
static void querier(void **state)
{
	const struct fixture_sent *s;

	fixture_join(5, lan->id, NONE);
	fixture_wait(1);
	assert_int_equal(fixture_n_sent - sent_before, 2);
	s = &fixture_sent[sent_before % FIXTURE_SENT];
	assert_memory_equal(s->bytes, "\1\0\x5e\0\0\1", 6);
	assert_int_equal(rte_raw_cksum(s->bytes + 14, 24), 0xffff);
	assert_int_equal(rte_raw_cksum(s->bytes + 38, 12), 0xffff);
	assert_memory_equal(s->bytes + 26, "\0\0\0\0\xe0\0\0\1\x94\4\0\0\x11\x0a", 14);
	s = &fixture_sent[(sent_before + 1) % FIXTURE_SENT];
	assert_memory_equal(s->bytes, "\x33\x33\0\0\0\1", 6);
	assert_memory_equal(s->bytes + 20, "\0\1\xfe\x80", 4);
	assert_int_equal(s->bytes[62], 130);
	assert_int_equal(count_sent(5, 0x11), 1);
	fixture_wait(32);
	assert_int_equal(count_sent(5, 0x11), 1);
	fixture_wait(126);
	assert_int_equal(count_sent(5, 0x11), 1);
	fixture_wait(126);
	assert_int_equal(count_sent(5, 130), 1);
	who_gets(received(igmp(0x11, NULL, "224.0.0.1"), 3));
	fixture_wait(126);
	assert_int_equal(count_sent(5, 0x11), 0);
	fixture_wait(126);
	assert_int_equal(count_sent(5, 130), 1); // of IPv6 there is no other one
	fixture_wait(126);
	assert_int_equal(count_sent(5, 0x11), 1);
}

// What is behind a new port is not known, so that it gets all groups until its hosts have answered.
static void new_ports(void **state)
{
	joins(2, groups[0]);
	fixture_join(5, lan->id, NONE);
	bridge_tick();
	assert_gets(data_frame(groups[0]), 1, "25T");
	fixture_wait(5);
	assert_gets(data_frame(groups[0]), 1, "2T");
	fixture_link(3, false);
	fixture_link(3, true);
	bridge_tick();
	assert_gets(data_frame(groups[0]), 1, "23T");
	assert_false(snoop_is_router(3));
}

static void ports_go(void **state)
{
	struct bridge *other = fixture_bridge("other", 0);

	joins(2, groups[0]);
	joins(3, groups[0]);
	joins(4, groups[0]);
	fixture_leave(2);
	assert_gets(data_frame(groups[0]), 1, "34T");
	fixture_join(3, other->id, NONE);
	assert_gets(data_frame(groups[0]), 1, "4T"); // at once: the port is another tenant's
	who_gets(received(report(groups[0], true), 4));
	fixture_join(4, other->id, NONE); // before the master has read the report
	bridge_tick();
	assert_int_equal(snoop_count(lan->id) + snoop_count(other->id), 0);
	assert_gets(data_frame(groups[0]), 1, "T");
}

static void limits(void **state)
{
	uint64_t drops = fixture_drops(2, "bridge_group_limit");
	char group[32];
	unsigned i;

	for (i = 0; i < SNOOP_PORT_MAX + 2; i++) {
		snprintf(group, sizeof(group), "239.2.%u.%u", i / 256, i % 256);
		joins(2, group);
	}
	assert_int_equal(snoop_count(lan->id), SNOOP_PORT_MAX);
	assert_int_equal(snoop_refused(lan->id), 2);
	assert_int_equal(fixture_drops(2, "bridge_group_limit"), drops + 2);
	assert_gets(data_frame(group), 1, "234T"); // as of any group that nobody has joined
	joins(3, group);                           // another port has room
	assert_gets(data_frame(group), 1, "3T");
}

// 200 records in one report, and eight of these: more than a port may have.
static void rate(void **state)
{
	uint8_t message[8 + 200 * 8] = {0x22, [7] = 200};
	unsigned i, refused = 0;
	uint16_t sum;

	for (i = 0; i < 200; i++)
		memcpy(message + 8 + i * 8, (const uint8_t[]){4, 0, 0, 0, 239, 3, 0, (uint8_t)i}, 8);
	sum = (uint16_t)~rte_raw_cksum(message, sizeof(message));
	memcpy(message + 2, &sum, sizeof(sum));
	for (i = 0; i < 8; i++)
		refused += strcmp(who_gets(received(frame("224.0.0.22", message, sizeof(message), 2), 4)),
				  "bridge_report_rate") == 0;
	assert_true(refused > 0 && refused < 8);
	for (i = 0; i < 8; i++)
		bridge_tick();
	assert_int_equal(snoop_count(lan->id), 200);
}

static void damaged(void **state)
{
	struct rte_mbuf *m = received(report(groups[0], true), 1);

	rte_pktmbuf_mtod(m, uint8_t *)[14 + 20 + 4] ^= 1;
	assert_string_equal(who_gets(m), "bridge_report_damaged");
	m = received(report(groups[1], true), 1);
	rte_pktmbuf_trim(m, 3);
	assert_string_equal(who_gets(m), "bridge_report_damaged");
	bridge_tick();
	assert_int_equal(snoop_count(lan->id), 0);
}

static void listing(void **state)
{
	struct snoop_entry e;

	joins(3, groups[0]);
	joins(2, groups[0]);
	joins(2, groups[1]);
	assert_true(snoop_next(NULL, &e) && e.port == 2 && e.bridge == lan->id && e.group.family == IPV4);
	assert_true(snoop_next(&e, &e) && e.port == 3);
	assert_true(snoop_next(&e, &e) && e.port == 2 && e.group.family == IPV6);
	assert_false(snoop_next(&e, &e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(members_get_the_group, setup),
		cmocka_unit_test_setup(frames_from_tunnels, setup),
		cmocka_unit_test_setup(reports_go_to_routers, setup),
		cmocka_unit_test_setup(only_the_sender_is_a_member, setup),
		cmocka_unit_test_setup(leaving, setup),
		cmocka_unit_test_setup(ageing, setup),
		cmocka_unit_test_setup(last_question, setup),
		cmocka_unit_test_setup(querier, setup),
		cmocka_unit_test_setup(new_ports, setup),
		cmocka_unit_test_setup(ports_go, setup),
		cmocka_unit_test_setup(limits, setup),
		cmocka_unit_test_setup(rate, setup),
		cmocka_unit_test_setup(damaged, setup),
		cmocka_unit_test_setup(listing, setup),
	};

	return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
