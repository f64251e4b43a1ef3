// SPDX-License-Identifier: Apache-2.0
// The kept state of this process: its directory, and what is appended to its file.
#include "keep/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"
#include "base/event.h"
#include "base/log.h"
#include "bridge.pb-c.h"
#include "host.pb-c.h"
#include "keep/keep_private.h"
#include "port.pb-c.h"
#include "vrf.pb-c.h"
#include "worker.pb-c.h"

#define LOCK_FILE "lock"
#define LEAVE_NAP_NS 5000000
#define LEAVE_NAPS 1000

EVENT_KIND(state_not_kept, ERROR,
	   "Changes are not kept any more: after a restart they are missing. The running state is complete. Free some "
	   "space, and restart the daemon or apply the node file after its next start.");

struct keep keep = {.dir = -1, .lock = -1, .file = -1, .left = -1};

const struct keep_status *keep_status(void)
{
	keep.status.bytes = keep.file >= 0 ? keep.end : 0;
	return &keep.status;
}

void keep_path(const char *name, char path[KEEP_LONGEST_DIR + 16])
{
	snprintf(path, KEEP_LONGEST_DIR + 16, "%s/%s", keep.path, name);
}

void keep_give_up(const char *what, int ret)
{
	snprintf(keep.status.problem, sizeof(keep.status.problem), "%s in %s: %s", what, keep.path, strerror(-ret));
	event_report(state_not_kept, NULL, "%s", keep.status.problem);
	if (keep.file >= 0)
		close(keep.file);
	keep.file = -1;
}

int keep_start(const char *directory, struct error *err)
{
	if (directory[0] == '\0')
		return 0;
	if (snprintf(keep.path, sizeof(keep.path), "%s", directory) >= (int)sizeof(keep.path))
		return error_set(err, EINVAL, "--state-dir", directory, "a shorter path", "is too long");
	keep.status.directory = keep.path;
	if (mkdir(directory, 0700) < 0 && errno != EEXIST) {
		keep_give_up("the directory cannot be made", -errno);
		return 0;
	}
	keep.dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (keep.dir >= 0 && !keep_file_is_own(keep.dir)) {
		keep_give_up("the directory is not this user's alone", -EPERM);
		return 0;
	}
	keep.lock = keep.dir < 0 ? -1 : openat(keep.dir, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (keep.lock < 0)
		keep_give_up("the directory cannot be used", -errno);
	else if (flock(keep.lock, LOCK_EX | LOCK_NB) < 0)
		return error_set(err, EBUSY, "--state-dir", directory, "a directory of its own for each instance",
				 "another corelaned keeps its state there");
	return 0;
}

// What the daemon chose by itself is part of the state.
static void keep_choices(const struct api_change *c)
{
	const ProtobufCMessageDescriptor *req = c->req->descriptor;

	if (req == &corelane__v1__vrf_add_request__descriptor)
		((Corelane__V1__VrfAddRequest *)c->req)->vrf->id = ((const Corelane__V1__Vrf *)c->resp)->id;
	if (req == &corelane__v1__bridge_add_request__descriptor)
		((Corelane__V1__BridgeAddRequest *)c->req)->bridge->id = ((const Corelane__V1__Bridge *)c->resp)->id;
	if (req == &corelane__v1__worker_add_request__descriptor) {
		((Corelane__V1__WorkerAddRequest *)c->req)->worker->id = ((const Corelane__V1__Worker *)c->resp)->id;
		((Corelane__V1__WorkerAddRequest *)c->req)->auto_id = false;
	}
	if (req == &corelane__v1__host_steer_add_request__descriptor)
		((Corelane__V1__HostSteerAddRequest *)c->req)->steer->port =
			((const Corelane__V1__HostSteer *)c->resp)->port;
	if (req == &corelane__v1__port_add_request__descriptor) {
		const Corelane__V1__Port *made = (const Corelane__V1__Port *)c->resp;
		Corelane__V1__Port *port = ((Corelane__V1__PortAddRequest *)c->req)->port;

		// A tap's own MAC is random, and the neighbours of a fabric port know it.
		if (port->device_case == CORELANE__V1__PORT__DEVICE_TAP &&
		    port->role == CORELANE__V1__PORT_ROLE__PORT_ROLE_FABRIC && !*port->mac)
			port->mac = made->mac;
	}
}

static void keep_accepted(const struct api_change *c)
{
	Keep__Change change = KEEP__CHANGE__INIT;
	size_t n;
	int ret;

	if (keep.file < 0 || strcmp(c->service, "corelane.v1.Debug") == 0)
		return;
	keep_choices(c);
	n = protobuf_c_message_get_packed_size(c->req);
	change.owner = (char *)(uintptr_t)c->owner;
	change.service = (char *)(uintptr_t)c->service;
	change.method = (char *)(uintptr_t)c->method;
	change.request = (ProtobufCBinaryData){n, malloc(n + 1)};
	if (change.request.data == NULL) {
		keep_give_up("there is no memory for a change", -ENOMEM);
		return;
	}
	protobuf_c_message_pack(c->req, change.request.data);
	ret = keep_file_append(keep.file, &keep.end, &change);
	free(change.request.data);
	keep.status.changes++;
	if (ret < 0)
		keep_give_up("a change cannot be written to the file", ret);
	if (keep.crashes > 0) // they were with another state
		keep_starts_forget(keep.dir);
	keep.crashes = 0;
}

static struct api_listener keep_listener = {.accepted = keep_accepted};

int keep_restore(void (*between)(void), struct error *err)
{
	if (keep.lock < 0)
		return 0;
	if (keep_restore_file(between) < 0)
		return error_set(err, ESTALE, "--takeover", keep.path, "the same without this option",
				 "the kept state was replaced meanwhile");
	api_listen(&keep_listener);
	return 0;
}

void keep_poll(void)
{
	keep_squeeze_poll();
	if (keep.lock < 0 || keep.seconds == KEEP_HEALTHY || ++keep.seconds < KEEP_HEALTHY || keep.crashes == 0)
		return;
	keep.crashes = 0;
	keep_starts_forget(keep.dir);
}

void keep_stop(void)
{
	if (keep.lock < 0)
		return;
	keep_squeeze_stop();
	keep_starts_end(keep.dir);
	if (keep.file >= 0 && flock(keep.file, LOCK_EX | LOCK_NB) < 0)
		keep.left = keep.file; // a successor reads it
	else if (keep.file >= 0)
		close(keep.file);
	keep.file = -1;
	close(keep.lock); // a successor may wait for it
	keep.lock = -1;
}

void keep_leave(void)
{
	static const struct timespec nap = {.tv_nsec = LEAVE_NAP_NS};
	unsigned i;

	if (keep.left < 0)
		return;
	for (i = 0; i < LEAVE_NAPS && flock(keep.left, LOCK_EX | LOCK_NB) < 0; i++)
		nanosleep(&nap, NULL);
	close(keep.left);
	keep.left = -1;
}
