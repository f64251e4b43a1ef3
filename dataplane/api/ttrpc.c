// SPDX-License-Identifier: Apache-2.0
#include "api/ttrpc.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "api/api.h"
#include "api/ttrpc.pb-c.h"
#include "api/utf8.h"
#include "common.pb-c.h"

#define ERROR_TYPE "type.googleapis.com/corelane.v1.Error"

struct ttrpc_header ttrpc_header_read(const uint8_t bytes[TTRPC_HEADER])
{
	struct ttrpc_header h = {.type = bytes[8], .flags = bytes[9]};

	memcpy(&h.length, bytes, sizeof(h.length));
	memcpy(&h.stream, bytes + 4, sizeof(h.stream));
	h.length = be32toh(h.length);
	h.stream = be32toh(h.stream);
	return h;
}

void ttrpc_header_write(uint8_t bytes[TTRPC_HEADER], const struct ttrpc_header *h)
{
	uint32_t length = htobe32(h->length), stream = htobe32(h->stream);

	memcpy(bytes, &length, sizeof(length));
	memcpy(bytes + 4, &stream, sizeof(stream));
	bytes[8] = h->type;
	bytes[9] = h->flags;
}

// Packs straight into the output buffer, so that an item of a stream is copied only once more, to the kernel.
static int send_frame(struct evbuffer *out, uint32_t stream, uint8_t type, uint8_t flags, const ProtobufCMessage *msg)
{
	size_t n = msg ? protobuf_c_message_get_packed_size(msg) : 0;
	struct ttrpc_header h = {.length = (uint32_t)n, .stream = stream, .type = type, .flags = flags};
	struct evbuffer_iovec v;

	if (n > API_MAX_MESSAGE)
		return -EMSGSIZE;
	if (evbuffer_reserve_space(out, (ev_ssize_t)(TTRPC_HEADER + n), &v, 1) != 1)
		return -ENOMEM;
	ttrpc_header_write(v.iov_base, &h);
	if (msg)
		protobuf_c_message_pack(msg, (uint8_t *)v.iov_base + TTRPC_HEADER);
	v.iov_len = TTRPC_HEADER + n;
	return evbuffer_commit_space(out, &v, 1) == 0 ? 0 : -ENOMEM;
}

int ttrpc_send_data(struct evbuffer *out, uint32_t stream, const ProtobufCMessage *item)
{
	return send_frame(out, stream, TTRPC_DATA, 0, item);
}

int ttrpc_send_end(struct evbuffer *out, uint32_t stream)
{
	return send_frame(out, stream, TTRPC_DATA, TTRPC_REMOTE_CLOSED | TTRPC_NO_DATA, NULL);
}

int ttrpc_send_answer(struct evbuffer *out, uint32_t stream, const ProtobufCMessage *answer, struct arena *scratch)
{
	Ttrpc__Response response = TTRPC__RESPONSE__INIT;

	response.payload.len = protobuf_c_message_get_packed_size(answer);
	if (response.payload.len > API_MAX_MESSAGE)
		return -EMSGSIZE;
	response.payload.data = arena_alloc(scratch, response.payload.len);
	if (response.payload.data == NULL)
		return -ENOMEM;
	protobuf_c_message_pack(answer, response.payload.data);
	return send_frame(out, stream, TTRPC_RESPONSE, 0, &response.base);
}

int ttrpc_grpc_code(int code)
{
	switch (code) {
	case ECANCELED:
		return 1; // CANCELLED
	case EINVAL:
	case ERANGE:
	case EMSGSIZE:
		return 3; // INVALID_ARGUMENT
	case ETIMEDOUT:
		return 4; // DEADLINE_EXCEEDED
	case ENOENT:
		return 5; // NOT_FOUND
	case EEXIST:
		return 6; // ALREADY_EXISTS
	case EACCES:
		return 7; // PERMISSION_DENIED
	case ENOMEM:
	case ENOSPC:
		return 8; // RESOURCE_EXHAUSTED
	case EBUSY:
	case EPERM:       // nobody may do this
	case EPROTO:      // the handshake: a version that this server does not speak
		return 9; // FAILED_PRECONDITION
	case ENOTSUP:
	case ENOSYS:
		return 12; // UNIMPLEMENTED
	case EAGAIN:
		return 14; // UNAVAILABLE: the same request may pass later
	default:
		return 13; // INTERNAL
	}
}

int ttrpc_send_error(struct evbuffer *out, uint32_t stream, struct error *err)
{
	Corelane__V1__Error detail = CORELANE__V1__ERROR__INIT;
	Ttrpc__Response response = TTRPC__RESPONSE__INIT;
	Ttrpc__Status status = TTRPC__STATUS__INIT;
	Ttrpc__Any any = TTRPC__ANY__INIT, *details[] = {&any};
	uint8_t packed[sizeof(*err) + 64]; // the texts and their tags

	detail.field = utf8_repair(err->field);
	detail.value = utf8_repair(err->value);
	detail.valid = utf8_repair(err->valid);
	detail.message = utf8_repair(err->message);
	detail.index = err->index;
	any.type_url = (char *)(uintptr_t)ERROR_TYPE;
	any.value.data = packed;
	any.value.len = corelane__v1__error__pack(&detail, packed);
	status.code = ttrpc_grpc_code(err->code);
	status.message = err->message;
	status.details = details;
	status.n_details = 1;
	response.status = &status;
	return send_frame(out, stream, TTRPC_RESPONSE, 0, &response.base);
}
