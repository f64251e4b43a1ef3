// SPDX-License-Identifier: Apache-2.0
// Frames of ttrpc, https://github.com/containerd/ttrpc/blob/main/PROTOCOL.md: ten bytes (length and stream id in
// network byte order, type, flags), then a protobuf message.
#pragma once

#include <stdint.h>

#include <event2/buffer.h>
#include <protobuf-c/protobuf-c.h>

#include "api/arena.h"
#include "base/error.h"

#define TTRPC_HEADER 10
#define TTRPC_GARBAGE (16 * 1024 * 1024) // no length is as large: its first byte is always zero

enum ttrpc_type { TTRPC_REQUEST = 1, TTRPC_RESPONSE = 2, TTRPC_DATA = 3 };
enum ttrpc_flag { TTRPC_REMOTE_CLOSED = 1, TTRPC_REMOTE_OPEN = 2, TTRPC_NO_DATA = 4 };

struct ttrpc_header {
	uint32_t length; // without the header
	uint32_t stream; // odd: opened by the client
	uint8_t type, flags;
};

struct ttrpc_header ttrpc_header_read(const uint8_t bytes[TTRPC_HEADER]);
void ttrpc_header_write(uint8_t bytes[TTRPC_HEADER], const struct ttrpc_header *h);

// All append one frame. -EMSGSIZE: longer than ttrpc allows, nothing was appended; -ENOMEM.
int ttrpc_send_data(struct evbuffer *out, uint32_t stream, const ProtobufCMessage *item);
int ttrpc_send_end(struct evbuffer *out, uint32_t stream); // the last frame of a stream
int ttrpc_send_answer(struct evbuffer *out, uint32_t stream, const ProtobufCMessage *answer, struct arena *scratch);

// err->code becomes a gRPC code; err is attached as a corelane.v1.Error. Text that is not UTF-8 is repaired: a
// client must be able to decode it.
int ttrpc_send_error(struct evbuffer *out, uint32_t stream, struct error *err);
int ttrpc_grpc_code(int code); // positive errno
