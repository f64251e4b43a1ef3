// SPDX-License-Identifier: Apache-2.0
// Writes the file of what is carried over a restart: into a new file, which takes the name once it is whole.
#include "keep/carry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/event.h"
#include "base/log.h"
#include "keep/carry_private.h"
#include "keep/keep_private.h"

#define PERIOD_NS 500000000ull // from the begin of a file to the begin of the next one
#define RETRY_NS 10000000000ull
#define SHARE_NS 200000 // of the master's time, in a millisecond

EVENT_KIND(carry_not_written, WARNING,
	   "Flows and counters cannot be written to the run directory. If the daemon ends now, they are lost; all else "
	   "comes back. Free some space there: the daemon retries every ten seconds.");

struct carry_part *carry_parts;

static struct {
	char path[CARRY_PATH], new_path[CARRY_PATH]; // empty: nothing is carried
	int fd;                                      // of the new file; -1: none
	const struct carry_part *part;               // that is written
	uint64_t at;                                 // in it
	uint64_t next;                               // time at which the next file begins
	bool failed;                                 // the last one could not be written
	uint8_t block[CARRY_BLOCK] __rte_aligned(8);
} out = {.fd = -1};

void carry_add(struct carry_part *part)
{
	struct carry_part **p;

	for (p = &carry_parts; *p; p = &(*p)->next)
		if (*p == part)
			return;
	*p = part;
}

void carry_start(const char *directory)
{
	if (snprintf(out.path, sizeof(out.path), "%s/" CARRY_FILE, directory) >= (int)sizeof(out.path) ||
	    snprintf(out.new_path, sizeof(out.new_path), "%s.new", out.path) >= (int)sizeof(out.new_path))
		out.path[0] = '\0';
}

static int carry_fail(int ret)
{
	if (!out.failed)
		event_report(carry_not_written, NULL, "%s: %s", out.new_path, strerror(-ret));
	out.failed = true;
	if (out.fd >= 0)
		close(out.fd);
	out.fd = -1;
	unlink(out.new_path);
	out.next = carry_clock() + RETRY_NS;
	return ret;
}

static int carry_begin(void)
{
	out.next = carry_clock() + PERIOD_NS;
	out.part = carry_parts;
	out.at = 0;
	out.fd = keep_file_open_new(out.new_path);
	if (out.fd < 0)
		return carry_fail(out.fd);
	memcpy(out.block, CARRY_MAGIC, CARRY_MAGIC_SIZE);
	return keep_file_write_all(out.fd, out.block, CARRY_MAGIC_SIZE);
}

static int carry_write_block(const char *name, uint16_t version, uint16_t size, uint32_t length)
{
	struct carry_block b = {.version = version, .size = size, .length = length, .time = carry_clock()};

	snprintf(b.part, sizeof(b.part), "%s", name);
	b.crc = carry_crc(&b, out.block + sizeof(b));
	memcpy(out.block, &b, sizeof(b));
	return keep_file_write_all(out.fd, out.block, sizeof(b) + length);
}

// Writes one block. Returns 1: there are more, 0: that was the last one, or -errno.
static int carry_step(void)
{
	const struct carry_part *p = out.part;
	unsigned n;
	int ret;

	if (p == NULL)
		return carry_write_block(CARRY_LAST, 1, 1, 0);
	n = p->save(&out.at, out.block + sizeof(struct carry_block),
		    (CARRY_BLOCK - sizeof(struct carry_block)) / p->size);
	ret = n ? carry_write_block(p->name, p->version, p->size, n * p->size) : 0;
	if (out.at == CARRY_END) {
		out.part = p->next;
		out.at = 0;
	}
	return ret < 0 ? ret : 1;
}

static int carry_end(void)
{
	close(out.fd);
	out.fd = -1;
	if (rename(out.new_path, out.path) < 0)
		return carry_fail(-errno);
	out.failed = false;
	return 0;
}

static void carry_write(uint64_t until)
{
	int ret;

	do {
		ret = carry_step();
	} while (ret > 0 && carry_clock() < until);
	if (ret < 0)
		carry_fail(ret);
	else if (ret == 0)
		carry_end();
}

void carry_poll(void)
{
	uint64_t now = carry_clock();
	int ret = 0;

	if (out.path[0] == '\0' || (out.fd < 0 && now < out.next))
		return;
	if (out.fd < 0)
		ret = carry_begin();
	if (ret == 0)
		carry_write(now + SHARE_NS);
	else if (out.fd >= 0)
		carry_fail(ret);
}

void carry_stop(void)
{
	if (out.path[0] == '\0')
		return;
	if (out.fd >= 0)
		close(out.fd);
	if (carry_begin() == 0)
		carry_write(UINT64_MAX);
	else if (out.fd >= 0)
		carry_fail(-EIO);
	out.path[0] = '\0';
}
