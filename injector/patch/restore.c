/* SPDX-License-Identifier: MIT */
/* Restores one site's bytes: with all threads held, or live by page replacement (swap.h). */
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/restore_pass.h"
#include "injector/target/group/group.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool starts_with_trap(const uint8_t *now, const struct dp_placed *p)
{
	return now[0] == 0xcc && p->new_bytes[0] != 0xcc && !memcmp(now + 1, p->new_bytes + 1, p->len - 1u);
}

/* *skip: how many leading bytes must stay, given the current bytes `now`. False if they are no longer ours. */
static bool restore_from(const struct dp_placed *p, const uint8_t *now, unsigned *skip)
{
	*skip = starts_with_trap(now, p) ? 1 : 0;
	return *skip || !memcmp(now, p->new_bytes, p->len);
}

void dp_placed_file_bytes(const struct dp_installation *in, size_t i, uint8_t bytes[16])
{
	const struct dp_placed *p = &in->placed[i];
	memcpy(bytes, p->old_bytes, sizeof(p->old_bytes));
	for (size_t k = i; (k = dp_near_before(in, p->addr, p->len, k)) != SIZE_MAX;) {
		const struct dp_placed *q = &in->placed[k];
		for (uint64_t at = p->addr > q->addr ? p->addr : q->addr; at < p->addr + p->len && at < q->addr + q->nchanged;
		     at++)
			if (q->written && bytes[at - p->addr] == q->new_bytes[at - q->addr])
				bytes[at - p->addr] = q->old_bytes[at - q->addr];
	}
}

/* Reads the bytes that the file mapped at `addr` has there. False if they cannot be read. */
static bool read_mapped_file(const struct dp_target *t, const struct dp_map *m, uint64_t addr, uint8_t *bytes, size_t n)
{
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", t->process.pid, (unsigned long long)m->start.v,
	         (unsigned long long)m->end.v);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && m->path[0] == '/') {
		snprintf(path, sizeof(path), "/proc/%d/root", t->process.alive);
		dp_auto_close int root = open(path, O_PATH | O_CLOEXEC);
		fd = root < 0 ? -1 : openat(root, m->path + 1, O_RDONLY | O_CLOEXEC);
	}
	struct stat st;
	return fd >= 0 && !fstat(fd, &st) && st.st_ino == m->inode &&
	       pread(fd, bytes, n, (off_t)(m->offset + addr - m->start.v)) == (ssize_t)n;
}

static struct dp_error *read_mappings(struct restore *r)
{
	char *maps = NULL;
	r->seen = dp_image_destroy(r->seen);
	struct dp_error *err = dp_process_maps(&r->t->process, &maps);
	if (!err)
		err = dp_image_create(maps, "", 0, &r->seen);
	free(maps);
	return err;
}

/*
 * According to the kernel, is the text that we wrote into still mapped? A failed read may have other reasons, and after the
 * program unloaded a library, another file's text may be there. What was gone once is gone for good, so the maps, which may be
 * long, are not read for each site of a library.
 */
static bool still_mapped(struct restore *r, size_t i)
{
	const struct dp_placed *p = &r->in->placed[i];
	uint8_t was[sizeof(p->old_bytes)], is[sizeof(p->old_bytes)];
	if (r->seen && !dp_image_map_at(r->seen, dp_addr_of(p->addr)))
		return false;
	struct dp_error *err = read_mappings(r);
	const bool unknown = err;
	dp_error_destroy(err);
	if (unknown)
		return true;
	const struct dp_map *m = dp_image_map_at(r->seen, dp_addr_of(p->addr));
	dp_placed_file_bytes(r->in, i, was);
	return m && (!read_mapped_file(r->t, m, p->addr, is, p->len) || !memcmp(is, was, p->len));
}

/* Is it the file's text, possibly with another tool's trap as the first byte? */
static bool is_original(const struct dp_installation *in, size_t i, const uint8_t *now)
{
	const struct dp_placed *p = &in->placed[i];
	uint8_t file[sizeof(p->old_bytes)];
	dp_placed_file_bytes(in, i, file);
	const uint8_t *const like[] = {p->old_bytes, file};
	const bool others = now[0] == 0xcc && p->new_bytes[0] != 0xcc;
	for (size_t k = 0; k < 2; k++)
		if (!memcmp(now, like[k], p->len) || (others && !memcmp(now + 1, like[k] + 1, p->len - 1u)))
			return true;
	return false;
}

/* If this probe superseded one, that one comes back. If another tool's trap is there, the tool knows only the file's bytes. */
static const uint8_t *bytes_below(const struct dp_placed *below, const struct dp_placed *p, unsigned skip)
{
	return below && !skip ? below->new_bytes : p->old_bytes;
}

static size_t read_now(const struct restore *r, const struct dp_placed *p, uint8_t *now)
{
	return r->swap ? dp_replace_read(r->swap, p->addr, now, p->len)
	               : dp_mem_read(&r->t->process, dp_addr_of(p->addr), now, p->len);
}

bool dp_restore_crosses(const struct restore *r, size_t i)
{
	const struct dp_placed *p = &r->in->placed[i];
	return dp_page_down(p->addr) != dp_page_down(p->addr + p->len - 1);
}

static bool write_across(const struct restore *r, const struct dp_replace_edit *e)
{
	struct dp_replace *own = NULL, *s = r->across;
	struct dp_error *err = s ? NULL : dp_replace_create(r->t, r->in, &own);
	s = s ? s : own;
	if (!err && dp_replace_write(s, e))
		err = dp_replace_commit(s, r->f, NULL);
	const bool done = s && dp_replace_stands(s, e->addr);
	dp_error_destroy(err);
	dp_replace_destroy(own);
	return done;
}

/* If the site crosses pages, replaces them if possible. */
static bool write_held(const struct restore *r, struct dp_placed *p, const struct dp_replace_edit *e)
{
	if (dp_page_down(e->addr) != dp_page_down(e->addr + e->len - 1) && write_across(r, e))
		return true;
	struct dp_error *err =
	        dp_mem_write_text(&r->t->process, r->f->thread[0].tid, dp_addr_of(e->addr + e->skip), e->bytes, e->n, NULL);
	p->by_write |= !err;
	const bool done = !err;
	dp_error_destroy(err);
	return done;
}

static enum outcome write_back(struct restore *r, size_t i, unsigned skip)
{
	struct dp_placed *p = &r->in->placed[i];
	struct dp_placed *below = dp_resident_below(r->t, r->in, p);
	const struct dp_replace_edit edit = {p->addr, p->len, skip, p->len - skip, bytes_below(below, p, skip) + skip};
	if (r->swap) {
		r->done[i].edited = true;
		r->done[i].below = below;
		r->done[i].covered = skip;
		return dp_replace_write(r->swap, &edit) ? RESTORED : IMPOSSIBLE;
	}
	if (!write_held(r, p, &edit))
		return FAILED;
	if (below)
		below->covered = skip;
	return RESTORED;
}

/* Text that may be unloaded is examined with all threads held. */
static enum outcome failed(const struct restore *r, size_t i)
{
	return r->swap && !dp_image_never_unloaded(r->t->image, dp_addr_of(r->in->placed[i].addr)) ? IMPOSSIBLE : FAILED;
}

enum outcome dp_restore_site(struct restore *r, size_t i)
{
	const struct dp_placed *p = &r->in->placed[i];
	uint8_t now[sizeof(p->new_bytes)];
	unsigned skip = 0;
	if (read_now(r, p, now) != p->len)
		/* if the mapping is gone, our bytes are gone too */
		return still_mapped(r, i) ? failed(r, i) : RESTORED;
	if (is_original(r->in, i, now))
		return RESTORED;
	if (!restore_from(p, now, &skip))
		/* Bytes of a probe over or under this one, or of another tool that the site was given up to. */
		return dp_resident_claims(r->t, r->in, p, now) || p->state == DP_SITE_RETIRED || !still_mapped(r, i)
		               ? RESTORED
		               : failed(r, i);
	return write_back(r, i, skip);
}

/* ---- dependencies between sites ------------------------------------------------------------------------------------------ */

bool dp_placed_leads_into(const struct dp_placed *q, const struct dp_placed *p)
{
	const uint64_t to = dp_placed_leads_to(q);
	return to && to - p->addr < p->len;
}

/* Would restoring `p` change a byte that `q` relies on, a byte that `q` has written over it, or the jump that `q` leads to? */
static bool in_use_by(const struct dp_placed *p, const struct dp_placed *q)
{
	if (dp_placed_leads_into(q, p))
		return true;
	for (uint64_t at = p->addr > q->addr ? p->addr : q->addr; at < p->addr + p->nchanged && at < q->addr + q->len; at++) {
		const uint64_t a = at - p->addr, b = at - q->addr;
		if (p->new_bytes[a] != p->old_bytes[a] && (q->old_bytes[b] == p->new_bytes[a]))
			return true;
	}
	return false;
}

/* Only later sites of the same group rely on it. Those that are removed in this pass are already done. */
static bool in_use_of(const struct restore *r, size_t i, struct dp_near near, bool held)
{
	for (size_t k; (k = dp_near_next(&near)) != SIZE_MAX;)
		if (k > i && !r->done[k].goes && r->done[k].held == held && dp_placed_stands(&r->in->placed[k]) &&
		    in_use_by(&r->in->placed[i], &r->in->placed[k]))
			return true;
	return false;
}

bool dp_restore_in_use(const struct restore *r, size_t i, bool held)
{
	const struct dp_placed *p = &r->in->placed[i];
	return in_use_of(r, i, dp_near_bytes(r->in, p->addr, p->len), held) ||
	       in_use_of(r, i, dp_near_leading(r->in, p->addr, p->addr + p->len), held);
}
