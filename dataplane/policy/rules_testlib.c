// SPDX-License-Identifier: Apache-2.0
#include "policy/rules_testlib.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rcu.h"
#include "control/rules_message.h"
#include "testing/router_fixture.h"

struct error rules_test_err;

static char *value(char *text, const char *flag)
{
	char *at = strstr(text, flag), *out, *end;

	if (at == NULL)
		return strdup("");
	out = strdup(at + strlen(flag));
	end = strchr(out, ' ');
	if (end)
		*end = '\0';
	return out;
}

int rules_test_parse(const char *line, struct rule *r)
{
	Corelane__V1__Rule m = CORELANE__V1__RULE__INIT;
	char text[512], action[16];
	int ret;

	snprintf(text, sizeof(text), "%s", line);
	sscanf(text, "%u %15s", &m.id, action);
	m.action = strcmp(action, "allow") == 0;
	m.protocol = value(text, "--protocol ");
	m.source = value(text, "--source ");
	m.destination = value(text, "--destination ");
	m.source_group = value(text, "--source-group ");
	m.destination_group = value(text, "--destination-group ");
	m.source_ports = value(text, "--source-ports ");
	m.destination_ports = value(text, "--destination-ports ");
	m.icmp_type = value(text, "--icmp-type ");
	m.icmp_code = value(text, "--icmp-code ");
	m.log = strstr(text, "--log") != NULL;
	ret = rule_decode(&m, r, &rules_test_err);
	free(m.protocol);
	free(m.source);
	free(m.destination);
	free(m.source_group);
	free(m.destination_group);
	free(m.source_ports);
	free(m.destination_ports);
	free(m.icmp_type);
	free(m.icmp_code);
	return ret;
}

void rules_test_add(struct rule_list *l, const char *line)
{
	char text[RULE_TEXT];
	struct rule r;

	assert_int_equal(rules_test_parse(line, &r), 0);
	assert_string_equal(rule_text(&r, text), line);
	assert_int_equal(rules_add(l, &r, 1, false, &rules_test_err), 0);
}

void rules_test_del(struct rule_list *l, uint32_t id)
{
	assert_int_equal(rules_del(l, &id, 1, &rules_test_err), 0);
}

struct flow_key rules_test_key(uint8_t proto, const char *src, uint16_t sport, const char *dst, uint16_t dport)
{
	struct ip_addr s = router_addr(src), d = router_addr(dst);
	struct flow_key k = {.proto = proto, .family = s.family, .src_port = htons(sport), .dst_port = htons(dport)};

	memcpy(s.family == IPV4 ? (void *)&k.src4 : k.src6, s.bytes, ip_bytes(s.family));
	memcpy(s.family == IPV4 ? (void *)&k.dst4 : k.dst6, d.bytes, ip_bytes(s.family));
	return k;
}

uint32_t rules_test_decides(const struct rule_list *l, struct flow_key k)
{
	struct rule_verdict v;
	bool hit = rules_lookup(l->set, &k, &v);

	assert_int_equal(hit, v.rule != 0);
	return v.rule;
}

struct rule_list *rules_test_list(const char *name, bool allow)
{
	struct rule_list *l = rule_list_add(name, allow, &rules_test_err);

	assert_non_null(l);
	return l;
}

static bool settled(void)
{
	struct rule_list *l;

	for (l = rule_list_next(NULL); l; l = rule_list_next(l))
		if (l->wanted || l->running)
			return false;
	return true;
}

void rules_test_settle(void)
{
	while (!settled()) {
		rules_poll();
		usleep(200);
	}
	rcu_poll();
}

void rules_test_forget(const char *name)
{
	rules_test_settle();
	assert_int_equal(rule_list_del(name, &rules_test_err), 0);
	rcu_poll();
}

void rules_test_pad(struct rule_list *l)
{
	char line[128];
	unsigned i;

	for (i = 0; i < 150; i++) {
		snprintf(line, sizeof(line), "%u deny --protocol 99 --source %s", 1000 + i,
			 i % 2 ? "203.0.113.0/24" : "2001:db8:ffff::/48");
		rules_test_add(l, line);
	}
	rules_test_settle();
	assert_non_null(l->set->base);
	assert_non_null(l->set->base->acl[0]);
	assert_non_null(l->set->base->acl[1]);
}
