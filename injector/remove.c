/* SPDX-License-Identifier: MIT */
/*
 * Taking everything out again: restore the text with all threads held, then, when no thread can still be in our code (quiesce.c),
 * give back the mappings by system calls on one borrowed thread. Works on a struct dp_installation, whether
 * install.c of this run made it or recover.c found it.
 */
#include "injector/quiesce_frames.h"
#include "injector/standing.h"
#include "injector/trap.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define TRIES       60
#define UNMAP_TRIES 20
#define REST_NS     5000000L

void dp_installation_fini(struct dp_installation *in)
{
	free(in->region);
	free(in->placed);
	*in = (struct dp_installation){0};
}

static bool starts_with_trap(const uint8_t *now, const struct dp_placed *p)
{
	return now[0] == 0xcc && p->new_bytes[0] != 0xcc && !memcmp(now + 1, p->new_bytes + 1, p->len - 1u);
}

/* What has to be written where the bytes are as `now`; false if it is not ours any more. */
static bool restore_from(const struct dp_placed *p, const uint8_t *now, unsigned *skip)
{
	*skip = starts_with_trap(now, p) ? 1 : 0;
	return *skip || !memcmp(now, p->new_bytes, p->len);
}

/* By the kernel's own word: that a read failed may have other reasons. */
static bool still_mapped(struct dp_target *t, uint64_t addr)
{
	char *maps = NULL;
	bool mapped = true;
	struct dp_error *err = dp_process_maps(&t->process, &maps);
	struct dp_image *image = NULL;
	if (!err)
		err = dp_image_create(maps, "", 0, &image);
	if (!err)
		mapped = dp_image_map_at(image, dp_addr_of(addr)) != NULL;
	dp_image_destroy(image);
	free(maps);
	dp_error_destroy(err);
	return mapped;
}

/* The probe that was there before is there again, if one was put aside for this one; the trap's owner knows only the file's
 * bytes. */
static const uint8_t *bytes_below(const struct dp_placed *below, const struct dp_placed *p, unsigned skip)
{
	return below && !skip ? below->new_bytes : p->old_bytes;
}

static bool restore_site(struct dp_target *t, const struct dp_installation *in, pid_t held, const struct dp_placed *p)
{
	uint8_t now[sizeof(p->new_bytes)];
	unsigned skip = 0;
	struct dp_placed *below = dp_standing_below(t, in, p);
	if (dp_mem_read(&t->process, dp_addr_of(p->addr), now, p->len) != p->len)
		return !still_mapped(t, p->addr); /* if the mapping is gone, our bytes are too */
	if (!memcmp(now, p->old_bytes, p->len) || (now[0] == 0xcc && !memcmp(now + 1, p->old_bytes + 1, p->len - 1u)))
		return true; /* the second: another tool's trap before the original bytes */
	if (!restore_from(p, now, &skip))
		/* Of a probe over or under this one; or given up to another tool, whose bytes these are. */
		return dp_standing_claims(t, in, p, now) || p->state == DP_SITE_RETIRED;
	const uint8_t *bytes = bytes_below(below, p, skip);
	struct dp_error *err =
	        dp_mem_write_text(&t->process, held, dp_addr_add(dp_addr_of(p->addr), skip), bytes + skip, p->len - skip, NULL);
	if (!err && below)
		below->covered = skip;
	bool done = !err;
	dp_error_destroy(err);
	return done;
}

void dp_placed_mark(struct dp_target *t, struct dp_placed *p, enum dp_site_state state)
{
	const uint8_t byte = (uint8_t)state;
	p->state = state;
	if (p->entry)
		p->entry->state = byte;
	else if (p->entry_at)
		dp_error_destroy(
		        dp_mem_write(&t->process, dp_addr_of(p->entry_at + offsetof(struct dp_site_entry, state)), &byte, 1));
}

/* `chosen`: NULL for all. Retired sites too: what made us give one up may have been taken back since, and then our jump stands
 * there again. */
static void restore_all(struct dp_target *t, struct dp_installation *in, const bool *chosen, struct dp_freeze *f,
                        struct dp_remove_report *report)
{
	for (size_t i = in->nplaced; i-- > 0;) { /* the other way round: later ones may rely upon earlier ones' bytes */
		struct dp_placed *p = &in->placed[i];
		if (!p->written || p->state == DP_SITE_RESTORED || (chosen && !chosen[i]))
			continue;
		if (restore_site(t, in, f->thread[0].tid, p)) {
			dp_placed_mark(t, p, DP_SITE_RESTORED);
			continue;
		}
		p->changed = true;
		report->left_sites++;
		snprintf(report->why, sizeof(report->why), "another tool changed the bytes at 0x%llx",
		         (unsigned long long)p->addr);
	}
}

static void note_pause(struct dp_remove_report *report, const struct dp_freeze *f)
{
	if (f->end_ns - f->begin_ns > report->pause_ns)
		report->pause_ns = f->end_ns - f->begin_ns;
}

/* One try: *quiet if the code may go. The text is restored in any case, so that no thread enters anew. */
static struct dp_error *restore_try(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report, bool *quiet)
{
	struct dp_freeze f = {0};
	DP_TRY(dp_freeze_patiently(t, &f));
	report->left_sites = 0;
	struct dp_error *err = dp_still_holds(t, in);
	if (!err) {
		restore_all(t, in, NULL, &f, report);
		*quiet = !report->left_sites && dp_quiesce(t, in, &f, report->why);
	}
	dp_thaw_all(&f);
	note_pause(report, &f);
	return err;
}

static struct dp_error *restore_chosen(struct dp_target *t, struct dp_installation *in, const bool *chosen,
                                       struct dp_remove_report *report)
{
	struct dp_freeze f = {0};
	DP_TRY(dp_freeze_patiently(t, &f));
	struct dp_error *err = dp_still_holds(t, in);
	if (!err)
		restore_all(t, in, chosen, &f, report);
	dp_thaw_all(&f);
	note_pause(report, &f);
	return err;
}

static size_t mapped_bytes(const struct dp_installation *in)
{
	size_t sum = in->private.mapped ? in->private.size : 0;
	for (size_t i = 0; i < in->nregions; i++)
		sum += in->region[i].mapped ? in->region[i].size : 0;
	return sum;
}

/* What the file itself holds for a mapped page: no relocation applied, since the kernel applies none either. */
static bool read_file_page(const struct dp_target *t, const struct dp_map *map, uint64_t page, uint8_t bytes[DP_PAGE])
{
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", t->process.pid, (unsigned long long)map->start.v,
	         (unsigned long long)map->end.v);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(path, sizeof(path), "/proc/%d/root", t->process.alive);
		dp_auto_close int root = open(path, O_PATH | O_CLOEXEC);
		fd = root < 0 ? -1 : openat(root, map->path + 1, O_RDONLY | O_CLOEXEC);
	}
	struct stat st;
	if (fd < 0 || fstat(fd, &st) || st.st_ino != map->inode)
		return false;
	memset(bytes, 0, DP_PAGE);
	return pread(fd, bytes, DP_PAGE, (off_t)(map->offset + page - map->start.v)) > 0;
}

/* Patching made a private copy of the page; when it equals the file again, the copy is given back (decision 9). */
static void give_back_page(struct dp_target *t, struct dp_borrow *b, uint64_t page)
{
	uint8_t now[DP_PAGE], file[DP_PAGE];
	const struct dp_map *map = dp_image_map_at(t->image, dp_addr_of(page));
	int64_t ignored;
	if (!map || map->shared || map->write || !map->inode || map->path[0] != '/')
		return;
	if (!read_file_page(t, map, page, file) || dp_mem_read(&t->process, dp_addr_of(page), now, sizeof(now)) != sizeof(now) ||
	    memcmp(now, file, sizeof(now)) != 0)
		return;
	dp_error_destroy(dp_remote_syscall(b, SYS_madvise, (const uint64_t[6]){page, DP_PAGE, MADV_DONTNEED}, &ignored));
}

static void give_back_pages(struct dp_target *t, const struct dp_installation *in, struct dp_borrow *b)
{
	uint64_t last = 0;
	for (size_t i = 0; i < in->nplaced; i++) {
		const struct dp_placed *p = &in->placed[i];
		const uint64_t page = dp_page_down(p->addr);
		if (p->written && p->state == DP_SITE_RESTORED && page != last)
			give_back_page(t, b, page);
		last = page;
	}
}

static struct dp_error *unmap_held(struct dp_target *t, struct dp_installation *in, struct dp_freeze *f)
{
	struct dp_borrow *b = NULL;
	DP_TRY(dp_still_holds(t, in));
	DP_TRY(dp_borrow_held(t, f, &b));
	if (!dp_stray_is_ours(t, t->remote_fd))
		t->remote_fd = -1; /* a thread that its dead borrower was about to let close it has done so meanwhile */
	struct dp_error *err = dp_map_close(t, b);
	if (!err)
		err = dp_unmap_all(in, b);
	if (!err)
		give_back_pages(t, in, b);
	struct dp_error *end = dp_borrow_end(b, NULL);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

/* All threads are held for the reason that install.c gives. */
static struct dp_error *unmap_once(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	struct dp_freeze f = {0};
	DP_TRY(dp_freeze_patiently(t, &f));
	struct dp_error *err = unmap_held(t, in, &f);
	dp_thaw_all(&f);
	note_pause(report, &f);
	return err;
}

static struct dp_error *unmap(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	for (int tried = 0;; tried++) {
		struct dp_error *err = unmap_once(t, in, report);
		if (!err || err->tag != DP_TAG_NO_THREAD || tried >= UNMAP_TRIES)
			return err;
		dp_error_destroy(err);
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	}
}

/*
 * Longer and longer. On a busy machine a thread gets a processor to stop and for nothing else, and never leaves the stub, if it
 * is asked to stop again too soon.
 */
static void rest(int tried)
{
	nanosleep(&(struct timespec){.tv_nsec = tried < 20 ? REST_NS : tried < 40 ? 5 * REST_NS : 20 * REST_NS}, NULL);
}

static struct dp_error *restore_and_unmap(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	bool quiet = false, untrapped = true;
	DP_TRY(dp_trap_disarm(t, in, report->why, &untrapped));
	for (int tried = 0; untrapped && !quiet && tried < TRIES; tried++) {
		if (tried)
			rest(tried);
		DP_TRY(restore_try(t, in, report, &quiet));
		if (report->left_sites)
			break;
	}
	if (!quiet) {
		report->left_bytes = mapped_bytes(in);
		return NULL;
	}
	report->why[0] = 0;
	struct dp_error *err = unmap(t, in, report);
	if (!err || err->tag != DP_TAG_SECCOMP)
		return err;
	snprintf(report->why, sizeof(report->why), "the target has put itself under a seccomp filter meanwhile");
	report->left_bytes = mapped_bytes(in);
	return dp_error_destroy(err);
}

/* That the target has gone is no error: its probes went with it. */
static struct dp_error *unless_gone(struct dp_target *t, struct dp_error *err)
{
	if (!err || (err->tag != DP_TAG_GONE && err->tag != DP_TAG_NO_PROCESS && err->tag != DP_TAG_ZOMBIE))
		return err;
	t->gone = true;
	return dp_error_destroy(err);
}

struct dp_error *dp_installation_remove(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	struct dp_priority priority;
	*report = (struct dp_remove_report){0};
	in->frames = in->calls_out ? dp_frames_create(t, in) : NULL;
	dp_priority_raise(&priority);
	struct dp_error *err = restore_and_unmap(t, in, report);
	dp_priority_restore(&priority);
	in->frames = dp_frames_destroy(in->frames);
	return unless_gone(t, err);
}

struct dp_error *dp_installation_restore(struct dp_target *t, struct dp_installation *in, const bool *chosen,
                                         struct dp_remove_report *report)
{
	struct dp_priority priority;
	*report = (struct dp_remove_report){0};
	dp_priority_raise(&priority);
	struct dp_error *err = restore_chosen(t, in, chosen, report);
	dp_priority_restore(&priority);
	return unless_gone(t, err);
}

struct dp_error *dp_target_remove(struct dp_target *t, struct dp_remove_report *report)
{
	*report = (struct dp_remove_report){0};
	if (!t->installed)
		return NULL;
	t->installed = false;
	return t->gone ? NULL : dp_installation_remove(t, &t->in, report);
}
