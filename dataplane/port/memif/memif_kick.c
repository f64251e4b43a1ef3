// SPDX-License-Identifier: Apache-2.0
// Waking a peer that sleeps on a ring's eventfd.
//
// write() would do, were it not for a hostile peer: the eventfd is one file description on both sides, so the peer can
// make it blocking and fill its counter, and the worker would wait for ever. The kernel's own signalling of an eventfd
// never waits, and the cheapest way to have it is an asynchronous read of nothing whose completion signals the eventfd.
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port/memif/memif_ring.h"

// Head of the completion ring that the kernel maps at the context's address.
struct aio_ring {
	unsigned id, nr;
	unsigned head, tail; // head: ours, tail: the kernel's
};

static __thread aio_context_t context;
static __thread bool tried;
static int null_fd = -1;

// On the master thread, before the first kick.
int memif_kick_init(void)
{
	if (null_fd < 0)
		null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return null_fd < 0 ? -errno : 0;
}

static bool context_ready(void)
{
	if (!tried && syscall(SYS_io_setup, 32, &context) < 0)
		context = 0;
	tried = true;
	return context != 0;
}

void memif_kick(struct memif_queue *q)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = null_fd,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = q->kick_fd,
	};
	struct iocb *requests[] = {&request};
	struct aio_ring *ring;
	uint64_t one = 1;

	q->count->kicks++;
	if (!context_ready()) { // a kernel without asynchronous I/O: write() although a hostile peer can block it
		if (write(q->kick_fd, &one, sizeof(one)) < 0)
			q->count->kicks_lost++;
		return;
	}
	if (syscall(SYS_io_submit, context, 1, requests) != 1)
		q->count->kicks_lost++;
	ring = (struct aio_ring *)context;
	__atomic_store_n(&ring->head, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}
