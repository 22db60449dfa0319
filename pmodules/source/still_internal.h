/* SPDX-License-Identifier: MIT */
/* What the files of a process held still share. */
#ifndef DP_PMODULES_STILL_INTERNAL_H
#define DP_PMODULES_STILL_INTERNAL_H

#include "pmodules/source/pages.h"
#include "pmodules/source/still.h"

#include "injector/tracee/borrow/copy.h"
#include "injector/target/target.h"
#include "injector/resident/visible.h"

struct dp_core;

struct dp_still {
	struct dp_still_options options;
	enum dp_still_mode mode; /* what it has come to: fork may have become stop */
	/* No more of it is used than what freezing and borrowing look at: nothing of ours is put into the process. */
	struct dp_target target;
	struct dp_still_thread *thread;
	size_t nthreads;
	struct dp_visible visible; /* dynprobe's own code that stands in the process */
	struct dp_freeze freeze;
	struct dp_priority priority;
	bool held;                                    /* now */
	bool was_held;                                /* the moment has come */
	bool hit_waits;                               /* the thread of the hit, for another hold */
	uint64_t begin_ns, stood_ns, read_ns, end_ns; /* of the last hold */
	uint64_t until_ns;                            /* then everything that is done under it is over; DP_FOREVER */
	uint64_t longest_ns, sum_ns;                  /* of all holds that are over, those in vain included */
	unsigned holds, vain;                         /* without those; those */
	unsigned unsettled;                           /* of those, because of a thread in dynprobe's own code */
	uint64_t spent_ns;                            /* in vain, for the hold that is to come */
	size_t nlate; /* pages that were read after the moment */
	struct dp_pages pages;
	struct dp_copy *copy; /* mode fork */
	bool has_devices;     /* that may write to its memory at any time */
	char why_not_fork[256];
	struct dp_core *core;
};

/* still.c: without maps and image. */
struct dp_error *dp_still_begin(pid_t pid, const struct dp_still_options *options, struct dp_still **ret) DP_MUST_CHECK;

/* still_threads.c: what /proc says of the threads before they are stopped; the registers of one that stands. */
struct dp_error *dp_still_list(struct dp_still *s) DP_MUST_CHECK;
void dp_still_registers(const struct dp_held *h, struct dp_still_thread *t);
/* The threads of the freeze, ascending; what was known of them before is taken over. */
struct dp_error *dp_still_take_threads(struct dp_still *s) DP_MUST_CHECK;
void dp_still_free_threads(struct dp_still_thread *thread, size_t n);

/* still_hit.c */
struct dp_error *dp_still_take_hit(struct dp_still *s) DP_MUST_CHECK;

/* still_current.c: of the texts of /proc/PID/maps. */
bool dp_still_is_same_code(const char *was, const char *is);

/* still_read.c */
void dp_still_reserve(struct dp_still *s);
/* Stacks, and (mode stop) what the rehearsal has read, in as few calls as can be. All threads stand. */
void dp_still_read_all(struct dp_still *s);

/* still_stubs.c: threads in dynprobe's own code are shown, or led, to where their program is. */
struct dp_error *dp_still_stubs_find(struct dp_still *s) DP_MUST_CHECK;
struct dp_error *dp_still_stubs_leave(struct dp_still *s) DP_MUST_CHECK;
void dp_still_stubs_show(const struct dp_still *s, struct dp_still_thread *t);

#endif
