// SPDX-License-Identifier: Apache-2.0
// The file of the kept state.
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_hash_crc.h>

#include "keep/keep_private.h"

#define MAGIC (sizeof(KEEP_MAGIC) - 1)
#define HEAD (2 * sizeof(uint32_t))

static uint32_t word_at(const uint8_t *p)
{
	uint32_t w;

	memcpy(&w, p, sizeof(w));
	return le32toh(w);
}

static uint32_t record_checksum(const uint8_t *data, size_t n)
{
	return rte_hash_crc(data, (uint32_t)n, 0xffffffff);
}

static int keep_file_bad(char why[KEEP_WHY], const struct keep_image *image, const char *what)
{
	snprintf(why, KEEP_WHY, "%s at byte %zu of %zu", what, image->end, image->size);
	return -EBADMSG;
}

// Finds the last whole record, from image->end on. Only what a single write would have left can be missing at the end.
static int check_records(struct keep_image *image, char why[KEEP_WHY])
{
	uint32_t n;

	while (image->size - image->end >= HEAD) {
		n = word_at(image->data + image->end);
		if (n == 0 || n > KEEP_RECORD_MAX)
			return keep_file_bad(why, image, "a record has no valid length");
		if (image->size - image->end - HEAD < n)
			break;
		if (record_checksum(image->data + image->end + HEAD, n) !=
		    word_at(image->data + image->end + sizeof(uint32_t)))
			return keep_file_bad(why, image, "a record has another checksum than it says");
		image->last = image->end;
		image->end += HEAD + n;
		image->count++;
	}
	return 0;
}

int keep_file_read_all(int fd, uint8_t *data, size_t n)
{
	size_t at = 0;
	ssize_t done;

	while (at < n) {
		done = read(fd, data + at, n - at);
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += (size_t)done;
	}
	return 0;
}

static int read_file(int fd, size_t limit, struct keep_image *image, char why[KEEP_WHY])
{
	struct stat st;
	int ret;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > KEEP_FILE_MAX) {
		snprintf(why, KEEP_WHY, "is no file of at most %llu MiB", KEEP_FILE_MAX >> 20);
		return -EBADMSG;
	}
	if (!keep_file_is_own(fd)) {
		snprintf(why, KEEP_WHY, "belongs to another user, or others may write to it");
		return -EBADMSG;
	}
	image->size = (size_t)st.st_size > limit ? limit : (size_t)st.st_size;
	image->data = malloc(image->size + 1);
	ret = image->data ? keep_file_read_all(fd, image->data, image->size) : -ENOMEM;
	if (ret < 0) {
		snprintf(why, KEEP_WHY, "cannot be read: %s", strerror(-ret));
		return ret;
	}
	if (image->size < MAGIC || memcmp(image->data, KEEP_MAGIC, MAGIC) != 0) {
		snprintf(why, KEEP_WHY, "does not begin with '%.*s': it is another program's or version's",
			 (int)MAGIC - 1, KEEP_MAGIC);
		return -EBADMSG;
	}
	image->end = image->last = MAGIC;
	return check_records(image, why);
}

int keep_file_read_more(int fd, struct keep_image *image, char why[KEEP_WHY])
{
	struct stat st;
	uint8_t *data;
	int ret;

	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size > KEEP_FILE_MAX || (size_t)st.st_size < image->end ||
	    lseek(fd, (off_t)image->end, SEEK_SET) < 0) {
		snprintf(why, KEEP_WHY, "was not only continued");
		return -EBADMSG;
	}
	data = realloc(image->data, (size_t)st.st_size + 1);
	if (data)
		image->data = data;
	ret = data ? keep_file_read_all(fd, data + image->end, (size_t)st.st_size - image->end) : -ENOMEM;
	if (ret < 0) {
		snprintf(why, KEEP_WHY, "cannot be read: %s", strerror(-ret));
		return ret;
	}
	image->size = (size_t)st.st_size;
	return check_records(image, why);
}

bool keep_file_is_own(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
	       (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int keep_file_read(const char *path, size_t limit, struct keep_image *image, char why[KEEP_WHY])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), ret;

	*image = (struct keep_image){};
	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0) {
		ret = -errno;
		snprintf(why, KEEP_WHY, "cannot be opened: %s", strerror(errno));
		return ret;
	}
	ret = read_file(fd, limit, image, why);
	close(fd);
	if (ret < 0)
		keep_file_free(image);
	return ret;
}

void keep_file_free(struct keep_image *image)
{
	free(image->data);
	*image = (struct keep_image){};
}

struct slice keep_file_record(const struct keep_image *image, size_t at)
{
	at = at ? at : MAGIC;
	if (at >= image->end)
		return (struct slice){};
	return (struct slice){image->data + at, HEAD + word_at(image->data + at)};
}

struct slice keep_file_message(struct slice record)
{
	return (struct slice){record.data + HEAD, record.n - HEAD};
}

Keep__Change *keep_file_next(const struct keep_image *image, size_t *at)
{
	struct slice record = keep_file_record(image, *at);

	if (record.n == 0)
		return NULL;
	*at = (size_t)(record.data - image->data) + record.n;
	return keep__change__unpack(NULL, record.n - HEAD, record.data + HEAD);
}

int keep_file_write_all(int fd, const uint8_t *data, size_t n)
{
	ssize_t done;

	for (; n > 0; data += done, n -= (size_t)done) {
		errno = ENOSPC; // of a short write
		done = write(fd, data, n);
		if (done <= 0)
			return -errno;
	}
	return 0;
}

int keep_file_open_new(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	return fd;
}

int keep_file_create(const char *path, const struct keep_image *image)
{
	int fd = keep_file_open_new(path), ret;

	if (fd < 0)
		return fd;
	ret = image ? keep_file_write_all(fd, image->data, image->end)
		    : keep_file_write_all(fd, (const uint8_t *)KEEP_MAGIC, MAGIC);
	if (ret == 0)
		return fd;
	close(fd);
	unlink(path);
	return ret;
}

int keep_file_begin(struct bytes *b)
{
	return bytes_add(b, (struct slice){(const uint8_t *)KEEP_MAGIC, MAGIC});
}

int keep_file_pack(struct bytes *b, const Keep__Change *change)
{
	size_t n = keep__change__get_packed_size(change);
	uint32_t head[2];

	if (bytes_reserve(b, HEAD + n) < 0)
		return -ENOMEM;
	keep__change__pack(change, b->data + b->n + HEAD);
	head[0] = htole32((uint32_t)n);
	head[1] = htole32(record_checksum(b->data + b->n + HEAD, n));
	memcpy(b->data + b->n, head, HEAD);
	b->n += HEAD + n;
	return 0;
}

int keep_file_append(int fd, uint64_t *end, const Keep__Change *change)
{
	struct bytes record = {};
	ssize_t done;
	int ret = keep_file_pack(&record, change);

	if (ret < 0)
		return ret;
	errno = ENOSPC; // of a short write
	done = *end + record.n > KEEP_FILE_MAX ? -1 : pwrite(fd, record.data, record.n, (off_t)*end);
	free(record.data);
	if (done == (ssize_t)record.n) {
		*end += record.n;
		return 0;
	}
	ret = -errno;
	if (ftruncate(fd, (off_t)*end) < 0) // a torn record is ignored by a start, but not one in the middle
		ret = -errno;
	return ret;
}
