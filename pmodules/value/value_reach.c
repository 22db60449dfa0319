/* SPDX-License-Identifier: MIT */
#include "pmodules/value/value_reach.h"
#include "pmodules/source/pages.h"
#include "pmodules/value/value_show.h"

#include <stdlib.h>
#include <string.h>

/* The largest object that is touched whole, instead of part by part. */
#define WHOLE_MAX (UINT64_C(64) << 10)
enum { FIRST_ROOM = 4096 };

struct level {
	unsigned depth, nesting;
};
struct dp_reach_later {
	const struct dp_ctype *type;
	uint64_t addr;
	struct level at;
};

void dp_reach_init(struct dp_reach *r, struct dp_debug_ctx *w, const struct dp_limits *limits)
{
	*r = (struct dp_reach){.w = w, .limits = dp_limits_filled(limits)};
	r->budget = r->limits.variables;
	r->left = r->limits.bytes / sizeof(struct dp_snap_variable);
}

void dp_reach_fini(struct dp_reach *r)
{
	free(r->seen);
	free(r->later);
	*r = (struct dp_reach){0};
}

/* ---- visited objects ------------------------------------------------------------------------------------------------------ */

static struct dp_reach_seen *slot_of(const struct dp_reach *r, const struct dp_ctype *type, uint64_t addr)
{
	const uint64_t key = (addr ^ (uint64_t)(uintptr_t)type << 17) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t i = (size_t)(key >> 32);; i++) {
		struct dp_reach_seen *s = &r->seen[i & (r->room - 1)];
		if (!s->addr || (s->addr == addr && s->type == type))
			return s;
	}
}

static bool grow(struct dp_reach *r)
{
	struct dp_reach larger = *r;
	larger.room = r->room ? 2 * r->room : FIRST_ROOM;
	larger.seen = calloc(larger.room, sizeof(*larger.seen));
	if (!larger.seen)
		return false;
	for (size_t i = 0; i < r->room; i++)
		if (r->seen[i].addr)
			*slot_of(&larger, r->seen[i].type, r->seen[i].addr) = r->seen[i];
	free(r->seen);
	*r = larger;
	return true;
}

/* Was this object followed at least as far before? */
static bool is_seen(struct dp_reach *r, const struct dp_ctype *type, uint64_t addr, unsigned depth)
{
	if (2 * (r->nseen + 1) > r->room && !grow(r))
		return false;
	struct dp_reach_seen *s = slot_of(r, type, addr);
	if (s->addr && s->depth >= depth)
		return true;
	r->nseen += !s->addr;
	*s = (struct dp_reach_seen){addr, type, depth};
	return false;
}

static bool spend(struct dp_reach *r)
{
	if (!r->budget || !r->left)
		return false;
	r->budget--;
	r->left--;
	return true;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

static void touch(struct dp_reach *r, uint64_t addr, uint64_t n)
{
	uint8_t byte;
	bool late = false;
	const uint64_t last = dp_page_of(addr + (n ? n - 1 : 0));
	for (uint64_t page = dp_page_of(addr); page <= last; page += DP_PAGE_BYTES) {
		if (page != r->page && !r->w->read(page, &byte, 1, &late, r->w->data))
			return;
		r->page = page;
	}
}

/* Is everything of this type shown from its own bytes, without following anything? */
static bool is_plain(struct dp_reach *r, const struct dp_ctype *t)
{
	struct dp_ctype_copy *own = dp_ctype_copy_of(t);
	const struct dp_member *m;
	const struct dp_enumerator *names;
	if (!own || own->reach != DP_REACH_UNKNOWN)
		return !own || own->reach == DP_REACH_PLAIN;
	own->reach = DP_REACH_LEADS; /* for a corrupt type that contains itself */
	bool plain = t->kind != DP_CTYPE_POINTER && t->kind != DP_CTYPE_FUNCTION;
	if (t->is_enum)
		dp_ctype_enumerators(t, &names);
	if (t->kind == DP_CTYPE_ARRAY)
		plain = is_plain(r, dp_ctype_complete_near(r->w, dp_ctype_to(t)));
	if (t->kind == DP_CTYPE_RECORD) {
		const size_t n = dp_ctype_members(t, &m);
		plain = !t->is_incomplete;
		for (size_t i = 0; i < n; i++)
			plain = is_plain(r, m[i].type) && !m[i].is_virtual && plain;
	}
	own->reach = plain ? DP_REACH_PLAIN : DP_REACH_LEADS;
	return plain;
}

/* ---- values ------------------------------------------------------------------------------------------------------------- */

static void reach(struct dp_reach *r, struct dp_value *v, struct level at);

static void reach_target(struct dp_reach *r, const struct dp_ctype *to, uint64_t addr, struct level at)
{
	if (r->nlater == r->capacity) {
		const size_t capacity = r->capacity ? 2 * r->capacity : 64;
		struct dp_reach_later *grown = realloc(r->later, capacity * sizeof(*grown));
		if (!grown)
			return;
		r->later = grown;
		r->capacity = capacity;
	}
	r->later[r->nlater++] = (struct dp_reach_later){to, addr, at};
}

static void reach_pointer(struct dp_reach *r, struct dp_value *v, struct level at)
{
	const struct dp_ctype *to = dp_ctype_to(v->type);
	const bool reference = v->type->is_reference;
	const char *why;
	uint64_t addr;
	if (v->where == DP_VALUE_MEMORY)
		touch(r, v->addr, v->type->size);
	if (!dp_value_scalar(v, &addr, &why) || !addr || !to)
		return;
	if (dp_ctype_is_char(to) && !reference) {
		touch(r, addr, r->limits.string + 1);
		return;
	}
	if (to->kind == DP_CTYPE_FUNCTION)
		dp_debug_ctx_symbol_at(r->w, addr);
	else
		dp_debug_ctx_objects_at(r->w, addr);
	if (to->kind == DP_CTYPE_FUNCTION || to->kind == DP_CTYPE_VOID || at.nesting >= r->limits.nesting ||
	    !(at.depth || reference))
		return;
	to = dp_ctype_complete_near(r->w, to);
	if (to->size || to->kind == DP_CTYPE_ARRAY)
		reach_target(r, to, addr, (struct level){at.depth ? at.depth - 1 : 0, at.nesting + 1});
}

static void reach_elements(struct dp_reach *r, struct dp_value *v, struct level at)
{
	const struct dp_ctype *to = dp_ctype_complete_near(r->w, dp_ctype_to(v->type));
	const uint64_t n = v->type->count < r->limits.elements ? v->type->count : r->limits.elements;
	if (!to->size || at.nesting >= r->limits.nesting)
		return;
	if (is_plain(r, to) && to->size <= WHOLE_MAX / r->limits.elements) {
		if (v->where == DP_VALUE_MEMORY)
			touch(r, v->addr, n * to->size);
		return;
	}
	for (uint64_t i = 0; i < n && spend(r); i++) {
		struct dp_value e = *v;
		e.type = to;
		e.addr += i * to->size;
		if (e.where == DP_VALUE_BYTES) {
			if ((i + 1) * to->size > v->nbytes)
				break;
			e.bytes += i * to->size;
			e.valid = e.valid ? e.valid + i * to->size : NULL;
			e.nbytes -= i * to->size;
		}
		reach(r, &e, (struct level){at.depth, at.nesting + 1});
	}
}

static void reach_record(struct dp_reach *r, struct dp_value *v, struct level at)
{
	const struct dp_member *m;
	struct dp_value sub;
	v->type = dp_ctype_complete_near(r->w, v->type);
	const size_t n = v->type->is_incomplete ? 0 : dp_ctype_members(v->type, &m);
	const bool whole = v->where == DP_VALUE_MEMORY && v->type->size <= WHOLE_MAX;
	if (whole)
		touch(r, v->addr, v->type->size);
	if (at.nesting >= r->limits.nesting || (whole && is_plain(r, v->type)))
		return;
	for (size_t i = 0; i < n; i++) {
		if (whole && is_plain(r, m[i].type) && !m[i].is_virtual)
			continue;
		if (!spend(r))
			return;
		dp_value_sub(v, &m[i], &sub);
		reach(r, &sub, (struct level){at.depth, at.nesting + 1});
	}
}

static void reach(struct dp_reach *r, struct dp_value *v, struct level at)
{
	if (v->where == DP_VALUE_NOWHERE)
		return;
	switch (v->type->kind) {
	case DP_CTYPE_POINTER:
		reach_pointer(r, v, at);
		return;
	case DP_CTYPE_ARRAY:
		if (dp_ctype_is_char(dp_ctype_to(v->type)))
			break;
		if (v->where != DP_VALUE_MEMORY || !is_seen(r, v->type, v->addr, at.depth))
			reach_elements(r, v, at);
		return;
	case DP_CTYPE_RECORD:
		if (v->where != DP_VALUE_MEMORY || !is_seen(r, v->type, v->addr, at.depth))
			reach_record(r, v, at);
		return;
	case DP_CTYPE_FUNCTION:
		dp_debug_ctx_symbol_at(r->w, v->addr);
		return;
	default:
		(void)is_plain(r, v->type);
	}
	const bool text = v->type->kind == DP_CTYPE_ARRAY;
	const uint64_t size = text ? v->type->count : v->bits ? (v->bit + v->bits + 7u) / 8 : v->type->size;
	if (v->where == DP_VALUE_MEMORY && size)
		touch(r, v->addr, text && size > r->limits.string ? r->limits.string : size);
}

void dp_reach(struct dp_reach *r, struct dp_value *v, unsigned depth)
{
	reach(r, v, (struct level){depth, 0});
}

void dp_reach_finish(struct dp_reach *r)
{
	while (r->next < r->nlater && spend(r)) {
		const struct dp_reach_later l = r->later[r->next++];
		struct dp_value target = {.w = r->w, .type = l.type, .where = DP_VALUE_MEMORY, .addr = l.addr};
		reach(r, &target, l.at);
	}
	r->nlater = r->next = 0;
	r->budget = r->limits.variables;
}
