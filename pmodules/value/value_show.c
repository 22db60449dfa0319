/* SPDX-License-Identifier: MIT */
/* Turns values into snapshot variables, with limits on depth, elements and string length; cycles of pointers are cut. */
#include "pmodules/value/value_show.h"
#include "base/buf.h"
#include "probes/image/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRING_MAX = 65536, OWNERS_MAX = 256 };

struct dp_limits dp_limits_filled(const struct dp_limits *limits)
{
	struct dp_limits l = limits ? *limits : (struct dp_limits){0};
	l.depth = l.depth ? l.depth : 2;
	l.fault_depth = l.fault_depth ? l.fault_depth : 4;
	l.nesting = l.nesting ? l.nesting : 16;
	l.nesting = l.nesting < 64 ? l.nesting : 64;
	l.elements = l.elements ? l.elements : 128;
	l.string = l.string ? l.string : 256;
	l.string = l.string < STRING_MAX ? l.string : STRING_MAX;
	l.variables = l.variables ? l.variables : 4096;
	l.frames = l.frames ? l.frames : 512;
	l.bytes = l.bytes ? l.bytes : UINT64_C(64) << 20;
	return l;
}

void dp_show_init(struct dp_show *show, struct dp_debug_ctx *w, const struct dp_limits *limits, struct dp_snapshot *s)
{
	*show = (struct dp_show){
	        .w = w, .s = s, .limits = dp_limits_filled(limits), .keeps_values = true, .is_copy = !strcmp(s->mode, "fork")};
	show->budget = show->limits.variables;
	dp_debug_ctx_begin(w, s);
}

struct level {
	unsigned depth, nesting;
};

struct dp_show_later {
	struct dp_value *parent; /* the pointer's value; or NULL */
	const struct dp_ctype *type;
	struct level at;
	struct dp_snap_variable *into;
};

static void show(struct dp_show *x, struct dp_value *v, struct level at, struct dp_snap_variable *into);

static void refuse(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into, const char *why)
{
	into->state = v->where == DP_VALUE_MEMORY ? DP_VAR_UNREADABLE : DP_VAR_ABSENT;
	into->why = dp_snapshot_text(x->s, why);
}

/* Adds a child; NULL: a limit is reached. */
static struct dp_snap_variable *child(struct dp_show *x, struct dp_snap_variable *of)
{
	if (!x->budget || x->s->arena.total > x->limits.bytes) {
		x->is_cut = true;
		return NULL;
	}
	x->budget--;
	return dp_snapshot_variable(x->s, &of->children, of);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------ */

static void show_wide(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	unsigned __int128 u = 0;
	char text[48], *at = text + sizeof(text);
	const char *why = NULL;
	if (!dp_value_fetch(v, &u, sizeof(u), &why)) {
		refuse(x, v, into, why);
		return;
	}
	const bool negative = v->type->is_signed && (u >> 127);
	into->number = (uint64_t)u;
	if (negative)
		u = 0 - u;
	*--at = 0;
	do {
		*--at = (char)('0' + (int)(u % 10));
		u /= 10;
	} while (u);
	if (negative)
		*--at = '-';
	into->text = dp_snapshot_text(x->s, at);
}

static void show_int(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	const char *why = NULL;
	into->is_bool = v->type->is_bool;
	into->is_char = v->type->is_char;
	if (!dp_value_scalar(v, &into->number, &why))
		refuse(x, v, into, why);
}

/* Like gdb: single bits, or disjoint groups of bits. */
static bool is_flags(const struct dp_ctype *t, const struct dp_enumerator *name, size_t n)
{
	uint64_t seen = 0;
	for (size_t i = 0; i < n; i++) {
		const uint64_t v = name[i].value;
		if ((t->is_signed && (int64_t)v < 0) || (v && v & seen))
			return false;
		seen |= v;
	}
	return seen > 2;
}

static void show_enum(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	const struct dp_enumerator *name;
	const char *why = NULL;
	struct dp_buf text;
	if (!dp_value_scalar(v, &into->number, &why)) {
		refuse(x, v, into, why);
		return;
	}
	const size_t n = dp_ctype_enumerators(v->type, &name);
	for (size_t i = 0; i < n; i++)
		if (name[i].value == into->number) {
			into->text = dp_snapshot_text(x->s, name[i].name);
			return;
		}
	uint64_t left = into->number;
	if (!left || !is_flags(v->type, name, n))
		return;
	dp_buf_init(&text);
	for (size_t i = 0; i < n; i++)
		if (name[i].value && (left & name[i].value) == name[i].value) {
			dp_buf_printf(&text, "%s%s", text.len ? " | " : "", name[i].name);
			left &= ~name[i].value;
		}
	if (text.len && left)
		dp_buf_printf(&text, " | 0x%llx", (unsigned long long)left);
	if (text.len)
		into->text = dp_snapshot_text(x->s, dp_buf_str(&text));
	dp_buf_fini(&text);
}

static double real_of(const uint8_t *bytes, uint64_t size, long double *wide)
{
	float f;
	double d;
	*wide = 0;
	if (size == 4) {
		memcpy(&f, bytes, sizeof(f));
		return (double)f;
	}
	if (size == 8) {
		memcpy(&d, bytes, sizeof(d));
		return d;
	}
	memcpy(wide, bytes, 10);
	return (double)*wide;
}

static void show_real(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	uint8_t bytes[32];
	char text[96];
	long double re, im = 0;
	const char *why = NULL;
	const bool is_complex = v->type->kind == DP_CTYPE_COMPLEX;
	const uint64_t size = is_complex ? v->type->size / 2 : v->type->size;
	if (v->type->size > sizeof(bytes) || !dp_value_fetch(v, bytes, v->type->size, &why)) {
		/* The last six bytes of a long double in memory are padding. */
		refuse(x, v, into, why ? why : DP_WHY_UNKNOWN);
		return;
	}
	into->real = real_of(bytes, size, &re);
	if (is_complex)
		into->imaginary = real_of(bytes + size, size, &im);
	if (size != 16)
		return;
	if (is_complex)
		snprintf(text, sizeof(text), "%.18Lg + %.18Lgi", re, im);
	else
		snprintf(text, sizeof(text), "%.18Lg", re);
	into->text = dp_snapshot_text(x->s, text);
}

/* ---- strings ------------------------------------------------------------------------------------------------------------ */

static const char *copy(struct dp_show *x, const char *bytes, size_t n)
{
	const char *text = dp_arena_copy(&x->s->arena, bytes, n);
	return text ? text : "";
}

static void show_text_at(struct dp_show *x, uint64_t addr, struct dp_snap_variable *into)
{
	static char buf[STRING_MAX + 1];
	const size_t limit = x->limits.string;
	bool late = false;
	const size_t got = dp_debug_ctx_read(x->w, addr, buf, limit + 1, &late);
	const char *nul = memchr(buf, 0, got);
	if (!got) {
		into->why = "the string cannot be read";
		return;
	}
	into->is_string = true;
	into->is_late |= late;
	into->text_size = nul ? (uint64_t)(nul - buf) : got < limit ? got : limit;
	into->is_cut = !nul;
	into->text = copy(x, buf, into->text_size);
}

static void show_characters(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	static char buf[STRING_MAX];
	const char *why = NULL;
	uint64_t n = v->type->count;
	if (!n && !v->type->is_sized) {
		into->why = "an array of unknown length";
		into->text = "";
		return;
	}
	if (n > x->limits.string)
		n = x->limits.string;
	if (!dp_value_fetch(v, buf, n, &why)) {
		refuse(x, v, into, why);
		return;
	}
	into->is_cut = n < v->type->count;
	/* Trailing zeros are not part of the text, unless it is cut. */
	const size_t length = strnlen(buf, n);
	bool rest = false;
	for (size_t i = length; i < n && !rest; i++)
		rest = buf[i];
	if (!rest && length < n)
		into->is_cut = false;
	while (!rest && n && !buf[n - 1])
		n--;
	into->is_string = true;
	into->text_size = n;
	into->text = copy(x, buf, n);
}

/* ---- pointers ----------------------------------------------------------------------------------------------------------- */

/* Was the pointer reached through this object? */
static bool is_around(const struct dp_snap_variable *v, const struct dp_ctype *type, uint64_t addr)
{
	for (unsigned i = 0; v && i < OWNERS_MAX; v = v->owner, i++)
		if (v->address == addr && !strcmp(v->type, type->text))
			return true;
	return v;
}

static void show_target(struct dp_show *x, const struct dp_ctype *to, struct level at, struct dp_snap_variable *into)
{
	if (is_around(into, to, into->number))
		return;
	if (x->nlater == x->capacity) {
		const size_t capacity = x->capacity ? 2 * x->capacity : 64;
		struct dp_show_later *grown = realloc(x->later, capacity * sizeof(*grown));
		if (!grown)
			return;
		x->later = grown;
		x->capacity = capacity;
	}
	x->later[x->nlater++] = (struct dp_show_later){.parent = into->value, .type = to, .at = at, .into = into};
}

void dp_show_finish(struct dp_show *x)
{
	while (x->next < x->nlater) {
		const struct dp_show_later l = x->later[x->next++];
		struct dp_value target = {.w = x->w,
		                          .type = l.type,
		                          .parent = l.parent,
		                          .step = l.parent ? DP_STEP_DEREF : DP_STEP_ROOT,
		                          .where = DP_VALUE_MEMORY,
		                          .addr = l.into->number};
		struct dp_snap_variable *c = child(x, l.into);
		if (!c) {
			l.into->more = 1;
			continue;
		}
		c->name = "*";
		show(x, &target, l.at, c);
	}
	free(x->later);
	x->later = NULL;
	x->nlater = x->capacity = x->next = 0;
}

static void show_pointer(struct dp_show *x, struct dp_value *v, struct level at, struct dp_snap_variable *into)
{
	const struct dp_ctype *to = dp_ctype_to(v->type);
	const char *why = NULL;
	const bool reference = v->type->is_reference;
	if (!dp_value_scalar(v, &into->number, &why)) {
		refuse(x, v, into, why);
		return;
	}
	if (!into->number || !to)
		return;
	if (dp_ctype_is_char(to) && !reference) {
		show_text_at(x, into->number, into);
		return;
	}
	const char *symbol = to->kind == DP_CTYPE_FUNCTION ? dp_debug_ctx_symbol_at(x->w, into->number)
	                                                   : dp_debug_ctx_object_at(x->w, into->number);
	into->text = symbol ? dp_snapshot_text(x->s, symbol) : NULL;
	if (to->kind == DP_CTYPE_FUNCTION || to->kind == DP_CTYPE_VOID || at.nesting >= x->limits.nesting ||
	    !(at.depth || reference))
		return;
	to = dp_ctype_complete_near(x->w, to);
	if (to->size || to->kind == DP_CTYPE_ARRAY)
		show_target(x, to, (struct level){at.depth ? at.depth - 1 : 0, at.nesting + 1}, into);
}

/* ---- arrays and records ------------------------------------------------------------------------------------------------- */

static void show_elements(struct dp_show *x, struct dp_value *v, struct level at, struct dp_snap_variable *into)
{
	const struct dp_ctype *to = dp_ctype_complete_near(x->w, dp_ctype_to(v->type));
	const uint64_t n = v->type->count < x->limits.elements ? v->type->count : x->limits.elements;
	uint64_t i = 0;
	if (!v->type->count || !to->size) {
		into->why = v->type->is_sized && to->size ? NULL : "an array of unknown length";
		return;
	}
	for (; i < n && at.nesting < x->limits.nesting; i++) {
		if (v->where == DP_VALUE_BYTES && (i + 1) * to->size > v->nbytes)
			break;
		struct dp_snap_variable *c = child(x, into);
		if (!c)
			break;
		c->index = (int64_t)i;
		if (dp_show_plain(x, v, to, i * to->size, c))
			continue;
		struct dp_value e = *v;
		e.type = to;
		e.parent = v;
		e.step = DP_STEP_INDEX;
		e.index = (int64_t)i;
		e.path = NULL;
		e.addr += i * to->size;
		if (e.where == DP_VALUE_BYTES) {
			e.bytes += i * to->size;
			e.valid = e.valid ? e.valid + i * to->size : NULL;
			e.nbytes -= i * to->size;
		}
		show(x, &e, (struct level){at.depth, at.nesting + 1}, c);
		/* If one element is unreadable, so are the rest. */
		if (c->state == DP_VAR_UNREADABLE) {
			i++;
			break;
		}
	}
	into->more = v->type->count - i;
}

static void show_members(struct dp_show *x, struct dp_value *v, struct level at, struct dp_snap_variable *into)
{
	const struct dp_member *m;
	struct dp_ctype_copy *own = dp_ctype_copy_of(v->type);
	const size_t n = own ? dp_ctype_members(v->type, &m) : 0;
	size_t i = 0;
	for (; i < n && at.nesting < x->limits.nesting; i++) {
		struct dp_value sub;
		struct dp_snap_variable *c = child(x, into);
		if (!c)
			break;
		c->name = own ? dp_debug_ctx_text(x->w, x->s, &own->label[i]) : "";
		if (!m[i].is_virtual && !m[i].bits && dp_show_plain(x, v, m[i].type, m[i].offset, c))
			continue;
		dp_value_sub(v, &m[i], &sub);
		show(x, &sub, (struct level){at.depth, at.nesting + 1}, c);
	}
	into->more = n - i;
}

static void show_record(struct dp_show *x, struct dp_value *v, struct level at, struct dp_snap_variable *into)
{
	v->type = dp_ctype_complete_near(x->w, v->type);
	into->is_union = v->type->is_union;
	into->size = v->type->size;
	if (v->type->is_incomplete) {
		into->kind = DP_VAR_BOTTOM;
		into->why = "its type is only declared";
		return;
	}
	show_members(x, v, at, into);
	dp_show_counted(x, v, into);
}

/* ---- one value ---------------------------------------------------------------------------------------------------------- */

/* Copies the value for pmodules; NULL: values are not kept. */
static struct dp_value *keep(struct dp_show *x, const struct dp_value *v)
{
	struct dp_value *own = x->keeps_values ? dp_arena_alloc(&x->w->arena, sizeof(*own)) : NULL;
	if (own)
		*own = *v;
	else
		x->keeps_values = false; /* drop its children's values too: their parent is missing */
	return own;
}

static void describe(struct dp_show *x, struct dp_value *v, struct dp_snap_variable *into)
{
	const struct dp_ctype *t = v->type;
	dp_show_type(x, t, into);
	into->kind = dp_value_kind(v);
	into->size = t->size;
	into->bits = v->bits;
	if (v->where == DP_VALUE_MEMORY)
		into->address = v->addr;
	if (x->is_copy && v->where == DP_VALUE_MEMORY && (!v->parent || v->step == DP_STEP_DEREF)) {
		const struct dp_map *map = dp_image_map_at(x->w->image, dp_addr_of(v->addr));
		into->is_shared = map && map->shared;
	} else if (into->owner) {
		into->is_shared = into->owner->is_shared;
	}
}

static void show(struct dp_show *x, struct dp_value *v, struct level at, struct dp_snap_variable *into)
{
	into->value = keep(x, v);
	v = into->value ? into->value : v;
	describe(x, v, into);
	if (v->where == DP_VALUE_NOWHERE) {
		refuse(x, v, into, v->why ? v->why : DP_WHY_OPTIMIZED);
		return;
	}
	switch (v->type->kind) {
	case DP_CTYPE_INT:
		(v->type->is_enum ? show_enum : show_int)(x, v, into);
		break;
	case DP_CTYPE_INT128:
		show_wide(x, v, into);
		break;
	case DP_CTYPE_FLOAT:
	case DP_CTYPE_LONG_DOUBLE:
	case DP_CTYPE_COMPLEX:
		show_real(x, v, into);
		break;
	case DP_CTYPE_POINTER:
		show_pointer(x, v, at, into);
		break;
	case DP_CTYPE_ARRAY:
		if (into->kind == DP_VAR_STRING)
			show_characters(x, v, into);
		else
			show_elements(x, v, at, into);
		break;
	case DP_CTYPE_RECORD:
		show_record(x, v, at, into);
		break;
	case DP_CTYPE_MEMBER:
		show_int(x, v, into);
		if (into->state == DP_VAR_OK)
			dp_show_member(x, v, into);
		break;
	case DP_CTYPE_METHOD:
		dp_show_method(x, v, into);
		break;
	case DP_CTYPE_FUNCTION: {
		const char *name = dp_debug_ctx_symbol_at(x->w, v->addr);
		into->text = name ? dp_snapshot_text(x->s, name) : NULL;
		break;
	}
	default:
		into->why = v->type->kind == DP_CTYPE_VOID ? NULL : "its type is not supported";
	}
	into->is_late |= v->late;
}

void dp_show(struct dp_show *x, struct dp_value *v, unsigned depth, struct dp_snap_variable *into)
{
	show(x, v, (struct level){depth, 0}, into);
}

void dp_value_show(struct dp_value *v, const struct dp_limits *limits, unsigned depth, struct dp_snapshot *s,
                   struct dp_snap_variable *into)
{
	struct dp_show x;
	dp_show_init(&x, v->w, limits, s);
	if (!*into->name && v->name)
		into->name = dp_snapshot_text(s, v->name);
	dp_show(&x, v, depth, into);
	dp_show_finish(&x);
	if (x.is_cut && x.limits.variables > 1) /* 1: only the value itself is wanted */
		dp_snapshot_truncated(s, "values: a value has more than %u parts", x.limits.variables);
}
