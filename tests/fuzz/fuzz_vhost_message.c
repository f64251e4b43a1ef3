// SPDX-License-Identifier: Apache-2.0
// A front end's messages, before a library sees them. Those that vhost_session_check() lets pass go to a model of what
// librte_vhost makes of them. What the model holds against the library's mistakes: each ring that has addresses has its
// arrays, too, and lies in one region of memory, whose file is long enough.
//
// Input: a byte, how many messages of an ordinary start come first. Then messages:
//	request | variant << 6
//	which descriptors (enum kind) | how many << 4: 0, those that belong to the ordinary message; n, n - 1 of them
//	n; the ordinary message is changed in n % 8 places, and its size by n / 8 if that is not 0
//	n % 8 times: a place and a value. Below 192: the byte there is XORed. Else a word of the payload gets a number
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/vhost.h"
#include "port/vhost_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define USER 0x7f0000000000
#define LOW (1u << 20)
#define HIGH (2u << 20)
#define HIGH_GUEST (1ULL << 32)
#define ENTRIES 256
#define MQ (1ULL << 22)
#define LOG_ALL (1ULL << 26)
#define EVENT_IDX (1ULL << 29)
#define NOT_SPLIT (1ULL << 33 | 1ULL << 34) // IOMMU, packed rings
#define TAKEN (1ULL << 32 | 1ULL << 30 | 1ULL << 15)
#define VARIANT(n) ((n) << 6)
#define WORDS_FROM 192

enum kind { EVENT, MEMORY, SHORT, READ_ONLY, SEALED, PIPE, DIRECTORY, KINDS };

// As the library would have it.
struct region {
	uint64_t guest, size, user;
};

static struct model {
	uint64_t features;
	unsigned n_regions;
	struct region regions[VHOST_MESSAGE_FDS];
	struct ring {
		uint32_t size;
		bool arrays, addr;
		uint64_t desc, used, avail;
	} rings[VHOST_SESSION_VRINGS];
	bool log;
} model;

static const uint8_t start[] = {
	VHOST_REQUEST_GET_FEATURES,
	VHOST_REQUEST_GET_PROTOCOL_FEATURES,
	VHOST_REQUEST_SET_PROTOCOL_FEATURES,
	VHOST_REQUEST_SET_FEATURES,
	VHOST_REQUEST_SET_MEM_TABLE | VARIANT(1),
	VHOST_REQUEST_SET_VRING_NUM,
	VHOST_REQUEST_SET_VRING_BASE,
	VHOST_REQUEST_SET_VRING_ADDR,
	VHOST_REQUEST_SET_VRING_KICK,
	VHOST_REQUEST_SET_VRING_NUM | VARIANT(2),
	VHOST_REQUEST_SET_VRING_ADDR | VARIANT(2),
	VHOST_REQUEST_SET_VRING_KICK | VARIANT(2),
	VHOST_REQUEST_SET_VRING_ENABLE,
	VHOST_REQUEST_SET_LOG_BASE,
};

static struct vhost_session session;
static int files[KINDS];

static void fail(const char *what)
{
	fprintf(stderr, "fuzz_vhost_message: %s\n", what);
	abort();
}

static void open_files(void)
{
	char path[32];
	int ends[2];

	files[EVENT] = eventfd(0, EFD_CLOEXEC);
	files[MEMORY] = memfd_create("memory", MFD_CLOEXEC);
	files[SHORT] = memfd_create("short", MFD_CLOEXEC);
	files[SEALED] = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	files[DIRECTORY] = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", files[MEMORY]);
	files[READ_ONLY] = open(path, O_RDONLY | O_CLOEXEC);
	if (pipe2(ends, O_CLOEXEC) < 0 || ftruncate(files[MEMORY], LOW + HIGH) < 0 ||
	    ftruncate(files[SHORT], LOW - 4096) < 0 || ftruncate(files[SEALED], LOW) < 0 ||
	    fcntl(files[SEALED], F_ADD_SEALS, F_SEAL_WRITE) < 0)
		fail("a file cannot be opened");
	files[PIPE] = ends[0];
}

static void ordinary_memory(struct vhost_message *m, unsigned variant)
{
	static const unsigned first[] = {0, 0, 0, 1}, count[] = {1, 2, 3, 1};
	static const uint64_t regions[][4] = {
		{0, LOW, USER, 0}, {HIGH_GUEST, HIGH, USER + LOW, LOW}, {2 * HIGH_GUEST, LOW, USER - LOW, 0}};

	m->memory.n = m->n_fds = count[variant];
	m->size = 8 + 32 * m->memory.n;
	memcpy(m->bytes + 8, regions[first[variant]], m->size - 8);
}

static void ordinary_addresses(struct vhost_message *m, unsigned ring)
{
	uint64_t at = USER + 0x4000ULL * ring;

	m->size = 40;
	m->addr.index = ring;
	m->addr.desc = at;
	m->addr.used = at + 0x2000;
	m->addr.avail = at + 0x1000;
	m->addr.log = at + 0x2000 - USER;
}

static void ordinary_word(struct vhost_message *m, uint64_t word, unsigned n_fds)
{
	m->size = 8;
	m->u64 = word;
	m->n_fds = n_fds;
}

static void ordinary_state(struct vhost_message *m, unsigned ring, uint32_t num)
{
	m->size = 8;
	m->state.index = ring;
	m->state.num = num;
}

static void ordinary(struct vhost_message *m, unsigned request, unsigned variant)
{
	static const uint64_t features[] = {MQ | EVENT_IDX, MQ, MQ | EVENT_IDX | LOG_ALL, EVENT_IDX};

	*m = (struct vhost_message){.request = request, .flags = VHOST_MESSAGE_VERSION};
	switch (request) {
	case VHOST_REQUEST_SET_FEATURES:
		ordinary_word(m, TAKEN | features[variant], 0);
		break;
	case VHOST_REQUEST_SET_PROTOCOL_FEATURES:
	case VHOST_REQUEST_SEND_RARP:
	case VHOST_REQUEST_SET_STATUS:
		ordinary_word(m, variant, 0);
		break;
	case VHOST_REQUEST_NET_SET_MTU:
		ordinary_word(m, 1500, 0);
		break;
	case VHOST_REQUEST_SET_MEM_TABLE:
		ordinary_memory(m, variant);
		break;
	case VHOST_REQUEST_SET_LOG_BASE:
		m->size = 16;
		m->log.size = 1u << 20;
		m->n_fds = 1;
		break;
	case VHOST_REQUEST_SET_LOG_FD:
		m->n_fds = 1;
		break;
	case VHOST_REQUEST_SET_VRING_NUM:
		ordinary_state(m, variant, ENTRIES);
		break;
	case VHOST_REQUEST_SET_VRING_ADDR:
		ordinary_addresses(m, variant);
		break;
	case VHOST_REQUEST_SET_VRING_BASE:
	case VHOST_REQUEST_GET_VRING_BASE:
		ordinary_state(m, variant, 0);
		break;
	case VHOST_REQUEST_SET_VRING_ENABLE:
		ordinary_state(m, variant, 1);
		break;
	case VHOST_REQUEST_SET_VRING_KICK:
	case VHOST_REQUEST_SET_VRING_CALL:
	case VHOST_REQUEST_SET_VRING_ERR:
		ordinary_word(m, variant, 1);
		break;
	}
}

static enum kind ordinary_kind(unsigned request)
{
	return request == VHOST_REQUEST_SET_MEM_TABLE || request == VHOST_REQUEST_SET_LOG_BASE ? MEMORY : EVENT;
}

static void give_files(struct vhost_message *m, enum kind kind)
{
	unsigned i;

	for (i = 0; i < m->n_fds && i < VHOST_MESSAGE_FDS; i++)
		m->fds[i] = files[kind];
}

// Both with more room than any number has.
static bool holds(uint64_t begin, uint64_t size, uint64_t at, uint64_t len)
{
	return at >= begin && (unsigned __int128)at + len <= (unsigned __int128)begin + size;
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return (unsigned __int128)a + a_size > b && (unsigned __int128)b + b_size > a;
}

static bool in_one_region(uint64_t at, uint64_t len)
{
	unsigned i, n = 0;

	for (i = 0; i < model.n_regions; i++)
		n += holds(model.regions[i].user, model.regions[i].size, at, len);
	return n == 1;
}

static void check_ring(const struct ring *r)
{
	uint64_t event = model.features & EVENT_IDX ? 2 : 0;

	if (!r->addr)
		return;
	if (!r->arrays)
		fail("a ring has addresses and no arrays");
	if (r->size < VHOST_SHORTEST_RING || r->size > VHOST_LONGEST_RING || (r->size & (r->size - 1)))
		fail("a ring of this length is not allowed");
	if (r->desc % 16 || r->avail % 2 || r->used % 4)
		fail("a ring is not aligned");
	if (!in_one_region(r->desc, 16ULL * r->size) || !in_one_region(r->avail, 4 + 2ULL * r->size + event) ||
	    !in_one_region(r->used, 4 + 8ULL * r->size + event))
		fail("a ring does not lie in one region");
}

static void check_model(void)
{
	unsigned i, k;

	if (model.features & NOT_SPLIT)
		fail("rings are packed, or their addresses are not the front end's");
	for (i = 0; i < VHOST_SESSION_VRINGS; i++) {
		check_ring(&model.rings[i]);
		if (model.rings[i].addr != vhost_session_ring_is_inside(&session, i))
			fail("the session and the library differ over a ring");
	}
	for (i = 0; i < model.n_regions; i++)
		for (k = 0; k < i; k++)
			if (overlap(model.regions[i].user, model.regions[i].size, model.regions[k].user,
				    model.regions[k].size) ||
			    overlap(model.regions[i].guest, model.regions[i].size, model.regions[k].guest,
				    model.regions[k].size))
				fail("regions overlap");
}

static bool file_is_good(int fd, uint64_t offset, uint64_t size)
{
	struct stat st;

	return fd != files[READ_ONLY] && fd != files[SEALED] && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (unsigned __int128)offset + size <= (unsigned __int128)st.st_size;
}

static void apply_memory(const struct vhost_message *m)
{
	unsigned i;

	if (m->memory.n > VHOST_MESSAGE_FDS || m->memory.n != m->n_fds)
		fail("regions have no descriptors");
	model.n_regions = m->memory.n;
	for (i = 0; i < m->memory.n; i++) {
		model.regions[i] = (struct region){m->memory.regions[i].guest, m->memory.regions[i].size,
						   m->memory.regions[i].user};
		if (!file_is_good(m->fds[i], m->memory.regions[i].offset, m->memory.regions[i].size))
			fail("a region is not in its file");
	}
}

// The library adds the offset twice.
static void apply_log(const struct vhost_message *m)
{
	model.log = true;
	if (m->log.offset != 0 || m->log.size % 8 || !file_is_good(m->fds[0], 0, m->log.size))
		fail("a log is not in its file");
}

// Frees rings that a guest without several queues does not have, unless the device runs: not before the first ring has
// addresses.
static void apply_features(uint64_t features)
{
	unsigned i;

	for (i = 2; i < VHOST_SESSION_VRINGS; i++)
		if (!(features & MQ) && !model.rings[0].addr)
			model.rings[i] = (struct ring){};
	model.features = features;
}

// Leaks the arrays, and keeps the log's address.
static void apply_reset(void)
{
	unsigned i;

	for (i = 0; i < VHOST_SESSION_VRINGS; i++)
		if (model.rings[i].arrays)
			fail("arrays are lost");
	if (model.log)
		fail("the library would write into a log that it has unmapped");
	memset(&model, 0, sizeof(model));
}

static void apply_addresses(const struct vhost_message *m)
{
	struct ring *r = &model.rings[m->addr.index];

	r->addr = true;
	r->desc = m->addr.desc;
	r->used = m->addr.used;
	r->avail = m->addr.avail;
}

static void apply(const struct vhost_message *m)
{
	struct ring *r = &model.rings[m->state.index % VHOST_SESSION_VRINGS];

	switch (m->request) {
	case VHOST_REQUEST_SET_FEATURES:
		apply_features(m->u64);
		break;
	case VHOST_REQUEST_RESET_OWNER:
		apply_reset();
		break;
	case VHOST_REQUEST_SET_MEM_TABLE:
		apply_memory(m);
		break;
	case VHOST_REQUEST_SET_LOG_BASE:
		apply_log(m);
		break;
	case VHOST_REQUEST_SET_VRING_NUM:
		r->size = m->state.num;
		r->arrays = true;
		break;
	case VHOST_REQUEST_SET_VRING_ADDR:
		apply_addresses(m);
		break;
	case VHOST_REQUEST_GET_VRING_BASE: // keeps the length
		r->arrays = r->addr = false;
		break;
	case VHOST_REQUEST_SET_VRING_KICK: // translates whatever is there
		if (!model.rings[m->u64 & 0xff].addr)
			fail("a ring starts at address 0");
		break;
	}
}

// A library that offers all there is.
static void accepted(const struct vhost_message *m)
{
	struct vhost_message answer = {.request = m->request, .flags = 5, .size = 8, .u64 = UINT64_MAX};

	apply(m);
	vhost_session_accepted(&session, m, vhost_message_has_answer(m) ? &answer : NULL);
	vhost_message_mask_answer(m, &answer);
	if (m->request == VHOST_REQUEST_GET_FEATURES && (answer.u64 & NOT_SPLIT))
		fail("packed rings are offered");
	check_model();
}

static void say(const struct vhost_message *m)
{
	const char *why = NULL, *why_header = NULL;
	int header = vhost_message_check_header(m, &why_header);
	enum vhost_verdict verdict = vhost_session_check(&session, m, &why);

	if ((verdict == VHOST_REFUSE) != (why != NULL) || (header < 0) != (why_header != NULL))
		fail("a refusal without a reason");
	if (header < 0 && verdict != VHOST_REFUSE)
		fail("a message with a bad header passes");
	if (verdict != VHOST_REFUSE)
		accepted(m);
}

// The numbers near which rules change.
static void change_word(struct vhost_message *m, unsigned word, uint8_t value)
{
	static const uint64_t numbers[] = {0,
					   1,
					   4096,
					   ENTRIES,
					   LOW,
					   HIGH,
					   LOW + HIGH,
					   HIGH_GUEST,
					   USER,
					   USER + LOW,
					   USER + LOW + HIGH,
					   UINT64_MAX,
					   1ULL << 31,
					   1ULL << 42,
					   USER + LOW - 16 * ENTRIES,
					   USER + LOW + HIGH - 8 * ENTRIES - 4};
	static const int offsets[] = {0, -1, 1, 2, -2, 4, -4, 8, -8, 16, -16, -4096, 4096, -2048, -6, -8192};
	uint64_t number = numbers[value % COUNT(numbers)] + (uint64_t)(int64_t)offsets[value / 16];

	memcpy(m->bytes + 8 * (word % (VHOST_MESSAGE_PAYLOAD / 8)), &number, sizeof(number));
}

static const uint8_t *say_changed(const uint8_t *at, const uint8_t *end)
{
	unsigned n = at[2] % 8, request = at[0] % 64, n_fds = at[1] / 16;
	enum kind kind = at[1] % 16;
	struct vhost_message m;

	ordinary(&m, request, at[0] / 64);
	m.size += at[2] / 8;
	m.n_fds = n_fds > 0 ? n_fds - 1 : m.n_fds;
	for (at += 3; n > 0 && end - at >= 2; n--, at += 2)
		if (at[0] < WORDS_FROM)
			((uint8_t *)&m)[at[0]] ^= at[1];
		else
			change_word(&m, at[0] - WORDS_FROM, at[1]);
	give_files(&m, kind < KINDS ? kind : ordinary_kind(request));
	say(&m);
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data + 1, *end = data + size;
	struct vhost_message m;
	unsigned i;

	if (size < 1)
		return 0;
	if (files[MEMORY] == 0)
		open_files();
	memset(&model, 0, sizeof(model));
	vhost_session_begin(&session);
	for (i = 0; i < data[0] % (COUNT(start) + 1); i++) {
		ordinary(&m, start[i] % 64, start[i] / 64);
		give_files(&m, ordinary_kind(m.request));
		say(&m);
	}
	while (end - at >= 3)
		at = say_changed(at, end);
	return 0;
}
