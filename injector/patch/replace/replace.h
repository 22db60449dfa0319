/* SPDX-License-Identifier: MIT */
/*
 * Replaces text page by page while the program runs (docs/decisions/0015-live-patching-by-page-replacement.md). Edits are
 * collected first, and reads see them. Then each run of touched pages is rebuilt beside the text and moved over it by one system
 * call on a borrowed thread. No thread ever sees a half-changed page.
 */
#ifndef DP_INJECTOR_PATCH_REPLACE_REPLACE_H
#define DP_INJECTOR_PATCH_REPLACE_REPLACE_H

#include "injector/target/target.h"

/*
 * A note for the next tool, in case this one dies in the middle: where the new pages are being made. It is behind struct dp_agent
 * in the private region. The path of their file follows.
 */
struct dp_replace_note {
	uint64_t magic; /* DP_REPLACE_MAGIC while the note is valid */
	uint64_t base;  /* the new page of text address A is at base + (A - start) */
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
};
#define DP_REPLACE_MAGIC    UINT64_C(0x7061777370796e64)
#define DP_REPLACE_PATH_MAX 1024u

struct dp_replace;
/* For text of `t`; the note goes into the private region of `in`. */
struct dp_error *dp_replace_create(struct dp_target *t, const struct dp_installation *in, struct dp_replace **ret) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_replace *dp_replace_destroy(struct dp_replace *s);
/* The target's current memory, with pending edits applied. Returns the number of bytes read from the start. */
size_t dp_replace_read(struct dp_replace *s, uint64_t addr, void *buf, size_t n);
/*
 * Queues bytes for the next commit. [addr, addr + len) changes atomically or not at all; of it, `n` bytes from addr + skip on are
 * written. False if these pages cannot be replaced: see dp_replace_why().
 */
struct dp_replace_edit {
	uint64_t addr;
	size_t len, skip, n;
	const uint8_t *bytes;
};
bool dp_replace_write(struct dp_replace *s, const struct dp_replace_edit *edit);
const char *dp_replace_why(const struct dp_replace *s);
/*
 * Puts the new pages in place, module by module. A module that fails does not affect the others; after an error dp_replace_stands()
 * says what is in place. DP_TAG_CHANGED: the pages have changed since they were read. `f`: all threads are held, and one of them
 * is borrowed. NULL: a thread of the running program is borrowed; all are held only while text that may be unloaded is moved
 * (swap->holds). `held_ns` (may be NULL) is raised to the longest time that a thread was held.
 */
struct dp_error *dp_replace_commit(struct dp_replace *s, struct dp_freeze *f, uint64_t *held_ns) DP_MUST_CHECK;
/*
 * For text that is changed many times between dp_replace_create() and the end. A private copy of a page stays one, even while it
 * equals the file. In a process with one thread it is written in place while the thread is stopped (replace_place.c).
 */
void dp_replace_stay_hot(struct dp_replace *s);
/* After a successful commit: further edits start from it. Later changes by others are kept: they make the next commit fail. */
void dp_replace_again(struct dp_replace *s);
/* Are the bytes that were written for this address in the target? */
bool dp_replace_stands(const struct dp_replace *s, uint64_t addr);

/* Cleans up after a tool that died in the middle: pages that were never moved, an open file. Touches nothing else. */
struct dp_error *dp_replace_sweep(struct dp_target *t, const struct dp_installation *in) DP_MUST_CHECK;

/* ---- shared by swap.c, replace_commit.c, replace_map.c and replace_sweep.c ---------------------------------------------------------- */

uint64_t dp_replace_note_at(const struct dp_installation *in);
/* Is there a note? */
bool dp_replace_note(const struct dp_target *t, const struct dp_installation *in, struct dp_replace_note *ret);
void dp_replace_clear_note(const struct dp_target *t, const struct dp_installation *in);
/* No program opens a library with these flags: they and the note identify a descriptor as ours. */
#define DP_REPLACE_OPEN (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DSYNC)
/* Inode of an open file, or 0. Overlay file systems may report a different one for the mapping. */
uint64_t dp_replace_inode(const struct dp_target *t, pid_t tid, const char *fd);
bool dp_replace_is_file(const struct dp_target *t, pid_t tid, const char *fd, const struct dp_replace_note *note);

struct dp_replace_page {
	uint64_t addr;
	bool touched, joined; /* joined: with the next page, by a site that lies in both */
	bool stands, failed;
	uint8_t was[DP_PAGE], is[DP_PAGE];
};
struct dp_replace {
	struct dp_target *t;
	const struct dp_installation *in;
	char *maps;
	struct dp_image *image;     /* as of now: mappings come and go */
	struct dp_replace_page **page; /* ascending */
	size_t n, cap;
	bool locked; /* the program has locked memory */
	bool whole;  /* replace each module's text as a whole, so that it ends up in one piece */
	bool hot;    /* it is changed repeatedly */
	bool shared; /* hot: another process shares the memory */
	int mem; /* /proc/PID/mem, or -1 */
	char why[192];
	/* Text that the program may unload (docs/decisions/0029): */
	struct dp_stays *stays; /* what is known about its modules, or NULL (replace_stays.c) */
	unsigned holds;         /* how often more than one thread was held; why_held names the last module */
	bool unheld;            /* threads could not be held */
	char why_held[192];
};
/* The page with its current bytes, or NULL if it cannot be read. */
struct dp_replace_page *dp_replace_page(struct dp_replace *s, uint64_t addr);

/* Writes a single page in place if possible; sets *done if it did. */
struct dp_error *dp_replace_in_place(struct dp_replace *s, uint64_t *held_ns, bool *done) DP_MUST_CHECK;
/* The page if it has an edit that is not in place yet. */
const struct dp_replace_page *dp_replace_touched(const struct dp_replace *s, uint64_t addr);

/* Adjacent executable mappings of a module: page replacement splits one into several. */
struct dp_replace_span {
	uint64_t start, end, offset;
	const struct dp_map *map;
};
/* False if the text at `addr` is of a kind that cannot be replaced; `why` says why. */
bool dp_replace_span_at(const struct dp_replace *s, uint64_t addr, struct dp_replace_span *ret, char why[192]);
/* Is this text of the program, or of a library loaded at its start? Any other may be unloaded meanwhile (replace_stays.c). */
bool dp_replace_stays(struct dp_replace *s, const struct dp_replace_span *span);
/* Accepts NULL. */
struct dp_stays *dp_stays_destroy(struct dp_stays *stays);
/* Does the process have only one thread? */
bool dp_replace_alone(const struct dp_replace *s);
/* Is `addr` mapped now, readable and executable, from exactly that offset of the span's file? */
bool dp_replace_maps(const struct dp_target *t, const struct dp_replace_span *span, uint64_t addr, uint64_t offset);
/* Is anything mapped there? */
bool dp_replace_mapped(const struct dp_target *t, uint64_t addr);
/* Which of the pages [start, end) are private copies, not the file's: one byte each. DP_TAG_CHANGED if the kernel cannot tell. */
struct dp_error *dp_replace_copies(const struct dp_target *t, uint64_t start, uint64_t end, uint8_t **ret) DP_MUST_CHECK;

#endif
