// SPDX-License-Identifier: Apache-2.0
// System.Hello (api/system.proto), which every server answers.
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_version.h>

#include "api/api.h"
#include "base/owner.h"
#include "system.pb-c.h"

static int hello(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__HelloRequest *in = req;
	Corelane__V1__HelloReply *out = resp;
	char text[32], valid[32];
	uint8_t owner;
	int ret;

	snprintf(text, sizeof(text), "%u.%u", in->major, in->minor);
	snprintf(valid, sizeof(valid), "%d.x", API_MAJOR);
	if (in->major != API_MAJOR)
		return error_set(err, EPROTO, "major", text, valid,
				 "client and server speak different versions of the API");
	if (*in->owner) {
		ret = role_check(api_client(call), ROLE_ADMINISTER, "System", "Hello with an owner", err);
		if (ret < 0)
			return ret;
		ret = owner_number(in->owner, &owner, err);
		if (ret != 0)
			return ret;
		api_set_owner(call, owner);
	}
	out->major = API_MAJOR;
	out->minor = API_MINOR;
	out->version = api_strdup(call, CORELANE_VERSION);
	out->dpdk = api_strdup(call, rte_version());
	out->pid = (int32_t)getpid();
	return 0;
}

static const struct api_method methods[] = {
	{"corelane.v1.System", "Hello", &corelane__v1__hello_request__descriptor,
	 &corelane__v1__hello_reply__descriptor, .unary = hello},
};
API_METHODS(methods)
