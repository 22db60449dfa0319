/* SPDX-License-Identifier: MIT */
/*
 * Cleans up after a tool that died while making new text: pages that were never moved, an open file. A thread that it had
 * borrowed may still be about to make them, so threads are held, and one that has not finished is waited for.
 */
#include "injector/patch/replace/replace.h"
#include "injector/target/group/group.h"
#include "injector/target/group/leftover.h"
#include "injector/tracee/borrow/boot.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define TRIES   60
#define REST_NS 5000000L

uint64_t dp_replace_note_at(const struct dp_installation *in)
{
	return in->private.addr + sizeof(struct dp_agent);
}

uint64_t dp_script_room(const struct dp_installation *in)
{
	if (!in->private.mapped || in->private.size < dp_page_up(sizeof(struct dp_agent)))
		return 0;
	return dp_replace_note_at(in) + sizeof(struct dp_replace_note) + DP_REPLACE_PATH_MAX;
}

bool dp_replace_note(const struct dp_target *t, const struct dp_installation *in, struct dp_replace_note *ret)
{
	return in->private.mapped && in->private.size >= dp_page_up(sizeof(struct dp_agent)) &&
	       dp_mem_read(&t->process, dp_addr_of(dp_replace_note_at(in)), ret, sizeof(*ret)) == sizeof(*ret) &&
	       ret->magic == DP_REPLACE_MAGIC;
}

void dp_replace_clear_note(const struct dp_target *t, const struct dp_installation *in)
{
	static const uint64_t none;
	dp_error_destroy(dp_mem_write(&t->process, dp_addr_of(dp_replace_note_at(in)), &none, sizeof(none)));
}

uint64_t dp_replace_inode(const struct dp_target *t, pid_t tid, const char *fd)
{
	char path[320];
	struct stat st;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%s", t->process.pid, tid, fd);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Is it still that file? The program may have closed it and opened another in its place. */
bool dp_replace_is_file(const struct dp_target *t, pid_t tid, const char *name, const struct dp_replace_note *note)
{
	char path[320], line[128];
	unsigned flags = 0;
	if (!note->inode || dp_replace_inode(t, tid, name) != note->inode)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/fdinfo/%s", t->process.pid, tid, name);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "flags: %o", &flags) == 1)
			break;
	if (f)
		fclose(f);
	return (flags & ~(unsigned)O_LARGEFILE & ~0100000u) == DP_REPLACE_OPEN;
}

/* Can the mapping only be the one in the note: of that file, at the right offset? */
static bool is_left(const struct dp_map *m, const struct dp_replace_note *n)
{
	return m->inode == n->inode && m->dev_major == n->dev_major && m->dev_minor == n->dev_minor && m->read && m->exec &&
	       !m->write && !m->shared && m->start.v >= n->base && m->end.v - n->base <= n->end - n->start &&
	       m->offset == n->offset + (m->start.v - n->base);
}

struct sweep {
	struct dp_target *t;
	struct dp_replace_note note;
	struct dp_freeze f;
	struct dp_borrow *b;
};

static struct dp_error *call(struct sweep *w, long nr, uint64_t first, uint64_t second)
{
	int64_t ignored;
	if (!w->b)
		DP_TRY(dp_borrow_held(w->t, &w->f, &w->b));
	return dp_remote_syscall(w->b, nr, (const uint64_t[6]){first, second}, &ignored);
}

static struct dp_error *close_left(struct dp_target *t, int64_t fd, uint64_t inode, void *data)
{
	struct sweep *w = data;
	char name[24];
	(void)inode;
	snprintf(name, sizeof(name), "%lld", (long long)fd);
	return dp_replace_is_file(t, t->process.alive, name, &w->note) ? call(w, SYS_close, (uint64_t)fd, 0) : NULL;
}

static struct dp_error *take_away(struct sweep *w)
{
	DP_TRY(dp_target_refresh(w->t));
	for (size_t i = 0; i < dp_image_nmaps(w->t->image); i++) {
		const struct dp_map *m = dp_image_map(w->t->image, i);
		if (is_left(m, &w->note))
			DP_TRY(call(w, SYS_munmap, m->start.v, m->end.v - m->start.v));
	}
	return dp_descriptors(w->t, close_left, w);
}

static bool all_home(const struct sweep *w)
{
	for (size_t i = 0; i < w->f.n; i++)
		if (dp_boot_leftover_at(&w->t->process, w->f.thread[i].regs.rip))
			return false;
	return true;
}

static struct dp_error *sweep_once(struct sweep *w, const struct dp_installation *in, bool *done)
{
	DP_TRY(dp_freeze_with_retry(w->t, &w->f));
	struct dp_error *err = NULL;
	*done = all_home(w);
	if (*done)
		err = take_away(w);
	struct dp_error *end = w->b ? dp_borrow_end(w->b, NULL) : NULL;
	w->b = NULL;
	if (*done && !err && !end) {
		dp_replace_clear_note(w->t, in);
		dp_script_forget(&w->t->process, dp_script_room(in));
	}
	dp_thaw_all(&w->f);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

struct dp_error *dp_replace_sweep(struct dp_target *t, const struct dp_installation *in)
{
	struct sweep w = {.t = t};
	bool done = false;
	if (!dp_replace_note(t, in, &w.note))
		return NULL;
	for (int tried = 0; !done && tried < TRIES; tried++) {
		if (tried)
			nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
		DP_TRY(sweep_once(&w, in, &done));
	}
	return NULL; /* else the note stays, for the next tool */
}
