// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes what a port tells its guest when it boots (api/port.proto).
#include "control/port_boot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/field_limits.h"

#define LABEL_LONGEST 63
#define VIA " via "

int port_boot_addresses(const PbPort *in, struct boot_config *b, struct error *err)
{
	int ret = 0;
	size_t i;

	memset(b->addresses, 0, sizeof(b->addresses));
	for (i = 0; i < in->n_boot_addresses && ret == 0; i++)
		ret = ip_parse_ifaddr(in->boot_addresses[i], "port.boot_addresses", &b->addresses[i], err);
	b->n_addresses = (uint8_t)i;
	return ret;
}

int port_boot_hosts(const char *field, char **in, size_t n, struct ip_addr *out, uint8_t *n_out, struct error *err)
{
	int ret = 0;
	size_t i;

	for (i = 0; i < *n_out; i++)
		out[i] = (struct ip_addr){0};
	for (i = 0; i < n && ret == 0; i++)
		ret = ip_parse_addr(in[i], field, &out[i], err);
	*n_out = (uint8_t)i;
	return ret;
}

static int port_boot_route(const char *text, struct boot_route *out, struct error *err)
{
	const char *via = strstr(text, VIA);
	char prefix[IP_TEXT];
	int ret;

	if (via == NULL || (size_t)(via - text) >= sizeof(prefix))
		return error_set(err, EINVAL, "port.boot_routes", text, NOTATION_ROUTE_VALID, "is not a route");
	snprintf(prefix, sizeof(prefix), "%.*s", (int)(via - text), text);
	ret = ip_parse_prefix(prefix, "port.boot_routes", &out->to, err);
	if (ret == 0)
		ret = ip_parse_addr(via + strlen(VIA), "port.boot_routes", &out->via, err);
	if (ret == 0 && out->to.addr.family != out->via.family)
		return error_set(err, EINVAL, "port.boot_routes", text, NOTATION_ROUTE_VALID,
				 "leads to a router of the other family");
	return ret;
}

int port_boot_routes(const PbPort *in, struct boot_config *b, struct error *err)
{
	int ret = 0;
	size_t i;

	memset(b->routes, 0, sizeof(b->routes));
	for (i = 0; i < in->n_boot_routes && ret == 0; i++)
		ret = port_boot_route(in->boot_routes[i], &b->routes[i], err);
	b->n_routes = (uint8_t)i;
	return ret;
}

int port_boot_server(const PbPort *in, struct boot_config *b, struct error *err)
{
	b->server = (struct ip_addr){0};
	return *in->boot_server ? ip_parse_addr(in->boot_server, "port.boot_server", &b->server, err) : 0;
}

static bool port_boot_is_domain(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
	size_t n;

	for (;; text += n + 1) {
		n = strspn(text, letters);
		if (n == 0 || n > LABEL_LONGEST || (text[n] != '.' && text[n] != '\0'))
			return false;
		if (text[n] == '\0')
			return true;
	}
}

int port_boot_domain(const char *field, const char *text, char *out, size_t size, struct error *err)
{
	if (*text && (strlen(text) >= size || !port_boot_is_domain(text)))
		return error_set(err, EINVAL, field, text, NOTATION_DOMAIN_VALID, "is not a name of a host or domain");
	memset(out, 0, size);
	memcpy(out, text, strlen(text));
	return 0;
}

static char **port_encode_hosts(struct api_call *call, const struct ip_addr *list, unsigned n, size_t *n_out)
{
	char **out = api_alloc(call, (n + 1) * sizeof(*out)), text[IP_TEXT];
	unsigned i;

	for (i = 0; i < n; i++)
		out[i] = api_strdup(call, ip_format_addr(&list[i], text));
	*n_out = n;
	return out;
}

void port_encode_boot(struct api_call *call, const struct boot_config *b, PbPort *out)
{
	char text[IP_TEXT], via[IP_TEXT];
	unsigned i;

	out->dhcp4 = b->dhcp4;
	out->dhcp6 = b->dhcp6;
	out->router_advertisements = b->advert;
	out->slaac = b->slaac;
	out->boot_addresses = api_alloc(call, (b->n_addresses + 1u) * sizeof(*out->boot_addresses));
	for (i = 0; i < b->n_addresses; i++)
		out->boot_addresses[i] =
			api_printf(call, "%s/%u", ip_format_addr(&b->addresses[i].addr, text), b->addresses[i].len);
	out->n_boot_addresses = b->n_addresses;
	out->boot_routers = port_encode_hosts(call, b->routers, b->n_routers, &out->n_boot_routers);
	out->boot_routes = api_alloc(call, (b->n_routes + 1u) * sizeof(*out->boot_routes));
	for (i = 0; i < b->n_routes; i++)
		out->boot_routes[i] = api_printf(call, "%s" VIA "%s", ip_format_prefix(&b->routes[i].to, text),
						 ip_format_addr(&b->routes[i].via, via));
	out->n_boot_routes = b->n_routes;
	out->dns_servers = port_encode_hosts(call, b->dns, b->n_dns, &out->n_dns_servers);
	out->ntp_servers = port_encode_hosts(call, b->ntp, b->n_ntp, &out->n_ntp_servers);
	out->dns_domain = api_strdup(call, b->domain);
	out->host_name = api_strdup(call, b->host);
	out->lease_seconds = b->lease_seconds;
	out->boot_file = api_strdup(call, b->file);
	out->boot_server = api_strdup(call, b->server.family ? ip_format_addr(&b->server, text) : "");
}
