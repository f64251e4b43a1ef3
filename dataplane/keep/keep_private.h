// SPDX-License-Identifier: Apache-2.0
// Private to the kept state. The file is a line that names format and version, and then records: length and checksum
// (CRC-32C), 32 bits each, least byte first, and a packed Change.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keep/change.pb-c.h"
#include "keep/keep.h"
#include "keep/wire.h"

#define KEEP_MAGIC "corelane state 1\n"
#define KEEP_RECORD_MAX (4u << 20 | 4096) // a request has at most 4 MiB
#define KEEP_FILE_MAX (1ull << 30)        // the file does not grow beyond it
#define KEEP_WHY 160
#define KEEP_CHANGE_REQUEST 4 // number of the field
#define KEEP_LONGEST_DIR 200

// --- keep_file.c ---

struct keep_image { // what was read
	uint8_t *data;
	size_t size;
	size_t end;     // of the last whole record: what follows was being written when the process or machine ended
	size_t last;    // where the last record begins
	uint64_t count; // of records
};

// Reads `limit` bytes at most. Returns 0, -ENOENT: there is no file, -EBADMSG with why: it is not a whole file of this
// format, -errno with why.
int keep_file_read(const char *path, size_t limit, struct keep_image *image, char why[KEEP_WHY]);
// Reads what was appended since. The same results; the image stays what it was, or has some of the new records.
int keep_file_read_more(int fd, struct keep_image *image, char why[KEEP_WHY]);
void keep_file_free(struct keep_image *image);
// The record at *at, which moves to the next one. NULL: there is none, or no memory. The caller frees it by
// keep__change__free_unpacked().
Keep__Change *keep_file_next(const struct keep_image *image, size_t *at);

// The bytes of the record at `at` (0: the first one); none: there is no such record.
struct slice keep_file_record(const struct keep_image *image, size_t at);
struct slice keep_file_message(struct slice record); // the packed change in a record
// Whether only this user and root may change the file or directory: what is in it is repeated with all rights.
bool keep_file_is_own(int fd);
int keep_file_read_all(int fd, uint8_t *data, size_t n);        // n bytes. Returns 0 or -errno
int keep_file_write_all(int fd, const uint8_t *data, size_t n); // the same
int keep_file_open_new(const char *path);                       // in place of any other. Returns a descriptor or -errno

// A file in place of any other, with the records of the image; NULL: without any. Returns a descriptor or -errno.
int keep_file_create(const char *path, const struct keep_image *image);
// Appends a record at *end, and moves *end. On failure the file ends at *end as before. Returns 0 or -errno.
int keep_file_append(int fd, uint64_t *end, const Keep__Change *change);
// The same in memory: the beginning of a file, and a record. Both return 0 or -ENOMEM.
int keep_file_begin(struct bytes *b);
int keep_file_pack(struct bytes *b, const Keep__Change *change);

// --- keep_fold.c ---

// Makes the image of what the changes of an image have made. with_last false: its last record stays as it is, so that a
// start can leave it out. *out may refer to memory of its own only. Returns 0 or -errno.
int keep_fold(const struct keep_image *image, bool with_last, struct keep_image *out);

// --- keep.c: the directory, and what is appended ---

struct keep {
	char path[KEEP_LONGEST_DIR];
	int dir, lock, file;
	int left;          // the file, of a daemon that ends while a successor reads it
	uint64_t end;      // of the file
	unsigned crashes;  // with this state
	bool doubtful;     // it crashed so often that what was learnt and counted is left out, too
	unsigned seconds;  // since the start, up to KEEP_HEALTHY
	uint64_t squeezed; // size of the file after it was last made smaller
	struct keep_status status;
};
extern struct keep keep;

void keep_path(const char *name, char path[KEEP_LONGEST_DIR + 16]);
// Nothing is kept any more. The running state is complete without the file, so nothing else happens.
void keep_give_up(const char *what, int ret);

#define KEEP_STATE_FILE "state"
#define KEEP_NEW_FILE "state.new"

// --- keep_restore.c ---

int keep_restore_file(void (*between)(void)); // keep_restore(), but for what comes later

// --- keep_squeeze.c: a thread that makes the file smaller ---

extern uint64_t keep_squeeze_bytes; // size of the file from which on it is made smaller when it has doubled; for tests

void keep_squeeze_poll(void); // begins and ends it
void keep_squeeze_stop(void); // waits for it

// --- keep_starts.c: how often the daemon has ended without a request, with the same state ---

#define KEEP_CRASHES 3  // with the same state, before its last change is left out
#define KEEP_HEALTHY 60 // seconds after which a crash is not the start's

// At a start. Returns the crashes since the state last changed, or since the daemon last ran for KEEP_HEALTHY seconds.
unsigned keep_starts_begin(int dir);
void keep_starts_forget(int dir); // the state has changed, or the daemon is healthy
void keep_starts_end(int dir);    // by request

// --- replay.c ---

struct replay_result {
	uint64_t restored, refused;
	char first[KEEP_WHY]; // that was refused
};
struct replay;
struct replay *replay_new(void (*between)(void)); // NULL: no memory
// Repeats the records from the one at `at` on (0: the first one). Those that are refused wait, and so do ports unless
// they are asked for.
void replay_all(struct replay *r, const struct keep_image *image, size_t at, bool ports);
// Tries those that wait until none of them is accepted any more.
void replay_waiting(struct replay *r, const struct keep_image *image);
void replay_free(struct replay *r, struct replay_result *out); // and says how it went; r may be NULL

// --- carry.c ---

#define CARRY_FILE "carried"
#define CARRY_PATH 256
