/* SPDX-License-Identifier: MIT */
/*
 * Joins the two events of a call. Both begin with the call's number, which the stubs made (trampoline/.../emit/pair.h): no other
 * call of the process has it, so nothing is paired by guess. An entry whose return never comes (longjmp, an exception, a return
 * that was lost) stays until there are too many. The joined payload: the mask, the entry's fields, those of the return; without
 * the two numbers.
 */
#include "base/buf.h"
#include "base/text_hash.h"
#include "output/events/writer.h"

#include <stdlib.h>
#include <string.h>

enum { MASK_BITS = 64 };
#define OPEN_MOST   65536u
#define NUMBER_SIZE sizeof(uint64_t)

struct key {
	uint64_t number;
	uint32_t pid, class;
};
struct open_call {
	struct key key;
	UT_hash_handle hh;
	size_t len;
	uint8_t payload[];
};

struct joined { /* of a return's class */
	size_t entry; /* its class */
	size_t nargs;
	struct dp_fields fields; /* the names and types are borrowed */
	struct dp_decoder args, rest;
	char *renamed[MASK_BITS]; /* names of fields that are not the class's own; or NULL */
	bool masked;
};

struct dp_joiner {
	const struct dp_event_class *from;
	size_t n;
	struct dp_event_class *class;
	struct joined *joined; /* .fields.field is NULL for classes that are not joined */
	struct open_call *open; /* in the order of the entries */
	struct dp_joiner_counts counts;
	struct dp_buf payload;
};

/* ---- classes --------------------------------------------------------------------------------------------------------------- */

/* In traces of several runs a name may occur more than once; a run has the entries right before their returns. */
static size_t find_entry(const struct dp_joiner *c, size_t of)
{
	for (size_t i = of; c->from[of].entry && i-- > 0;)
		if (!strcmp(c->from[i].name, c->from[of].entry))
			return i;
	return c->n;
}

static bool has_number(const struct dp_fields *fields)
{
	return fields->n && !strcmp(fields->field[0].name, DP_NAME_CALL) && fields->field[0].size == NUMBER_SIZE;
}

/* Any argument may be missing: all of them are, where the entry was lost. */
static struct dp_field argument(const struct dp_field *f)
{
	struct dp_field copy = *f;
	if (f->source != DP_SRC_NONE)
		copy.source = DP_SRC_MEMORY;
	return copy;
}

static bool is_taken(const struct joined *j, const char *name)
{
	for (size_t k = 0; k < j->fields.n; k++)
		if (!strcmp(j->fields.field[k].name, name))
			return true;
	return false;
}

/* The field after the last one may have the name of an argument: x_return is x at the return. */
static struct dp_error *tell_apart(struct joined *j)
{
	struct dp_field *f = &j->fields.field[j->fields.n];
	char *name = f->name, **own = &j->renamed[j->fields.n], number[16] = "";
	for (unsigned i = 2; is_taken(j, f->name); i++) {
		free(*own);
		if (asprintf(own, "%s_return%s", name, number) < 0)
			*own = NULL;
		if (!*own)
			return dp_error_nomem();
		snprintf(number, sizeof(number), "_%u", i);
		f->name = *own;
		f->label = f->label ? f->label : name;
	}
	return NULL;
}

static void fini_joined(struct joined *j)
{
	for (size_t k = 0; k < MASK_BITS; k++)
		free(j->renamed[k]);
	free(j->fields.field);
	*j = (struct joined){0};
}

static struct dp_error *join(struct dp_joiner *c, size_t i)
{
	struct joined *j = &c->joined[i];
	const size_t entry = find_entry(c, i);
	fini_joined(j);
	j->entry = entry;
	c->class[i] = c->from[i];
	if (entry == c->n || !has_number(c->from[entry].fields) || !has_number(c->from[i].fields))
		return NULL;
	const struct dp_fields *args = c->from[entry].fields, *rest = c->from[i].fields;
	j->nargs = args->n - 1;
	if (args->n + rest->n - 2 > MASK_BITS)
		return NULL;
	j->fields.field = calloc(args->n + rest->n, sizeof(*j->fields.field));
	if (!j->fields.field)
		return dp_error_nomem();
	for (size_t k = 1; k < args->n; k++)
		j->fields.field[j->fields.n++] = argument(&args->field[k]);
	for (size_t k = 1; k < rest->n; k++) {
		j->fields.field[j->fields.n] = rest->field[k];
		DP_TRY(tell_apart(j));
		j->fields.n++;
	}
	struct dp_decoder all;
	dp_decoder_init(&all, &j->fields);
	dp_decoder_init(&j->args, args);
	dp_decoder_init(&j->rest, rest);
	j->masked = all.masked;
	c->class[i].fields = &j->fields;
	c->class[i].is_call = true;
	c->class[i].nargs = j->nargs;
	return NULL;
}

static struct dp_error *join_all(struct dp_joiner *c)
{
	for (size_t i = 0; i < c->n; i++)
		DP_TRY(join(c, i));
	for (size_t i = 0; i < c->n; i++)
		if (c->class[i].is_call)
			c->class[c->joined[i].entry].joined = true;
	return NULL;
}

static bool any_joined(const struct dp_joiner *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->class[i].entry)
			return true;
	return false;
}

struct dp_error *dp_joiner_create(const struct dp_event_class *classes, size_t n, struct dp_joiner **ret)
{
	struct dp_joiner *c = calloc(1, sizeof(*c));
	*ret = NULL;
	if (!c)
		return dp_error_nomem();
	dp_buf_init(&c->payload);
	c->from = classes;
	c->n = n;
	c->class = calloc(n + 1, sizeof(*c->class));
	c->joined = calloc(n + 1, sizeof(*c->joined));
	struct dp_error *err = c->class && c->joined ? join_all(c) : dp_error_nomem();
	if (err || !any_joined(c))
		dp_joiner_destroy(c);
	else
		*ret = c;
	return err;
}

static void forget(struct dp_joiner *c, struct open_call *o)
{
	HASH_DEL(c->open, o);
	free(o);
}

struct dp_joiner *dp_joiner_destroy(struct dp_joiner *c)
{
	if (!c)
		return NULL;
	while (c->open)
		forget(c, c->open);
	for (size_t i = 0; c->joined && i < c->n; i++)
		fini_joined(&c->joined[i]);
	dp_buf_fini(&c->payload);
	free(c->joined);
	free(c->class);
	free(c);
	return NULL;
}

const struct dp_event_class *dp_joiner_classes(const struct dp_joiner *c)
{
	return c->class;
}

struct dp_error *dp_joiner_known(struct dp_joiner *c, unsigned i)
{
	return i < c->n ? join_all(c) : NULL;
}

/* ---- events ---------------------------------------------------------------------------------------------------------------- */

struct half { /* a payload in its parts */
	uint64_t mask;
	const uint8_t *fields;
	size_t len;
	uint64_t number;
};

/* False: it is too short, which a checked payload is not. */
static bool take_half(const struct dp_decoder *d, const uint8_t *payload, size_t len, struct half *ret)
{
	const size_t mask = d->masked ? DP_MASK_BYTES : 0;
	*ret = (struct half){0};
	if (len < mask + NUMBER_SIZE)
		return false;
	if (mask)
		memcpy(&ret->mask, payload, sizeof(ret->mask));
	ret->mask = (ret->mask & d->may_fault) >> 1; /* the number's bit */
	memcpy(&ret->number, payload + mask, sizeof(ret->number));
	ret->fields = payload + mask + NUMBER_SIZE;
	ret->len = len - mask - NUMBER_SIZE;
	return true;
}

static struct open_call *find_open(struct dp_joiner *c, const struct dp_event *e, size_t class, uint64_t number)
{
	const struct key key = {number, (uint32_t)e->pid, (uint32_t)class};
	struct open_call *o = NULL;
	if (number)
		HASH_FIND(hh, c->open, &key, sizeof(key), o);
	return o;
}

static void open_call(struct dp_joiner *c, const struct dp_event *e, uint64_t number)
{
	struct open_call *old = find_open(c, e, e->probe, number), *o = malloc(sizeof(*o) + e->len);
	if (old)
		forget(c, old);
	if (!o || !number) {
		free(o);
		c->counts.forgotten++;
		return;
	}
	if (HASH_COUNT(c->open) >= OPEN_MOST) {
		forget(c, c->open);
		c->counts.forgotten++;
	}
	memset(&o->key, 0, sizeof(o->key));
	o->key = (struct key){number, (uint32_t)e->pid, e->probe};
	o->len = e->len;
	memcpy(o->payload, e->payload, e->len);
	HASH_ADD(hh, c->open, key, sizeof(o->key), o);
	if (!o->hh.tbl)
		free(o);
}

/* Fields of the smallest size, for arguments that are unknown. */
static size_t empty_size(const struct dp_field *f)
{
	return f->type == DP_TYPE_STRING || f->type == DP_TYPE_BACKTRACE ? 1 : f->size;
}

static void put_args(struct dp_joiner *c, const struct joined *j, const struct half *args)
{
	if (args) {
		dp_buf_put(&c->payload, args->fields, args->len);
		return;
	}
	for (size_t i = 0; i < j->nargs; i++)
		dp_buf_grow(&c->payload, empty_size(&j->fields.field[i]));
}

static uint64_t mask_of(const struct joined *j, const struct half *args, const struct half *rest)
{
	const uint64_t all = j->nargs >= MASK_BITS ? UINT64_MAX : (UINT64_C(1) << j->nargs) - 1;
	return (args ? args->mask & all : all) | (j->nargs < MASK_BITS ? rest->mask << j->nargs : 0);
}

static bool join_event(struct dp_joiner *c, const struct dp_event *e, struct dp_event *ret)
{
	const struct joined *j = &c->joined[e->probe];
	struct half args, rest;
	if (!take_half(&j->rest, e->payload, e->len, &rest))
		return false;
	struct open_call *o = find_open(c, e, j->entry, rest.number);
	const bool seen = o && take_half(&j->args, o->payload, o->len, &args);
	const uint64_t mask = mask_of(j, seen ? &args : NULL, &rest);
	c->payload.len = 0;
	if (j->masked)
		dp_buf_put(&c->payload, &mask, sizeof(mask));
	put_args(c, j, seen ? &args : NULL);
	dp_buf_put(&c->payload, rest.fields, rest.len);
	if (o)
		forget(c, o);
	c->counts.unseen += !seen;
	*ret = *e;
	ret->unseen = !seen;
	ret->payload = c->payload.data;
	ret->len = c->payload.len;
	return !c->payload.failed;
}

bool dp_joiner_event(struct dp_joiner *c, const struct dp_event *e, struct dp_event *ret)
{
	struct dp_decoder d;
	struct half half;
	if (c->class[e->probe].is_call)
		return join_event(c, e, ret);
	*ret = *e;
	if (!c->class[e->probe].joined)
		return true;
	dp_decoder_init(&d, c->from[e->probe].fields);
	if (take_half(&d, e->payload, e->len, &half))
		open_call(c, e, half.number);
	return false;
}

void dp_joiner_counts(const struct dp_joiner *c, struct dp_joiner_counts *ret)
{
	*ret = c->counts;
	ret->open = HASH_COUNT(c->open) + c->counts.forgotten;
}
