// SPDX-License-Identifier: Apache-2.0
#include "boot/dhcp4_message.h"

#include <string.h>

// --- Parser. ---

// False: the option has a length that its type does not have.
static bool dhcp4_message_option(uint8_t option, const uint8_t *value, uint8_t len, struct dhcp4_request *r,
				 uint8_t *overload)
{
	static const uint8_t lengths[UINT8_MAX + 1] = {[DHCP4_TYPE] = 1,
						       [DHCP4_OVERLOAD] = 1,
						       [DHCP4_REQUESTED] = 4,
						       [DHCP4_SERVER] = 4,
						       [DHCP4_MAX_SIZE] = 2};

	if (lengths[option] && len != lengths[option])
		return false;
	switch (option) {
	case DHCP4_TYPE:
		r->type = *value;
		return true;
	case DHCP4_OVERLOAD:
		*overload = *value;
		return *value >= 1 && *value <= 3;
	case DHCP4_REQUESTED:
		memcpy(&r->requested, value, 4);
		return true;
	case DHCP4_SERVER:
		memcpy(&r->server, value, 4);
		return true;
	case DHCP4_MAX_SIZE:
		r->max_size = (uint16_t)RTE_MAX(DHCP4_IP_SIZE, value[0] << 8 | value[1]);
		return true;
	case DHCP4_CLIENT:
		r->client = value;
		r->client_len = len;
		return len >= 2;
	case DHCP4_RELAY:
		r->relay = value;
		r->relay_len = len;
		return len >= 2;
	default:
		return true;
	}
}

// One field with options, which ends with DHCP4_END or where the field does.
static bool dhcp4_message_field(const uint8_t *at, const uint8_t *end, struct dhcp4_request *r, uint8_t *overload)
{
	uint8_t option, len;

	while (at < end && *at != DHCP4_END) {
		option = *at++;
		if (option == DHCP4_PAD)
			continue;
		if (at == end)
			return false;
		len = *at++;
		if (len > end - at || !dhcp4_message_option(option, at, len, r, overload))
			return false;
		at += len;
	}
	return true;
}

bool dhcp4_parse(const void *message, size_t len, struct dhcp4_request *out)
{
	const struct dhcp4_header *h = message;
	uint8_t overload = 0, again = 0;

	*out = (struct dhcp4_request){.header = h, .max_size = DHCP4_IP_SIZE};
	if (len < sizeof(*h) || !dhcp4_is_request(h))
		return false;
	if (!dhcp4_message_field((const uint8_t *)(h + 1), (const uint8_t *)message + len, out, &overload))
		return false;
	if ((overload & 1) &&
	    !dhcp4_message_field((const uint8_t *)h->file, (const uint8_t *)h->file + sizeof(h->file), out, &again))
		return false;
	if ((overload & 2) &&
	    !dhcp4_message_field((const uint8_t *)h->sname, (const uint8_t *)h->sname + sizeof(h->sname), out, &again))
		return false;
	return out->type >= DHCP4_DISCOVER && out->type <= DHCP4_INFORM && again == 0;
}

// --- Writer. ---

bool dhcp4_append(struct dhcp4_writer *w, enum dhcp4_option option, const void *value, size_t len)
{
	if (len > UINT8_MAX || (size_t)(w->end - w->at) < len + 2)
		return false;
	*w->at++ = (uint8_t)option;
	*w->at++ = (uint8_t)len;
	memcpy(w->at, value, len);
	w->at += len;
	return true;
}

bool dhcp4_append_number(struct dhcp4_writer *w, enum dhcp4_option option, uint32_t value, unsigned bytes)
{
	rte_be32_t be = rte_cpu_to_be_32(value);

	return dhcp4_append(w, option, (const uint8_t *)&be + sizeof(be) - bytes, bytes);
}

bool dhcp4_append_text(struct dhcp4_writer *w, enum dhcp4_option option, const char *text)
{
	return *text == '\0' || dhcp4_append(w, option, text, strlen(text));
}

bool dhcp4_append_addresses(struct dhcp4_writer *w, enum dhcp4_option option, const struct ip_addr *list, unsigned n)
{
	uint8_t value[UINT8_MAX];
	unsigned i, len = 0;

	for (i = 0; i < n && len + 4 <= sizeof(value); i++) {
		if (list[i].family != IPV4)
			continue;
		memcpy(value + len, list[i].bytes, 4);
		len += 4;
	}
	return len == 0 || dhcp4_append(w, option, value, len);
}

unsigned dhcp4_route(uint8_t out[9], const struct ip_prefix *to, rte_be32_t router)
{
	unsigned significant = (to->len + 7u) / 8;

	out[0] = to->len;
	memcpy(out + 1, to->addr.bytes, significant);
	memcpy(out + 1 + significant, &router, sizeof(router));
	return 1 + significant + (unsigned)sizeof(router);
}
