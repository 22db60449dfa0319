/* SPDX-License-Identifier: MIT */
/* Moves new pages over the text, and repairs the text if the kernel fails halfway. */
#include "base/duration.h"
#include "injector/patch/replace/replace_job.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define REPAIRS 300 /* attempts to restore unmapped text */

struct dp_error *dp_job_changed(const struct job *j)
{
	return dp_error(DP_TAG_CHANGED, "text of %s changed while its new pages were made", j->span.map->path);
}

static void mark(const struct dp_replace *s, const struct page_run *r)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->page[i]->touched && s->page[i]->addr >= r->start && s->page[i]->addr < r->end)
			s->page[i]->stands = true;
}

static struct dp_error *map_again(struct job *j, const struct page_run *r)
{
	int64_t fd = -1, got = 0;
	DP_TRY(dp_job_open(j, NULL, 0, &fd));
	struct dp_error *err = dp_job_call(j, "mmap", SYS_mmap,
	                                   (const uint64_t[6]){r->start, r->end - r->start, PROT_READ | PROT_EXEC,
	                                                       MAP_PRIVATE | MAP_FIXED, (uint64_t)fd, offset_of(j, r->start)},
	                                   &got);
	for (size_t i = 0; !err && i < j->s->n; i++) {
		const struct dp_replace_page *p = j->s->page[i];
		if (p->addr >= r->start && p->addr < r->end)
			err = dp_mem_write_text(&j->s->t->process, dp_borrow_tid(j->b), dp_addr_of(p->addr), p->was, DP_PAGE,
			                        NULL);
	}
	dp_error_destroy(dp_job_call(j, "close", SYS_close, (const uint64_t[6]){(uint64_t)fd}, &got));
	return err;
}

/* The kernel unmapped the text, then had no memory. A thread that runs into the hole crashes, so retry at once, many times. */
static void repair(struct job *j, const struct page_run *r)
{
	for (int tried = 0; tried < REPAIRS; tried++) {
		struct dp_error *err = dp_job_take_thread(j);
		if (!err)
			err = map_again(j, r);
		if (!err)
			return;
		dp_error_destroy(err);
		nanosleep(&(struct timespec){.tv_nsec = tried < 10 ? 10000L : 1000000L}, NULL);
	}
}

/* Is the text to be replaced still there? */
static struct dp_error *check_run(const struct job *j, const struct page_run *r)
{
	const struct dp_target *t = j->s->t;
	const bool same = dp_replace_maps(t, &j->span, r->start, offset_of(j, r->start)) &&
	                  dp_replace_maps(t, &j->span, r->end - 1, offset_of(j, r->end - 1));
	return same ? NULL : dp_job_changed(j);
}

static struct dp_error *take_moved(struct job *j, struct page_run *r, const struct dp_step *step)
{
	if (!step->made)
		return dp_error(DP_TAG_REMOTE, "new text of %s was not moved in time", j->span.map->path);
	if (step->got == step->want) {
		r->there = false;
		mark(j->s, r);
		return NULL;
	}
	errno = (int)-step->got;
	struct dp_error *err = dp_error_sys(DP_TAG_REMOTE, "mremap in the target, for text of %s", j->span.map->path);
	if (!dp_replace_mapped(j->s->t, r->start))
		repair(j, r);
	return err;
}

static struct dp_error *move(struct job *j)
{
	struct dp_step step[RUNS_MOST];
	DP_TRY(dp_job_take_thread(j));
	DP_TRY(dp_stopped_holds(j->s->t, j->s->in));
	for (size_t i = 0; i < j->nruns; i++) {
		const struct page_run *r = &j->run[i];
		const uint64_t size = r->end - r->start;
		DP_TRY(check_run(j, r));
		step[i] = (struct dp_step){.nr = SYS_mremap,
		                           .args = {base_of(j, r->start), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, r->start},
		                           .want = (int64_t)r->start};
	}
	struct dp_error *err = dp_job_script(j, step, j->nruns);
	for (size_t i = 0; !err && i < j->nruns; i++)
		err = take_moved(j, &j->run[i], &step[i]);
	return err;
}

/* ---- text that the program may unload (docs/decisions/0029) ---------------------------------------------------------- */

static struct dp_error *not_held(struct job *j, struct dp_error *err)
{
	struct dp_error *why =
	        dp_error(DP_TAG_CHANGED, "the program may unload %s at any moment, and %s", j->span.map->path, err->message);
	const bool gone = err->tag == DP_TAG_GONE;
	j->s->unheld = true;
	dp_error_destroy(gone ? why : err);
	return gone ? err : why;
}

static void note_hold(struct job *j, size_t threads, uint64_t ns)
{
	struct dp_replace *s = j->s;
	char held[DP_DURATION_TEXT];
	dp_target_log(s->t, "text of %s: threads held for %s", j->span.map->path, dp_duration(ns, held));
	if (threads > 1 && s->holds++ == 0)
		snprintf(s->why_held, sizeof(s->why_held), "the program may unload %s at any moment", j->span.map->path);
	if (j->held_ns && ns > *j->held_ns)
		*j->held_ns = ns;
}

/* Holds all threads, so that none unloads the text, and maps something else there, between the check and the move. */
static struct dp_error *move_held(struct job *j)
{
	struct dp_freeze f = {0};
	struct dp_priority priority;
	DP_TRY(dp_job_give_thread(j, NULL));
	dp_priority_raise(&priority);
	struct dp_error *err = dp_freeze_with_retry(j->s->t, &f);
	const size_t threads = f.n;
	if (err) {
		err = not_held(j, err);
	} else {
		j->f = &f;
		err = dp_job_give_thread(j, move(j));
		j->f = NULL;
		dp_thaw_all(&f);
		note_hold(j, threads, f.end_ns - f.begin_ns);
	}
	dp_priority_restore(&priority);
	return err;
}

struct dp_error *dp_job_move(struct job *j)
{
	return j->f || j->stays ? move(j) : move_held(j);
}
