// SPDX-License-Identifier: Apache-2.0
// Makes the file of a running daemon smaller: a thread reads it up to where it ends now, and writes a new one with what
// the changes have made (keep_fold.c). The master then appends what has come meanwhile, and the new file takes the name
// of the old one.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"
#include "keep/keep_private.h"

// The master's until the thread runs and once it is done.
static struct {
	pthread_t thread;
	bool running;
	bool done;      // thread: rw, master: ro
	uint64_t until; // of the old file
	int fd;         // of the new one; -errno
	uint64_t end, count, before;
} job;

uint64_t keep_squeeze_bytes = 1u << 20;

// On failure there is no new file.
static int squeeze_write_new(const struct keep_image *image)
{
	char fresh[KEEP_LONGEST_DIR + 16];
	struct keep_image folded;
	int fd, ret = keep_fold(image, false, &folded);

	if (ret < 0)
		return ret;
	keep_path(KEEP_NEW_FILE, fresh);
	fd = keep_file_create(fresh, &folded);
	job.end = folded.end;
	job.count = folded.count;
	keep_file_free(&folded);
	if (fd < 0 || fsync(fd) == 0)
		return fd;
	ret = -errno;
	close(fd);
	unlink(fresh);
	return ret;
}

static int squeeze_take_new(void)
{
	char path[KEEP_LONGEST_DIR + 16], fresh[KEEP_LONGEST_DIR + 16];

	keep_path(KEEP_STATE_FILE, path);
	keep_path(KEEP_NEW_FILE, fresh);
	return rename(fresh, path) < 0 ? -errno : 0;
}

static void *squeeze_run(void *arg)
{
	char path[KEEP_LONGEST_DIR + 16], why[KEEP_WHY];
	struct keep_image image;
	int ret;

	keep_path(KEEP_STATE_FILE, path);
	ret = keep_file_read(path, job.until, &image, why);
	if (ret == 0) {
		ret = squeeze_write_new(&image);
		job.before = image.count;
		keep_file_free(&image);
	}
	job.fd = ret;
	__atomic_store_n(&job.done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void squeeze_begin(void)
{
	job.until = keep.end;
	job.done = false;
	job.running = pthread_create(&job.thread, NULL, squeeze_run, NULL) == 0;
	if (job.running)
		pthread_setname_np(job.thread, "svc-keep");
	else
		keep.squeezed = keep.end; // tried again when the file has doubled
}

// Appends to the new file what the old one got since the thread has begun.
static int squeeze_tail(void)
{
	size_t n = keep.end - job.until;
	uint8_t *tail = malloc(n + 1);
	int ret = tail ? 0 : -ENOMEM;

	if (ret == 0 && pread(keep.file, tail, n, (off_t)job.until) != (ssize_t)n)
		ret = -EIO;
	if (ret == 0 && pwrite(job.fd, tail, n, (off_t)job.end) != (ssize_t)n)
		ret = -ENOSPC;
	free(tail);
	return ret;
}

static void squeeze_end(void)
{
	char fresh[KEEP_LONGEST_DIR + 16];
	int ret;

	pthread_join(job.thread, NULL);
	job.running = false;
	keep.squeezed = keep.end;
	ret = job.fd < 0 ? job.fd : keep.file < 0 ? -EBADF : squeeze_tail();
	if (ret == 0 && flock(keep.file, LOCK_EX | LOCK_NB) < 0)
		ret = -errno; // a successor has read it, and takes over
	if (ret == 0)
		ret = squeeze_take_new();
	if (ret < 0) {
		LOG(WARNING, "keep: the file in %s cannot be made smaller: %s", keep.path, strerror(-ret));
		if (job.fd >= 0) {
			close(job.fd);
			keep_path(KEEP_NEW_FILE, fresh);
			unlink(fresh);
		}
		return;
	}
	close(keep.file);
	keep.file = job.fd;
	keep.end = job.end + (keep.end - job.until);
	keep.squeezed = keep.end;
	keep.status.changes = keep.status.changes - job.before + job.count;
}

void keep_squeeze_poll(void)
{
	if (job.running && __atomic_load_n(&job.done, __ATOMIC_ACQUIRE))
		squeeze_end();
	else if (!job.running && keep.file >= 0 && keep.end > keep_squeeze_bytes && keep.end > 2 * keep.squeezed)
		squeeze_begin();
}

void keep_squeeze_stop(void)
{
	if (job.running)
		squeeze_end();
}
