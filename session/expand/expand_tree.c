/* SPDX-License-Identifier: MIT */
/*
 * --calls f, --return 'f*' --self: probes at the entry and the returns of f, and with --calls of the functions that it reaches by
 * direct calls and tail jumps in its module. Each records the stack pointer alone (decision 0062).
 *
 * A function has its probes once, however many of those that the user named reach it: two entries would be two calls.
 */
#include "session/code/function_points.h"
#include "session/expand/expand_internal.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define REACHED_MOST 500u /* functions below one */

struct dp_tree_placed {
	uint64_t start;
	size_t entry; /* the number of its entry's probe */
	bool deep;    /* its callees are probed, too */
	UT_hash_handle hh;
};

struct reach {
	struct dp_expander *x;
	size_t from;
	struct dp_function *function; /* found so far; [0] is where it begins */
	size_t n, capacity;
	size_t unprobed; /* functions whose code is not understood */
	bool more;       /* there are more than the limit */
	bool again;      /* some are left out that have their probes */
};

static struct dp_tree_placed *placed(const struct dp_expander *x, uint64_t start)
{
	struct dp_tree_placed *old;
	HASH_FIND(hh, x->placed, &start, sizeof(start), old);
	return old;
}

static struct dp_error *note_placed(struct dp_expander *x, const struct dp_function *f, bool deep)
{
	struct dp_tree_placed *one = calloc(1, sizeof(*one));
	if (!one)
		return dp_error_nomem();
	*one = (struct dp_tree_placed){.start = f->start.v, .entry = x->out.trace.nprobes, .deep = deep};
	HASH_ADD(hh, x->placed, start, sizeof(one->start), one);
	return NULL;
}

void dp_expand_tree_fini(struct dp_expander *x)
{
	struct dp_tree_placed *one, *next;
	HASH_ITER(hh, x->placed, one, next)
	{
		HASH_DEL(x->placed, one);
		free(one);
	}
}

static struct dp_error *found(struct reach *r, const struct dp_function *f)
{
	const struct dp_trace_spec *trace = r->x->from;
	for (size_t i = 0; i < r->n; i++)
		if (r->function[i].start.v == f->start.v)
			return NULL;
	const struct dp_tree_placed *old = r->n ? placed(r->x, f->start.v) : NULL;
	if (old && old->deep) {
		r->again = true;
		return NULL;
	}
	for (size_t i = 0; r->n && i < trace->except.n; i++)
		if (!fnmatch(trace->except.item[i], f->name, 0))
			return NULL;
	if (r->n > REACHED_MOST) {
		r->more = true;
		return NULL;
	}
	if (r->n == r->capacity) {
		const size_t capacity = r->capacity ? 2 * r->capacity : 64;
		struct dp_function *grown = reallocarray(r->function, capacity, sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		r->function = grown;
		r->capacity = capacity;
	}
	r->function[r->n++] = *f;
	return NULL;
}

/* A call into another part of the module: not into a PLT, which is no function. */
static struct dp_error *reach(struct reach *r, const struct dp_function *from, uint64_t target)
{
	struct dp_function f;
	if (!dp_image_function_at(r->x->image, dp_addr_of(target), &f) || f.start.v != target || f.module != from->module ||
	    !*f.name)
		return NULL;
	return found(r, &f);
}

static struct dp_error *reach_calls(struct reach *r, const struct dp_function *f, const struct dp_function_points *fp)
{
	for (size_t i = 0; i < fp->points.ninsns; i++) {
		const uint64_t at = fp->points.insn[i].addr;
		uint8_t bytes[5] = {0};
		size_t n = sizeof(bytes);
		int32_t distance;
		DP_TRY(dp_module_text(f->module, dp_addr_of(at), bytes, &n));
		if (n < sizeof(bytes) || *bytes != 0xe8)
			continue;
		memcpy(&distance, bytes + 1, sizeof(distance));
		DP_TRY(reach(r, f, at + 5 + (uint64_t)(int64_t)distance));
	}
	for (size_t i = 0; i < fp->points.nexits; i++)
		if (fp->points.exit[i].target)
			DP_TRY(reach(r, f, fp->points.exit[i].target));
	return NULL;
}

static struct dp_error *add_half(struct reach *r, struct dp_expand_place at)
{
	at.bound = true;
	at.tree = r->x->functions;
	return dp_expand_add(r->x, r->from, &at, NULL);
}

static struct dp_error *add_points(struct reach *r, const struct dp_function *f, const struct dp_function_points *fp, bool root)
{
	r->x->functions++;
	DP_TRY(add_half(r, (struct dp_expand_place){.f = f, .point = DP_POINT_ENTRY, .tree_enters = true, .root = root}));
	for (size_t i = 0; i < fp->points.nexits; i++) {
		const struct dp_exit *exit = &fp->points.exit[i];
		const struct dp_function *part = dp_function_part(fp, exit->addr);
		const struct dp_expand_place at = {.f = part,
		                                   .named = f,
		                                   .offset = exit->addr - part->start.v,
		                                   .point = DP_POINT_RETURN,
		                                   .when = exit->when,
		                                   .tails = exit->kind == DP_EXIT_JUMP};
		if (exit->kind != DP_EXIT_UNSURE)
			DP_TRY(add_half(r, at));
	}
	return NULL;
}

/* *end: the first function cannot be probed, and says why. */
static struct dp_error *add_function(struct reach *r, size_t i, bool deep)
{
	const struct dp_function f = r->function[i];
	const struct dp_expand_place at = {.f = &f, .point = DP_POINT_RETURN};
	struct dp_tree_placed *old = placed(r->x, f.start.v);
	struct dp_function_points fp;
	if (old && i == 0)
		r->x->out.trace.typed[old->entry].root = true;
	if (old && (old->deep || !deep))
		return NULL;
	struct dp_error *err = dp_function_points(r->x->image, r->x->view, &f, &fp);
	if (err && i == 0)
		return dp_expand_add_refused(r->x, r->from, &at, err);
	if (err) {
		dp_error_destroy(err);
		r->unprobed++;
		return NULL;
	}
	if (old)
		old->deep = deep;
	else if (!(err = note_placed(r->x, &f, deep)))
		err = add_points(r, &f, &fp, i == 0);
	if (!err && deep)
		err = reach_calls(r, &f, &fp);
	dp_function_points_fini(&fp);
	return err;
}

static void say(const struct reach *r)
{
	if (r->n > 1)
		dp_trace_log(r->x->from, DP_LOG_INFO,
		             "%s reaches %zu %sfunction%s of its module by direct calls%s; calls by pointer and into other "
		             "libraries count "
		             "as its own time: name them with --calls, too",
		             dp_function_readable(&r->function[0]), r->n - 1, r->again ? "more " : "", r->n == 2 ? "" : "s",
		             r->more ? " (the limit: further ones are not probed, see -x)" : "");
	if (r->unprobed)
		dp_trace_log(r->x->from, DP_LOG_INFO, "%zu of them have no known end: not probed", r->unprobed);
}

struct dp_error *dp_expand_tree(struct dp_expander *x, size_t from, const struct dp_function *f)
{
	struct reach r = {.x = x, .from = from};
	const bool deep = x->from->typed[from].calls;
	struct dp_error *err = found(&r, f);
	for (size_t i = 0; !err && i < r.n; i++)
		err = add_function(&r, i, deep);
	if (!err && deep)
		say(&r);
	free(r.function);
	return err;
}
