/* SPDX-License-Identifier: MIT */
#include "pmodules/load/ready.h"
#include "pmodules/host/rerun.h"
#include "pmodules/load/load.h"

#include <string.h>
#include <sys/syscall.h>
#include <utlist.h>

enum { BUDGET_NS = 20000000 };

static bool was_run(const struct dp_snapshot *s)
{
	for (const struct dp_snap_pair *p = s->attributes; p; p = p->next)
		if (!strcmp(p->key, "deadlock.waiting"))
			return true;
	return false;
}

static bool waits(const struct dp_snap_thread *t)
{
	return t->has_registers && (t->orig_rax == SYS_futex || t->orig_rax == SYS_restart_syscall);
}

static bool several_wait(const struct dp_snapshot *s)
{
	unsigned n = 0;
	for (const struct dp_snap_thread *t = s->threads; t && n < 2; t = t->next)
		n += waits(t);
	return n == 2;
}

static void be_silent(enum dp_log_level level, const char *module, const char *text, void *data)
{
	(void)level, (void)module, (void)text, (void)data;
}

static bool has_cycle(const struct dp_snapshot *s)
{
	for (const struct dp_snap_word *w = s->classifiers; w; w = w->next)
		if (!strcmp(w->text, "deadlock"))
			return true;
	return false;
}

/*
 * Who asked for the module wants to know of every wait. Here an idle worker, which waits for a condition variable, would look as
 * if it mattered, and be shown apart from the others of its pool.
 */
static void drop_idle(struct dp_snapshot *s)
{
	static const char idle[] = "waits for condition variable";
	const bool found = has_cycle(s);
	struct dp_snap_note *n, *next;
	for (struct dp_snap_thread *t = s->threads; t; t = t->next)
		DL_FOREACH_SAFE(t->notes, n, next)
	if (n->kind == DP_NOTE_COMMENT && !strcmp(n->module, "deadlock") && (!found || !strncmp(n->text, idle, sizeof(idle) - 1)))
		DL_DELETE(t->notes, n);
}

void dp_ready_run(struct dp_snapshot *s)
{
	const struct dp_host_options options = {
	        .budget_ns = BUDGET_NS, .log = be_silent, .pmap = true, .nobody_waits = true, .value_of = dp_rerun_value};
	struct dp_host *h = NULL;
	size_t missing = 0;
	if (was_run(s) || !several_wait(s))
		return;
	struct dp_error *err = dp_host_create(&options, &h);
	if (!err)
		err = dp_host_load(h, "deadlock");
	if (!err)
		err = dp_rerun(h, s, &missing);
	dp_host_destroy(h);
	drop_idle(s);
	dp_error_destroy(err);
}
