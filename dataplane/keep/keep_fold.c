// SPDX-License-Identifier: Apache-2.0
// Folds changes into what they have made: one request for each object that exists, as it is now. What was deleted
// leaves nothing behind, and a change of an object becomes part of the request that adds it. The requests are in an
// order in which most objects come before those that name them; the replay tries the others once more (replay.c).
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/ip.h"
#include "keep/keep_private.h"
#include "keep/nouns.h"
#include "keep/wire.h"

#define FOLD_OWNERS 64
#define BATCH_OBJECTS 1024 // in one request: as many as Nexthops.AddAll takes
#define BATCH_BYTES (128u << 10)
#define TABLE_LEAST 1024

// What a change is about: PLACE_NOUN + i is nouns[i]. The order is that in which a start makes them.
enum {
	PLACE_CALL = 0, // Flows.Resize, which makes no object: of equal requests the last one counts
	PLACE_NOUN = 1,
	PLACE_RECORD = UINT8_MAX, // services without a line in nouns[]: the record stays as it is
};

struct key { // 128 bits of hash, so that no two objects are taken for one
	uint64_t a, b;
};

struct object {
	struct key key, parents[NOUN_PARENTS]; // parents[i].a 0: none
	uint64_t made, gone;                   // the change that made it and the one that last deleted it; 0: none
	uint64_t moved;                        // of a port: the one that last set its bridge, and so ended its MACs
	struct slice value;
	struct bytes own;     // memory of value, if that is not in the image
	struct bytes fields;  // that were changed of an object that no request has made
	struct slice deleted; // the request that has deleted it
	uint8_t place, owner;
	bool preset_gone; // it existed without a request
};

struct fold {
	struct object *objects;
	size_t n, room;
	uint32_t *slots; // numbers of objects from 1
	size_t n_slots;  // a power of two
	char *owners[FOLD_OWNERS];
	unsigned n_owners;
	uint64_t change; // number of the one at hand, from 1
	struct bytes out;
	uint64_t count;
};

// --- Keys ---

static void key_mix(struct key *k, struct slice s, bool ignore_case)
{
	size_t i;

	for (i = 0; i <= s.n; i++) { // with a border between two fields
		uint8_t c = i < s.n ? s.data[i] : 0;

		c = ignore_case && c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
		k->a = (k->a ^ c) * 0x100000001b3ull;
		k->b = (k->b + c + 1) * 0x9e3779b97f4a7c15ull;
		k->b ^= k->b >> 29;
	}
}

static void key_mix_address(struct key *k, struct slice s)
{
	char text[IP_TEXT], canonical[IP_TEXT];
	struct ip_prefix p;

	if (s.n > 0 && s.n < sizeof(text)) {
		memcpy(text, s.data, s.n);
		text[s.n] = '\0';
		if (strchr(text, '/') == NULL && s.n + 4 < sizeof(text))
			strcat(text, strchr(text, ':') ? "/128" : "/32");
		if (ip_parse_prefix(text, NULL, &p, NULL) == 0) {
			ip_format_prefix(&p, canonical);
			s = (struct slice){(const uint8_t *)canonical, strlen(canonical)};
		}
	}
	key_mix(k, s, false);
}

static struct key key_begin(unsigned place)
{
	return (struct key){0xcbf29ce484222325ull + place, 0x2545f4914f6cdd1dull * (place + 1)};
}

static const struct noun *noun_at(unsigned place)
{
	return place >= PLACE_NOUN && place < PLACE_NOUN + n_nouns ? &nouns[place - PLACE_NOUN] : NULL;
}

static bool noun_is(unsigned place, const char *service)
{
	return noun_at(place) && strcmp(noun_at(place)->service, service) == 0;
}

static struct slice field_of(struct slice message, uint32_t number)
{
	struct slice found = {};
	struct wire_field f;

	while (wire_next(&message, &f) > 0)
		if (f.number == number)
			found = f.bytes;
	return found;
}

// The key of an object; without that key of it whose number is `without` (0: whole).
static struct key key_of(unsigned place, struct slice object, unsigned without)
{
	const struct noun *noun = noun_at(place);
	struct key k = key_begin(place);
	unsigned i;

	for (i = 1; noun && i <= noun->n_keys; i++) {
		struct slice s = field_of(object, i);

		if (i == without)
			continue;
		if (noun->keys[i - 1] == NOUN_KEY_ADDRESS)
			key_mix_address(&k, s);
		else
			key_mix(&k, s, noun->keys[i - 1] == NOUN_KEY_MAC);
	}
	k.a |= 1;
	return k;
}

static bool key_equal(struct key a, struct key b)
{
	return a.a == b.a && a.b == b.b;
}

static unsigned place_find(const char *service, const char *method)
{
	unsigned i;

	if (strcmp(service, "corelane.v1.Flows") == 0 && strcmp(method, "Resize") == 0)
		return PLACE_CALL;
	for (i = 0; i < n_nouns; i++)
		if (strcmp(nouns[i].service, service) == 0)
			return PLACE_NOUN + i;
	return PLACE_RECORD;
}

static struct key parent_of(unsigned place, unsigned i, struct slice object)
{
	const struct noun *noun = noun_at(place);
	struct key k = {};

	if (noun == NULL || i >= noun->n_parents)
		return k;
	k = key_begin(place_find(noun->parents[i].service, "Add"));
	key_mix(&k, field_of(object, noun->parents[i].field), false);
	k.a |= 1;
	return k;
}

// --- The table of objects ---

static uint32_t *fold_slot(const struct fold *f, struct key k)
{
	size_t i = k.b & (f->n_slots - 1);

	while (f->slots[i] && !key_equal(f->objects[f->slots[i] - 1].key, k))
		i = (i + 1) & (f->n_slots - 1);
	return &f->slots[i];
}

static int fold_grow(struct fold *f)
{
	size_t room = f->room ? 2 * f->room : TABLE_LEAST, i;
	struct object *objects = realloc(f->objects, room * sizeof(*objects));

	if (objects == NULL)
		return -ENOMEM;
	f->objects = objects;
	f->room = room;
	free(f->slots);
	f->n_slots = 2 * room;
	f->slots = calloc(f->n_slots, sizeof(*f->slots));
	for (i = 0; f->slots && i < f->n; i++)
		*fold_slot(f, objects[i].key) = (uint32_t)i + 1;
	return f->slots ? 0 : -ENOMEM;
}

// Returns the object of this key, which is new if it was not there; NULL: no memory.
static struct object *fold_object(struct fold *f, unsigned place, struct key k)
{
	uint32_t *slot;

	if (f->n == f->room && fold_grow(f) < 0)
		return NULL;
	slot = fold_slot(f, k);
	if (*slot == 0) {
		f->objects[f->n] = (struct object){.key = k, .place = (uint8_t)place};
		*slot = (uint32_t)++f->n;
	}
	return &f->objects[*slot - 1];
}

static int fold_owner(struct fold *f, const char *owner)
{
	unsigned i;

	for (i = 0; i < f->n_owners; i++)
		if (strcmp(f->owners[i], owner) == 0)
			return (int)i;
	if (i == FOLD_OWNERS)
		return -E2BIG;
	f->owners[i] = strdup(owner);
	if (f->owners[i] == NULL)
		return -ENOMEM;
	f->n_owners++;
	return (int)i;
}

static void object_forget(struct object *o)
{
	free(o->own.data);
	free(o->fields.data);
	o->own = o->fields = (struct bytes){};
	o->made = 0;
	o->value = (struct slice){};
}

// --- Changes ---

static int fold_add(struct fold *f, unsigned place, struct slice value, int owner)
{
	struct object *o = fold_object(f, place, key_of(place, value, 0));
	unsigned i;

	if (o == NULL)
		return -ENOMEM;
	object_forget(o);
	o->made = f->change;
	o->value = value;
	o->owner = (uint8_t)owner;
	for (i = 0; i < NOUN_PARENTS; i++)
		o->parents[i] = parent_of(place, i, value);
	return 0;
}

static bool names_field(struct slice request, const ProtobufCMessageDescriptor *type, uint32_t number)
{
	const ProtobufCFieldDescriptor *d = protobuf_c_message_descriptor_get_field(type, number), *named;
	struct wire_field f;
	char name[64];

	while (wire_next(&request, &f) > 0) {
		if (f.number != 2 || f.bytes.n >= sizeof(name))
			continue;
		memcpy(name, f.bytes.data, f.bytes.n);
		name[f.bytes.n] = '\0';
		named = protobuf_c_message_descriptor_get_field_by_name(type, name);
		if (named == d || (named == NULL && d && d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) // its one choice
			return true;
	}
	return false;
}

// Copies the fields of a message that the request names, or those that it does not name.
static int copy_fields(struct bytes *to, struct slice from, struct slice request,
		       const ProtobufCMessageDescriptor *type, bool named)
{
	struct wire_field f;
	int ret;

	while ((ret = wire_next(&from, &f)) > 0)
		if (names_field(request, type, f.number) == named && bytes_add(to, f.whole) < 0)
			return -ENOMEM;
	return ret;
}

// Of an object that no request has made, the names of the changed fields are kept, each once.
static int add_names(struct bytes *names, struct slice request)
{
	struct wire_field f, have;
	bool found;

	while (wire_next(&request, &f) > 0) {
		struct slice rest = {names->data, names->n};

		for (found = false; !found && wire_next(&rest, &have) > 0;)
			found = have.whole.n == f.whole.n && memcmp(have.whole.data, f.whole.data, f.whole.n) == 0;
		if (f.number == 2 && !found && bytes_add(names, f.whole) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int fold_set(struct fold *f, unsigned place, const ProtobufCMessageDescriptor *request_type,
		    struct slice request, int owner)
{
	const ProtobufCMessageDescriptor *type = request_type->fields[0].descriptor;
	const ProtobufCFieldDescriptor *bridge = protobuf_c_message_descriptor_get_field_by_name(type, "bridge");
	struct slice change = field_of(request, 1);
	struct object *o = fold_object(f, place, key_of(place, change, 0));
	struct bytes merged = {};
	int ret;

	if (o == NULL)
		return -ENOMEM;
	if (request_type->n_fields == 1) // it replaces the object
		return fold_add(f, place, change, owner);
	if (o->made == 0)
		o->owner = (uint8_t)owner;
	if (noun_is(place, "corelane.v1.Ports") && bridge && names_field(request, type, bridge->id))
		o->moved = f->change;
	ret = o->made == 0 ? add_names(&o->fields, request) : 0;
	if (ret == 0 && o->value.data == NULL)
		ret = bytes_add(&merged, change);
	else if (ret == 0)
		ret = copy_fields(&merged, o->value, request, type, false);
	if (ret == 0 && o->value.data != NULL)
		ret = copy_fields(&merged, change, request, type, true);
	free(ret < 0 ? merged.data : o->own.data);
	if (ret < 0)
		return ret;
	if (merged.data == NULL && bytes_reserve(&merged, 1) < 0)
		return -ENOMEM;
	o->own = merged;
	o->value = (struct slice){merged.data, merged.n};
	return 0;
}

// The daemon chose the key that a request to delete leaves out: of the objects with the other keys it is the newest.
static struct object *object_without_key(struct fold *f, unsigned place, struct slice request)
{
	unsigned without = noun_at(place)->automatic;
	size_t i;

	for (i = f->n; i-- > 0;) {
		struct object *o = &f->objects[i];

		if (o->made && o->place == place &&
		    key_equal(key_of(place, o->value, without), key_of(place, request, without)))
			return o;
	}
	return NULL;
}

static int fold_del(struct fold *f, unsigned place, struct slice key, int owner)
{
	unsigned automatic = noun_at(place)->automatic;
	struct object *o = NULL;

	if (automatic && field_of(key, automatic).n == 0)
		o = object_without_key(f, place, key);
	if (o == NULL)
		o = fold_object(f, place, key_of(place, key, 0));
	if (o == NULL)
		return -ENOMEM;
	if (o->made == 0 && noun_is(place, "corelane.v1.Workers")) { // an option of the daemon has made it
		o->preset_gone = true;
		o->deleted = key;
		o->owner = (uint8_t)owner;
	}
	object_forget(o);
	o->gone = f->change;
	return 0;
}

static int fold_list(struct fold *f, unsigned place, struct slice request, int owner, bool del)
{
	struct wire_field field;
	int ret;

	while ((ret = wire_next(&request, &field)) > 0) {
		if (field.number != 1)
			continue;
		ret = del ? fold_del(f, place, field.bytes, owner) : fold_add(f, place, field.bytes, owner);
		if (ret < 0)
			return ret;
	}
	return ret;
}

// DelAll has a list of numbers, each the key of an object: field 1 of the request, packed or not.
static int fold_del_all(struct fold *f, unsigned place, struct slice request, int owner)
{
	uint8_t key[1 + 10] = {1 << 3}; // as the field of a request to delete one
	struct wire_field field;
	size_t i, n;
	int ret;

	while ((ret = wire_next(&request, &field)) > 0) {
		for (i = n = 0; field.number == 1 && i < field.bytes.n; i++) {
			if (n + 1 == sizeof(key))
				return -EBADMSG;
			key[++n] = field.bytes.data[i];
			if (key[n] & 0x80)
				continue;
			ret = fold_del(f, place, (struct slice){key, n + 1}, owner);
			if (ret < 0)
				return ret;
			n = 0;
		}
	}
	return ret;
}

static int fold_keep_record(struct fold *f, struct slice record)
{
	struct object *o = fold_object(f, PLACE_RECORD, (struct key){f->change, PLACE_RECORD});

	if (o == NULL)
		return -ENOMEM;
	o->made = f->change;
	o->value = record;
	return 0;
}

// Objects are slices of the record in the image, not of the unpacked change.
static int fold_change(struct fold *f, const Keep__Change *c, struct slice record)
{
	struct slice request = field_of(keep_file_message(record), KEEP_CHANGE_REQUEST);
	bool del = strcmp(c->method, "Del") == 0, add = strcmp(c->method, "Add") == 0;
	unsigned place = place_find(c->service, c->method);
	const struct noun *noun = noun_at(place);
	int owner = fold_owner(f, c->owner);

	if (owner < 0)
		return owner;
	f->change++;
	if (place == PLACE_CALL)
		return fold_add(f, place, request, owner);
	if (noun && ((noun->list && (add || del)) || (noun->add_all && strcmp(c->method, "AddAll") == 0)))
		return fold_list(f, place, request, owner, del);
	if (noun && strcmp(c->method, "DelAll") == 0)
		return fold_del_all(f, place, request, owner);
	if (noun && del)
		return fold_del(f, place, request, owner);
	if (noun && add)
		return fold_add(f, place, field_of(request, 1), owner);
	if (noun && noun->set && strcmp(c->method, noun->set) == 0 && api_request_type(c->service, c->method))
		return fold_set(f, place, api_request_type(c->service, c->method), request, owner);
	return fold_keep_record(f, record);
}

// --- What is written ---

static int fold_write(struct fold *f, const struct object *o, const char *service, const char *method,
		      struct slice request)
{
	Keep__Change c = KEEP__CHANGE__INIT;

	c.owner = f->owners[o->owner];
	c.service = (char *)(uintptr_t)service;
	c.method = (char *)(uintptr_t)method;
	c.request = (ProtobufCBinaryData){request.n, (uint8_t *)(uintptr_t)request.data};
	f->count++;
	return keep_file_pack(&f->out, &c);
}

static bool ended_with(const struct fold *f, const struct object *o, struct key parent)
{
	uint32_t slot = parent.a ? *fold_slot(f, parent) : 0;
	const struct object *p = slot ? &f->objects[slot - 1] : NULL;

	return p && (p->gone > o->made || (p->moved > o->made && noun_is(o->place, "corelane.v1.Macs")));
}

static bool object_exists(const struct fold *f, const struct object *o)
{
	if (o->made == 0)
		return o->fields.n > 0;
	return !ended_with(f, o, o->parents[0]) && !ended_with(f, o, o->parents[1]);
}

static int compare_objects(const void *a, const void *b, void *arg)
{
	const struct fold *f = arg;
	const struct object *x = &f->objects[*(const uint32_t *)a], *y = &f->objects[*(const uint32_t *)b];

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->made != y->made)
		return x->made < y->made ? -1 : 1;
	return x < y ? -1 : x > y;
}

// Writes the objects from list[0] on that one request can have. Returns their number.
static ssize_t fold_write_some(struct fold *f, const uint32_t *list, size_t n, struct bytes *request)
{
	const struct object *first = &f->objects[list[0]], *o = first;
	const struct noun *noun = noun_at(first->place);
	size_t i = 0;
	int ret = 0;

	request->n = 0;
	if (first->place == PLACE_RECORD) {
		f->count++;
		return bytes_add(&f->out, first->value) < 0 ? -ENOMEM : 1;
	}
	if (noun == NULL)
		return fold_write(f, first, "corelane.v1.Flows", "Resize", first->value) < 0 ? -ENOMEM : 1;
	do {
		ret = wire_add(request, 1, o->value);
		o = ++i < n ? &f->objects[list[i]] : NULL;
	} while (ret == 0 && o && (noun->list || (noun->add_all && first->made && o->made)) &&
		 o->place == first->place && o->owner == first->owner && i < BATCH_OBJECTS && request->n < BATCH_BYTES);
	if (ret == 0 && first->made == 0)
		ret = bytes_add(request, (struct slice){first->fields.data, first->fields.n});
	if (ret == 0)
		ret = fold_write(f, first, noun->service,
				 first->made == 0       ? noun->set
				 : i > 1 && !noun->list ? "AddAll"
							: "Add",
				 (struct slice){request->data, request->n});
	return ret < 0 ? ret : (ssize_t)i;
}

static int fold_write_all(struct fold *f, uint32_t *list)
{
	struct bytes request = {};
	size_t i, n = 0;
	ssize_t done = 0;

	for (i = 0; i < f->n && done >= 0; i++) {
		const struct object *o = &f->objects[i];

		if (o->preset_gone)
			done = fold_write(f, o, noun_at(o->place)->service, "Del", o->deleted);
		if (object_exists(f, o))
			list[n++] = (uint32_t)i;
	}
	qsort_r(list, n, sizeof(*list), compare_objects, f);
	for (i = 0; i < n && done >= 0; i += (size_t)done)
		done = fold_write_some(f, list + i, n - i, &request);
	free(request.data);
	return done < 0 ? (int)done : 0;
}

static void fold_free(struct fold *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		object_forget(&f->objects[i]);
	for (i = 0; i < f->n_owners; i++)
		free(f->owners[i]);
	free(f->objects);
	free(f->slots);
}

int keep_fold(const struct keep_image *image, bool with_last, struct keep_image *out)
{
	struct fold f = {};
	uint64_t i, n = image->count - (image->count && !with_last ? 1 : 0);
	size_t at = 0;
	uint32_t *list;
	int ret = fold_grow(&f);

	for (i = 0; i < n && ret == 0; i++) {
		struct slice record = keep_file_record(image, at);
		Keep__Change *c = keep_file_next(image, &at);

		ret = c ? fold_change(&f, c, record) : -ENOMEM;
		if (c)
			keep__change__free_unpacked(c, NULL);
	}
	list = calloc(f.n + 1, sizeof(*list));
	if (ret == 0)
		ret = keep_file_begin(&f.out);
	if (ret == 0)
		ret = list ? fold_write_all(&f, list) : -ENOMEM;
	*out = (struct keep_image){.data = f.out.data, .size = f.out.n, .end = f.out.n, .count = f.count};
	out->last = out->end;
	if (ret == 0 && !with_last && image->count) {
		f.out.n = out->end;
		ret = bytes_add(&f.out, (struct slice){image->data + image->last, image->end - image->last});
		*out = (struct keep_image){
			.data = f.out.data, .size = f.out.n, .end = f.out.n, .last = out->end, .count = f.count + 1};
	}
	free(list);
	fold_free(&f);
	if (ret < 0)
		keep_file_free(out);
	return ret;
}
