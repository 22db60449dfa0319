/* SPDX-License-Identifier: MIT */
#include "output/trace/layout.h"

#include "agent/abi.h"
#include "output/ctf/sidecar.h"
#include "probes/expr/syntax/printf_form.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MOST 65536u

static struct dp_error *bad(const char *what)
{
	return dp_error(DP_TAG_BAD_TRACE, "the trace's " DP_SIDECAR_DIR "/" DP_SIDECAR_CLASSES " is damaged: %s", what);
}

/* A copy in the arena; NULL if there is no such text. */
static char *text_of(struct dp_trace_layout *l, const json_t *from, const char *key)
{
	const json_t *value = json_object_get(from, key);
	return json_is_string(value) ? dp_arena_copy(&l->arena, json_string_value(value), json_string_length(value)) : NULL;
}

/* ---- fields ---------------------------------------------------------------------------------------------------------------- */

static struct dp_error *read_names(struct dp_trace_layout *l, const json_t *from, struct dp_field *f)
{
	const json_t *names = json_object_get(from, "names");
	const size_t n = json_array_size(names);
	if (!names)
		return NULL;
	if (!json_is_array(names) || n > NAMES_MOST || (f->type != DP_TYPE_INT && f->type != DP_TYPE_UINT))
		return bad("the names of a field's values");
	struct dp_enumeration *e = dp_arena_alloc(&l->arena, sizeof(*e));
	struct dp_enumerator *item = dp_arena_alloc(&l->arena, n * sizeof(*item) + 1);
	for (size_t i = 0; e && item && i < n; i++) {
		const json_t *pair = json_array_get(names, i), *name = json_array_get(pair, 0), *value = json_array_get(pair, 1);
		if (!json_is_string(name) || !json_is_integer(value))
			return bad("the names of a field's values");
		item[i].name = dp_arena_copy(&l->arena, json_string_value(name), json_string_length(name));
		item[i].value = (uint64_t)json_integer_value(value);
	}
	if (l->arena.failed)
		return dp_error_nomem();
	*e = (struct dp_enumeration){.item = item, .n = n, .flags = json_is_true(json_object_get(from, "flags"))};
	f->names = e;
	return NULL;
}

static bool is_power(uint32_t size, uint32_t least)
{
	return size >= least && size <= 8 && !(size & (size - 1));
}

/* Sizes as the recorder makes them: what decodes payloads relies on them. */
static bool fits(const struct dp_field *f)
{
	switch (f->type) {
	case DP_TYPE_INT:
	case DP_TYPE_UINT:
		return is_power(f->size, 1) && !dp_display_is_wide(f->display);
	case DP_TYPE_FLOAT:
		return is_power(f->size, 4);
	case DP_TYPE_POINTER:
		return f->size == 8;
	case DP_TYPE_BYTES:
		return f->size && f->size <= DP_RECORD_MAX && (!dp_display_is_wide(f->display) || f->size == 16);
	case DP_TYPE_STRING:
		return f->size && f->size <= DP_RECORD_MAX;
	case DP_TYPE_BACKTRACE:
		return f->size <= UINT8_MAX;
	}
	return false;
}

static void set_source(struct dp_trace_layout *l, const json_t *from, struct dp_field *f)
{
	f->source = f->type == DP_TYPE_BACKTRACE ? DP_SRC_UNWIND : DP_SRC_REG;
	if (json_is_true(json_object_get(from, "may_fail")))
		f->source = DP_SRC_MEMORY;
	f->absent = text_of(l, from, "absent");
	if (f->absent)
		f->source = DP_SRC_NONE;
}

static struct dp_error *read_field(struct dp_trace_layout *l, const json_t *from, struct dp_field *f)
{
	const json_t *type = json_object_get(from, "type"), *size = json_object_get(from, "size"),
	             *display = json_object_get(from, "display");
	const json_int_t t = json_integer_value(type), s = json_integer_value(size), d = json_integer_value(display);
	if (!json_is_integer(type) || t < 0 || t > DP_TYPE_BACKTRACE || !json_is_integer(size) || s < 0 || s > UINT16_MAX ||
	    d < 0 || d > DP_DISPLAY_DURATION)
		return bad("the type of a field");
	f->name = text_of(l, from, "name");
	f->label = text_of(l, from, "label");
	f->type = (enum dp_type)t;
	f->size = (uint32_t)s;
	f->display = (enum dp_display)d;
	f->hex = json_is_true(json_object_get(from, "hex"));
	set_source(l, from, f);
	if (!f->name || !fits(f) || (f->type == DP_TYPE_BACKTRACE && f->source != DP_SRC_UNWIND))
		return bad("a field");
	return read_names(l, from, f);
}

static struct dp_error *read_fields(struct dp_trace_layout *l, const json_t *from, struct dp_fields *ret)
{
	const json_t *fields = json_object_get(from, "fields");
	const size_t n = json_array_size(fields);
	if (!json_is_array(fields) || n > DP_RECORD_MAX)
		return bad("the fields of a class");
	ret->field = dp_arena_alloc(&l->arena, n * sizeof(*ret->field) + 1);
	if (!ret->field)
		return dp_error_nomem();
	for (size_t i = 0; i < n; i++)
		DP_TRY(read_field(l, json_array_get(fields, i), &ret->field[i]));
	ret->n = n;
	return dp_fields_max_payload(ret) <= DP_RECORD_MAX ? NULL : bad("a class with events that are too large");
}

/* ---- classes --------------------------------------------------------------------------------------------------------------- */

/* Which field is which argument of the format. */
static struct dp_error *bind_form(struct dp_event_class *class, struct dp_printf_form *form)
{
	if (form->n > class->fields->n)
		return bad("a format without its fields");
	for (size_t i = 0; i < form->n; i++) {
		form->field[i] = (unsigned)i;
		DP_TRY(dp_printf_check(form, i, &class->fields->field[i]));
	}
	return NULL;
}

static struct dp_error *read_call(struct dp_trace_layout *l, const json_t *from, struct dp_event_class *class)
{
	const json_t *nr = json_object_get(from, "call");
	const json_int_t number = json_integer_value(nr);
	struct dp_call_at *call = nr ? dp_arena_alloc(&l->arena, sizeof(*call)) : NULL;
	if (!nr)
		return NULL;
	if (!call)
		return dp_error_nomem();
	if (!json_is_integer(nr) || number < DP_CALL_ANY || number >= DP_CALL_END)
		return bad("the system call of a class");
	*call = (struct dp_call_at){.is = true, .exit = json_is_true(json_object_get(from, "call_exit")), .nr = (int32_t)number};
	class->call = call;
	return NULL;
}

static struct dp_error *read_class(struct dp_trace_layout *l, const json_t *from, size_t i)
{
	struct dp_event_class *c = &l->class[i];
	struct dp_printf_form *form = NULL;
	*c = (struct dp_event_class){.name = text_of(l, from, "name"),
	                             .title = text_of(l, from, "title"),
	                             .spec = text_of(l, from, "spec"),
	                             .entry = text_of(l, from, "entry"),
	                             .fields = &l->fields[i]};
	l->n = i + 1;
	if (!c->name)
		return bad("a class without a name");
	DP_TRY(read_fields(l, from, &l->fields[i]));
	DP_TRY(read_call(l, from, c));
	const char *format = json_string_value(json_object_get(from, "format"));
	if (!format)
		return NULL;
	DP_TRY(dp_printf_parse(format, &form));
	c->form = form;
	return bind_form(c, form);
}

static bool read_uuid(const json_t *from, uint8_t uuid[16])
{
	const char *text = json_string_value(json_object_get(from, "uuid"));
	if (!text || strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
		return false;
	for (size_t i = 0; i < 16; i++) {
		const char digits[3] = {text[2 * i], text[2 * i + 1], 0};
		uuid[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return true;
}

static struct dp_error *read_head(struct dp_trace_layout *l, const json_t *from)
{
	const json_t *version = json_object_get(from, "dynprobe"), *offset = json_object_get(from, "clock_offset_ns");
	const char *boot = json_string_value(json_object_get(from, "boot"));
	if (!json_is_integer(version))
		return bad("it has no version");
	if (json_integer_value(version) != DP_SIDECAR_VERSION)
		return dp_error(DP_TAG_BAD_TRACE,
		                "the trace was made by a later dynprobe (version %lld of its description): use that",
		                (long long)json_integer_value(version));
	if (!read_uuid(from, l->uuid) || !json_is_integer(offset))
		return bad("its uuid or clock");
	l->clock_offset = json_integer_value(offset);
	snprintf(l->boot, sizeof(l->boot), "%s", boot ? boot : "");
	return NULL;
}

static struct dp_error *read_all(struct dp_trace_layout *l, const json_t *from)
{
	const json_t *classes = json_object_get(from, "classes");
	const size_t n = json_array_size(classes);
	DP_TRY(read_head(l, from));
	if (!json_is_array(classes) || n >= UINT16_MAX)
		return bad("its classes");
	l->class = calloc(n + 1, sizeof(*l->class));
	l->fields = calloc(n + 1, sizeof(*l->fields));
	if (!l->class || !l->fields)
		return dp_error_nomem();
	for (size_t i = 0; i < n; i++)
		DP_TRY(read_class(l, json_array_get(classes, i), i));
	DP_TRY(dp_trace_layout_finish(l));
	return l->arena.failed ? dp_error_nomem() : NULL;
}

struct dp_error *dp_trace_layout_parse(const char *text, size_t len, struct dp_trace_layout *ret)
{
	json_error_t why;
	struct dp_trace_layout l = {0};
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	struct dp_error *err = json ? read_all(&l, json) : bad(why.text);
	json_decref(json);
	if (err)
		dp_trace_layout_fini(&l);
	else
		*ret = l;
	return err;
}

void dp_trace_layout_fini(struct dp_trace_layout *l)
{
	for (size_t i = 0; i < l->n; i++)
		dp_printf_destroy((struct dp_printf_form *)l->class[i].form);
	free(l->class);
	free(l->fields);
	free(l->decoder);
	dp_arena_fini(&l->arena);
	*l = (struct dp_trace_layout){0};
}

/* ---- lengths --------------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_trace_layout_finish(struct dp_trace_layout *l)
{
	free(l->decoder);
	l->decoder = calloc(l->n + 1, sizeof(*l->decoder));
	if (!l->decoder)
		return dp_error_nomem();
	for (size_t i = 0; i < l->n; i++)
		dp_decoder_init(&l->decoder[i], l->class[i].fields);
	return NULL;
}

size_t dp_trace_layout_length(const struct dp_trace_layout *l, unsigned i, const uint8_t *payload, size_t left)
{
	return dp_decoder_length(&l->decoder[i], payload, left);
}
