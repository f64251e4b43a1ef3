// SPDX-License-Identifier: Apache-2.0
// Waking a thread that waits, by its number, without a system call and without writing a shared cache line while it does not.
//
//	who waits                         who wakes
//	doorbell_listen(id)               makes something visible: a packet in a ring, a pointer, a flag
//	looks at everything once more     doorbell_ring(id)
//	poll(doorbell_fd(id), ...)
//	doorbell_leave(id)
//
// Both sides have a full fence between their store and their look at the other's, so one of them sees the other.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define DOORBELLS 64 // numbers 0..63: those of workers

struct doorbell {
	uint32_t waiting; // who waits: set and taken back; who rings: taken back
	bool open;        // below is a descriptor. Master: wo, before anybody waits
	int fd;           // eventfd
} __rte_cache_aligned;

extern struct doorbell doorbells[DOORBELLS];

// Master. Stays open until the process ends, so that whoever rings need not know whether the other one is still there. 0 or -errno.
int doorbell_open(unsigned id);

// Any thread; ids without a bell are fine. A system call only when somebody waits there.
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

// The one that waits.
void doorbell_listen(unsigned id);
void doorbell_leave(unsigned id);
void doorbell_silence(unsigned id); // its descriptor was readable
