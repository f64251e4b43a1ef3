// SPDX-License-Identifier: Apache-2.0
// A file of two numbers: how often the daemon crashed with this state, and whether it runs.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "keep/keep_private.h"

#define STARTS_FILE "starts"

static void starts_write(int dir, unsigned crashes, unsigned running)
{
	int fd = openat(dir, STARTS_FILE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), n;
	char text[8];

	n = snprintf(text, sizeof(text), "%u %u\n", crashes % 10,
		     running % 10); // always as long: one write replaces it
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		LOG(WARNING, "keep: the file " STARTS_FILE " cannot be written: %m");
	if (fd >= 0)
		close(fd);
}

static void starts_read(int dir, unsigned *crashes, unsigned *running)
{
	int fd = openat(dir, STARTS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[8] = "";

	*crashes = *running = 0;
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) == 4 && sscanf(text, "%1u %1u", crashes, running) != 2)
		*crashes = *running = 0;
	close(fd);
}

unsigned keep_starts_begin(int dir)
{
	unsigned crashes, running;

	starts_read(dir, &crashes, &running);
	crashes += running ? 1 : 0;
	crashes = crashes > KEEP_CRASHES ? KEEP_CRASHES : crashes;
	starts_write(dir, crashes, 1);
	return crashes;
}

void keep_starts_forget(int dir)
{
	starts_write(dir, 0, 1);
}

void keep_starts_end(int dir)
{
	starts_write(dir, 0, 0);
}
