// SPDX-License-Identifier: Apache-2.0
// Wire format of memif, the shared-memory packet interface, version 2.0 (VPP, DPDK's net_memif, libmemif).
//
// A server listens on a Unix SOCK_SEQPACKET socket. A client owns the memory: it passes memfds ("regions") and one
// eventfd per ring over the socket. Messages are 128 bytes, host byte order, packed:
//
//   server: HELLO                                   CONNECTED
//   client:        INIT ADD_REGION.. ADD_RING.. CONNECT      each but HELLO and CONNECT acknowledged by ACK
//
// Either side ends it with DISCONNECT or by closing the socket.
//
// Rings of both directions hold descriptors of the client's buffers:
//   client to server: client fills buffers and moves head; server takes them and moves tail.
//   server to client: client offers empty buffers and moves head; server fills them and moves tail.
// head and tail run freely over 16 bits; slot = index & (size - 1).
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define MEMIF_COOKIE 0x3E31F20u
#define MEMIF_VERSION 0x0200 // major << 8 | minor
#define MEMIF_NAME_SIZE 32
#define MEMIF_SECRET_SIZE 24
#define MEMIF_REASON_SIZE 96
#define MEMIF_MAX_LOG2_RING 14
#define MEMIF_MODE_ETHERNET 0

enum memif_msg_type {
	MEMIF_ACK = 1,
	MEMIF_HELLO,
	MEMIF_INIT,
	MEMIF_ADD_REGION,
	MEMIF_ADD_RING,
	MEMIF_CONNECT,
	MEMIF_CONNECTED,
	MEMIF_DISCONNECT,
};

// Names are zero-padded and may fill the array without a terminator.
struct memif_hello {
	char name[MEMIF_NAME_SIZE];
	uint16_t min_version, max_version;
	uint16_t max_region; // highest index, not count; so are the next two
	uint16_t max_s2c_ring, max_c2s_ring;
	uint8_t max_log2_ring;
} __attribute__((packed));

struct memif_init {
	uint16_t version;
	uint32_t id;
	uint8_t mode;
	char secret[MEMIF_SECRET_SIZE];
	char name[MEMIF_NAME_SIZE];
} __attribute__((packed));

struct memif_add_region { // with the region's file descriptor
	uint16_t index;
	uint64_t size;
} __attribute__((packed));

#define MEMIF_RING_C2S 1 // memif_add_ring.flags: client to server

struct memif_add_ring { // with the ring's eventfd
	uint16_t flags;
	uint16_t index;
	uint16_t region;
	uint32_t offset;
	uint8_t log2_size;
	uint16_t private_hdr_size;
} __attribute__((packed));

struct memif_connect { // CONNECT and CONNECTED
	char if_name[MEMIF_NAME_SIZE];
} __attribute__((packed));

struct memif_disconnect {
	uint32_t code;
	char reason[MEMIF_REASON_SIZE];
} __attribute__((packed));

// Beyond the standard, where other implementations send zeros: INIT says what the client wants, CONNECTED what both do.
#define MEMIF_EXTENSION_COOKIE 0x434c414eu
#define MEMIF_WHOLE 1 // large segments in tunnels, with MEMIF_DESC_WHOLE
struct memif_extension {
	uint8_t unused[118];
	uint32_t cookie;
	uint32_t features;
} __attribute__((packed));

struct memif_msg {
	uint16_t type; // enum memif_msg_type
	union {
		struct memif_hello hello;
		struct memif_init init;
		struct memif_add_region add_region;
		struct memif_add_ring add_ring;
		struct memif_connect connect;
		struct memif_disconnect disconnect;
		struct memif_extension extension;
		uint8_t bytes[126];
	} __attribute__((packed));
} __attribute__((packed));

static_assert(sizeof(struct memif_msg) == 128, "memif message");
static_assert(offsetof(struct memif_msg, add_ring.log2_size) == 12, "memif add_ring");

#define MEMIF_DESC_NEXT 1 // the frame goes on in the next descriptor
// In the first descriptor of a frame, between peers that have agreed on MEMIF_WHOLE: it is a whole packet of a tunnel
// (offload/whole.h). metadata: bytes of payload | distance of the IP headers << 16
#define MEMIF_DESC_WHOLE 2
#define MEMIF_RING_MASK_INT 1 // set by a reader that polls: the other side does not write its eventfd

struct memif_desc {
	uint16_t flags;
	uint16_t region;
	uint32_t length; // of the data; of an offered buffer: its size
	uint32_t offset; // in the region
	uint32_t metadata;
};

struct memif_ring {
	uint32_t cookie;
	uint16_t flags;
	uint16_t head; // written by the client
	uint8_t pad0[56];
	uint16_t tail; // written by the server
	uint8_t pad1[62];
	struct memif_desc desc[];
};

static_assert(sizeof(struct memif_desc) == 16, "memif descriptor");
static_assert(offsetof(struct memif_ring, tail) == 64 && offsetof(struct memif_ring, desc) == 128, "memif ring");
