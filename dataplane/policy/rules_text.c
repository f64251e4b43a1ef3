// SPDX-License-Identifier: Apache-2.0
// Text forms of rules.
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "policy/rules.h"
#include "policy/meter.h"
#include "policy/mirror.h"

int rule_protocol_parse(const char *text, const char *field, int16_t *out, struct error *err)
{
	uint8_t number;

	*out = -1;
	if (*text == '\0' || strcmp(text, "any") == 0)
		return 0;
	if (ip_parse_protocol(text, field, &number, NULL) < 0)
		return error_set(err, EINVAL, field, text, notation_texts[NOTATION_PROTOCOL].valid,
				 "is not an IP protocol");
	*out = number;
	return 0;
}

const char *rule_protocol_name(int16_t proto, char buf[16])
{
	buf[0] = '\0';
	return proto < 0 ? buf : ip_format_protocol((uint8_t)proto, buf);
}

const char *rule_range_text(const uint16_t range[2], uint16_t most, char buf[16])
{
	buf[0] = '\0';
	if (range[0] == range[1])
		snprintf(buf, 16, "%u", range[0]);
	else if (range[0] != 0 || range[1] < most)
		snprintf(buf, 16, "%u-%u", range[0], range[1]);
	return buf;
}

struct text {
	char *at, *end;
};

static void rules_text_word(struct text *t, const char *flag, const char *value)
{
	int n;

	if (*value == '\0')
		return;
	n = snprintf(t->at, (size_t)(t->end - t->at), " --%s %s", flag, value);
	t->at += n < t->end - t->at ? n : t->end - t->at - 1;
}

static const char *rules_text_side(const struct ip_prefix *p, uint16_t group, char buf[IP_TEXT])
{
	buf[0] = '\0';
	if (group && address_group_get(group))
		return address_group_get(group)->name;
	return p->addr.family ? ip_format_prefix(p, buf) : buf;
}

const char *rule_text(const struct rule *r, char buf[RULE_TEXT])
{
	bool icmp = r->proto == IPPROTO_ICMP || r->proto == IPPROTO_ICMPV6;
	struct text t = {buf, buf + RULE_TEXT};
	char a[16], ip[IP_TEXT];

	t.at += snprintf(buf, RULE_TEXT, "%u %s", r->id, r->allow ? "allow" : "deny");
	rules_text_word(&t, "protocol", rule_protocol_name(r->proto, a));
	rules_text_word(&t, r->src_group ? "source-group" : "source", rules_text_side(&r->src, r->src_group, ip));
	rules_text_word(&t, r->dst_group ? "destination-group" : "destination",
			rules_text_side(&r->dst, r->dst_group, ip));
	rules_text_word(&t, icmp ? "icmp-type" : "source-ports", rule_range_text(r->ports[0], icmp ? 255 : 65535, a));
	rules_text_word(&t, icmp ? "icmp-code" : "destination-ports",
			rule_range_text(r->ports[1], icmp ? 255 : 65535, a));
	if (r->extras.meter)
		rules_text_word(&t, "meter", meter_get(r->extras.meter)->cfg.name);
	if (r->extras.mirror)
		rules_text_word(&t, "mirror", mirror_get(r->extras.mirror)->cfg.name);
	if (r->log)
		snprintf(t.at, (size_t)(t.end - t.at), " --log");
	return buf;
}
