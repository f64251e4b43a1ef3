// SPDX-License-Identifier: Apache-2.0
// Wakes a waiting thread by its number. While that thread does not wait, this takes no system call and no write to a
// shared cache line.
//
//	the waiting thread                the waking thread
//	doorbell_listen(id)               publishes something: a packet in a ring, a pointer, a flag
//	checks everything once more       doorbell_ring(id)
//	poll(doorbells[id].fd)
//	doorbell_leave(id)
//
// Each side has a full fence between its own store and its load of the other side's, so at least one sees the other.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define DOORBELLS 64 // numbers are the ids of workers, 0..63

struct doorbell {
	uint32_t waiting; // set and cleared by the waiting thread, cleared by a waking one
	bool open;        // fd is valid. Set by the master before any thread waits
	int fd;           // eventfd
} __rte_cache_aligned;

extern struct doorbell doorbells[DOORBELLS];

// Master thread. The bell stays open until the process ends, so that a waking thread need not know whether the other
// one still exists. Returns 0 or -errno.
int doorbell_open(unsigned id);

// Any thread. Makes a system call only when a thread waits. doorbell_ring() ignores ids without a bell.
void doorbell_signal(struct doorbell *b);

static inline void doorbell_ring(unsigned id)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (id < DOORBELLS && unlikely(__atomic_load_n(&doorbells[id].waiting, __ATOMIC_RELAXED)))
		doorbell_signal(&doorbells[id]);
}

void doorbell_ring_all(void);

static inline bool doorbell_waits(unsigned id)
{
	return __atomic_load_n(&doorbells[id].waiting, __ATOMIC_RELAXED);
}

// For the waiting thread.
void doorbell_listen(unsigned id);
void doorbell_leave(unsigned id);
void doorbell_silence(unsigned id); // after its descriptor became readable
