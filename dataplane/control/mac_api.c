// SPDX-License-Identifier: Apache-2.0
// The service corelane.v1.Macs (api/bridge.proto).
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_cycles.h>

#include "api/api.h"
#include "base/owner.h"
#include "bridge.pb-c.h"
#include "l2/mac.h"
#include "l2/mac_watch.h"
#include "port/registry.h"

static int mac_api_decode_target(const Corelane__V1__Mac *in, struct mac_entry *e, struct error *err)
{
	const struct port *p;

	if (in->target_case == CORELANE__V1__MAC__TARGET_NEXTHOP) {
		e->nexthop = in->nexthop;
		return 0;
	}
	p = port_find(in->port);
	if (p == NULL)
		return error_set(err, ENOENT, "mac.port", in->port, "the name of a port", "there is no such port");
	e->port = p->id;
	return 0;
}

static int mac_api_decode_addresses(const Corelane__V1__Mac *in, struct mac_entry *e, struct error *err)
{
	int ret = 0;

	for (e->n_addrs = 0; e->n_addrs < in->n_addresses && ret == 0; e->n_addrs++)
		ret = ip_parse_addr(in->addresses[e->n_addrs], "mac.addresses", &e->addrs[e->n_addrs], err);
	return ret;
}

static void mac_api_encode_addresses(struct api_call *call, const struct mac_entry *e, Corelane__V1__Mac *out)
{
	char text[IP_TEXT];

	out->addresses = api_alloc(call, (e->n_addrs + 1) * sizeof(*out->addresses));
	for (; out->n_addresses < e->n_addrs; out->n_addresses++)
		out->addresses[out->n_addresses] = api_strdup(call, ip_format_addr(&e->addrs[out->n_addresses], text));
}

static int mac_api_decode_key(const char *bridge, const char *mac, struct mac_entry *e, struct error *err)
{
	const struct bridge *b = bridge_find_err(bridge, "mac.bridge", err);

	*e = (struct mac_entry){0};
	if (b == NULL)
		return -ENOENT;
	e->bridge = b->id;
	return mac_parse(mac, "mac.mac", &e->mac, err);
}

static void mac_api_encode(struct api_call *call, const struct mac_entry *e, Corelane__V1__Mac *out)
{
	const struct bridge *b = bridge_get(e->bridge);
	const struct port *p = port_get(e->port);
	uint64_t now = bridge_clock();
	char text[IP_TEXT];

	out->bridge = api_strdup(call, b ? b->cfg.name : "");
	out->mac = api_strdup(call, mac_format(&e->mac, text));
	out->learnt = e->learnt;
	if (!e->learnt)
		out->owner = api_strdup(call, owner_name(e->owner));
	if (e->learnt && now > e->seen)
		out->age_seconds = (uint32_t)((now - e->seen) / rte_get_tsc_hz());
	if (e->nexthop) {
		out->target_case = CORELANE__V1__MAC__TARGET_NEXTHOP;
		out->nexthop = e->nexthop;
	} else {
		out->target_case = CORELANE__V1__MAC__TARGET_PORT;
		out->port = api_strdup(call, p ? p->cfg.name : "");
	}
	mac_api_encode_addresses(call, e, out);
	if (e->learnt && e->remote.family)
		out->remote = api_strdup(call, ip_format_addr(&e->remote, text));
}

static int mac_api_set(const struct api_call *call, const Corelane__V1__Mac *in, struct mac_entry *e, struct error *err)
{
	int ret = mac_api_decode_key(in->bridge, in->mac, e, err);

	if (ret == 0)
		ret = mac_api_decode_target(in, e, err);
	if (ret == 0)
		ret = mac_api_decode_addresses(in, e, err);
	e->owner = api_client(call)->owner;
	return ret < 0 ? ret : mac_set(e, err);
}

static int mac_api_add(struct api_call *call, const void *req, void *resp, struct error *err)
{
	struct mac_entry e;
	int ret = mac_api_set(call, ((const Corelane__V1__MacAddRequest *)req)->mac, &e, err);

	if (ret == 0)
		mac_api_encode(call, &e, resp);
	return ret;
}

// When one is refused, those before it are removed. Addresses that were learnt before them are learnt again.
static int mac_api_add_all(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__MacAddAllRequest *in = req;
	Corelane__V1__MacAddAllReply *out = resp;
	uint64_t *set = api_alloc(call, (in->n_macs + 1) * sizeof(*set));
	struct rte_ether_addr mac;
	struct mac_entry e;
	size_t n = 0;
	int ret = 0;

	while (n < in->n_macs && ret == 0) {
		ret = mac_api_set(call, in->macs[n], &e, err);
		if (ret == 0)
			set[n++] = mac_key(e.bridge, &e.mac);
	}
	if (ret == 0) {
		out->added = (uint32_t)n;
		return 0;
	}
	err->index = (uint32_t)n;
	while (n-- > 0) {
		mac = mac_key_addr(set[n]);
		mac_unset(mac_key_bridge(set[n]), &mac, NULL);
	}
	return ret;
}

static int mac_api_del(struct api_call *call, const void *req, void *resp, struct error *err)
{
	const Corelane__V1__MacDelRequest *in = req;
	struct mac_entry e, old;
	int ret = mac_api_decode_key(in->bridge, in->mac, &e, err);

	if (ret == 0 && mac_get(e.bridge, &e.mac, &old) && !old.learnt)
		ret = api_owns(call, old.owner, "mac.mac", in->mac, err);
	return ret < 0 ? ret : mac_unset(e.bridge, &e.mac, err);
}

struct mac_cursor {
	struct mac_entry last; // the entry that was sent last: its domain and MAC
	uint16_t only;         // the requested domain, 0 = all
	bool started;
};

static int mac_api_list(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	const Corelane__V1__MacListRequest *in = req;
	struct mac_cursor *c = cursor;
	const struct bridge *b;
	struct mac_entry e;

	if (!c->started && *in->bridge) {
		b = bridge_find_err(in->bridge, "bridge", err);
		if (b == NULL)
			return -ENOENT;
		c->last.bridge = c->only = b->id;
	}
	c->started = true;
	if (!mac_next(&c->last, &e) || (c->only && e.bridge != c->only))
		return 0;
	c->last = e;
	mac_api_encode(call, &e, item);
	return 1;
}

struct mac_watch_cursor {
	TAILQ_ENTRY(mac_watch_cursor) next;
	struct api_call *call;
	uint64_t last; // number of the change that was sent last, or passed over
	bool begun, waiting;
};

static TAILQ_HEAD(, mac_watch_cursor) mac_watchers = TAILQ_HEAD_INITIALIZER(mac_watchers);

static void mac_watch_stop(struct mac_watch_cursor *c)
{
	if (c->waiting)
		TAILQ_REMOVE(&mac_watchers, c, next);
	c->waiting = false;
}

static void mac_watch_wake(void)
{
	struct mac_watch_cursor *c;

	while ((c = TAILQ_FIRST(&mac_watchers)) != NULL) {
		mac_watch_stop(c);
		api_wake(c->call);
	}
}

__attribute__((constructor)) static void mac_watch_listen(void)
{
	static struct mac_change_listener listener = {.noted = mac_watch_wake};

	mac_change_listen(&listener);
}

// The next change of the bridge, false if there is none yet. missed: changes before it were overwritten.
static bool mac_watch_next(struct mac_watch_cursor *c, const char *bridge, struct mac_change *out, bool *missed)
{
	const struct mac_change *change;
	const struct bridge *b;

	*missed = c->last < mac_change_last() && mac_change_get(c->last + 1) == NULL;
	if (*missed)
		c->last = mac_change_last();
	while (!*missed && (change = mac_change_get(c->last + 1)) != NULL) {
		c->last++;
		b = bridge_get(mac_key_bridge(change->key));
		if (*bridge == '\0' || (b && strcmp(b->cfg.name, bridge) == 0)) {
			*out = *change;
			return true;
		}
	}
	return *missed;
}

static int mac_api_watch(struct api_call *call, const void *req, void *cursor, void *item, struct error *err)
{
	static const Corelane__V1__MacChange kinds[] = {
		[MAC_WAS_LEARNT] = CORELANE__V1__MAC_CHANGE__MAC_CHANGE_LEARNT,
		[MAC_HAS_MOVED] = CORELANE__V1__MAC_CHANGE__MAC_CHANGE_MOVED,
		[MAC_IS_GONE] = CORELANE__V1__MAC_CHANGE__MAC_CHANGE_GONE,
		[MAC_WAS_SEEN] = CORELANE__V1__MAC_CHANGE__MAC_CHANGE_SEEN,
	};
	const Corelane__V1__MacWatchRequest *in = req;
	struct mac_watch_cursor *c = cursor;
	Corelane__V1__MacEvent *out = item;
	struct mac_change change;
	struct mac_entry e;
	bool missed = !c->begun;

	if (missed && *in->bridge && bridge_find_err(in->bridge, "bridge", err) == NULL)
		return -ENOENT;
	if (missed)
		c->last = mac_change_last();
	c->begun = true;
	if (!missed && !mac_watch_next(c, in->bridge, &change, &missed)) {
		c->call = call;
		c->waiting = true;
		TAILQ_INSERT_TAIL(&mac_watchers, c, next);
		return -EAGAIN;
	}
	if (missed) {
		out->change = CORELANE__V1__MAC_CHANGE__MAC_CHANGE_MISSED;
		return 1;
	}
	out->change = kinds[change.kind];
	mac_describe(change.key, change.target, &e);
	e.seen = bridge_clock();
	out->mac = api_alloc(call, sizeof(*out->mac));
	corelane__v1__mac__init(out->mac);
	mac_api_encode(call, &e, out->mac);
	return 1;
}

static void mac_watch_done(void *cursor)
{
	mac_watch_stop(cursor);
}

#define SERVICE "corelane.v1.Macs"

static const struct api_method methods[] = {
	{SERVICE, "Add", &corelane__v1__mac_add_request__descriptor, &corelane__v1__mac__descriptor,
	 .unary = mac_api_add},
	{SERVICE, "AddAll", &corelane__v1__mac_add_all_request__descriptor,
	 &corelane__v1__mac_add_all_reply__descriptor, .unary = mac_api_add_all},
	{SERVICE, "Del", &corelane__v1__mac_del_request__descriptor, &corelane__v1__empty__descriptor,
	 .unary = mac_api_del},
	{SERVICE, "List", &corelane__v1__mac_list_request__descriptor, &corelane__v1__mac__descriptor,
	 .next = mac_api_list, .cursor_size = sizeof(struct mac_cursor)},
	{SERVICE, "Watch", &corelane__v1__mac_watch_request__descriptor, &corelane__v1__mac_event__descriptor,
	 .next = mac_api_watch, .done = mac_watch_done, .cursor_size = sizeof(struct mac_watch_cursor)},
};
API_METHODS(methods)
