/* SPDX-License-Identifier: MIT */
/*
 * Other patchers exist (decision 11). A uprobe on our site replaces the first byte by a trap and later puts the file's first byte
 * back, not ours: together with our tail that is wrong code. So when the trap is seen, the rest of the original bytes is written
 * back behind it (nobody decodes them while the trap stands), and the probe is retired. When the first byte is already the
 * original one again, the same repair is overdue and done at once.
 */
#include "injector/proc.h"
#include "injector/target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <unistd.h>

static bool ended(struct dp_target *t)
{
	struct pollfd p = {.fd = t->exit_fd, .events = POLLIN};
	return t->exit_fd >= 0 ? poll(&p, 1, 0) > 0 : dp_process_start_time(t->process.pid) != t->process.start_time;
}

/* A process that is ending gives up its memory before its pidfd says so; one that called exec has some at every moment. */
static bool has_memory(const struct dp_process *p)
{
	struct dp_buf statm;
	dp_buf_init(&statm);
	const bool some = dp_proc_slurp(&statm, "/proc/%d/task/%d/statm", p->pid, p->alive) &&
	                  strtoul(dp_buf_str(&statm), NULL, 10) != 0;
	dp_buf_fini(&statm);
	return some;
}

/* True if the bytes behind the first are the original ones now. */
static bool write_tail(struct dp_target *t, const struct dp_placed *p)
{
	struct dp_freeze f = {0};
	uint8_t now[sizeof(p->old_bytes)];
	bool done = false;
	struct dp_error *err = dp_freeze_patiently(t, &f);
	if (err) {
		/* Another tracer holds it, say: the next round tries again. */
		dp_error_destroy(err);
		return false;
	}
	/* Looked at again: between the first look and the stop the other tool may have gone on. */
	if (dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len && now[0] != p->new_bytes[0] &&
	    !memcmp(now + 1, p->new_bytes + 1, p->len - 1u))
		err = dp_mem_write_text(&t->process, f.thread[0].tid, dp_addr_of(p->addr + 1), p->old_bytes + 1, p->len - 1u,
		                        NULL);
	if (!err && dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len)
		done = !memcmp(now + 1, p->old_bytes + 1, p->len - 1u);
	dp_thaw_all(&f);
	dp_error_destroy(err);
	return done;
}

static void retire(struct dp_placed *p)
{
	p->state = DP_SITE_RETIRED;
	if (p->entry)
		p->entry->state = DP_SITE_RETIRED;
}

/* NULL while the site is as we left it, else why it is given up. */
static const char *look(struct dp_target *t, struct dp_placed *p)
{
	uint8_t now[sizeof(p->new_bytes)];
	if (dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) != p->len)
		return "its mapping is gone";
	if (!memcmp(now, p->new_bytes, p->len))
		return NULL;
	if (!memcmp(now + 1, p->new_bytes + 1, p->len - 1u) && (now[0] == 0xcc || now[0] == p->old_bytes[0])) {
		return write_tail(t, p) ? "another tool put a breakpoint or uprobe there" : NULL;
	}
	return "another tool changed its bytes";
}

/* Is the private region there? A thread that we looked through may have ended, so another one is asked before it is denied. */
static bool still_there(struct dp_target *t)
{
	struct dp_error *err = dp_still_ours(t);
	if (err && dp_pick_living(t))
		err = (dp_error_destroy(err), dp_still_ours(t));
	const bool there = !err;
	dp_error_destroy(err);
	return there;
}

enum dp_watch dp_target_watch(struct dp_target *t, void (*retired)(size_t plan, const char *why, void *data), void *data)
{
	if (t->gone || ended(t)) {
		t->gone = true;
		return DP_WATCH_EXITED;
	}
	if (!t->installed)
		return DP_WATCH_OK;
	if (!still_there(t)) {
		t->gone = true;
		return ended(t) || !has_memory(&t->process) ? DP_WATCH_EXITED : DP_WATCH_EXECED;
	}
	for (size_t i = 0; i < t->in.nplaced; i++) {
		struct dp_placed *p = &t->in.placed[i];
		const char *why = p->written && p->state == DP_SITE_PLANNED ? look(t, p) : NULL;
		if (!why)
			continue;
		retire(p);
		retired(i, why, data);
	}
	return DP_WATCH_OK;
}
