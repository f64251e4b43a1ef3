// SPDX-License-Identifier: Apache-2.0
// Reads the file of what is carried over a restart. Nothing is taken from it unless it is whole.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_hash_crc.h>

#include "base/log.h"
#include "base/memory_left.h"
#include "keep/carry_private.h"
#include "keep/keep_private.h"

#define LONGEST_S 86400 // that a restart takes
#define FILE_MAX (4ull << 30)

uint64_t (*carry_memory_left)(const char *root) = memory_left;

uint64_t carry_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint32_t carry_crc(const struct carry_block *b, const void *records)
{
	uint32_t crc = rte_hash_crc(b, offsetof(struct carry_block, crc), 0xffffffff);

	return rte_hash_crc(records, b->length, rte_hash_crc(&b->time, sizeof(b->time), crc));
}

// The block at *at, which moves to the next one; *records are in it. Returns false if there is none. Its checksum is
// not compared here.
static bool carry_block_next(const uint8_t *data, size_t size, size_t *at, struct carry_block *b,
			     const uint8_t **records)
{
	if (size - *at < sizeof(*b))
		return false;
	memcpy(b, data + *at, sizeof(*b));
	if (b->length > CARRY_BLOCK || b->length > size - *at - sizeof(*b))
		return false;
	*records = data + *at + sizeof(*b);
	*at += sizeof(*b) + b->length;
	return b->part[sizeof(b->part) - 1] == '\0' && b->size > 0 && b->size <= CARRY_RECORD_MAX &&
	       b->length % b->size == 0;
}

// Whether all blocks are whole, up to the last one. *seconds: since it was written.
static bool carry_whole(const uint8_t *data, size_t size, uint32_t *seconds)
{
	uint64_t now = carry_clock();
	size_t at = CARRY_MAGIC_SIZE;
	const uint8_t *records;
	struct carry_block b;

	if (size < at || memcmp(data, CARRY_MAGIC, CARRY_MAGIC_SIZE) != 0)
		return false;
	while (carry_block_next(data, size, &at, &b, &records)) {
		if (carry_crc(&b, records) != b.crc)
			return false;
		if (strcmp(b.part, CARRY_LAST) != 0)
			continue;
		*seconds = (uint32_t)((now - b.time) / 1000000000u);
		return at == size && b.time <= now && now - b.time < LONGEST_S * 1000000000ull;
	}
	return false;
}

// Returns how many records the part has taken of the file.
static unsigned carry_load_part(const struct carry_part *p, const uint8_t *data, size_t size, uint32_t seconds,
				unsigned *all)
{
	size_t at = CARRY_MAGIC_SIZE, i;
	const uint8_t *records;
	struct carry_block b;
	unsigned taken = 0;

	while (carry_block_next(data, size, &at, &b, &records)) {
		if (strcmp(b.part, p->name) != 0)
			continue;
		*all += b.length / b.size;
		if (b.version != p->version || b.size != p->size) // of another version of this program
			continue;
		for (i = 0; i < b.length; i += b.size) {
			uint8_t record[CARRY_RECORD_MAX] __rte_aligned(8);

			memcpy(record, records + i, b.size);
			taken += p->load(record, seconds);
		}
	}
	return taken;
}

int carry_read(const uint8_t *data, size_t size)
{
	const struct carry_part *p;
	uint32_t seconds;

	if (!carry_whole(data, size, &seconds))
		return -EBADMSG;
	for (p = carry_parts; p; p = p->next) {
		unsigned all = 0, taken = carry_load_part(p, data, size, seconds, &all);

		if (p->loaded)
			p->loaded(taken, all);
	}
	return 0;
}

// The file is read whole, and what comes of it takes about as much again. Without memory the kernel ends the process.
static bool carry_has_room(const char *path, uint64_t size)
{
	uint64_t left = carry_memory_left("");

	if (size <= FILE_MAX && size < left / 2)
		return true;
	LOG(WARNING,
	    "carry: %s (%" PRIu64 " MB) was not read, so flows begin anew: it may have half of the %" PRIu64
	    " MB of free memory, and %llu MB at most",
	    path, size >> 20, left >> 20, FILE_MAX >> 20);
	return false;
}

// Reads and removes the file: what makes a start crash is not read again.
static uint8_t *carry_take_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	uint8_t *data = NULL;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && keep_file_is_own(fd) &&
	    carry_has_room(path, (uint64_t)st.st_size))
		data = malloc((size_t)st.st_size + 1);
	if (data && keep_file_read_all(fd, data, (size_t)st.st_size) < 0) {
		free(data);
		data = NULL;
	}
	*size = (size_t)st.st_size;
	close(fd);
	if (unlink(path) < 0)
		LOG(WARNING, "carry: %s cannot be removed: %m", path);
	return data;
}

void carry_load(const char *directory)
{
	uint64_t begin = carry_clock();
	char path[CARRY_PATH];
	uint8_t *data;
	size_t size;

	if (snprintf(path, sizeof(path), "%s/" CARRY_FILE, directory) >= (int)sizeof(path))
		return;
	data = carry_take_file(path, &size);
	if (data == NULL)
		return;
	if (keep.doubtful)
		LOG(WARNING, "carry: %s was left out after so many crashes", path);
	else if (carry_read(data, size) < 0)
		LOG(WARNING, "carry: %s is damaged, of another version or of another boot, and was left out", path);
	else
		LOG(INFO, "carry: %zu bytes, in %.1f ms", size, (double)(carry_clock() - begin) / 1e6);
	free(data);
}
