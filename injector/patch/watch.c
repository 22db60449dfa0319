/* SPDX-License-Identifier: MIT */
/*
 * Handles other tools that patch the same text (decision 11). A uprobe on our site replaces the first byte by a trap, and later
 * restores the file's first byte, not ours: with the rest of our jump, that is wrong code. So when the trap is seen, the rest of
 * the original bytes is restored after it (no thread decodes them while the trap is there), and the probe is retired. If the
 * first byte is already the original one, the same repair is overdue and done at once. The same happens if a byte changes that a
 * jump only relies on: the jump now leads elsewhere.
 */
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/embedded.h"
#include "injector/patch/restore.h"
#include "injector/patch/semaphores.h"
#include "injector/patch/sights.h"
#include "injector/patch/replace/replace.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/proc/tracer.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <unistd.h>

#define RETRIES 3 /* of reads that fail while threads end one after the other */

static bool ended(struct dp_target *t)
{
	struct pollfd p = {.fd = t->exit_fd, .events = POLLIN};
	return t->exit_fd >= 0 ? poll(&p, 1, 0) > 0 : dp_process_start_time(t->process.pid) != t->process.start_time;
}

/* A process that is ending frees its memory before its pidfd reports the end; one that called exec always has some. */
static bool has_memory(const struct dp_process *p)
{
	struct dp_buf statm;
	dp_buf_init(&statm);
	const bool some =
	        dp_proc_slurp(&statm, "/proc/%d/task/%d/statm", p->pid, p->alive) && strtoul(dp_buf_str(&statm), NULL, 10) != 0;
	dp_buf_fini(&statm);
	return some;
}

/*
 * ---- unexpected bytes
 * ------------------------------------------------------------------------------------------------------------
 */

static bool overlap(const struct dp_placed *p, const struct dp_placed *q)
{
	return p->addr < q->addr + q->len && q->addr < p->addr + p->len;
}

/* Replaces those of the site's bytes that are still ours by the old ones. False if there are none. */
static bool give_up_bytes(const struct dp_placed *p, uint8_t *now, unsigned *first, unsigned *end)
{
	*first = *end = 0;
	for (unsigned n = 0; n < p->nchanged; n++) {
		if (p->new_bytes[n] == p->old_bytes[n] || now[n] != p->new_bytes[n])
			continue;
		now[n] = p->old_bytes[n];
		*first = *end ? *first : n;
		*end = n + 1;
	}
	return *end;
}

struct going {
	const struct dp_installation *in;
	size_t *list;
	size_t n, cap;
	bool short_of_memory;
};

static void add(struct going *g, size_t k)
{
	for (size_t m = 0; m < g->n; m++)
		if (g->list[m] == k)
			return;
	if (g->n == g->cap) {
		const size_t cap = g->cap ? 2 * g->cap : 8;
		size_t *grown = reallocarray(g->list, cap, sizeof(*grown));
		g->short_of_memory |= !grown;
		if (!grown)
			return;
		g->list = grown;
		g->cap = cap;
	}
	g->list[g->n++] = k;
}

/* Adds the sites of `near` that rely on site i. */
static void add_users(struct going *g, size_t i, struct dp_near near)
{
	const struct dp_placed *p = g->in->placed;
	for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;)
		if (k > i && dp_placed_stands(&p[k]) && (overlap(&p[i], &p[k]) || dp_placed_leads_into(&p[k], &p[i])))
			add(g, k);
}

static int by_number(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return x < y ? -1 : x > y;
}

/* Site `i`, the sites that rely on its bytes, those that rely on these, and so on: ascending. NULL: no memory. */
static size_t *going(const struct dp_target *t, size_t i, size_t *n)
{
	struct going g = {.in = &t->in};
	add(&g, i);
	for (size_t m = 0; m < g.n && !g.short_of_memory; m++) {
		const struct dp_placed *p = &t->in.placed[g.list[m]];
		add_users(&g, g.list[m], dp_near_bytes(g.in, p->addr, p->len));
		add_users(&g, g.list[m], dp_near_leading(g.in, p->addr, p->addr + p->len));
	}
	*n = g.n;
	if (!g.short_of_memory) {
		qsort(g.list, g.n, sizeof(*g.list), by_number);
		return g.list;
	}
	free(g.list);
	return NULL;
}

/* Repairs all at once, while all threads run. Sites that rely on others are restored first. */
static struct dp_error *repair_live(struct dp_target *t, const size_t *list, size_t n, struct dp_replace *s)
{
	while (n-- > 0) {
		const struct dp_placed *p = &t->in.placed[list[n]];
		uint8_t now[sizeof(p->new_bytes)];
		unsigned first, end;
		if (dp_replace_read(s, p->addr, now, p->len) != p->len || !give_up_bytes(p, now, &first, &end))
			continue;
		const struct dp_replace_edit edit = {p->addr, p->len, first, end - first, now + first};
		if (!dp_replace_write(s, &edit))
			return dp_error(DP_TAG_CHANGED, "%s", dp_replace_why(s));
	}
	return dp_replace_commit(s, NULL, NULL);
}

/* Writes only the hosts of embedded jumps, or only the others. */
static void write_held(struct dp_target *t, const size_t *list, size_t n, const bool *host, bool which, const struct dp_freeze *f)
{
	while (n-- > 0) {
		const struct dp_placed *p = &t->in.placed[list[n]];
		uint8_t now[sizeof(p->new_bytes)];
		unsigned first, end;
		if (host[list[n]] != which)
			continue;
		if (dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len && give_up_bytes(p, now, &first, &end))
			dp_error_destroy(dp_mem_write_text(&t->process, f->thread[0].tid, dp_addr_of(p->addr + first),
			                                   now + first, end - first, NULL));
	}
}

/* A host of a jump to which a signal handler will return waits for the next round. */
static struct dp_error *repair_held(struct dp_target *t, const size_t *list, size_t n, const struct dp_embedded *hidden)
{
	struct dp_freeze f = {0};
	struct dp_priority priority;
	char why[128];
	dp_priority_raise(&priority);
	struct dp_error *err = dp_freeze_with_retry(t, &f);
	if (!err) {
		write_held(t, list, n, hidden->host, false, &f);
		if (dp_embedded_leave(t, hidden, &f, why))
			write_held(t, list, n, hidden->host, true, &f);
	}
	dp_thaw_all(&f);
	dp_priority_restore(&priority);
	return err;
}

static struct dp_error *find_hidden(struct dp_target *t, const size_t *list, size_t n, struct dp_embedded *ret)
{
	dp_auto_free bool *goes = calloc(t->in.nplaced + 1, sizeof(*goes));
	for (size_t i = 0; goes && i < n; i++)
		goes[list[i]] = true;
	return goes ? dp_embedded_find(&t->in, goes, ret) : dp_error_nomem();
}

static struct dp_error *repair_all(struct dp_target *t, const size_t *list, size_t n)
{
	struct dp_replace *s = NULL;
	struct dp_embedded hidden;
	DP_TRY(find_hidden(t, list, n, &hidden));
	struct dp_error *err = hidden.n ? NULL : dp_replace_create(t, &t->in, &s);
	if (!err && s)
		err = repair_live(t, list, n, s);
	dp_replace_destroy(s);
	if (err || hidden.n) { /* for example because of uprobes */
		dp_error_destroy(err);
		err = repair_held(t, list, n, &hidden);
	}
	dp_embedded_fini(&hidden);
	return err;
}

/* Reads the bytes again, because the other tool may have changed them since. True if none of ours is left there. */
static bool repair(struct dp_target *t, size_t i)
{
	const struct dp_placed *p = &t->in.placed[i];
	uint8_t now[sizeof(p->new_bytes)];
	unsigned first, end;
	size_t n;
	dp_auto_free size_t *list = going(t, i, &n);
	if (!list)
		return false;
	struct dp_error *err = repair_all(t, list, n);
	dp_error_destroy(err); /* for example because another tracer holds it: the next round retries */
	return dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) != p->len || !give_up_bytes(p, now, &first, &end);
}

static void retire(struct dp_placed *p)
{
	p->state = DP_SITE_RETIRED;
	if (p->entry)
		p->entry->state = DP_SITE_RETIRED;
}

/* Is the private region there? The thread that we read through may have ended, so tries another one before saying no. */
static bool still_there(struct dp_target *t)
{
	struct dp_error *err = dp_stopped_ours(t);
	if (err && dp_pick_living(t))
		err = (dp_error_destroy(err), dp_stopped_ours(t));
	const bool there = !err;
	dp_error_destroy(err);
	return there;
}

/*
 * Gives up the site after its repair. The rest of our jump showed that its module, which contains the counter, is still mapped.
 */
static bool give_up(struct dp_target *t, size_t i)
{
	const bool done = repair(t, i);
	if (done && still_there(t)) /* after an exec the counter's address belongs to another program */
		dp_semaphores_lower(t, &t->in.placed[i]);
	return done;
}

/*
 * Is it a debugger's breakpoint? That one is put over our byte, and our byte comes back: when the process stops, at the latest when
 * the debugger leaves. To give up the site meanwhile would leave that byte in front of the program's own.
 */
static bool is_debuggers(const struct dp_target *t, uint8_t first)
{
	return first == 0xcc && dp_tracer_of(t->process.pid, t->process.alive);
}

static const char unmapped[] = "its memory was unmapped";

/* NULL while the site is as we left it, else why it is given up. */
static const char *look(struct dp_target *t, size_t i)
{
	const struct dp_placed *p = &t->in.placed[i];
	uint8_t now[sizeof(p->new_bytes)], want[sizeof(p->new_bytes)];
	if (dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) != p->len)
		return unmapped;
	dp_placed_expected(&t->in, i, want);
	if (!memcmp(now, want, p->len))
		return NULL;
	if (is_debuggers(t, now[0]))
		return NULL;
	if (!memcmp(now + 1, want + 1, p->len - 1u) && (now[0] == 0xcc || now[0] == p->old_bytes[0]))
		return give_up(t, i) ? "another tool put a breakpoint or uprobe there" : NULL;
	if (!memcmp(now, want, p->nchanged)) /* the jump is complete, but leads elsewhere */
		return give_up(t, i) ? "another tool changed a byte after it that its jump relies on" : NULL;
	return "another tool changed its bytes";
}

/* Its original bytes show that its module, which contains the marker's counter, is still the probed one. */
static bool is_restored(struct dp_target *t, const struct dp_placed *p)
{
	uint8_t now[sizeof(p->old_bytes)];
	return dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) == p->len && !memcmp(now, p->old_bytes, p->len);
}

/* Retires sites that were repaired with it. If another tool's bytes were at the site before any repair, repairs them now. */
static void retire_dependent(struct dp_target *t, size_t i, void (*retired)(size_t plan, const char *why, void *data), void *data)
{
	size_t n;
	dp_auto_free size_t *list = going(t, i, &n);
	while (list && n-- > 1) {
		if (!repair(t, list[n]))
			continue;
		if (is_restored(t, &t->in.placed[list[n]]))
			dp_semaphores_lower(t, &t->in.placed[list[n]]);
		retire(&t->in.placed[list[n]]);
		retired(list[n], "another tool changed bytes that it relies on", data);
	}
}

static enum dp_watch over(struct dp_target *t)
{
	t->gone = true;
	return ended(t) || !has_memory(&t->process) ? DP_WATCH_EXITED : DP_WATCH_EXECED;
}

/*
 * Examines a site whose bytes differ, or did a moment ago. False if the process ended or called exec meanwhile: then no other
 * tool took the site.
 */
static bool look_closer(struct dp_target *t, size_t i, void (*retired)(size_t plan, const char *why, void *data), void *data)
{
	const char *why = t->in.placed[i].state == DP_SITE_PLANNED ? look(t, i) : NULL;
	for (int tried = 0; why == unmapped && tried < RETRIES; tried++) { /* the thread that we read through may have ended */
		if (!still_there(t))
			return false;
		why = look(t, i);
	}
	if (!why)
		return true;
	if (!still_there(t))
		return false;
	retire(&t->in.placed[i]);
	retired(i, why, data);
	retire_dependent(t, i, retired, data);
	return true;
}

enum dp_watch dp_target_watch(struct dp_target *t, void (*retired)(size_t plan, const char *why, void *data), void *data)
{
	const size_t *odd = NULL;
	size_t n = 0;
	bool there = true, given_up = false;
	if (t->gone || ended(t)) {
		t->gone = true;
		return DP_WATCH_EXITED;
	}
	if (!t->installed)
		return DP_WATCH_OK;
	if (!still_there(t))
		return over(t);
	dp_error_destroy(dp_sights_inspect(t, &odd, &n)); /* without memory: the next round retries */
	for (size_t i = 0; there && i < n; i++)
		there = look_closer(t, odd[i], retired, data);
	for (size_t i = 0; i < n; i++)
		given_up |= t->in.placed[odd[i]].state != DP_SITE_PLANNED;
	if (given_up) /* bytes that it wrote over others are no longer expected */
		dp_sights_forget(&t->in);
	return there ? DP_WATCH_OK : over(t);
}
