/* SPDX-License-Identifier: MIT */
/* From threads to frames and variables. */
#include "pmodules/capture/extract.h"
#include "pmodules/capture/extract_internal.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct dp_error *dp_extract_create(struct dp_debug_ctx *w, const struct dp_extract_options *options, struct dp_extract **ret)
{
	struct dp_extract *x = calloc(1, sizeof(*x));
	if (!x)
		return dp_error_nomem();
	x->w = w;
	x->frames.w = w;
	if (options)
		x->options = *options;
	x->limits = dp_limits_filled(options ? &options->limits : NULL);
	dp_reach_init(&x->reach, w, &x->limits);
	*ret = x;
	return NULL;
}

struct dp_extract *dp_extract_destroy(struct dp_extract *x)
{
	if (x) {
		dp_reach_fini(&x->reach);
		dp_extract_list_fini(&x->globals);
		dp_extract_list_fini(&x->thread_locals);
	}
	free(x);
	return NULL;
}

/* ---- frames ------------------------------------------------------------------------------------------------------------- */

static const char *text_or_null(struct dp_extract *x, struct dp_snapshot *s, struct dp_stext *t)
{
	return t->text && *t->text ? dp_debug_ctx_text(x->w, s, t) : NULL;
}

static void describe(struct dp_extract *x, struct dp_snapshot *s, const struct dp_fstate *state, struct dp_fscope *scope,
                     struct dp_snap_frame *f)
{
	struct dp_fplan *p = state->plan;
	f->pc = state->regs.value[DP_FRAME_PC];
	f->sp = state->regs.value[DP_FRAME_RSP];
	f->cfa = state->cfa;
	f->is_guess = state->is_guess;
	f->by_frame_pointer = state->by_frame_pointer;
	f->is_signal = state->is_signal;
	f->is_tail = state->is_tail;
	f->object = text_or_null(x, s, &p->object);
	f->offset = p->start && !(scope && scope->is_inline) ? f->pc - p->start : 0;
	if (!scope)
		return;
	f->symbol = text_or_null(x, s, &scope->symbol);
	f->linkage = text_or_null(x, s, &scope->linkage);
	f->path = text_or_null(x, s, &scope->path);
	f->line = scope->line;
	f->decl_line = scope->decl_line;
	f->line_resolved = scope->line > 0;
	f->is_inline = scope->is_inline;
	if (f->is_signal && !f->symbol)
		f->symbol = "<signal handler called>";
}

/* Copies the value into the world's arena: modules may use it as long as the world exists. */
static struct dp_value *lasting(struct dp_extract *x, const struct dp_value *v)
{
	struct dp_value *own = dp_arena_alloc(&x->w->arena, sizeof(*own));
	if (!own)
		return NULL;
	*own = *v;
	if (v->where == DP_VALUE_BYTES)
		own->bytes = (const uint8_t *)dp_arena_copy(&x->w->arena, (const char *)v->bytes, v->nbytes);
	return own->where == DP_VALUE_BYTES && !own->bytes ? NULL : own;
}

static void variables(struct dp_extract *x, struct dp_show *show, const struct dp_fstate *state, struct dp_fscope *scope,
                      struct dp_snap_frame *f)
{
	const unsigned depth = f->thread->is_fault ? x->limits.fault_depth : x->limits.depth;
	for (size_t i = 0; i < scope->n; i++) {
		struct dp_fvariable *v = &scope->variable[i];
		struct dp_snap_variable *into = dp_snapshot_variable(show->s, &f->variables, NULL);
		struct dp_value found, *value = &found;
		if (!into)
			return;
		dp_frame_find(&x->frames, state, v, &found);
		if (show->keeps_values && !(value = lasting(x, &found)))
			return;
		into->frame = f;
		into->thread = f->thread;
		into->place = v->is_parameter ? DP_VAR_PARAMETER : DP_VAR_LOCAL;
		into->index = v->index;
		into->name = dp_debug_ctx_text(x->w, show->s, &v->name);
		/* The first variables may not use up the budget: reserve a share for the rest. */
		const uint64_t others = show->budget / (scope->n - i + 1);
		const uint64_t kept = i + 1 < scope->n ? others : 0;
		show->budget -= kept;
		dp_show(show, value, depth, into);
		show->budget += kept;
	}
}

static struct dp_frame_regs *registers(struct dp_snapshot *s, const struct dp_fstate *state)
{
	struct dp_frame_regs *r = dp_arena_alloc(&s->arena, sizeof(*r));
	if (r)
		*r = state->regs;
	return r;
}

/* A frame and the functions inlined in it, innermost first. */
static bool frame(struct dp_extract *x, struct dp_snapshot *s, struct dp_snap_thread *t, const struct dp_fstate *state)
{
	struct dp_fplan *p = state->plan;
	struct dp_show show;
	dp_show_init(&show, x->w, &x->limits, s);
	show.keeps_values = !x->options.no_values;
	const struct dp_frame_regs *r = registers(s, state);
	for (size_t i = 0; i < (p->nscopes ? p->nscopes : 1); i++) {
		struct dp_fscope *scope = i < p->nscopes ? &p->scope[i] : NULL;
		struct dp_snap_frame *f = dp_snapshot_frame(s, t);
		if (!f)
			break;
		describe(x, s, state, scope, f);
		f->registers = r;
		if (scope && !x->options.no_variables)
			variables(x, &show, state, scope, f);
	}
	dp_show_finish(&show);
	if (show.is_cut)
		dp_snapshot_truncated(s, "variables: a frame has more than %u parts", x->limits.variables);
	return !s->arena.failed;
}

/* ---- threads ------------------------------------------------------------------------------------------------------------ */

static void describe_thread(const struct dp_stopped_thread *t, struct dp_snapshot *s, struct dp_snap_thread *into)
{
	const struct user_regs_struct *r = &t->regs;
	into->registers = dp_frame_regs_of(r);
	into->has_registers = true;
	into->name = dp_snapshot_text(s, t->name);
	into->state = t->state;
	into->is_fault = t->is_fault;
	into->rflags = r->eflags;
	into->fs_base = r->fs_base;
	into->gs_base = r->gs_base;
	into->orig_rax = r->orig_rax;
	into->syscall = t->syscall;
}

static bool is_ours(struct dp_extract *x, const struct dp_fstate *state)
{
	const struct dp_map *map = state->plan->module ? NULL : dp_image_map_at(x->w->image, dp_addr_of(state->plan->pc));
	return map && !strncmp(map->path, "/memfd:dynprobe", 15);
}

static size_t shown(const struct dp_fstate *state)
{
	return state->plan->nscopes ? state->plan->nscopes : 1;
}

/* Inlined functions count as frames. If that exceeds the limit, frames in the middle are left out. */
static void fit(const struct dp_fwalk *walk, size_t limit, size_t *inner, size_t *outer)
{
	size_t total = 0, n = 0;
	for (size_t i = 0; i < walk->n; i++)
		total += shown(&walk->state[i]);
	*inner = *outer = walk->inner;
	if (total <= limit)
		return;
	for (*inner = 0; *inner < walk->inner && n < limit - limit / 4; ++*inner)
		n += shown(&walk->state[*inner]);
	for (*outer = walk->n; *outer > *inner && n < limit; --*outer)
		n += shown(&walk->state[*outer - 1]);
}

static void frames(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snapshot *s, struct dp_snap_thread *into)
{
	struct dp_fwalk walk;
	size_t inner, outer;
	if (!dp_frames_walk(&x->frames, t, x->limits.frames, &walk))
		return;
	/* Resolve all frames first: a value may come from the caller's frame. */
	for (size_t i = 0; i < walk.n; i++)
		dp_frames_mean(&x->frames, walk.state[i].plan);
	dp_frames_tails(&x->frames, &walk);
	fit(&walk, x->limits.frames, &inner, &outer);
	into->more_frames = walk.more;
	for (size_t i = 0; i < walk.n; i++) {
		if (i >= inner && i < outer)
			into->more_frames += shown(&walk.state[i]);
		else if (!is_ours(x, &walk.state[i]) && !frame(x, s, into, &walk.state[i]))
			break;
	}
	if (into->more_frames)
		dp_snapshot_truncated(s, "frames: thread %d has more than %u", into->tid, x->limits.frames);
	into->unwind_end = walk.why ? dp_snapshot_text(s, walk.why) : NULL;
	if (into->frames)
		into->frames->is_fault = t->is_fault;
	dp_fwalk_fini(&walk);
}

struct dp_snap_thread *dp_extract_thread(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snapshot *s)
{
	struct dp_snap_thread *into = dp_snapshot_thread(s, t->tid);
	if (!into)
		return NULL;
	dp_debug_ctx_forget(x->w);
	dp_debug_ctx_begin(x->w, s);
	x->w->fs_base = t->regs.fs_base;
	describe_thread(t, s, into);
	frames(x, t, s, into);
	return into;
}

/* ---- locals by name ----------------------------------------------------------------------------------------------------- */

struct dp_value *dp_value_local(struct dp_debug_ctx *w, const struct dp_snap_frame *frame, const char *name)
{
	struct dp_snap_variable *v, *found = NULL;
	(void)w;
	DL_FOREACH(frame->variables, v)
	if (!strcmp(v->name, name))
		found = v; /* inner blocks come last */
	return found ? found->value : NULL;
}
