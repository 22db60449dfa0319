/* SPDX-License-Identifier: MIT */
/* Threads and their frames: "#3  0x00005612 in name (a=1) at dir/file.c:12 [libfoo.so]". */
#include "base/cleanup.h"
#include "output/snapshot/show_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	BELOW = 8,        /* indentation of a frame's details */
	ARGS_COMMON = 64, /* number of arguments that are compared within a group */
	NAMES_MOST = 4,   /* of the threads of a group */
};

static const char *state_name(char state)
{
	static const char *const names[] = {"Rrunning", "Ssleeping", "Din uninterruptible sleep",
	                                    "Tstopped", "ttraced",   "Zzombie",
	                                    "Xdead",    "Iidle",     "Pparked"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i][0] == state)
			return names[i] + 1;
	return NULL;
}

/* ---- a frame */

/* "name=value" as text; only the value if it has no name. */
static void put_arg(struct dp_buf *b, const struct dp_snap_variable *v)
{
	dp_put_visible(b, v->name, strlen(v->name), 0);
	dp_put_str(b, *v->name ? "=" : "");
	dp_show_value(b, v);
}

static const struct dp_snap_variable *nth_arg(const struct dp_snap_frame *f, size_t i)
{
	const struct dp_snap_variable *v = f ? f->variables : NULL;
	while (v && v->place == DP_VAR_PARAMETER && i--)
		v = v->next;
	return v && v->place == DP_VAR_PARAMETER ? v : NULL;
}

/* Is that argument the same in all frames of a group? */
static bool is_common(const struct dp_snap_variable *v, size_t i, const struct dp_snap_frame *const *other, size_t n)
{
	struct dp_buf mine = {0}, theirs = {0};
	bool same = i < ARGS_COMMON || !n;
	put_arg(&mine, v);
	for (size_t k = 0; same && k < n; k++) {
		const struct dp_snap_variable *w = nth_arg(other[k], i);
		theirs.len = 0;
		if (w)
			put_arg(&theirs, w);
		same = w && mine.len == theirs.len && !memcmp(mine.data, theirs.data, mine.len);
	}
	dp_buf_fini(&mine);
	dp_buf_fini(&theirs);
	return same;
}

/* Moves what begins at `here` to a line of its own if it does not fit; returns where its line begins. */
static size_t wrap(struct dp_shower *x, size_t line, size_t here)
{
	struct dp_buf tail = {0};
	if (!x->o->width || dp_show_column(x, line) <= x->o->width || here <= line)
		return line;
	dp_buf_put(&tail, x->b.data + here, x->b.len - here);
	x->b.len = here;
	dp_put_str(&x->b, "\n   ");
	dp_buf_put(&x->b, tail.data, tail.len);
	x->b.failed |= tail.failed;
	dp_buf_fini(&tail);
	return here + 1;
}

static size_t put_args(struct dp_shower *x, const struct dp_snap_frame *f, size_t line, const struct dp_snap_frame *const *other,
                       size_t n)
{
	size_t i = 0, here;
	dp_put_str(&x->b, " (");
	for (const struct dp_snap_variable *v = f->variables; v && v->place == DP_VAR_PARAMETER; v = v->next, i++) {
		dp_put_str(&x->b, i ? "," : "");
		here = x->b.len;
		dp_put_str(&x->b, i ? " " : "");
		if (is_common(v, i, other, n))
			put_arg(&x->b, v);
		else {
			dp_show_put(x, v->name);
			dp_put_str(&x->b, "=...");
		}
		line = i ? wrap(x, line, here) : line;
	}
	dp_put_str(&x->b, ")");
	return line;
}

/* Length without the parameter types of "foo(int) const", which are omitted if the parameters themselves follow. */
static size_t bare_length(const char *symbol)
{
	const char *close = strrchr(symbol, ')'), *open = close;
	unsigned depth = 0;
	if (!close || (close[1] && close[1] != ' '))
		return strlen(symbol);
	for (; open > symbol; open--) {
		depth += *open == ')';
		depth -= *open == '(';
		if (!depth)
			break;
	}
	const size_t n = (size_t)(open - symbol);
	const bool is_operator = n >= 8 && !memcmp(open - 8, "operator", 8);
	return depth || !n || is_operator ? strlen(symbol) : n;
}

static void put_symbol(struct dp_shower *x, const struct dp_snap_frame *f, bool with_args)
{
	const char *symbol = f->symbol ? f->symbol : "??";
	dp_auto_free char *bare = with_args && !x->o->verbose ? strndup(symbol, bare_length(symbol)) : NULL;
	dp_show_colored(x, DP_SHOW_NAME, bare ? bare : symbol);
	if (x->o->verbose && f->symbol && f->offset)
		dp_buf_printf(&x->b, "+%" PRIu64, f->offset);
	if (x->o->verbose && f->original_symbol) {
		dp_put_str(&x->b, " <was ");
		dp_show_put(x, f->original_symbol);
		dp_put_str(&x->b, ">");
	}
}

static void put_place(struct dp_shower *x, const struct dp_snap_frame *f)
{
	const bool bracket = f->object;
	if (f->path) {
		dp_put_str(&x->b, " at ");
		dp_show_put(x, f->path);
		if (f->line > 0)
			dp_buf_printf(&x->b, ":%d", f->line);
	}
	if (bracket) {
		dp_put_str(&x->b, " [");
		dp_show_put(x, x->o->verbose ? f->object : dp_snapshot_object_name(x->s, f->object));
		dp_put_str(&x->b, "]");
	}
	dp_put_str(&x->b, f->is_inline ? " (inlined)" : f->is_tail ? " (tail call)" : "");
	dp_put_str(&x->b, f->is_signal ? " (signal handler called)" : "");
	dp_put_str(&x->b, f->is_synthesized ? " (made by a pmodule)" : "");
	dp_show_colored(x, DP_SHOW_YELLOW, f->by_frame_pointer ? " (by frame pointer)" : f->is_guess ? " (a guess)" : "");
}

/* If the location does not fit after the arguments, it gets a line of its own. */
static void put_line(struct dp_shower *x, const struct dp_snap_frame *f, const struct dp_snap_frame *const *other, size_t n)
{
	size_t line = x->b.len;
	dp_buf_printf(&x->b, "#%-3u", f->index);
	if (f->pc || !f->is_synthesized)
		dp_buf_printf(&x->b, "0x%012" PRIx64 " ", f->pc);
	dp_put_str(&x->b, "in ");
	const bool with_args = !x->o->quiet && (f->path || f->variables);
	put_symbol(x, f, with_args);
	if (with_args)
		line = put_args(x, f, line, other, n);
	const size_t here = x->b.len;
	put_place(x, f);
	wrap(x, line, here);
	dp_put_str(&x->b, "\n");
}

static void put_siginfo(struct dp_shower *x, const struct dp_snap_siginfo *i)
{
	dp_show_indent(x, BELOW - 4);
	dp_show_colored(x, DP_SHOW_RED, *i->name ? i->name : "a signal");
	if (*i->reason) {
		dp_put_str(&x->b, ": ");
		dp_show_put(x, i->reason);
	}
	if (i->has_address)
		dp_buf_printf(&x->b, ", at 0x%" PRIx64, i->address);
	if (i->by_kill) /* "sent by kill()": by which process */
		dp_buf_printf(&x->b, "%s process %d of user %d", strncmp(i->reason, "sent by ", 8) ? ", sent by" : " of", i->pid,
		              i->uid);
	if (x->o->verbose)
		dp_buf_printf(&x->b, " (signal %d, code %d)", i->number, i->code);
	dp_put_str(&x->b, "\n");
}

/* Arguments have already been shown, but not their details. */
static bool is_below(const struct dp_shower *x, const struct dp_snap_variable *v)
{
	return v->place != DP_VAR_PARAMETER || v->notes || v->is_late || v->is_shared || v->children || x->o->verbose;
}

static void put_details(struct dp_shower *x, const struct dp_snap_frame *f)
{
	if (f->instruction && (f->is_fault || x->o->verbose)) {
		dp_show_indent(x, BELOW - 4);
		dp_put_str(&x->b, "=> ");
		dp_show_put(x, f->instruction);
		dp_put_str(&x->b, "\n");
	}
	if (f->siginfo)
		put_siginfo(x, f->siginfo);
	dp_show_notes(x, f->notes, BELOW - 4);
	const bool folded = dp_show_is_library(f) && dp_show_folds(x);
	for (const struct dp_snap_variable *v = f->variables; v && !x->o->quiet; v = v->next)
		if (is_below(x, v) && (!folded || v->notes || v->is_synthesized)) {
			dp_show_variable(x, v, NULL, BELOW);
			dp_show_flush(x, false);
		}
	if (x->o->registers && f->registers)
		dp_show_registers(x, f->registers, BELOW - 4);
}

void dp_show_frame(struct dp_shower *x, const struct dp_snap_frame *f)
{
	put_line(x, f, NULL, 0);
	put_details(x, f);
	dp_show_flush(x, false);
}

/* ---- before and after the frames */

static void put_kernel(struct dp_shower *x, const struct dp_snap_thread *t)
{
	const struct dp_snap_kframe *k = t->kframes;
	if (t->syscall_text) {
		dp_put_str(&x->b, "    in ");
		dp_show_call(x, t->syscall_text);
		dp_put_str(&x->b, "\n");
	}
	const bool folded = dp_show_folds(x);
	x->folded |= folded && k;
	for (unsigned i = 0; k && !x->o->quiet && !folded; k = k->next, i++) {
		dp_buf_printf(&x->b, "k%-3u", i);
		dp_show_put(x, k->symbol);
		dp_put_str(&x->b, " [kernel]\n");
	}
}

static void put_end(struct dp_shower *x, const struct dp_snap_thread *t)
{
	if (t->more_frames)
		dp_buf_printf(&x->b, "... %" PRIu64 " more frames\n", t->more_frames);
	if (!t->unwind_end)
		return;
	dp_put_str(&x->b, "    no further: ");
	dp_show_put(x, t->unwind_end);
	dp_put_str(&x->b, "\n");
}

static void put_head(struct dp_shower *x, const struct dp_snap_thread *t)
{
	char text[32];
	const char *state = state_name(t->state);
	snprintf(text, sizeof(text), "Thread %d", t->tid);
	dp_show_colored(x, DP_SHOW_BOLD, text);
	if (*t->name) {
		dp_put_str(&x->b, " ");
		dp_put_visible(&x->b, t->name, strlen(t->name), '"');
	}
	if (state)
		dp_buf_printf(&x->b, ", %s", state);
	if (t->is_fault)
		dp_show_colored(x, DP_SHOW_RED, t->fault_reason ? ": " : ", faulting");
	if (t->fault_reason)
		dp_show_colored(x, DP_SHOW_RED, t->fault_reason);
	dp_put_str(&x->b, "\n");
}

/* In brief: details of the fault, of annotated frames, and of the program's innermost function. */
static void put_frames(struct dp_shower *x, const struct dp_snap_thread *t)
{
	const struct dp_snap_frame *own = dp_show_own(t);
	for (const struct dp_snap_frame *f = t->frames; f;) {
		size_t n = dp_show_run(x, f);
		if (n)
			dp_show_put_run(x, f, n);
		else
			put_line(x, f, NULL, 0);
		if (!n && (!x->o->brief || f == own || f->notes || f->siginfo))
			put_details(x, f);
		dp_show_flush(x, false);
		for (n = n ? n : 1; n; n--)
			f = f->next;
	}
	put_end(x, t);
}

void dp_show_thread(struct dp_shower *x, const struct dp_snap_thread *t)
{
	put_head(x, t);
	dp_show_notes(x, t->notes, 4);
	if (x->o->registers)
		dp_show_thread_registers(x, t);
	put_kernel(x, t);
	put_frames(x, t);
	if (t->variables && !x->o->quiet) {
		dp_put_str(&x->b, "    thread-local:\n");
		dp_show_variables(x, t->variables, BELOW);
	}
	dp_show_flush(x, false);
}

/* ---- groups */

static bool have_one_name(const struct dp_show_group *g)
{
	for (size_t i = 1; i < g->n; i++)
		if (strcmp(g->member[i]->name, g->thread->name))
			return false;
	return true;
}

static bool named_before(const struct dp_show_group *g, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!strcmp(g->member[k]->name, g->member[i]->name))
			return true;
	return false;
}

/* The first names of the group, each once. */
static void put_names(struct dp_shower *x, const struct dp_show_group *g)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n && n <= NAMES_MOST; i++) {
		const char *name = g->member[i]->name;
		if (!*name || named_before(g, i))
			continue;
		dp_put_str(&x->b, n ? ", " : " ");
		if (n++ == NAMES_MOST)
			dp_put_str(&x->b, "...");
		else
			dp_put_visible(&x->b, name, strlen(name), '"');
	}
}

static void put_tids(struct dp_shower *x, const struct dp_show_group *g)
{
	char text[32];
	const bool same = have_one_name(g);
	size_t line = x->b.len;
	snprintf(text, sizeof(text), "%zu threads", g->n);
	dp_show_colored(x, DP_SHOW_BOLD, text);
	if (same && *g->thread->name) {
		dp_put_str(&x->b, " ");
		dp_put_visible(&x->b, g->thread->name, strlen(g->thread->name), '"');
	}
	if (!same)
		put_names(x, g);
	dp_put_str(&x->b, " with this stack:");
	for (size_t i = 0; i < g->n; i++) {
		const size_t n = (size_t)snprintf(text, sizeof(text), " %d", g->member[i]->tid);
		if (dp_show_column(x, line) + n > dp_show_width(x)) {
			dp_put_str(&x->b, "\n   ");
			line = x->b.len - 3;
		}
		dp_put_str(&x->b, text);
	}
	dp_put_str(&x->b, "\n");
}

/* Shows frames only, with the arguments that are the same in all threads: variables differ per thread. */
static void show_group(struct dp_shower *x, const struct dp_show_group *g)
{
	const struct dp_snap_frame **other = calloc(g->n, sizeof(*other));
	if (!other) {
		x->failed = true;
		return;
	}
	for (size_t i = 0; i < g->n; i++)
		other[i] = g->member[i]->frames;
	put_tids(x, g);
	for (const struct dp_snap_frame *f = g->thread->frames; f;) {
		size_t n = dp_show_run(x, f);
		if (n)
			dp_show_put_run(x, f, n);
		else
			put_line(x, f, other, g->n);
		for (n = n ? n : 1; n; n--, f = f->next)
			for (size_t i = 0; i < g->n; i++)
				other[i] = other[i] ? other[i]->next : NULL;
		dp_show_flush(x, false);
	}
	put_end(x, g->thread);
	if (!x->o->quiet)
		dp_buf_printf(&x->b, "    variables of one of them: --thread %d\n", g->thread->tid);
	free(other);
}

/* The thread that matters most, with the variables of its innermost function only; the others in one line. */
static void show_brief(struct dp_shower *x, const struct dp_show_group *g, bool first)
{
	const struct dp_snap_thread *t = g->thread;
	const bool matters = first && (g->rank < 2 || x->s->nthreads == 1);
	char text[48];
	if (matters) {
		dp_put_str(&x->b, "\n");
		put_head(x, t);
		dp_show_notes(x, t->notes, 4);
		put_frames(x, t);
		return;
	}
	dp_put_str(&x->b, first ? "\n" : "");
	snprintf(text, sizeof(text), g->n > 1 ? "%zu threads" : "Thread %zu", g->n > 1 ? g->n : (size_t)t->tid);
	dp_show_colored(x, DP_SHOW_BOLD, text);
	put_names(x, g);
	dp_put_str(&x->b, ": ");
	dp_show_chain(x, t);
	dp_show_notes(x, t->notes, 4);
	dp_show_flush(x, false);
}

void dp_show_threads(struct dp_shower *x)
{
	struct dp_show_group *group = NULL;
	const struct dp_snap_thread **members = NULL;
	size_t n = 0;
	if (!dp_show_group(x->s, &group, &n, &members))
		x->failed = true;
	for (size_t i = 0; i < n && !x->failed; i++) {
		if (x->o->brief) {
			show_brief(x, &group[i], !i);
			continue;
		}
		dp_put_str(&x->b, "\n");
		if (group[i].n > 1 && !x->o->ungrouped)
			show_group(x, &group[i]);
		else
			for (size_t k = 0; k < group[i].n; k++) {
				dp_put_str(&x->b, k ? "\n" : "");
				dp_show_thread(x, group[i].member[k]);
			}
	}
	free(group);
	free(members);
}
