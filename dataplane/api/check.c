// SPDX-License-Identifier: Apache-2.0
#include "api/check.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/utf8.h"

// A message within the request. Its path is only written when something is refused.
struct place {
	const struct place *up; // NULL: the request itself
	const char *name;
	bool batch; // an object of the request's list
	uint32_t index;
	const ProtobufCMessage *msg;
	const struct message_limits *limits;
	bool partial; // only the keys and the fields that a Set names are checked
	bool set;
	char **names;
	size_t n_names;
};

#define FIELD_MAX sizeof(((struct error *)NULL)->field)

static int check_message(const struct place *at, struct error *err);

static const void *check_member(const struct place *at, size_t offset)
{
	return (const uint8_t *)at->msg + offset;
}

// --- Refusals. ---

static void place_append(char path[FIELD_MAX], const char *name, bool singular)
{
	size_t n = strlen(path), len = strlen(name);

	if (singular && len > 1 && name[len - 1] == 's')
		len--;
	snprintf(path + n, FIELD_MAX - n, "%s%.*s", n ? "." : "", (int)len, name);
}

static void place_path(const struct place *at, const char *field, char path[FIELD_MAX])
{
	path[0] = '\0';
	if (at->up != NULL) {
		place_path(at->up, NULL, path);
		place_append(path, at->name, at->up->batch);
	}
	if (field != NULL)
		place_append(path, field, false);
}

// Adds the position within a list: code that sets an error knows only the field.
static int check_refused(const struct place *at, struct error *err)
{
	for (; at != NULL; at = at->up)
		if (at->batch)
			err->index = at->index;
	return -err->code;
}

static int check_refuse(const struct place *at, const char *field, int code, const char *value, const char *valid,
			const char *text, struct error *err)
{
	char path[FIELD_MAX];

	place_path(at, field, path);
	error_set(err, code, path, value, valid, "%s", text);
	return check_refused(at, err);
}

static void list_append(char *list, size_t size, const char *word)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s", n ? ", " : "", word);
}

// --- Values. ---

static int check_value_number(const struct place *at, const struct field_limits *l, const char *field, uint64_t v,
			      uint64_t most, struct error *err)
{
	const struct number_limits n = {.min = l->min,
					.max = l->max ? l->max : most,
					.multiple_of = l->multiple_of,
					.power_of_two = (l->flags & LIMIT_POWER_OF_TWO) != 0};
	char path[FIELD_MAX];

	if (check_limits(field, v, &n, NULL) == 0)
		return 0;
	place_path(at, field, path);
	check_limits(path, v, &n, err);
	return check_refused(at, err);
}

static int check_value_double(const struct place *at, const struct field_limits *l, const char *field, double v,
			      struct error *err)
{
	char text[24], valid[48];

	if (v >= (double)l->min && v <= (double)l->max) // a number, too
		return 0;
	snprintf(text, sizeof(text), "%g", v);
	snprintf(valid, sizeof(valid), "%" PRIu64 " to %" PRIu64, l->min, l->max);
	return check_refuse(at, field, ERANGE, text, valid, "is out of range", err);
}

static int check_value_bytes(const struct place *at, const struct field_limits *l, const char *field, size_t n,
			     struct error *err)
{
	char text[24], valid[56];

	if (n >= l->min && n <= l->max)
		return 0;
	snprintf(text, sizeof(text), "%zu", n);
	snprintf(valid, sizeof(valid), "%" PRIu64 " to %" PRIu64 " bytes", l->min, l->max);
	return check_refuse(at, field, EINVAL, text, valid, "is not an accepted number of bytes", err);
}

// Length of the common beginning of an enum's names, up to an underscore. The command line leaves it out.
static size_t enum_prefix(const ProtobufCEnumDescriptor *d)
{
	const char *first = d->values[0].name;
	size_t n = strlen(first);
	unsigned i;

	for (i = 0; i < d->n_values; i++)
		while (strncmp(first, d->values[i].name, n) != 0)
			n--;
	while (n > 0 && first[n - 1] != '_')
		n--;
	return n;
}

static int check_value_enum(const struct place *at, const struct field_limits *l, const ProtobufCFieldDescriptor *f,
			    int v, struct error *err)
{
	const ProtobufCEnumDescriptor *d = f->descriptor;
	size_t prefix = enum_prefix(d);
	char text[16], word[64], valid[256] = "";
	unsigned i, j;

	if (v >= (int)l->min && protobuf_c_enum_descriptor_get_value(d, v) != NULL)
		return 0;
	for (i = 0; i < d->n_values; i++) {
		if (d->values[i].value < (int)l->min)
			continue;
		for (j = 0; j < sizeof(word) - 1 && d->values[i].name[prefix + j]; j++)
			word[j] = (char)tolower((unsigned char)d->values[i].name[prefix + j]);
		word[j] = '\0';
		list_append(valid, sizeof(valid), word);
	}
	snprintf(text, sizeof(text), "%d", v);
	return check_refuse(at, f->name, EINVAL, text, valid, "is not one of the values", err);
}

static int check_value_text(const struct place *at, const struct field_limits *l, const char *field, const char *text,
			    struct error *err)
{
	char path[FIELD_MAX], valid[32];

	if (l->max && strlen(text) > l->max) {
		snprintf(valid, sizeof(valid), "up to %" PRIu64 " bytes", l->max);
		return check_refuse(at, field, EINVAL, text, valid, "is too long", err);
	}
	if (l->notation == NOTATION_ANY || check_text(field, text, l->notation, NULL) == 0)
		return 0;
	place_path(at, field, path);
	check_text(path, text, l->notation, err);
	return check_refused(at, err);
}

static int check_within(const struct place *at, const struct field_limits *l, const char *name,
			const ProtobufCMessage *msg, struct error *err)
{
	struct place in = {
		.up = at, .name = name, .msg = msg, .limits = l->of, .partial = (l->flags & LIMIT_PARTIAL) != 0};
	const ProtobufCFieldDescriptor *names;

	if (l->of == NULL)
		return 0;
	names = in.partial ? protobuf_c_message_descriptor_get_field_by_name(at->limits->type, "fields") : NULL;
	in.set = names != NULL;
	if (in.set) {
		in.names = *(char ***)check_member(at, names->offset);
		in.n_names = *(const size_t *)check_member(at, names->quantifier_offset);
	}
	return check_message(&in, err);
}

// Checks one value: of a field, or one item of a list.
static int check_value(const struct place *at, const struct field_limits *l, const ProtobufCFieldDescriptor *f,
		       const void *v, struct error *err)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return check_value_text(at, l, f->name, *(char *const *)v, err);
	case PROTOBUF_C_TYPE_ENUM:
		return check_value_enum(at, l, f, *(const int *)v, err);
	case PROTOBUF_C_TYPE_UINT32:
		return check_value_number(at, l, f->name, *(const uint32_t *)v, UINT32_MAX, err);
	case PROTOBUF_C_TYPE_UINT64:
		return check_value_number(at, l, f->name, *(const uint64_t *)v, UINT64_MAX, err);
	case PROTOBUF_C_TYPE_DOUBLE:
		return check_value_double(at, l, f->name, *(const double *)v, err);
	case PROTOBUF_C_TYPE_BYTES:
		return check_value_bytes(at, l, f->name, ((const ProtobufCBinaryData *)v)->len, err);
	case PROTOBUF_C_TYPE_MESSAGE:
		return check_within(at, l, f->name, *(ProtobufCMessage *const *)v, err);
	default:
		return 0;
	}
}

// --- Fields. ---

static bool is_given(const ProtobufCFieldDescriptor *f, const void *v)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return **(char *const *)v != '\0';
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(void *const *)v != NULL;
	case PROTOBUF_C_TYPE_UINT64:
		return *(const uint64_t *)v != 0;
	case PROTOBUF_C_TYPE_BYTES:
		return ((const ProtobufCBinaryData *)v)->len != 0;
	case PROTOBUF_C_TYPE_ENUM:
	case PROTOBUF_C_TYPE_UINT32:
		return *(const uint32_t *)v != 0;
	default:
		return true;
	}
}

static int check_missing(const struct place *at, const struct field_limits *l, const ProtobufCFieldDescriptor *f,
			 const void *v, struct error *err)
{
	if (f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_MESSAGE)
		return check_value(at, l, f, v, err); // 0 may be a value
	return check_refuse(at, f->name, EINVAL, f->type == PROTOBUF_C_TYPE_STRING ? "" : NULL,
			    notation_texts[l->notation].valid, "is missing", err);
}

static int check_refuse_twice(const struct place *at, const char *field, const char *value, struct error *err)
{
	return check_refuse(at, field, EINVAL, value, "each once", "is given twice", err);
}

static int check_distinct_numbers(const struct place *at, const char *field, const uint32_t *list, size_t n,
				  struct error *err)
{
	char text[16];
	size_t i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < i && list[j] != list[i]; j++)
			;
		snprintf(text, sizeof(text), "%u", list[i]);
		if (j < i)
			return check_refuse_twice(at, field, text, err);
	}
	return 0;
}

static int check_compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// Sorts a copy: lists may have thousands of values. The method must detect two spellings of one value
// (10.0.0.1/32, 10.0.0.1) itself.
static int check_distinct_texts(const struct place *at, const char *field, char *const *list, size_t n,
				struct error *err)
{
	char **sorted = calloc(n + 1, sizeof(*sorted));
	int ret = 0;
	size_t i;

	if (sorted == NULL)
		return check_refuse(at, field, ENOMEM, NULL, NULL, "no memory to compare the values", err);
	for (i = 0; i < n; i++)
		sorted[i] = list[i];
	qsort(sorted, n, sizeof(*sorted), check_compare_texts);
	for (i = 1; i < n && ret == 0; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			ret = check_refuse_twice(at, field, sorted[i], err);
	free(sorted);
	return ret;
}

static int check_distinct(const struct place *at, const ProtobufCFieldDescriptor *f, const void *list, size_t n,
			  struct error *err)
{
	return f->type == PROTOBUF_C_TYPE_STRING ? check_distinct_texts(at, f->name, list, n, err)
						 : check_distinct_numbers(at, f->name, list, n, err);
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_UINT64:
		return sizeof(uint64_t);
	default:
		return sizeof(uint32_t); // all other types that have limits
	}
}

static int check_list(const struct place *at, const struct field_limits *l, const ProtobufCFieldDescriptor *f,
		      bool needed, struct error *err)
{
	size_t n = *(const size_t *)check_member(at, f->quantifier_offset), i;
	const uint8_t *list = *(const uint8_t *const *)check_member(at, f->offset);
	struct place in = *at;
	char text[24], valid[32];
	int ret = 0;

	snprintf(valid, sizeof(valid), needed ? "1 to %u" : "up to %u", l->items);
	snprintf(text, sizeof(text), "%zu", n);
	if (l->items && n > l->items)
		return check_refuse(at, f->name, ERANGE, text, valid, "there are too many", err);
	if (n == 0 && needed)
		return check_refuse(at, f->name, EINVAL, NULL, valid, "is missing", err);
	in.batch = at->up == NULL && l->of != NULL;
	for (i = 0; i < n && ret == 0; i++) {
		in.index = (uint32_t)i;
		ret = check_value(&in, l, f, list + i * size_of(f), err);
	}
	return ret == 0 && l->flags & LIMIT_DISTINCT ? check_distinct(at, f, list, n, err) : ret;
}

static bool is_named(const struct place *at, const char *name)
{
	size_t i;

	for (i = 0; i < at->n_names; i++)
		if (strcmp(at->names[i], name) == 0)
			return true;
	return false;
}

static uint32_t check_chosen(const struct place *at, const ProtobufCFieldDescriptor *f)
{
	return *(const uint32_t *)check_member(at, f->quantifier_offset);
}

static int check_field(const struct place *at, const struct field_limits *l, struct error *err)
{
	const ProtobufCFieldDescriptor *f = &at->limits->type->fields[l->field];
	bool oneof = (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
	bool needed = (l->flags & LIMIT_REQUIRED) != 0;
	const void *v = check_member(at, f->offset);

	if (at->partial && (l->flags & LIMIT_KEY) == 0 && !oneof && !is_named(at, f->name))
		return 0;
	if (oneof && check_chosen(at, f) != f->id)
		return 0;
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return check_list(at, l, f, needed, err);
	if (is_given(f, v) || (oneof && f->type != PROTOBUF_C_TYPE_STRING))
		return check_value(at, l, f, v, err);
	return needed ? check_missing(at, l, f, v, err) : 0;
}

// --- Messages. ---

static int check_choice(const struct place *at, const struct choice_limits *c, struct error *err)
{
	const ProtobufCMessageDescriptor *type = at->limits->type;
	const ProtobufCFieldDescriptor *first = &type->fields[c->field], *f;
	char valid[256] = "";

	if (check_chosen(at, first) != 0 || (at->partial && !is_named(at, c->name)))
		return 0;
	for (f = type->fields; f < type->fields + type->n_fields; f++)
		if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF && f->quantifier_offset == first->quantifier_offset)
			list_append(valid, sizeof(valid), f->name);
	return check_refuse(at, c->name, EINVAL, NULL, valid, "is missing", err);
}

// Checks the names of the fields that a Set changes.
static int check_names(const struct place *at, struct error *err)
{
	const char *const *s;
	char valid[512] = "";
	size_t i;

	for (s = at->limits->settable; *s; s++)
		list_append(valid, sizeof(valid), *s);
	if (at->n_names == 0)
		return error_set(err, EINVAL, "fields", NULL, valid, "nothing to change");
	for (i = 0; i < at->n_names; i++) {
		for (s = at->limits->settable; *s && strcmp(*s, at->names[i]) != 0; s++)
			;
		if (*s == NULL)
			return error_set(err, EINVAL, "fields", at->names[i], valid, "cannot be set");
	}
	return 0;
}

static int check_message(const struct place *at, struct error *err)
{
	unsigned i;
	int ret = at->set ? check_names(at, err) : 0;

	for (i = 0; i < at->limits->n_fields && ret == 0; i++)
		ret = check_field(at, &at->limits->fields[i], err);
	for (i = 0; i < at->limits->n_choices && ret == 0; i++)
		ret = check_choice(at, &at->limits->choices[i], err);
	return ret;
}

// --- Texts. ---

static int check_utf8(const ProtobufCMessage *msg, struct error *err);

static int check_utf8_value(const ProtobufCFieldDescriptor *f, const void *value, struct error *err)
{
	if (value == NULL)
		return 0;
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return check_utf8(value, err);
	return utf8_valid(value) ? 0 : error_set(err, EINVAL, f->name, value, NULL, "is not UTF-8");
}

static int check_utf8_field(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f, struct error *err)
{
	const uint8_t *base = (const uint8_t *)msg;
	const void *const *values = (const void *const *)(base + f->offset);
	size_t i, n = 1;
	int ret = 0;

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		n = *(const size_t *)(base + f->quantifier_offset);
		values = *values;
	} else if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
		   *(const uint32_t *)(base + f->quantifier_offset) != f->id) {
		n = 0; // the oneof holds another member
	}
	for (i = 0; i < n && ret == 0; i++)
		ret = check_utf8_value(f, values[i], err);
	return ret;
}

// Refuses a message with a text, at any depth, that is not UTF-8.
static int check_utf8(const ProtobufCMessage *msg, struct error *err)
{
	const ProtobufCFieldDescriptor *f;
	unsigned i;
	int ret = 0;

	for (i = 0; i < msg->descriptor->n_fields && ret == 0; i++) {
		f = &msg->descriptor->fields[i];
		if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
			ret = check_utf8_field(msg, f, err);
	}
	return ret;
}

int api_check(const ProtobufCMessage *request, struct error *err)
{
	struct place at = {.msg = request};
	unsigned i;
	int ret = check_utf8(request, err);

	for (i = 0; i < n_api_requests; i++)
		if (api_requests[i]->type == request->descriptor)
			at.limits = api_requests[i];
	return ret == 0 && at.limits ? check_message(&at, err) : ret;
}
