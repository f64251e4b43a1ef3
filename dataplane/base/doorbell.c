// SPDX-License-Identifier: Apache-2.0
#include "base/doorbell.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/system_calls.h"

struct doorbell doorbells[DOORBELLS];

int doorbell_open(unsigned id)
{
	struct doorbell *b = &doorbells[id];

	if (b->open)
		return 0;
	b->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (b->fd < 0)
		return -errno;
	b->open = true;
	return 0;
}

// When several threads ring at once, one of them makes the call. The write cannot fail: the counter is reset at each
// wake-up.
void doorbell_signal(struct doorbell *b)
{
	if (__atomic_exchange_n(&b->waiting, 0, __ATOMIC_ACQ_REL) == 0)
		return;
	system_calls++;
	eventfd_write(b->fd, 1);
}

void doorbell_ring_all(void)
{
	unsigned id;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (id = 0; id < DOORBELLS; id++)
		if (__atomic_load_n(&doorbells[id].waiting, __ATOMIC_RELAXED))
			doorbell_signal(&doorbells[id]);
}

void doorbell_listen(unsigned id)
{
	__atomic_store_n(&doorbells[id].waiting, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void doorbell_leave(unsigned id)
{
	__atomic_store_n(&doorbells[id].waiting, 0, __ATOMIC_RELAXED);
}

void doorbell_silence(unsigned id)
{
	eventfd_t count;

	system_calls++;
	eventfd_read(doorbells[id].fd, &count);
}
