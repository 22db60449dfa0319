/* SPDX-License-Identifier: MIT */
/* pmodule.h: frames and signals. */
#include "pmodules/host/host_state.h"

#include <string.h>

#define GETTER(type, name, expression, otherwise)                                                                                \
	type pmodule_frame_##name(ptrace_frame_t *p)                                                                             \
	{                                                                                                                        \
		const struct dp_snap_frame *f = dp_api_frame(p);                                                                 \
		return f ? (expression) : (otherwise);                                                                           \
	}
GETTER(const char *, symbol, f->symbol, NULL)
GETTER(const char *, path, f->path, NULL)
GETTER(int, line, f->line, 0)
GETTER(int, decl_line, f->decl_line, 0)
GETTER(bool, line_resolved, f->line_resolved, false)
GETTER(const char *, object_file, f->object, NULL)
GETTER(const char *, instruction, f->instruction, NULL)
GETTER(ptrace_thread_t *, thread, dp_out_thread(f->thread), NULL)
GETTER(ptrace_backtrace_t *, backtrace, dp_out_backtrace(dp_api_snapshot()), NULL)
GETTER(const ptrace_siginfo_t *, siginfo, dp_out_siginfo((struct dp_snap_siginfo *)(uintptr_t)f->siginfo), NULL)
GETTER(uint64_t, pc, f->pc, 0)
GETTER(uint64_t, sp, f->sp, 0)
GETTER(unsigned, index, f->index, 0)
GETTER(bool, is_inline, f->is_inline, false)
GETTER(bool, is_tail, f->is_tail, false)
GETTER(bool, is_guess, f->is_guess, false)
GETTER(bool, fault, f->is_fault, false)

ptrace_variable_t *pmodule_frame_fprm_at(ptrace_frame_t *p, unsigned i)
{
	const struct dp_snap_frame *f = dp_api_frame(p);
	struct dp_snap_variable *v;
	for (v = f ? f->variables : NULL; v; v = v->next)
		if (v->place == DP_VAR_PARAMETER && v->index == (int64_t)i)
			return dp_out_variable(v);
	return NULL;
}

bool pmodule_frame_register(ptrace_frame_t *p, const char *name, uint64_t *ret)
{
	const struct dp_snap_frame *f = dp_api_frame(p);
	if (!f || !f->registers || !name || !ret)
		return false;
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		if (!strcmp(name, dp_snap_register_name[i]) && f->registers->known >> i & 1u) {
			*ret = f->registers->value[i];
			return true;
		}
	return false;
}

/* The next variable, depth first; after the last child, the one after its owner. */
static struct dp_snap_variable *after(const struct dp_snap_variable *v)
{
	if (v->children)
		return v->children;
	for (; v; v = v->owner) {
		if (v->next)
			return v->next;
		/* A synthesized variable may have an owner and yet be at the end of the frame's list. */
		if (!v->owner || !v->owner->children || v->owner->children->prev != v)
			return NULL;
	}
	return NULL;
}

ptrace_variable_t *pmodule_frame_next_variable(ptrace_frame_t *p, const pmodule_match_t *match, ptrace_variable_t *previous)
{
	const struct dp_snap_frame *f = dp_api_frame(p);
	struct dp_snap_variable *v;
	if (!f)
		return NULL;
	for (v = previous ? after(dp_in_variable(previous)) : f->variables; v; v = after(v))
		if (!match || dp_match_variable(match, v))
			return dp_out_variable(v);
	return NULL;
}

/* ---- setters: the extracted values are kept ----------------------------------------------------------------------------- */

static struct dp_snap_frame *settable(ptrace_frame_t *p, const char *text)
{
	struct dp_snap_frame *f = dp_api_frame(p);
	return f && text && dp_host_may_add(dp_host_current(), strlen(text)) ? f : NULL;
}

/* Notes the location from the debug information, once. */
static void keep_place(struct dp_snap_frame *f)
{
	static const char words[] = "the debug information says ";
	if (f->is_synthesized)
		return;
	const char *text = dp_arena_printf(&dp_api_snapshot()->arena, "%s%s:%d, declared in line %d", words,
	                                   f->path ? f->path : "no file", f->line, f->decl_line);
	if (text)
		dp_api_note_once(&f->notes, words, text);
}

void pmodule_frame_set_symbol(ptrace_frame_t *p, const char *symbol)
{
	struct dp_snap_frame *f = settable(p, symbol);
	if (!f)
		return;
	if (!f->is_synthesized && !f->original_symbol)
		f->original_symbol = f->symbol ? f->symbol : "";
	f->module = dp_api_module_id();
	f->symbol = dp_snapshot_text(dp_api_snapshot(), symbol);
}

void pmodule_frame_set_path(ptrace_frame_t *p, const char *path)
{
	struct dp_snap_frame *f = settable(p, path);
	if (!f)
		return;
	keep_place(f);
	f->path = dp_snapshot_text(dp_api_snapshot(), path);
}

void pmodule_frame_set_basename(ptrace_frame_t *p, const char *name)
{
	struct dp_snap_frame *f = settable(p, name);
	if (!f)
		return;
	const char *slash = f->path ? strrchr(f->path, '/') : NULL;
	keep_place(f);
	f->path = slash ? dp_arena_printf(&dp_api_snapshot()->arena, "%.*s/%s", (int)(slash - f->path), f->path, name)
	                : dp_snapshot_text(dp_api_snapshot(), name);
}

void pmodule_frame_set_directory(ptrace_frame_t *p, const char *directory)
{
	struct dp_snap_frame *f = settable(p, directory);
	if (!f)
		return;
	const char *slash = f->path ? strrchr(f->path, '/') : NULL, *name = slash ? slash + 1 : f->path ? f->path : "";
	keep_place(f);
	f->path = dp_arena_printf(&dp_api_snapshot()->arena, "%s/%s", directory, name);
}

void pmodule_frame_set_line(ptrace_frame_t *p, int line)
{
	struct dp_snap_frame *f = settable(p, "");
	if (!f)
		return;
	keep_place(f);
	f->line = line;
	f->line_resolved = true;
}

void pmodule_frame_set_decl_line(ptrace_frame_t *p, int line)
{
	struct dp_snap_frame *f = settable(p, "");
	if (!f)
		return;
	keep_place(f);
	f->decl_line = line;
}

/* ---- synthesized frames ------------------------------------------------------------------------------------------------- */

ptrace_frame_t *pmodule_frame_create(void)
{
	struct dp_host *h = dp_host_current();
	if (!h || !dp_host_may_add(h, sizeof(struct dp_snap_frame)))
		return NULL;
	struct dp_snap_frame *f = dp_arena_alloc(&h->snapshot->arena, sizeof(*f));
	if (!f || !dp_host_loosen(h, f))
		return NULL;
	f->is_synthesized = true;
	f->module = dp_api_module_id();
	return dp_out_frame(f);
}

static bool added(struct dp_snap_thread *t, struct dp_snap_frame *new)
{
	struct dp_snap_frame *f;
	struct dp_snap_variable *v;
	unsigned index = 0;
	new->thread = t;
	t->nframes++;
	DL_FOREACH(t->frames, f)
	f->index = index++;
	DL_FOREACH(new->variables, v)
	v->thread = t;
	return true;
}

bool pmodule_thread_add_frame(ptrace_thread_t *p, ptrace_frame_t *frame, bool first)
{
	struct dp_snap_thread *t = dp_api_thread(p);
	struct dp_snap_frame *new = dp_api_frame(frame);
	if (!t || !new || !dp_host_tighten(dp_host_current(), new))
		return false;
	if (first)
		DL_PREPEND(t->frames, new);
	else
		DL_APPEND(t->frames, new);
	return added(t, new);
}

bool pmodule_frame_add_frame(ptrace_frame_t *p, ptrace_frame_t *frame, bool insert_after)
{
	struct dp_snap_frame *f = dp_api_frame(p), *new = dp_api_frame(frame);
	if (!f || !new || !f->thread || !dp_host_tighten(dp_host_current(), new))
		return false;
	if (insert_after)
		DL_APPEND_ELEM(f->thread->frames, f, new);
	else
		DL_PREPEND_ELEM(f->thread->frames, f, new);
	return added(f->thread, new);
}

/* ---- siginfo ------------------------------------------------------------------------------------------------------------ */

static const struct dp_snap_siginfo *signal_of(const ptrace_siginfo_t *p)
{
	return dp_api_snapshot() ? dp_in_siginfo(p) : NULL;
}

#define SIGNAL_GETTER(type, name, member, otherwise)                                                                             \
	type pmodule_siginfo_##name(const ptrace_siginfo_t *p)                                                                   \
	{                                                                                                                        \
		return signal_of(p) ? signal_of(p)->member : (otherwise);                                                        \
	}
SIGNAL_GETTER(int, num, number, 0)
SIGNAL_GETTER(int, code, code, 0)
SIGNAL_GETTER(uint64_t, address, address, 0)
SIGNAL_GETTER(bool, address_populated, has_address, false)
SIGNAL_GETTER(const char *, name, name, NULL)

const char *pmodule_siginfo_reason(const ptrace_siginfo_t *p, bool *by_kill)
{
	if (by_kill)
		*by_kill = signal_of(p) && signal_of(p)->by_kill;
	return signal_of(p) ? signal_of(p)->reason : NULL;
}
