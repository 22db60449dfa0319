/* SPDX-License-Identifier: MIT */
/* pmodule.h: the backtrace, the map, open files, threads. */
#include "pmodules/host/host_state.h"

#include <string.h>

static enum pmodule_process_state state_of(char letter)
{
	static const char letters[] = "RSDTtZXxIPW";
	static const uint8_t states[] = {
	        PMODULE_PROCESS_RUNNING, PMODULE_PROCESS_SLEEPING, PMODULE_PROCESS_DISK,   PMODULE_PROCESS_STOPPED,
	        PMODULE_PROCESS_TRACED,  PMODULE_PROCESS_ZOMBIE,   PMODULE_PROCESS_DEAD,   PMODULE_PROCESS_DEAD,
	        PMODULE_PROCESS_IDLE,    PMODULE_PROCESS_BLOCKED,  PMODULE_PROCESS_QUEUED,
	};
	const char *at = letter ? strchr(letters, letter) : NULL;
	return at ? (enum pmodule_process_state)states[at - letters] : PMODULE_PROCESS_UNKNOWN;
}

/* ---- backtrace ---------------------------------------------------------------------------------------------------------- */

pid_t pmodule_backtrace_pid(ptrace_backtrace_t *bt)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	return s ? s->pid : 0;
}

pid_t pmodule_backtrace_inner_pid(ptrace_backtrace_t *bt)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	return !s ? 0 : s->inner_pid ? s->inner_pid : s->pid;
}

const char *pmodule_backtrace_comm(ptrace_backtrace_t *bt)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	return s ? s->comm : NULL;
}

const char *pmodule_backtrace_exe(ptrace_backtrace_t *bt)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	return s ? s->exe : NULL;
}

const char *pmodule_backtrace_application_name(ptrace_backtrace_t *bt)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	return s ? s->application : NULL;
}

enum pmodule_process_state pmodule_backtrace_process_state(ptrace_backtrace_t *bt)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	return s ? state_of(s->process_state) : PMODULE_PROCESS_UNKNOWN;
}

static bool may_add(const struct dp_snapshot *s, const char *a, const char *b)
{
	return s && a && *a && b && dp_host_may_add(dp_host_current(), strlen(a) + strlen(b));
}

/* Records the module as the owner of `text`. Returns the snapshot; NULL: `text` may not be added. */
static struct dp_snapshot *adding(ptrace_backtrace_t *bt, enum dp_snap_added what, const char *text, const char *value)
{
	struct dp_snapshot *s = dp_api_backtrace(bt);
	if (!may_add(s, text, value))
		return NULL;
	dp_snapshot_adds(s, what, text, dp_module_current()->id);
	return s;
}

void pmodule_backtrace_add_tag(ptrace_backtrace_t *bt, const char *tag)
{
	struct dp_snapshot *s = adding(bt, DP_ADDED_TAG, tag, "");
	if (s)
		dp_snapshot_tag(s, tag);
}

void pmodule_backtrace_add_kv_int(ptrace_backtrace_t *bt, const char *key, int64_t value)
{
	struct dp_snapshot *s = adding(bt, DP_ADDED_ATTRIBUTE, key, "");
	if (s)
		dp_snapshot_set_int(s, key, value);
}

void pmodule_backtrace_add_kv_string(ptrace_backtrace_t *bt, const char *key, const char *value)
{
	struct dp_snapshot *s = adding(bt, DP_ADDED_ATTRIBUTE, key, value);
	if (s)
		dp_snapshot_set_text(s, key, value);
}

void pmodule_backtrace_add_classifier(ptrace_backtrace_t *bt, const char *classifier)
{
	struct dp_snapshot *s = adding(bt, DP_ADDED_CLASSIFIER, classifier, "");
	if (s)
		dp_snapshot_classify(s, classifier);
}

ptrace_thread_t *pmodule_backtrace_next_thread(ptrace_backtrace_t *bt, const pmodule_match_t *match, ptrace_thread_t *previous)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	struct dp_snap_thread *t;
	if (!s || dp_match_of_variables(match))
		return NULL;
	for (t = previous ? dp_in_thread(previous)->next : s->threads; t; t = t->next)
		if (!match || dp_match_thread(match, t))
			return dp_out_thread(t);
	return NULL;
}

/* For globals and thread-locals. */
static struct dp_snap_variable *next_variable(struct dp_snap_variable *v, const char *object, const char *cu, const char *name)
{
	for (; v; v = v->next)
		if ((!object || strstr(v->object, object)) && (!cu || strstr(v->unit, cu)) && (!name || !strcmp(v->name, name)))
			return v;
	return NULL;
}

ptrace_variable_t *pmodule_backtrace_next_variable(ptrace_backtrace_t *bt, const char *object, const char *cu, const char *name,
                                                   ptrace_variable_t *previous)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	if (!s)
		return NULL;
	return dp_out_variable(next_variable(previous ? dp_in_variable(previous)->next : s->globals, object, cu, name));
}

/* ---- map, files --------------------------------------------------------------------------------------------------------- */

ptrace_pmap_entry_t *pmodule_backtrace_pmap_entry(ptrace_backtrace_t *bt, uint64_t addr)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	return s ? dp_out_pmap((struct dp_snap_map *)(uintptr_t)dp_snapshot_map_at(s, addr)) : NULL;
}

ptrace_pmap_entry_t *pmodule_backtrace_next_pmap(ptrace_backtrace_t *bt, ptrace_pmap_entry_t *previous)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	if (!s)
		return NULL;
	struct dp_snap_map *next = previous ? dp_in_pmap(previous) + 1 : s->maps;
	return next && next < s->maps + s->nmaps ? dp_out_pmap(next) : NULL;
}

const char *pmodule_backtrace_file(ptrace_backtrace_t *bt, unsigned i, int *fd)
{
	const struct dp_snapshot *s = dp_api_backtrace(bt);
	if (!s || i >= s->nfiles)
		return NULL;
	if (fd)
		*fd = s->files[i].fd;
	return s->files[i].target;
}

static const struct dp_snap_map *map_of(const ptrace_pmap_entry_t *e)
{
	return dp_api_snapshot() ? dp_in_pmap(e) : NULL;
}

#define GETTER(type, name, member, otherwise)                                                                                    \
	type pmodule_pmap_##name(const ptrace_pmap_entry_t *e)                                                                   \
	{                                                                                                                        \
		return map_of(e) ? map_of(e)->member : (otherwise);                                                              \
	}
GETTER(uint64_t, start, start, 0)
GETTER(uint64_t, stop, end, 0)
GETTER(uint64_t, offset, offset, 0)
GETTER(uint64_t, inode, inode, 0)
GETTER(const char *, path, path, NULL)
GETTER(bool, guard, is_guard, false)
#undef GETTER

bool pmodule_pmap_permissions(const ptrace_pmap_entry_t *e, unsigned all_of)
{
	const struct dp_snap_map *m = map_of(e);
	if (!m)
		return false;
	const unsigned has = (m->read ? PMODULE_PMAP_RD : 0u) | (m->write ? PMODULE_PMAP_WR : 0u) |
	                     (m->exec ? PMODULE_PMAP_EX : 0u) | (m->shared ? PMODULE_PMAP_SH : PMODULE_PMAP_PR);
	return (has & all_of) == all_of;
}

/* ---- thread ------------------------------------------------------------------------------------------------------------- */

pid_t pmodule_thread_tid(ptrace_thread_t *t)
{
	return dp_api_thread(t) ? dp_api_thread(t)->tid : 0;
}

bool pmodule_thread_fault(ptrace_thread_t *t)
{
	return dp_api_thread(t) && dp_api_thread(t)->is_fault;
}

ptrace_backtrace_t *pmodule_thread_backtrace(ptrace_thread_t *t)
{
	return dp_api_thread(t) ? dp_out_backtrace(dp_api_thread(t)->snapshot) : NULL;
}

unsigned pmodule_thread_n_frames(ptrace_thread_t *t)
{
	return dp_api_thread(t) ? dp_api_thread(t)->nframes : 0;
}

unsigned pmodule_thread_n_kframes(ptrace_thread_t *p)
{
	const struct dp_snap_thread *t = dp_api_thread(p);
	const struct dp_snap_kframe *k;
	unsigned n = 0;
	for (k = t ? t->kframes : NULL; k; k = k->next)
		n++;
	return n;
}

const char *pmodule_thread_kframe(ptrace_thread_t *p, unsigned i)
{
	const struct dp_snap_thread *t = dp_api_thread(p);
	const struct dp_snap_kframe *k = t ? t->kframes : NULL;
	while (k && i--)
		k = k->next;
	return k ? k->symbol : NULL;
}

const char *pmodule_thread_name(ptrace_thread_t *t)
{
	return dp_api_thread(t) ? dp_api_thread(t)->name : NULL;
}

enum pmodule_process_state pmodule_thread_state(ptrace_thread_t *t)
{
	return dp_api_thread(t) ? state_of(dp_api_thread(t)->state) : PMODULE_PROCESS_UNKNOWN;
}

bool pmodule_thread_register(ptrace_thread_t *p, const char *name, uint64_t *ret)
{
	const struct dp_snap_thread *t = dp_api_thread(p);
	if (!t || !t->has_registers || !name || !ret)
		return false;
	const struct {
		const char *name;
		uint64_t value;
	} others[] = {{"rflags", t->rflags},
	              {"eflags", t->rflags},
	              {"fs_base", t->fs_base},
	              {"gs_base", t->gs_base},
	              {"orig_rax", t->orig_rax}};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(name, others[i].name)) {
			*ret = others[i].value;
			return true;
		}
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		if (!strcmp(name, dp_snap_register_name[i]) && t->registers.known >> i & 1u) {
			*ret = t->registers.value[i];
			return true;
		}
	return false;
}

void pmodule_thread_set_name(ptrace_thread_t *t, const char *name)
{
	struct dp_snapshot *s = dp_api_snapshot();
	if (!may_add(dp_api_thread(t) ? s : NULL, name, ""))
		return;
	const char *text = dp_arena_printf(&s->arena, "the thread's own name is '%s'", dp_api_thread(t)->name);
	if (text)
		dp_api_note_once(&dp_api_thread(t)->notes, "the thread's own name is ", text);
	dp_api_thread(t)->name = dp_snapshot_text(s, name);
}

ptrace_frame_t *pmodule_thread_next_frame(ptrace_thread_t *p, const pmodule_match_t *match, ptrace_frame_t *previous)
{
	const struct dp_snap_thread *t = dp_api_thread(p);
	struct dp_snap_frame *f;
	if (!t || dp_match_of_variables(match))
		return NULL;
	for (f = previous ? dp_in_frame(previous)->next : t->frames; f; f = f->next)
		if (!match || dp_match_frame(match, f))
			return dp_out_frame(f);
	return NULL;
}

ptrace_variable_t *pmodule_thread_next_variable(ptrace_thread_t *p, const char *object, const char *cu, const char *name,
                                                ptrace_variable_t *previous)
{
	const struct dp_snap_thread *t = dp_api_thread(p);
	if (!t)
		return NULL;
	return dp_out_variable(next_variable(previous ? dp_in_variable(previous)->next : t->variables, object, cu, name));
}
