// SPDX-License-Identifier: Apache-2.0
// memif interfaces and their control connections. They run in one libevent loop on one thread and do not depend on
// ports.
//
// The owner fills the first part of a struct memif_if and starts it. Whenever a peer has connected, up() is called with
// the shared memory, whose queues the owner attaches (memif_queue_attach_*) and hands to its workers. When that peer
// disconnects, down() is called: the owner takes the queues back and frees the memory with memif_shm_free() once no
// worker uses it. Then the interface waits for the next peer, or (client) tries to connect every second.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/socket_access.h"
#include "port/memif/memif_ring.h"

#define MEMIF_SOCKET_SIZE 108
#define MEMIF_RETRY_MS 100
#define MEMIF_HANDSHAKE_MS 5000
#define MEMIF_WATCH_MS 200   // how often faults of the peer are looked for
#define MEMIF_MAX_PENDING 64 // connections of a socket that have not named their interface

struct event;
struct event_base;
struct memif_conn;
struct memif_listener;

struct memif_if {
	// Set by the owner.
	struct event_base *base;
	char socket[MEMIF_SOCKET_SIZE];
	char name[MEMIF_NAME_SIZE];
	char secret[MEMIF_SECRET_SIZE]; // empty: any peer
	struct socket_access access;    // server; mode 0: as the process creates it
	uint32_t id;
	bool client;
	uint16_t queues;      // rings in each direction; server: at most
	uint8_t log2_ring;    // server: the largest that clients may use
	uint32_t buffer_size; // client
	bool whole;           // offers MEMIF_WHOLE
	void (*up)(struct memif_if *mif, struct memif_shm *shm);
	void (*down)(struct memif_if *mif, struct memif_shm *shm, const char *reason);
	void (*failed)(struct memif_if *mif, const char *reason); // a peer was refused or has refused; may be NULL
	void *arg;
	// Private to this module.
	LIST_ENTRY(memif_if) next;
	struct memif_listener *listener;
	struct memif_conn *conn; // during the handshake and when up
	struct event *timer;     // client: next attempt; connected: look at faults
};

// Returns 0 or -errno with err filled. A client starts whether or not its server is there.
int memif_if_start(struct memif_if *mif, struct error *err);
void memif_if_stop(struct memif_if *mif);              // calls down() when connected
const char *memif_if_peer(const struct memif_if *mif); // the connected peer's own name

// --- between the files of this module ---

enum memif_state {
	MEMIF_WAIT_HELLO,     // client
	MEMIF_WAIT_ACK,       // client: for the message of this step
	MEMIF_WAIT_CONNECTED, // client
	MEMIF_WAIT_INIT,      // server
	MEMIF_WAIT_CONNECT,   // server: receives regions and rings
	MEMIF_UP,
};

struct memif_conn {
	int fd;
	enum memif_state state;
	struct memif_if *mif;            // server: NULL until INIT
	struct memif_listener *listener; // server
	struct memif_shm *shm;
	struct event *event;
	uint16_t step;         // client: message that waits for its ACK
	uint16_t n_c2s, n_s2c; // client: rings
	uint8_t log2_ring;     // client: of its rings; server: the largest that it has offered
	char peer[MEMIF_NAME_SIZE + 1];
	char reason[MEMIF_REASON_SIZE]; // why it ended
	LIST_ENTRY(memif_conn) next;    // of the listener
};

// Handles one message; closes or keeps fd (-1 = none). Returns 0 or -errno: the connection has to be closed, reason
// says why.
int memif_conn_message(struct memif_conn *c, const struct memif_msg *msg, int fd);
// Reads and handles one message of the socket. -EAGAIN: there was none.
int memif_conn_receive(struct memif_conn *c);
int memif_conn_hello(struct memif_conn *c, uint16_t queues, uint8_t log2_ring);
// Sets the reason and sends it to the peer, if that is still possible. Returns -EPROTO.
int memif_conn_refuse(struct memif_conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// A connection that owns fd; NULL closes it. Ends by memif_conn_close(), which also takes it from its interface.
struct memif_conn *memif_conn_new(struct event_base *base, int fd, enum memif_state state);
void memif_conn_close(struct memif_conn *c);

int memif_listener_join(struct memif_if *mif, struct error *err); // sets mif->listener
void memif_listener_leave(struct memif_if *mif);
struct memif_if *memif_listener_find(struct memif_listener *l, uint32_t id);
void memif_listener_forget(struct memif_conn *c);
