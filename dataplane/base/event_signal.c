// SPDX-License-Identifier: Apache-2.0
#include "base/event_signal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/system_calls.h"

#define SIGNAL_REQUESTS 32 // of a context; one is under way at a time

// Head of the completion ring that the kernel maps at the context's address.
struct aio_ring {
	unsigned id, nr;
	unsigned head, tail; // head: ours, tail: the kernel's
};

static int null_fd = -1;
static aio_context_t shared; // of the threads that get no context of their own, 0 = none. Master: wo
static __thread aio_context_t own;
static __thread bool tried;

static void event_signal_share(void)
{
	static bool told;
	aio_context_t made = 0;

	if (syscall(SYS_io_setup, SIGNAL_REQUESTS, &made) == 0) {
		__atomic_store_n(&shared, made, __ATOMIC_RELEASE);
		return;
	}
	if (!told)
		LOG(WARNING,
		    "The router gets no asynchronous I/O from the kernel (io_setup: %s; the sysctl fs.aio-max-nr "
		    "limits it). "
		    "Workers notify guests and memif peers by write(), and a hostile peer can make a worker wait.",
		    strerror(errno));
	told = true;
}

int event_signal_init(void)
{
	if (null_fd < 0)
		null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd < 0)
		return -errno;
	if (shared == 0)
		event_signal_share();
	return 0;
}

int event_signal_prepare(int fd)
{
	if (__atomic_load_n(&shared, __ATOMIC_ACQUIRE) != 0)
		return 0;
	return fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

// The limit is the machine's, and other programs may have reached it since the start.
static aio_context_t event_signal_context(void)
{
	if (!tried && syscall(SYS_io_setup, SIGNAL_REQUESTS, &own) < 0)
		own = 0;
	tried = true;
	return own != 0 ? own : __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
}

// The peer can make its file blocking again. A counter at its maximum is a signal that the peer has not read yet.
static int event_signal_write(int fd)
{
	uint64_t one = 1;

	return write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN ? -errno : 0;
}

static int event_signal_submit(aio_context_t context, int fd)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)null_fd,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)fd,
	};
	struct iocb *requests[] = {&request};
	struct aio_ring *ring = (struct aio_ring *)context;
	int ret = syscall(SYS_io_submit, context, 1, requests) < 0 ? -errno : 0;

	__atomic_store_n(&ring->head, __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	return ret;
}

int event_signal(int fd)
{
	aio_context_t context = event_signal_context();
	int ret;

	system_calls++;
	if (context == 0)
		return event_signal_write(fd);
	ret = event_signal_submit(context, fd);
	// A thread that was preempted may have set the shared ring's head back, so that the ring looks full.
	return ret == -EAGAIN ? event_signal_submit(context, fd) : ret;
}
