/* SPDX-License-Identifier: MIT */
/*
 * Compilers move seldom executed code of a function `f` elsewhere, as `f.cold`; a jump there does not leave f. Without symbols
 * such a fragment is a function without a name that jumps back into the middle of f. A nameless function without any exit ends
 * the program or the thread, or throws: a jump there is no return either.
 */
#include "session/code/function_points.h"

#include <string.h>

struct search {
	struct dp_image *image;
	const struct dp_text *text;
	struct dp_function_points *fp;
};

static struct dp_error *walk(const struct search *s, const struct dp_function *part, size_t n, struct dp_points *ret)
{
	struct dp_range range[DP_FUNCTION_PARTS];
	for (size_t i = 0; i < n; i++)
		range[i] = (struct dp_range){part[i].start.v, part[i].size};
	return dp_text_points(s->text, range, n, ret);
}

static bool is_cold_of(const struct dp_function *g, const struct dp_function *f)
{
	const size_t n = strlen(f->name);
	return n && !strncmp(g->name, f->name, n) && !strcmp(g->name + n, ".cold");
}

const struct dp_function *dp_function_part(const struct dp_function_points *fp, uint64_t addr)
{
	for (size_t i = 0; i < fp->nparts; i++)
		if (addr - fp->part[i].start.v < fp->part[i].size)
			return &fp->part[i];
	return NULL;
}

enum kin { OTHER, FRAGMENT, END };

#define FRAGMENT_MAX 16384u /* bytes; larger functions are no fragments (but PLT tables, for example) and are not searched */

/* Classifies a nameless function to which the function jumps. */
static struct dp_error *classify(const struct search *s, const struct dp_function *g, enum kin *ret)
{
	struct dp_points points;
	DP_TRY(walk(s, g, 1, &points));
	*ret = points.nexits || points.undecodable ? OTHER : END;
	for (size_t i = 0; i < points.nexits && *ret != FRAGMENT; i++) {
		const uint64_t target = points.exit[i].target;
		if (target && target != s->fp->part[0].start.v && dp_function_part(s->fp, target))
			*ret = FRAGMENT;
	}
	dp_points_fini(&points);
	return NULL;
}

static struct dp_error *kin_of(const struct search *s, uint64_t target, struct dp_function *g, enum kin *ret)
{
	*ret = OTHER;
	if (!dp_image_function_at(s->image, dp_addr_of(target), g) || !g->size || g->module != s->fp->part[0].module)
		return NULL;
	if (*g->name) {
		*ret = is_cold_of(g, &s->fp->part[0]) ? FRAGMENT : OTHER;
		return NULL;
	}
	return g->size <= FRAGMENT_MAX ? classify(s, g, ret) : NULL;
}

/* Removes jumps that are no exits. *more: a fragment was found, so the function must be walked again. */
static struct dp_error *sift(const struct search *s, bool *more)
{
	struct dp_function_points *fp = s->fp;
	size_t n = 0;
	*more = false;
	for (size_t i = 0; i < fp->points.nexits; i++) {
		const struct dp_exit exit = fp->points.exit[i];
		struct dp_function g;
		enum kin kin = OTHER;
		if (exit.kind == DP_EXIT_JUMP && exit.target)
			DP_TRY(kin_of(s, exit.target, &g, &kin));
		if (kin == OTHER)
			fp->points.exit[n++] = exit;
		if (kin != FRAGMENT || fp->nparts == DP_FUNCTION_PARTS || dp_function_part(fp, g.start.v))
			continue;
		fp->part[fp->nparts++] = g;
		*more = true;
	}
	fp->points.nexits = n;
	return NULL;
}

static struct dp_error *find(const struct search *s)
{
	bool more = true;
	while (more) {
		dp_points_fini(&s->fp->points);
		DP_TRY(walk(s, s->fp->part, s->fp->nparts, &s->fp->points));
		DP_TRY(sift(s, &more));
	}
	return NULL;
}

struct dp_error *dp_function_points(struct dp_image *image, struct dp_code_view *view, const struct dp_function *f,
                                    struct dp_function_points *ret)
{
	const struct dp_site site = {.addr = f->start, .function = *f, .module = f->module};
	struct dp_function_points fp = {.part = {*f}, .nparts = 1};
	struct search s = {.image = image, .fp = &fp};
	if (!f->size)
		return dp_error(DP_TAG_NO_SIZE, "the end of '%s' is unknown: no symbol and no unwind table gives it",
		                *f->name ? f->name : "the function");
	DP_TRY(dp_code_view_get(view, &site, &s.text));
	struct dp_error *err = find(&s);
	if (err)
		dp_function_points_fini(&fp);
	else
		*ret = fp;
	return err;
}

void dp_function_points_fini(struct dp_function_points *fp)
{
	dp_points_fini(&fp->points);
}
