// SPDX-License-Identifier: Apache-2.0
// Ports as messages: a request of Ports.Add as it comes out of the socket, checked as the API checks it, then decoded
// into a port's configuration. What is decoded stays within its bounds, a refusal says why, and a Set of each field
// decodes the same.
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/fields.h"
#include "control/port_message.h"
#include "fuzz_frame.h"
#include "testing/router_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	FUZZ_ASSERT(router_setup(NULL) == 0);
	return 0;
}

static void refused(const struct error *err)
{
	FUZZ_ASSERT(err->code && err->message[0]);
}

static void check_addresses(const struct ip_prefix *p, unsigned n)
{
	unsigned i;

	FUZZ_ASSERT(n <= PORT_MAX_ADDRS);
	for (i = 0; i < n; i++)
		FUZZ_ASSERT((p[i].addr.family == IPV4 || p[i].addr.family == IPV6) &&
			    p[i].len <= ip_bits(p[i].addr.family));
}

static void check(const PbPort *in)
{
	const char *const *field = api_settable(in->base.descriptor);
	struct port_config c, again;
	struct error err = {0};

	if (port_decode(in, &c, &err) < 0) {
		refused(&err);
		return;
	}
	FUZZ_ASSERT(strcmp(c.name, in->name) == 0 && c.kind && c.mtu <= 9600);
	FUZZ_ASSERT(c.vrf == UINT16_MAX || *in->vrf);
	FUZZ_ASSERT(c.bridge == UINT16_MAX || *in->bridge);
	check_addresses(c.addrs, c.n_addrs);
	check_addresses(c.gateways, c.n_gateways);
	check_addresses(c.guests, c.n_guests);
	for (again = c; *field; field++)
		FUZZ_ASSERT(port_decode_field(in, *field, &again, &err) == 0);
	FUZZ_ASSERT(memcmp(&c, &again, sizeof(c)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Corelane__V1__PortAddRequest *req = corelane__v1__port_add_request__unpack(NULL, size, data);
	struct error err = {0};

	if (req == NULL)
		return 0;
	if (api_check(&req->base, &err) < 0)
		refused(&err);
	else
		check(req->port);
	corelane__v1__port_add_request__free_unpacked(req, NULL);
	return 0;
}
