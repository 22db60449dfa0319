/* SPDX-License-Identifier: MIT */
/*
 * Makes new pages beside the text and moves them over it.
 *
 *   one thread   openat the module's file, mmap the runs' pages of it at `base`, close
 *   the tool     writes the new contents (/proc/PID/mem copies the page), and checks everything again
 *   one thread   mremap each run over the text
 *
 * The thread runs between its two turns, so that each is short; hot text, if it is few pages, is done in a single one. The new
 * pages have the contents of the live ones: if a page is a private copy (with other probes, another tool's changes, relocations),
 * its contents are copied; a page that equals the file's stays the file's. If pages of the new mapping are private copies from
 * the start, the kernel has put a uprobe there; such text is not replaced.
 *
 * If the tool dies: before the mapping exists, a note in the private region says where it will be, and of which file. mremap does
 * all or nothing. The note stays until nothing is left at `base`.
 */
#include "injector/patch/replace/replace_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define PIECES_MOST 32 /* with more, too, text is replaced as a whole */
#define PAGES_QUICK 8  /* of hot text, written while the thread is held */
#define BORROW_NS   UINT64_C(1000000000)
#define BASE_GAP    UINT64_C(0x1000000)
#define MAPS_MARGIN 32
#define NOTE(s)     dp_replace_note_at((s)->in)
#define PATH(s)     (NOTE(s) + sizeof(struct dp_replace_note))

_Static_assert(sizeof(struct dp_agent) % 8 == 0 && sizeof(struct dp_replace_note) % 8 == 0 &&
                       DP_PAGE - sizeof(struct dp_agent) % DP_PAGE >=
                               sizeof(struct dp_replace_note) + DP_REPLACE_PATH_MAX + DP_SCRIPT_ROOM,
               "note, path and script fit behind the agent's state");

/* ---- a thread ------------------------------------------------------------------------------------------------------------ */

struct dp_error *dp_job_give_thread(struct job *j, struct dp_error *err)
{
	uint64_t held = 0;
	if (!j->b)
		return err;
	struct dp_error *end = dp_borrow_end(j->b, &held);
	j->b = NULL;
	if (!j->f) {
		dp_priority_restore(&j->priority);
		if (j->held_ns && held > *j->held_ns)
			*j->held_ns = held;
	}
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

struct dp_error *dp_job_take_thread(struct job *j)
{
	struct dp_target *t = j->s->t;
	struct dp_error *err;
	if (j->b && dp_borrow_lost(j->b)) /* it resumed on its own: borrows another one */
		dp_error_destroy(dp_job_give_thread(j, NULL));
	if (j->b)
		return NULL;
	t->process.avoid_start = j->span.start;
	t->process.avoid_end = j->span.end;
	if (!j->f)
		dp_priority_raise(&j->priority);
	err = j->f ? dp_borrow_held(t, j->f, &j->b) : dp_borrow_one(t, BORROW_NS, &j->b);
	if (err && !j->f)
		dp_priority_restore(&j->priority);
	t->process.avoid_start = t->process.avoid_end = 0;
	return err;
}

struct dp_error *dp_job_call(struct job *j, const char *name, long nr, const uint64_t args[6], int64_t *ret)
{
	int64_t got = 0;
	struct dp_error *err = dp_remote_syscall(j->b, nr, args, &got);
	j->unsure |= err && dp_borrow_lost(j->b);
	if (err)
		return err;
	if (got < 0 && got > -4096) {
		errno = (int)-got;
		return dp_error_sys(DP_TAG_REMOTE, "%s in the target, for text of %s", name, j->span.map->path);
	}
	*ret = got;
	return NULL;
}

struct dp_error *dp_job_script(struct job *j, struct dp_step *step, size_t n)
{
	size_t done;
	struct dp_error *err = dp_remote_script(j->b, dp_script_room(j->s->in), step, n, UINT64_MAX, &done);
	j->unsure |= err && dp_borrow_lost(j->b);
	return err;
}

/* ---- which pages, and where ------------------------------------------------------------------------------------------------ */

static bool is_touched(const struct dp_replace_page *p)
{
	return p->touched && !p->stands && !p->failed;
}

/* Adjacent pages form a run; too many runs are merged into one. */
static void find_runs(struct job *j)
{
	const struct dp_replace *s = j->s;
	struct page_run *r = NULL;
	size_t pieces = 0;
	j->nruns = 0;
	for (size_t i = 0; i < dp_image_nmaps(s->image); i++)
		pieces += dp_image_map(s->image, i)->start.v >= j->span.start && dp_image_map(s->image, i)->end.v <= j->span.end;
	for (size_t i = 0; i < s->n && j->nruns <= RUNS_MOST; i++) {
		const uint64_t at = s->page[i]->addr;
		if (at < j->span.start || at >= j->span.end || !is_touched(s->page[i]))
			continue;
		if (r && r->end == at) {
			r->end += DP_PAGE;
		} else if (j->nruns++ < RUNS_MOST) {
			r = &j->run[j->nruns - 1];
			*r = (struct page_run){at, at + DP_PAGE, false};
		}
	}
	if (j->nruns > RUNS_MOST || pieces > PIECES_MOST || s->whole) {
		j->nruns = 1;
		j->run[0] = (struct page_run){j->span.start, j->span.end, false};
	}
}

/* Far from code and heap, near this group: the kernel places no other mappings there unless asked. */
static bool find_base(struct job *j)
{
	const uint64_t size = j->span.end - j->span.start;
	j->base = j->s->in->private.addr + j->s->in->private.size + BASE_GAP;
	for (size_t i = 0; i < dp_image_nmaps(j->s->image); i++) {
		const struct dp_map *m = dp_image_map(j->s->image, i);
		if (m->start.v < j->base + size + DP_PAGE && m->end.v + DP_PAGE > j->base)
			j->base = m->end.v + BASE_GAP;
	}
	return j->base + size < UINT64_C(0x7fff00000000);
}

static bool room_for_mappings(const struct dp_replace *s)
{
	unsigned long most = 0;
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	if (f && fscanf(f, "%lu", &most) != 1)
		most = 0;
	if (f)
		fclose(f);
	return dp_image_nmaps(s->image) + MAPS_MARGIN < most;
}

static struct dp_error *prepare(struct job *j)
{
	const struct dp_replace *s = j->s;
	if (!s->in->private.mapped || s->in->private.size < dp_page_up(sizeof(struct dp_agent)))
		return dp_error(DP_TAG_CHANGED, "there is no space for a recovery note in process %d", s->t->process.pid);
	if (!s->hot && !room_for_mappings(s))
		return dp_error(DP_TAG_CHANGED, "process %d has nearly as many mappings as the kernel allows", s->t->process.pid);
	find_runs(j);
	if (!find_base(j))
		return dp_error(DP_TAG_NO_SPACE, "no free addresses for a copy of %llu bytes of text",
		                (unsigned long long)(j->span.end - j->span.start));
	return NULL;
}

/* ---- the note -----------------------------------------------------------------------------------------------------------------
 */

static struct dp_error *put_note(const struct job *j)
{
	const struct dp_process *p = &j->s->t->process;
	const struct dp_map *m = j->span.map;
	struct dp_replace_note old,
	        note = {0, j->base, j->span.start, j->span.end, j->span.offset, m->inode, m->dev_major, m->dev_minor};
	const uint64_t magic = DP_REPLACE_MAGIC;
	if (dp_replace_note(j->s->t, j->s->in, &old)) /* a thread that works by that note has not finished */
		return dp_error(DP_TAG_CHANGED, "an earlier dynprobe's text replacement in process %d has not finished", p->pid);
	DP_TRY(dp_mem_write(p, dp_addr_of(NOTE(j->s)), &note, sizeof(note)));
	DP_TRY(dp_mem_write(p, dp_addr_of(PATH(j->s)), m->path, strlen(m->path) + 1));
	return dp_mem_write(p, dp_addr_of(NOTE(j->s)), &magic, sizeof(magic));
}

/* ---- new pages ------------------------------------------------------------------------------------------------------------- */

struct dp_error *dp_job_open(struct job *j, struct dp_step *behind, size_t n, int64_t *fd)
{
	struct dp_opening o = {.name = "openat",
	                       .make = {.nr = SYS_openat, .args = {(uint64_t)AT_FDCWD, PATH(j->s), DP_REPLACE_OPEN}},
	                       .behind = behind,
	                       .nbehind = n};
	struct dp_error *err = dp_remote_open(j->b, dp_script_room(j->s->in), &o, fd);
	j->unsure |= err && dp_borrow_lost(j->b);
	return err ? dp_error_wrap(err, "opening %s", j->span.map->path) : NULL;
}

/* Maps the new pages of each run, then closes the descriptor. */
static size_t write_steps(const struct job *j, struct dp_step step[RUNS_MOST + 1])
{
	size_t n = 0;
	for (; n < j->nruns; n++) {
		const struct page_run *r = &j->run[n];
		step[n] = (struct dp_step){.nr = SYS_mmap,
		                           .args = {base_of(j, r->start), r->end - r->start, PROT_READ | PROT_EXEC,
		                                    MAP_PRIVATE | MAP_FIXED_NOREPLACE, DP_OPENED, offset_of(j, r->start)},
		                           .want = (int64_t)base_of(j, r->start)};
	}
	step[n++] = (struct dp_step){.nr = SYS_close, .args = {DP_OPENED}};
	return n;
}

static struct dp_error *take_mapped(struct job *j, size_t i, const struct dp_step *step)
{
	const bool failed = step->got < 0 && step->got > -4096;
	j->run[i].there = step->made && !failed;
	if (step->made && step->got == step->want)
		return NULL;
	if (step->made && !failed)
		return dp_error(DP_TAG_CHANGED, "the kernel did not map memory at the requested address in the target");
	errno = step->made ? (int)-step->got : EINTR;
	return dp_error_sys(DP_TAG_REMOTE, "mmap in the target, for text of %s", j->span.map->path);
}

/* The inode that the target finds by the module's path. */
static uint64_t inode_of(const struct job *j)
{
	char path[64 + DP_REPLACE_PATH_MAX];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/root%s", j->s->t->process.pid, j->s->t->process.alive, j->span.map->path);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Closes the descriptor if a failed step left it open. Checks its file first, because the program may have closed it itself. */
static void close_there(struct job *j, int64_t fd)
{
	const struct dp_replace_note note = {.inode = inode_of(j)};
	char name[24];
	int64_t ignored;
	snprintf(name, sizeof(name), "%lld", (long long)fd);
	struct dp_error *err = dp_job_take_thread(j); /* the one that opened it may have resumed on its own */
	if (!err && dp_replace_is_file(j->s->t, dp_borrow_tid(j->b), name, &note))
		err = dp_job_call(j, "close", SYS_close, (const uint64_t[6]){(uint64_t)fd}, &ignored);
	j->unsure |= err != NULL; /* then the note leads the next tool to it */
	dp_error_destroy(err);
}

static struct dp_error *map_runs(struct job *j)
{
	struct dp_step step[RUNS_MOST + 1];
	const size_t n = write_steps(j, step);
	int64_t fd = -1;
	struct dp_error *err = dp_job_open(j, step, n, &fd);
	if (err)
		return err;
	for (size_t i = 0; !err && i < j->nruns; i++)
		err = take_mapped(j, i, &step[i]);
	if (!step[n - 1].made)
		close_there(j, fd);
	return err;
}

static struct dp_error *make_pages(struct job *j)
{
	DP_TRY(dp_stopped_holds(j->s->t, j->s->in));
	if (!j->f)
		DP_TRY(dp_replace_sweep(j->s->t, j->s->in));
	DP_TRY(put_note(j));
	DP_TRY(dp_job_take_thread(j));
	DP_TRY(dp_stopped_holds(j->s->t, j->s->in));
	return map_runs(j);
}

static struct dp_error *put_page(struct job *j, uint64_t at, const uint8_t *want)
{
	const uint64_t to = base_of(j, at);
	uint8_t now[DP_PAGE];
	if (dp_mem_read(&j->s->t->process, dp_addr_of(to), now, DP_PAGE) != DP_PAGE)
		return dp_error(DP_TAG_GONE, "the new text of %s cannot be read", j->span.map->path);
	if (!memcmp(now, want, DP_PAGE))
		return NULL; /* the file's page, shared with other processes */
	if (!j->held_writes && pwrite(j->mem, want, DP_PAGE, (off_t)to) == (ssize_t)DP_PAGE)
		return NULL;
	j->held_writes = true;
	DP_TRY(dp_job_take_thread(j));
	return dp_mem_write_text(&j->s->t->process, dp_borrow_tid(j->b), dp_addr_of(to), want, DP_PAGE, NULL);
}

/* Private copies among the new pages before we wrote anything are uprobes. */
static struct dp_error *refuse_uprobes(const struct job *j, const struct page_run *r)
{
	uint8_t *copy = NULL;
	bool any = false;
	DP_TRY(dp_replace_copies(j->s->t, base_of(j, r->start), base_of(j, r->end), &copy));
	for (size_t i = 0; i < (r->end - r->start) / DP_PAGE; i++)
		any |= copy[i];
	free(copy);
	return any ? dp_error(DP_TAG_CHANGED, "the kernel has uprobes in %s", j->span.map->path) : NULL;
}

/* Writes every page of the run that differs from the file's. */
static struct dp_error *fill_run(struct job *j, const struct page_run *r)
{
	uint8_t *copy = NULL;
	struct dp_error *err = NULL;
	DP_TRY(refuse_uprobes(j, r));
	DP_TRY(dp_replace_copies(j->s->t, r->start, r->end, &copy));
	for (size_t i = 0; !err && i < (r->end - r->start) / DP_PAGE; i++) {
		const uint64_t at = r->start + i * DP_PAGE;
		const struct dp_replace_page *p = copy[i] ? dp_replace_page(j->s, at) : dp_replace_touched(j->s, at);
		if (p)
			err = put_page(j, at, p->is);
		else if (copy[i])
			err = dp_error(DP_TAG_GONE, "text of %s cannot be read", j->span.map->path);
	}
	free(copy);
	return err;
}

/* ---- final check ----------------------------------------------------------------------------------------------------------- */

/* Is the live text still what the new pages were made from? */
static struct dp_error *look_again(struct job *j, const struct page_run *r)
{
	struct dp_replace *s = j->s;
	uint8_t now[DP_PAGE], *copy = NULL;
	if (!dp_replace_maps(s->t, &j->span, base_of(j, r->start), offset_of(j, r->start)))
		return dp_error(DP_TAG_CHANGED, "%s has been replaced by another file", j->span.map->path);
	DP_TRY(dp_replace_copies(s->t, r->start, r->end, &copy));
	bool same = true;
	for (size_t i = 0; same && i < (r->end - r->start) / DP_PAGE; i++) {
		const uint64_t at = r->start + i * DP_PAGE;
		const struct dp_replace_page *p = copy[i] ? dp_replace_page(s, at) : dp_replace_touched(s, at);
		if (p)
			same = dp_mem_read(&s->t->process, dp_addr_of(at), now, DP_PAGE) == DP_PAGE &&
			       !memcmp(now, p->was, DP_PAGE);
	}
	free(copy);
	return same ? NULL : dp_job_changed(j);
}

/* Where a call's result was lost, the mappings tell: only ours is of that file at `base`, which was free. */
static bool is_there(const struct job *j, const struct page_run *r)
{
	return r->there || dp_replace_maps(j->s->t, &j->span, base_of(j, r->start), offset_of(j, r->start));
}

/* Unmaps pages that were not moved, then clears the note. */
static struct dp_error *tidy(struct job *j, struct dp_error *err)
{
	struct dp_error *failed = NULL;
	int64_t ignored;
	for (size_t i = 0; !failed && i < j->nruns; i++) {
		struct page_run *r = &j->run[i];
		if (!is_there(j, r))
			continue;
		failed = dp_job_take_thread(j);
		if (!failed)
			failed = dp_job_call(j, "munmap", SYS_munmap,
			                     (const uint64_t[6]){base_of(j, r->start), r->end - r->start}, &ignored);
	}
	if (!failed && !j->unsure) /* else the next tool finds it, and cleans up when that thread has finished */
		dp_replace_clear_note(j->s->t, j->s->in);
	err = dp_job_give_thread(j, err);
	if (failed && !j->f) { /* the thread may be in a timed call by now: with all threads held it can be borrowed */
		dp_error_destroy(failed);
		failed = dp_replace_sweep(j->s->t, j->s->in);
	}
	if (!err)
		return failed;
	dp_error_destroy(failed);
	return err;
}

static size_t pages_to_look_at(const struct job *j)
{
	size_t n = 0;
	for (size_t i = 0; i < j->nruns; i++)
		n += (j->run[i].end - j->run[i].start) / DP_PAGE;
	return n;
}

static struct dp_error *replace(struct job *j)
{
	DP_TRY(make_pages(j));
	if ((!j->f && !j->s->hot) || pages_to_look_at(j) > PAGES_QUICK)
		DP_TRY(dp_job_give_thread(j, NULL));
	for (size_t i = 0; i < j->nruns; i++)
		DP_TRY(fill_run(j, &j->run[i]));
	for (size_t i = 0; i < j->nruns; i++)
		DP_TRY(look_again(j, &j->run[i]));
	return dp_job_move(j);
}

static struct dp_error *commit_span(struct dp_replace *s, const struct dp_replace_span *span, struct dp_freeze *f,
                                    uint64_t *held_ns)
{
	struct job j = {.s = s, .f = f, .span = *span, .held_ns = held_ns};
	char path[64];
	j.stays = dp_replace_stays(s, span);
	if (!f && !j.stays && s->unheld)
		return dp_error(DP_TAG_CHANGED, "the program may unload %s at any moment", span->map->path);
	DP_TRY(prepare(&j));
	/* Opened once, so that writes go to this memory even if the process calls exec. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", s->t->process.pid, s->t->process.alive);
	j.mem = open(path, O_RDWR | O_CLOEXEC);
	struct dp_error *err = tidy(&j, replace(&j));
	if (j.mem >= 0)
		close(j.mem);
	return err;
}

/* Marks the module's pages, or only this page if its module is unknown: they are not retried. */
static void set_failed(struct dp_replace *s, size_t i, const struct dp_replace_span *span)
{
	s->page[i]->failed = true;
	for (; span && i < s->n && s->page[i]->addr < span->end; i++)
		s->page[i]->failed = true;
}

/* Then trying the next module is pointless. */
static bool is_final(const struct dp_error *err)
{
	return err->tag != DP_TAG_CHANGED && err->tag != DP_TAG_REMOTE && err->tag != DP_TAG_NO_SPACE && err->tag != DP_TAG_SYS;
}

static struct dp_error *commit_at(struct dp_replace *s, size_t i, struct dp_freeze *f, uint64_t *held_ns)
{
	struct dp_replace_span span;
	if (!f)
		DP_TRY(dp_target_progress(s->t, i, s->n));
	const bool found = dp_replace_span_at(s, s->page[i]->addr, &span, s->why);
	struct dp_error *err = found ? commit_span(s, &span, f, held_ns) : dp_error(DP_TAG_CHANGED, "%s", s->why);
	if (err)
		set_failed(s, i, found ? &span : NULL);
	return err;
}

struct dp_error *dp_replace_commit(struct dp_replace *s, struct dp_freeze *f, uint64_t *held_ns)
{
	struct dp_error *first = NULL;
	bool done = false;
	if (s->hot && !f)
		DP_TRY(dp_replace_in_place(s, held_ns, &done));
	for (size_t i = 0; i < s->n && !done; i++) {
		struct dp_error *err = is_touched(s->page[i]) ? commit_at(s, i, f, held_ns) : NULL;
		done = err && is_final(err);
		if (first && err && !done) {
			dp_error_destroy(err);
		} else if (err) {
			dp_error_destroy(first);
			first = err;
		}
	}
	return first;
}
