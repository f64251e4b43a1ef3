// SPDX-License-Identifier: Apache-2.0
#include "api/user.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_private.h"
#include "base/event.h"

EVENT_KIND(api_call, INFO,
	   "A user called a method of the API that changes something or shows packets: the text has the process, the "
	   "method, and the object. At most 64 calls of a user are reported in a burst, then one per second; the next "
	   "event "
	   "counts the rest.");
EVENT_KIND(api_refused, WARNING,
	   "A user called a method of the API without having the role for it. `corelane roles` lists what each method "
	   "needs. The number of events is limited as for api_call.");

static LIST_HEAD(, api_user) users = LIST_HEAD_INITIALIZER(users);

enum api_limit user_admit(uid_t uid, unsigned all, unsigned own)
{
	if (all >= api_limits.connections - (uid == 0 ? 0 : api_limits.reserved))
		return LIMIT_CONNECTIONS;
	return own >= api_limits.user_connections ? LIMIT_USER_CONNECTIONS : LIMITS;
}

struct api_user *user_find(uid_t uid)
{
	struct api_user *u;

	LIST_FOREACH (u, &users, next) {
		if (u->uid == uid)
			break;
	}
	return u;
}

struct api_user *user_get(uid_t uid)
{
	struct api_user *u;

	users_tidy();
	u = user_find(uid);
	if (u == NULL) {
		u = calloc(1, sizeof(*u));
		if (u == NULL)
			return NULL;
		u->uid = uid;
		LIST_INSERT_HEAD(&users, u, next);
	}
	u->connections++;
	return u;
}

static const char *user_name(const struct api_user *u, char buf[32])
{
	snprintf(buf, 32, "uid %u", (unsigned)u->uid);
	return buf;
}

void user_put(struct api_user *u)
{
	u->connections--;
}

// A user whose bucket is not full yet is kept: commands that follow each other have a connection each.
void users_tidy(void)
{
	struct api_user *u, *next;
	char name[32];

	for (u = LIST_FIRST(&users); u; u = next) {
		next = LIST_NEXT(u, next);
		if (u->connections > 0 || u->events.full_at > api_now_ns())
			continue;
		if (u->omitted > 0)
			event_report(api_call, user_name(u, name), "%u more calls were not reported", u->omitted);
		LIST_REMOVE(u, next);
		free(u);
	}
}

// What a client sends must not look like another line of the log.
static void user_copy(char *buf, size_t size, const char *text)
{
	snprintf(buf, size, "%s", text);
	for (; *buf; buf++)
		if ((unsigned char)*buf < ' ' || *buf == 0x7f)
			*buf = '?';
}

static size_t user_count(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f)
{
	return *(const size_t *)((const uint8_t *)msg + f->quantifier_offset);
}

// The first field of a message within the request is the object's key. A list is none: settings have no key.
static void user_key(const ProtobufCMessage *msg, bool within, char *buf, size_t size)
{
	const ProtobufCMessageDescriptor *type = msg->descriptor;
	const ProtobufCFieldDescriptor *f = type->fields;
	const void *value;

	if (type->n_fields == 0)
		return;
	value = (const uint8_t *)msg + f->offset;
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		snprintf(buf, within ? 1 : size, "%zu %s", user_count(msg, f), f->name);
	else if (f->type == PROTOBUF_C_TYPE_MESSAGE && *(ProtobufCMessage *const *)value)
		user_key(*(ProtobufCMessage *const *)value, true, buf, size);
	else if (f->type == PROTOBUF_C_TYPE_STRING)
		user_copy(buf, size, *(char *const *)value);
	else if (f->type == PROTOBUF_C_TYPE_UINT32)
		snprintf(buf, size, "%" PRIu32, *(const uint32_t *)value);
}

// Appends the names of the fields that a Set changes, as many as fit.
static void user_fields(const ProtobufCMessage *req, char *buf, size_t size)
{
	const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(req->descriptor, "fields");
	size_t i, n = f && f->type == PROTOBUF_C_TYPE_STRING ? user_count(req, f) : 0, len;
	char *const *names = n ? *(char *const *const *)((const uint8_t *)req + f->offset) : NULL;

	for (i = 0; i < n; i++) {
		len = strlen(buf);
		if (len + strlen(names[i]) + sizeof(", , ...") > size) {
			snprintf(buf + len, size - len, "%s...", len ? ", " : "");
			return;
		}
		snprintf(buf + len, size - len, "%s", len == 0 ? "" : i == 0 ? " " : ", ");
		len = strlen(buf);
		user_copy(buf + len, size - len, names[i]);
	}
}

void user_object(const ProtobufCMessage *req, char *buf, size_t size)
{
	buf[0] = '\0';
	user_key(req, false, buf, size);
	user_fields(req, buf, size);
}

// Whether an event may be reported now; else it is counted.
static bool user_may_report(struct api_user *u)
{
	bool ok = bucket_take(&u->events, api_now_ns(), 1, USER_EVENTS, USER_EVENTS_BURST, 1000000000);

	u->omitted += !ok;
	return ok;
}

// Formats and resets the number of calls that were not reported.
static const char *user_omitted(struct api_user *u, char buf[64])
{
	buf[0] = '\0';
	if (u->omitted > 0)
		snprintf(buf, 64, "; %u earlier calls were not reported", u->omitted);
	u->omitted = 0;
	return buf;
}

void user_called(struct api_user *u, const struct api_client *c, const struct turn_work *method,
		 const ProtobufCMessage *req)
{
	char name[32], object[96], more[64];

	if (!user_may_report(u))
		return;
	user_object(req, object, sizeof(object));
	event_report(api_call, user_name(u, name), "process %d called %s.%s%s%s%s", (int)c->pid, method->noun,
		     method->name, object[0] ? " " : "", object, user_omitted(u, more));
}

void user_refused(struct api_user *u, const struct api_client *c, const struct turn_work *method)
{
	char name[32], more[64];

	if (user_may_report(u))
		event_report(api_refused, user_name(u, name), "process %d was refused %s.%s%s", (int)c->pid,
			     method->noun, method->name, user_omitted(u, more));
}
