// SPDX-License-Identifier: Apache-2.0
#include "control/rules_message.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/check.h"
#include "policy/meter.h"
#include "policy/mirror.h"

// "80" or "80-443"; "": all.
static int rules_message_decode_range(const char *text, const char *field, uint16_t most, const char *valid,
				      uint16_t out[2], struct error *err)
{
	uint32_t value[2] = {0, most};
	const char *s = text;
	unsigned i;

	for (i = 0; *text && i < 2; i++) {
		value[i] = 0;
		if (*s < '0' || *s > '9')
			return error_set(err, EINVAL, field, text, valid, "is not a range");
		for (; *s >= '0' && *s <= '9' && value[i] <= most; s++)
			value[i] = value[i] * 10 + (uint32_t)(*s - '0');
		if (value[i] > most || (*s && (i == 1 || *s != '-')))
			return error_set(err, EINVAL, field, text, valid, "is not a range");
		if (*s == '\0' && i == 0) {
			value[1] = value[0];
			break;
		}
		s += i == 0;
	}
	if (value[0] > value[1])
		return error_set(err, EINVAL, field, text, valid, "ends before it begins");
	out[0] = (uint16_t)value[0];
	out[1] = (uint16_t)value[1];
	return 0;
}

static int rules_message_decode_side(const char *prefix, const char *group, const char *field, const char *group_field,
				     struct ip_prefix *p, uint16_t *id, struct error *err)
{
	struct address_group *g;

	if (*prefix && *group)
		return error_set(err, EINVAL, group_field, group, "a prefix or a group", "%s is given too", field);
	if (*group) {
		g = address_group_find_err(group, group_field, err);
		if (g == NULL)
			return -ENOENT;
		*id = g->id;
	}
	return *prefix && strcmp(prefix, "any") != 0 ? ip_parse_prefix(prefix, field, p, err) : 0;
}

static int rules_message_check_families(const Corelane__V1__Rule *in, const struct rule *r, struct error *err)
{
	uint8_t family = r->src.addr.family ? r->src.addr.family : r->dst.addr.family;

	if (r->src.addr.family && r->dst.addr.family && r->src.addr.family != r->dst.addr.family)
		return error_set(err, EINVAL, "rule.destination", in->destination, "prefixes of one family",
				 "is not of the family of the source, %s", in->source);
	if ((r->proto == IPPROTO_ICMP && family == IPV6) || (r->proto == IPPROTO_ICMPV6 && family == IPV4))
		return error_set(err, EINVAL, "rule.protocol", in->protocol, family == IPV4 ? "icmp" : "icmpv6",
				 "is not a protocol of %s", family == IPV4 ? "IPv4" : "IPv6");
	return 0;
}

static int rules_message_decode_ports(const Corelane__V1__Rule *in, struct rule *r, struct error *err)
{
	const char *valid = notation_texts[NOTATION_PORT_RANGE].valid;
	bool has = r->proto == IPPROTO_TCP || r->proto == IPPROTO_UDP || r->proto == IPPROTO_SCTP;
	bool src = *in->source_ports;
	int ret;

	if (!has && (src || *in->destination_ports))
		return error_set(err, EINVAL, src ? "rule.source_ports" : "rule.destination_ports",
				 src ? in->source_ports : in->destination_ports, "with protocol tcp, udp or sctp",
				 "the protocol has no ports");
	ret = rules_message_decode_range(in->source_ports, "rule.source_ports", 65535, valid, r->ports[0], err);
	return ret < 0 ? ret
		       : rules_message_decode_range(in->destination_ports, "rule.destination_ports", 65535, valid,
						    r->ports[1], err);
}

static int rules_message_decode_icmp(const Corelane__V1__Rule *in, struct rule *r, struct error *err)
{
	const char *valid = notation_texts[NOTATION_ICMP_RANGE].valid;
	bool has = r->proto == IPPROTO_ICMP || r->proto == IPPROTO_ICMPV6;
	int ret;

	if (!has && (*in->icmp_type || *in->icmp_code))
		return error_set(err, EINVAL, *in->icmp_type ? "rule.icmp_type" : "rule.icmp_code",
				 *in->icmp_type ? in->icmp_type : in->icmp_code, "with protocol icmp or icmpv6",
				 "the protocol has no ICMP types");
	if (!has)
		return 0;
	ret = rules_message_decode_range(in->icmp_type, "rule.icmp_type", 255, valid, r->ports[0], err);
	if (ret == 0)
		ret = rules_message_decode_range(in->icmp_code, "rule.icmp_code", 255, valid, r->ports[1], err);
	if (ret == 0 && r->ports[1][1] - r->ports[1][0] < 255 && r->ports[0][1] - r->ports[0][0] == 255)
		return error_set(err, EINVAL, "rule.icmp_code", in->icmp_code, "with an ICMP type",
				 "a code belongs to a type");
	return ret;
}

static int rules_message_decode_meter(const Corelane__V1__Rule *in, struct rule *r, struct error *err)
{
	struct meter *m;

	if (*in->meter == '\0')
		return 0;
	if (!r->allow)
		return error_set(err, EINVAL, "rule.meter", in->meter, "with action allow",
				 "a rule that denies has no traffic to limit");
	m = meter_find_err(in->meter, "rule.meter", err);
	if (m == NULL)
		return -ENOENT;
	r->extras.meter = m->id;
	return 0;
}

static int rules_message_decode_mirror(const Corelane__V1__Rule *in, struct rule *r, struct error *err)
{
	struct mirror *m = *in->mirror ? mirror_find_err(in->mirror, "rule.mirror", err) : NULL;

	if (*in->mirror && m == NULL)
		return -ENOENT;
	r->extras.mirror = m ? m->id : 0;
	return 0;
}

int rule_decode(const Corelane__V1__Rule *in, struct rule *r, struct error *err)
{
	int ret;

	*r = (struct rule){
		.id = in->id, .allow = in->action == CORELANE__V1__RULE_ACTION__RULE_ACTION_ALLOW, .log = in->log};
	ret = rule_protocol_parse(in->protocol, "rule.protocol", &r->proto, err);
	if (ret == 0)
		ret = rules_message_decode_side(in->source, in->source_group, "rule.source", "rule.source_group",
						&r->src, &r->src_group, err);
	if (ret == 0)
		ret = rules_message_decode_side(in->destination, in->destination_group, "rule.destination",
						"rule.destination_group", &r->dst, &r->dst_group, err);
	if (ret == 0)
		ret = rules_message_check_families(in, r, err);
	if (ret == 0)
		ret = rules_message_decode_ports(in, r, err);
	if (ret == 0)
		ret = rules_message_decode_icmp(in, r, err);
	if (ret == 0)
		ret = rules_message_decode_meter(in, r, err);
	return ret < 0 ? ret : rules_message_decode_mirror(in, r, err);
}

static char *rules_message_encode_side(struct api_call *call, const struct ip_prefix *p)
{
	char buf[IP_TEXT];

	return api_strdup(call, p->addr.family ? ip_format_prefix(p, buf) : "");
}

static char *rules_message_encode_group(struct api_call *call, uint16_t id)
{
	return api_strdup(call, id && address_group_get(id) ? address_group_get(id)->name : "");
}

void rule_encode(struct api_call *call, const char *list, const struct rule *r, Corelane__V1__Rule *out)
{
	bool icmp = r->proto == IPPROTO_ICMP || r->proto == IPPROTO_ICMPV6;
	char buf[16];
	char *first = api_strdup(call, rule_range_text(r->ports[0], icmp ? 255 : 65535, buf));
	char *second = api_strdup(call, rule_range_text(r->ports[1], icmp ? 255 : 65535, buf));

	out->list = api_strdup(call, list);
	out->id = r->id;
	out->action =
		r->allow ? CORELANE__V1__RULE_ACTION__RULE_ACTION_ALLOW : CORELANE__V1__RULE_ACTION__RULE_ACTION_DENY;
	out->protocol = api_strdup(call, rule_protocol_name(r->proto, buf));
	out->source = rules_message_encode_side(call, &r->src);
	out->destination = rules_message_encode_side(call, &r->dst);
	out->source_group = rules_message_encode_group(call, r->src_group);
	out->destination_group = rules_message_encode_group(call, r->dst_group);
	*(icmp ? &out->icmp_type : &out->source_ports) = first;
	*(icmp ? &out->icmp_code : &out->destination_ports) = second;
	out->log = r->log;
	out->meter = api_strdup(call, r->extras.meter ? meter_get(r->extras.meter)->cfg.name : "");
	out->mirror = api_strdup(call, r->extras.mirror ? mirror_get(r->extras.mirror)->cfg.name : "");
	out->shadowed_by = r->shadowed_by;
}
