// SPDX-License-Identifier: Apache-2.0
// What a start does with the kept state: reads the file, and makes again what its changes have made.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"
#include "base/event.h"
#include "base/log.h"
#include "keep/keep_private.h"

#define BAD_FILE "state.bad"

EVENT_KIND(state_restored, INFO, "A start has brought back the kept state: all changes that were made by the API.");
EVENT_KIND(state_partly_restored, WARNING,
	   "A start has brought back the kept state, without the changes that are refused now: what they name may be "
	   "gone, such as a network namespace. The log has the first 16 of them. Apply the node file again (`corelane "
	   "apply`).");
EVENT_KIND(
	state_unreadable, ERROR,
	"The file of the kept state is damaged, or not of this version. It was renamed, and the start went on without "
	"ports and tables. Apply the node file (`corelane apply`).");
EVENT_KIND(
	state_change_left_out, ERROR,
	"The daemon has crashed three times with the same kept state. This start has left out the last change, which "
	"may be the cause. Report the crash, and make the change again once its cause is mended.");
// Removes the last record from the image, and later from the file.
static void keep_leave_out(struct keep_image *image)
{
	size_t at = image->last;
	Keep__Change *c = image->count > 0 ? keep_file_next(image, &at) : NULL;
	char object[96];

	if (c == NULL)
		return;
	api_request_object(c->service, c->method, &c->request, object, sizeof(object));
	event_report(state_change_left_out, NULL, "the daemon has crashed %u times; left out: %s.%s %s of owner %s",
		     keep.crashes, strrchr(c->service, '.') ? strrchr(c->service, '.') + 1 : c->service, c->method,
		     object, c->owner);
	keep__change__free_unpacked(c, NULL);
	image->end = image->last;
	image->count--;
	keep.crashes = 0;
	keep_starts_forget(keep.dir);
}

static void keep_report(const struct replay_result *r)
{
	double ms = (double)keep.status.restore_ns / 1e6;

	if (r->refused)
		event_report(state_partly_restored, NULL,
			     "changes: %" PRIu64 ", in %.0f ms; refused now: %" PRIu64 ", the first one %s",
			     r->restored, ms, r->refused, r->first);
	else if (r->restored)
		event_report(state_restored, NULL, "changes: %" PRIu64 ", in %.0f ms", r->restored, ms);
}

static uint64_t keep_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

// --- What a successor does while its predecessor still runs ---

static struct {
	struct replay *replay; // NULL: nothing was repeated
	struct keep_image image, folded;
	size_t end; // of what was repeated
	int fd;     // holds the file's lock, so that the predecessor does not replace it
} warm = {.fd = -1};

static void warm_free(void)
{
	keep_file_free(&warm.image);
	keep_file_free(&warm.folded);
	if (warm.fd >= 0)
		close(warm.fd);
	warm.fd = -1;
}

static bool warm_has_name(int fd, const char *path)
{
	struct stat mine, named;

	return fstat(fd, &mine) == 0 && stat(path, &named) == 0 && mine.st_ino == named.st_ino &&
	       mine.st_dev == named.st_dev;
}

// Locks the file that has the name when it is locked.
static int warm_lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || !warm_has_name(fd, path)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

int keep_warm(const char *directory, void (*between)(void), struct error *err)
{
	char path[KEEP_LONGEST_DIR + 16], why[KEEP_WHY];
	int ret;

	if (directory[0] == '\0' || snprintf(keep.path, sizeof(keep.path), "%s", directory) >= (int)sizeof(keep.path))
		return 0;
	keep_path(KEEP_STATE_FILE, path);
	warm.fd = warm_lock(path);
	if (warm.fd < 0)
		return 0;
	ret = keep_file_read(path, SIZE_MAX, &warm.image, why);
	if (ret < 0) {
		warm_free();
		return error_set(err, -ret, "--takeover", path, "a restart, which begins without it", "%s", why);
	}
	if (keep_fold(&warm.image, true, &warm.folded) < 0) {
		warm_free();
		return 0;
	}
	warm.end = warm.image.end;
	warm.replay = replay_new(between);
	if (warm.replay)
		replay_all(warm.replay, &warm.folded, 0, false);
	return 0;
}

// Only what the predecessor has appended since is read: as long as the file is locked, it is neither replaced nor made
// shorter.
static bool warm_read(struct keep_image *image)
{
	char path[KEEP_LONGEST_DIR + 16], why[KEEP_WHY];

	keep_path(KEEP_STATE_FILE, path);
	if (!warm_has_name(warm.fd, path) || keep_file_read_more(warm.fd, &warm.image, why) < 0)
		return false;
	*image = warm.image;
	warm.image = (struct keep_image){};
	return true;
}

// Makes what the changes have made, without the changes that later ones have made void.
static void keep_replay_cold(const struct keep_image *image, void (*between)(void), struct replay_result *out)
{
	struct replay *r = replay_new(between);
	struct keep_image folded;
	int ret = keep_fold(image, true, &folded);

	if (ret < 0)
		LOG(WARNING, "keep: the start repeats all changes: %s", strerror(-ret));
	if (r) {
		replay_all(r, ret < 0 ? image : &folded, 0, true);
		replay_waiting(r, ret < 0 ? image : &folded);
	}
	replay_free(r, out);
	keep.squeezed = ret < 0 ? image->end : folded.end;
	if (ret == 0)
		keep_file_free(&folded);
}

// The rest: ports, what names them, and what the predecessor has accepted since.
static void keep_replay_warm(const struct keep_image *image, struct replay_result *out)
{
	replay_waiting(warm.replay, &warm.folded);
	if (image->end > warm.end)
		replay_all(warm.replay, image, warm.end, true);
	replay_waiting(warm.replay, image);
	replay_free(warm.replay, out);
	warm.replay = NULL;
	keep.squeezed = warm.folded.end;
}

static void keep_replay(struct keep_image *image, void (*between)(void))
{
	uint64_t begin = keep_now_ns();
	struct replay_result r;

	keep.doubtful = keep.crashes >= KEEP_CRASHES;
	if (keep.doubtful)
		keep_leave_out(image);
	if (warm.replay)
		keep_replay_warm(image, &r);
	else
		keep_replay_cold(image, between, &r);
	keep.status.restored = r.restored;
	keep.status.refused = r.refused;
	keep.status.changes = image->count;
	keep.status.restore_ns = keep_now_ns() - begin;
	keep_report(&r);
}

// Returns whether there is a file to be continued.
static bool keep_read(struct keep_image *image)
{
	char path[KEEP_LONGEST_DIR + 16], bad[KEEP_LONGEST_DIR + 16], why[KEEP_WHY];
	int ret;

	keep_path(KEEP_STATE_FILE, path);
	keep_path(BAD_FILE, bad);
	ret = keep_file_read(path, SIZE_MAX, image, why);
	if (ret == -ENOENT || ret == 0)
		return ret == 0;
	event_report(state_unreadable, NULL, "%s: %s; it is %s now", path, why, bad);
	if (rename(path, bad) < 0)
		LOG(WARNING, "keep: %s cannot be renamed: %m", path);
	return false;
}

static void keep_continue(const struct keep_image *image, bool found)
{
	char path[KEEP_LONGEST_DIR + 16];
	int fd;

	keep_path(KEEP_STATE_FILE, path);
	fd = found ? open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : keep_file_create(path, NULL);
	if (found && fd < 0)
		fd = -errno;
	keep.end = found ? image->end : sizeof(KEEP_MAGIC) - 1;
	if (fd >= 0 && ftruncate(fd, (off_t)keep.end) < 0) {
		close(fd);
		fd = -errno;
	}
	if (fd < 0)
		keep_give_up("the file cannot be written", fd);
	else
		keep.file = fd;
}

int keep_restore_file(void (*between)(void))
{
	struct keep_image image;
	bool found;

	keep.crashes = keep_starts_begin(keep.dir);
	found = warm.replay ? warm_read(&image) : keep_read(&image);
	if (warm.replay && !found) {
		keep_starts_end(keep.dir); // no crash
		warm_free();
		return -ESTALE;
	}
	if (found)
		keep_replay(&image, between);
	keep_continue(&image, found);
	keep_file_free(&image);
	warm_free();
	keep_squeeze_poll();
	return 0;
}
