// SPDX-License-Identifier: Apache-2.0
// Users of the API: what all connections of one user have open, and the events about what the user changes.
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include <protobuf-c/protobuf-c.h>

#include "api/limit.h"
#include "api/role.h"
#include "base/bucket.h"
#include "base/turn.h"

#define USER_EVENTS 1        // events per second about one user
#define USER_EVENTS_BURST 64 // at once

struct api_user {
	LIST_ENTRY(api_user) next;
	uid_t uid;
	unsigned connections, streams;
	struct bucket events;
	unsigned omitted; // calls without an event
};

// Returns LIMITS if a user with `own` connections may open another while all users have `all`, else the limit that
// forbids it.
enum api_limit user_admit(uid_t uid, unsigned all, unsigned own);
struct api_user *user_get(uid_t uid);  // each call adds a connection. NULL: no memory
struct api_user *user_find(uid_t uid); // NULL: has no connection
void user_put(struct api_user *u);     // ends a connection of the user
void users_tidy(void);                 // forgets users without connections and without recent calls
// Reports a call of a method that needs more than the role read. req: names the object
void user_called(struct api_user *u, const struct api_client *c, const struct turn_work *method,
		 const ProtobufCMessage *req);
void user_refused(struct api_user *u, const struct api_client *c, const struct turn_work *method);

// Writes the object that a request is about: the first field that is a text or a number, also of a message in it, or
// the number of the objects of a list.
void user_object(const ProtobufCMessage *req, char *buf, size_t size);
