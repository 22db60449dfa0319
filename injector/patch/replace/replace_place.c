/* SPDX-License-Identifier: MIT */
/*
 * Writes one page in place, repeatedly (docs/decisions/0018-text-that-is-toggled.md).
 *
 * New pages are needed because other threads may run what is being written. In a process with one thread, that thread is stopped
 * for the work anyway. Meanwhile nothing runs, so one write within a page is as good as a new page, in a tenth of the time. It is
 * all or nothing if we die, because the kernel copies it in one go. As with new pages, the thread's pc does not matter: every
 * instruction boundary stays one.
 */
#include "injector/patch/replace/replace.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/proc/sharers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define STOP_NS UINT64_C(200000000)

void dp_replace_stay_hot(struct dp_replace *s)
{
	s->hot = true;
	s->shared = dp_sharer(&s->t->process) != 0;
}

static bool is_touched(const struct dp_replace_page *p)
{
	return p->touched && !p->stands;
}

/* The only page to write; NULL if there are several, or a site crosses pages. */
static struct dp_replace_page *only_page(const struct dp_replace *s)
{
	struct dp_replace_page *only = NULL;
	for (size_t i = 0; i < s->n; i++) {
		if (!is_touched(s->page[i]))
			continue;
		if (only || s->page[i]->joined)
			return NULL;
		only = s->page[i];
	}
	return only;
}

/* Opened once, so that writes go to this memory even if the process calls exec. */
static bool open_mem(struct dp_replace *s)
{
	char path[64];
	if (s->mem >= 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", s->t->process.pid, s->t->process.alive);
	s->mem = open(path, O_RDWR | O_CLOEXEC);
	return s->mem >= 0;
}

static struct dp_error *is_copy(const struct dp_replace *s, const struct dp_replace_page *p, bool *ret)
{
	uint8_t *copy = NULL;
	DP_TRY(dp_replace_copies(s->t, p->addr, p->addr + DP_PAGE, &copy));
	*ret = copy[0];
	free(copy);
	return NULL;
}

static struct dp_error *stop(struct dp_replace *s, struct dp_held *h, bool *stands)
{
	struct dp_task_stat stat;
	bool gone;
	*stands = false;
	if (!dp_proc_stat(s->t->process.pid, h->tid, &stat) || stat.state == 'D')
		return NULL; /* it would not stop, and could not be released */
	DP_TRY(dp_held_seize(&s->t->process, h->tid, &gone));
	if (gone)
		return NULL;
	h->seized = true;
	h->held_at_ns = dp_now_ns();
	ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL);
	const struct dp_stop at = dp_stop_wait(h->tid, h->held_at_ns + STOP_NS);
	*stands = at.kind != DP_STOP_NONE && dp_held_take(h, at) && at.kind != DP_STOP_EXEC;
	return NULL;
}

/* Writes from the first byte that changes to the last. */
static bool write_page(const struct dp_replace *s, const struct dp_replace_page *p)
{
	uint8_t now[DP_PAGE];
	size_t from = 0, end = DP_PAGE;
	if (!dp_replace_alone(s) || pread(s->mem, now, DP_PAGE, (off_t)p->addr) != (ssize_t)DP_PAGE ||
	    memcmp(now, p->was, DP_PAGE) != 0)
		return false;
	while (from < end && p->is[from] == p->was[from])
		from++;
	while (end > from && p->is[end - 1] == p->was[end - 1])
		end--;
	return from == end || pwrite(s->mem, p->is + from, end - from, (off_t)(p->addr + from)) == (ssize_t)(end - from);
}

static struct dp_error *write_held(struct dp_replace *s, struct dp_replace_page *p, uint64_t *held_ns)
{
	struct dp_held h = {.tid = s->t->process.alive, .ns_tid = s->t->process.alive, .pid = s->t->process.pid};
	bool stands;
	DP_TRY(stop(s, &h, &stands));
	if (stands)
		p->stands = write_page(s, p);
	dp_held_release(&h);
	const uint64_t held = dp_now_ns() - h.held_at_ns;
	if (stands && held_ns && held > *held_ns)
		*held_ns = held;
	if (!stands)
		dp_late_stop_settle(DP_SETTLE_NS);
	return NULL;
}

struct dp_error *dp_replace_in_place(struct dp_replace *s, uint64_t *held_ns, bool *done)
{
	struct dp_priority priority;
	struct dp_replace_page *p = only_page(s);
	bool copy = false;
	*done = false;
	if (!p || s->shared || !dp_replace_alone(s) || !open_mem(s))
		return NULL;
	DP_TRY(is_copy(s, p, &copy));
	if (!copy)
		return NULL;
	dp_priority_raise(&priority);
	dp_watchdog_start("a thread of the program");
	struct dp_error *err = write_held(s, p, held_ns);
	dp_watchdog_stop();
	dp_priority_restore(&priority);
	*done = p->stands;
	return err;
}
