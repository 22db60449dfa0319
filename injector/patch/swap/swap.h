/* SPDX-License-Identifier: MIT */
/*
 * Text replaced page by page while the program runs (docs/decisions/0015-live-patching-by-page-replacement.md). What is to be
 * written is collected first and read back as if it stood already; then each run of touched pages is made anew beside the text
 * and moved over it by one system call on a borrowed thread. No thread ever sees a page that is half old and half new.
 */
#ifndef DP_INJECTOR_SWAP_H
#define DP_INJECTOR_SWAP_H

#include "injector/target/target.h"

/*
 * What a tool that dies in the middle leaves word of, behind struct dp_agent in the private region: where the new pages are being
 * made. The path of their file follows.
 */
struct dp_swap_note {
	uint64_t magic; /* DP_SWAP_MAGIC while it holds */
	uint64_t base;  /* the new page of text address A is at base + (A - start) */
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
};
#define DP_SWAP_MAGIC    UINT64_C(0x7061777370796e64)
#define DP_SWAP_PATH_MAX 1024u

struct dp_swap;
/* For text of `t`; `in` lends its private region for the note. */
struct dp_error *dp_swap_create(struct dp_target *t, const struct dp_installation *in, struct dp_swap **ret) DP_MUST_CHECK;
/* Accepts NULL. */
struct dp_swap *dp_swap_destroy(struct dp_swap *s);
/* The target's memory as it is now, with what was written below; bytes read from the front. */
size_t dp_swap_read(struct dp_swap *s, uint64_t addr, void *buf, size_t n);
/*
 * Notes bytes for the next commit. [addr, addr + len), of which `n` from addr + skip on are written, changes at once or not at
 * all. False if these pages cannot be replaced: dp_swap_why() says so.
 */
struct dp_swap_edit {
	uint64_t addr;
	size_t len, skip, n;
	const uint8_t *bytes;
};
bool dp_swap_write(struct dp_swap *s, const struct dp_swap_edit *edit);
const char *dp_swap_why(const struct dp_swap *s);
/*
 * Puts the new pages in place, module by module. On an error what stands is what dp_swap_stands() says: a module that cannot be
 * done leaves the others alone. DP_TAG_CHANGED: the pages are not as they were read. `f`: all threads are held, and one of them is
 * borrowed; NULL: one is taken from the running program, and all are held only while text that may be unloaded is moved into its
 * place (swap->holds). `held_ns` (may be NULL) grows to the longest time that one was held.
 */
struct dp_error *dp_swap_commit(struct dp_swap *s, struct dp_freeze *f, uint64_t *held_ns) DP_MUST_CHECK;
/*
 * For text that is changed many times, between one dp_swap_create() and the end: a page that is this process's own copy stays one, even
 * while it equals the file; and where the process has one thread only, it is written in place while that stands (swap_place.c).
 */
void dp_swap_stay_hot(struct dp_swap *s);
/* After a commit that succeeded: what stands now is what the next edits build upon. Others' changes since then are not lost: they refuse
 * the next commit. */
void dp_swap_again(struct dp_swap *s);
/* Does what was written for this address stand in the target? */
bool dp_swap_stands(const struct dp_swap *s, uint64_t addr);

/* What a tool that died in the middle left: pages that were never moved, an open file. Nothing else is touched. */
struct dp_error *dp_swap_sweep(struct dp_target *t, const struct dp_installation *in) DP_MUST_CHECK;

/* ---- shared by swap.c, swap_commit.c, swap_map.c and swap_sweep.c -------------------------------------------------------------
 */

uint64_t dp_swap_note_at(const struct dp_installation *in);
/* Is there a note? */
bool dp_swap_note(const struct dp_target *t, const struct dp_installation *in, struct dp_swap_note *ret);
void dp_swap_clear_note(const struct dp_target *t, const struct dp_installation *in);
/* No program opens a library in this way: by it, and by the note, a descriptor is known for ours. */
#define DP_SWAP_OPEN (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DSYNC)
/* Of an open file; 0 if it cannot be told. Overlays may say another one than the mapping does. */
uint64_t dp_swap_inode(const struct dp_target *t, pid_t tid, const char *fd);
bool dp_swap_is_file(const struct dp_target *t, pid_t tid, const char *fd, const struct dp_swap_note *note);

struct dp_swap_page {
	uint64_t addr;
	bool touched, joined; /* joined: with the page behind it, by a site that lies in both */
	bool stands, failed;
	uint8_t was[DP_PAGE], is[DP_PAGE];
};
struct dp_swap {
	struct dp_target *t;
	const struct dp_installation *in;
	char *maps;
	struct dp_image *image;     /* as of now: mappings come and go */
	struct dp_swap_page **page; /* ascending */
	size_t n, cap;
	bool locked; /* the program locks memory */
	bool whole;  /* each module's text as a whole: it ends up in one piece */
	bool hot;    /* is changed again and again */
	bool shared; /* hot: by a process that is no thread */
	int mem; /* /proc/PID/mem, or -1 */
	char why[192];
	/* Text that the program may unload (docs/decisions/0029): */
	struct dp_stays *stays; /* what is known of its modules, or NULL (swap_stays.c) */
	unsigned holds;         /* how often more than one thread was held for it; why_held names the last module */
	bool unheld;            /* they could not be */
	char why_held[192];
};
/* The page with its bytes of now, or NULL if it cannot be read. */
struct dp_swap_page *dp_swap_page(struct dp_swap *s, uint64_t addr);

/* Writes a single page in place, if that can be done; *done says so. */
struct dp_error *dp_swap_in_place(struct dp_swap *s, uint64_t *held_ns, bool *done) DP_MUST_CHECK;
/* The page if something was written to it that does not stand yet. */
const struct dp_swap_page *dp_swap_touched(const struct dp_swap *s, uint64_t addr);

/* A module's executable mappings, side by side: pieces of one after pages were replaced. */
struct dp_swap_span {
	uint64_t start, end, offset;
	const struct dp_map *map;
};
/* False if the text at `addr` is not of the kind that can be replaced; `why` says so. */
bool dp_swap_span_at(const struct dp_swap *s, uint64_t addr, struct dp_swap_span *ret, char why[192]);
/* Is this text of the program itself, or of what it needs from the start? Nothing else is sure to stay while other threads run
 * (swap_stays.c). */
bool dp_swap_stays(struct dp_swap *s, const struct dp_swap_span *span);
/* Accepts NULL. */
struct dp_stays *dp_stays_destroy(struct dp_stays *stays);
/* Has the process no more than one thread? */
bool dp_swap_alone(const struct dp_swap *s);
/* Is `addr` mapped now from exactly that place of the span's file, in that way? */
bool dp_swap_maps(const struct dp_target *t, const struct dp_swap_span *span, uint64_t addr, uint64_t offset);
/* Is anything mapped there? */
bool dp_swap_mapped(const struct dp_target *t, uint64_t addr);
/* Which of the pages [start, end) are copies of this process, not the file's: one byte each. DP_TAG_CHANGED if the kernel does
 * not say. */
struct dp_error *dp_swap_copies(const struct dp_target *t, uint64_t start, uint64_t end, uint8_t **ret) DP_MUST_CHECK;

#endif
