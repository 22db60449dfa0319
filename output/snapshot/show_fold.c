/* SPDX-License-Identifier: MIT */
/*
 * What is left out of a thread that nobody named: frames of the C and C++ run-time libraries say little about the program. Runs
 * of them become one line, and their variables are not shown. -v, --thread and --all show everything.
 */
#include "base/path.h"
#include "output/snapshot/show_internal.h"

#include <string.h>

enum { RUN_LEAST = 3, BRIEF_NAMES = 5, DEPTH_MOST = 3 };

bool dp_show_is_library(const struct dp_snap_frame *f)
{
	static const char *const names[] = {"libc.so",   "libpthread", "ld-linux",  "ld-musl",  "libstdc++",
	                                    "libgcc_s",  "libm.so",    "libdl.so",  "librt.so", "libc-2.",
	                                    "libc.musl", "[vdso]",     "linux-vdso"};
	const char *name = f->object ? dp_path_last(f->object) : "";
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return f->symbol && !strcmp(f->symbol, "_start");
}

bool dp_show_folds(const struct dp_shower *x)
{
	return !x->o->verbose && !x->o->quiet && !x->o->unfolded && !x->o->thread && x->o->frame < 0 && !x->o->nvars;
}

static bool can_go(const struct dp_snap_frame *f)
{
	return dp_show_is_library(f) && !f->notes && !f->siginfo && !f->is_fault && !f->is_synthesized && f->index;
}

size_t dp_show_run(const struct dp_shower *x, const struct dp_snap_frame *f)
{
	size_t n = 0;
	if (!dp_show_folds(x))
		return 0;
	for (const struct dp_snap_frame *g = f; g && can_go(g); g = g->next)
		n++;
	return n < RUN_LEAST ? 0 : n;
}

void dp_show_put_run(struct dp_shower *x, const struct dp_snap_frame *first, size_t n)
{
	const struct dp_snap_frame *last = first;
	for (size_t i = 1; i < n; i++)
		last = last->next;
	dp_put_str(&x->b, x->o->color ? DP_SHOW_DIM : "");
	dp_buf_printf(&x->b, "#%u-#%u  ", first->index, last->index);
	dp_show_put(x, first->symbol ? first->symbol : "??");
	dp_put_str(&x->b, " ... ");
	dp_show_put(x, last->symbol ? last->symbol : "??");
	dp_buf_printf(&x->b, ", %zu frames", n);
	if (first->object) {
		dp_put_str(&x->b, " [");
		dp_show_put(x, dp_snapshot_object_name(x->s, first->object));
		dp_put_str(&x->b, "]");
	}
	x->folded = true;
	dp_put_str(&x->b, x->o->color ? DP_SHOW_RESET "\n" : "\n");
}

bool dp_show_is_deep(struct dp_shower *x, const struct dp_snap_variable *v)
{
	unsigned depth = 0;
	if (!dp_show_folds(x))
		return false;
	for (const struct dp_snap_variable *o = v->owner; o && depth < DEPTH_MOST; o = o->owner)
		depth++;
	if (depth == DEPTH_MOST && v->children)
		x->folded = true;
	return depth == DEPTH_MOST;
}

const struct dp_snap_frame *dp_show_own(const struct dp_snap_thread *t)
{
	const struct dp_snap_frame *f = t->frames;
	while (f && (dp_show_is_library(f) || !f->symbol || f->is_signal))
		f = f->next;
	return f;
}

/* "futex_wait < work < main": the innermost frame, then the program's. */
void dp_show_chain(struct dp_shower *x, const struct dp_snap_thread *t)
{
	unsigned n = 0;
	for (const struct dp_snap_frame *f = t->frames; f && n < BRIEF_NAMES; f = f->next) {
		if (f->index && (dp_show_is_library(f) || !f->symbol || !strcmp(f->symbol, "_start")))
			continue;
		dp_put_str(&x->b, n++ ? " < " : "");
		dp_show_colored(x, DP_SHOW_NAME, f->symbol ? f->symbol : "??");
	}
	dp_put_str(&x->b, n ? "\n" : "no frames\n");
}
