// SPDX-License-Identifier: Apache-2.0
#include "boot/dhcp6_message.h"

#define OPTION_HEADER 4
#define IA_HEADER 12   // its id, T1 and T2; a DHCP6_IA_TA has only the id
#define ADDRESS_LEN 24 // the address and its two lifetimes

struct dhcp6_view {
	uint16_t code, len;
	const uint8_t *value;
};

static uint16_t dhcp6_message_number(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

// --- Parser. ---

// The option at *at, behind which it moves. False: it does not lie before end.
static bool dhcp6_message_next(const uint8_t **at, const uint8_t *end, struct dhcp6_view *out)
{
	if (end - *at < OPTION_HEADER)
		return false;
	out->code = dhcp6_message_number(*at);
	out->len = dhcp6_message_number(*at + 2);
	out->value = *at + OPTION_HEADER;
	if (out->len > end - out->value)
		return false;
	*at = out->value + out->len;
	return true;
}

static bool dhcp6_message_ia(const struct dhcp6_view *o, struct dhcp6_request *r)
{
	unsigned head = o->code == DHCP6_IA_TA ? 4 : IA_HEADER;
	const uint8_t *at = o->value + head, *end = o->value + o->len;
	struct dhcp6_view inner;

	if (o->len < head)
		return false;
	while (at < end) {
		if (!dhcp6_message_next(&at, end, &inner) || (inner.code == DHCP6_ADDRESS && inner.len < ADDRESS_LEN))
			return false;
	}
	if (r->n_ias == DHCP6_MAX_IAS)
		return true;
	r->ias[r->n_ias] =
		(struct dhcp6_ia){.option = o->code, .options = o->value + head, .len = (uint16_t)(o->len - head)};
	memcpy(r->ias[r->n_ias++].id, o->value, 4);
	return true;
}

static bool dhcp6_message_duid(const struct dhcp6_view *o, const uint8_t **value, uint16_t *len)
{
	if (*value != NULL || o->len < DHCP6_DUID_SHORTEST || o->len > DHCP6_DUID_LONGEST)
		return false;
	*value = o->value;
	*len = o->len;
	return true;
}

static bool dhcp6_message_option(const struct dhcp6_view *o, struct dhcp6_request *r)
{
	switch (o->code) {
	case DHCP6_CLIENT:
		return dhcp6_message_duid(o, &r->client, &r->client_len);
	case DHCP6_SERVER:
		return dhcp6_message_duid(o, &r->server, &r->server_len);
	case DHCP6_IA_NA:
	case DHCP6_IA_TA:
	case DHCP6_IA_PD:
		return dhcp6_message_ia(o, r);
	case DHCP6_WANTED:
		r->wanted = o->value;
		r->wanted_len = o->len;
		return o->len % 2 == 0;
	case DHCP6_RAPID_COMMIT:
		r->rapid_commit = true;
		return true;
	default:
		return true;
	}
}

// RFC 8415, 16.2 to 16.13: which identifiers a message has.
static bool dhcp6_message_is_valid(const struct dhcp6_request *r)
{
	switch (r->header->type) {
	case DHCP6_SOLICIT:
	case DHCP6_CONFIRM:
	case DHCP6_REBIND:
		return r->client && r->server == NULL;
	case DHCP6_REQUEST:
	case DHCP6_RENEW:
	case DHCP6_RELEASE:
	case DHCP6_DECLINE:
		return r->client && r->server;
	case DHCP6_INFORMATION:
		return r->n_ias == 0;
	default:
		return false;
	}
}

bool dhcp6_parse(const void *message, size_t len, struct dhcp6_request *out)
{
	const uint8_t *at = message, *end = at + len;
	struct dhcp6_view o;

	*out = (struct dhcp6_request){.header = message};
	if (len < sizeof(struct dhcp6_header))
		return false;
	at += sizeof(struct dhcp6_header);
	while (at < end)
		if (!dhcp6_message_next(&at, end, &o) || !dhcp6_message_option(&o, out))
			return false;
	return dhcp6_message_is_valid(out);
}

bool dhcp6_wants(const struct dhcp6_request *r, enum dhcp6_option option)
{
	unsigned i;

	for (i = 0; i < r->wanted_len; i += 2)
		if (dhcp6_message_number(r->wanted + i) == option)
			return true;
	return r->wanted == NULL;
}

bool dhcp6_next_address(const struct dhcp6_ia *ia, unsigned *at, const uint8_t **address)
{
	const uint8_t *from = ia->options + *at, *end = ia->options + ia->len;
	struct dhcp6_view o;

	while (from < end && dhcp6_message_next(&from, end, &o)) {
		*at = (unsigned)(from - ia->options);
		if (o.code == DHCP6_ADDRESS) {
			*address = o.value;
			return true;
		}
	}
	return false;
}

// --- Writer. ---

uint8_t *dhcp6_reserve(struct dhcp6_writer *w, enum dhcp6_option option, size_t len)
{
	uint8_t *value = w->at + OPTION_HEADER;

	if ((size_t)(w->end - w->at) < OPTION_HEADER + len)
		return NULL;
	w->at[0] = (uint8_t)(option >> 8);
	w->at[1] = (uint8_t)option;
	w->at[2] = (uint8_t)(len >> 8);
	w->at[3] = (uint8_t)len;
	w->at = value + len;
	return value;
}

bool dhcp6_append(struct dhcp6_writer *w, enum dhcp6_option option, const void *value, size_t len)
{
	uint8_t *to = dhcp6_reserve(w, option, len);

	if (to)
		memcpy(to, value, len);
	return to != NULL;
}

bool dhcp6_append_status(struct dhcp6_writer *w, enum dhcp6_status status)
{
	const uint8_t value[2] = {0, (uint8_t)status};

	return dhcp6_append(w, DHCP6_STATUS, value, sizeof(value));
}

bool dhcp6_append_addresses(struct dhcp6_writer *w, enum dhcp6_option option, const struct ip_addr *list, unsigned n)
{
	unsigned i, of = 0;
	uint8_t *to;

	for (i = 0; i < n; i++)
		of += list[i].family == IPV6;
	to = of > 0 ? dhcp6_reserve(w, option, of * 16) : NULL;
	for (i = 0; to && i < n; i++) {
		if (list[i].family != IPV6)
			continue;
		memcpy(to, list[i].bytes, 16);
		to += 16;
	}
	return to || of == 0;
}
