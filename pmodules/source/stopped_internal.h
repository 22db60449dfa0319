/* SPDX-License-Identifier: MIT */
/* What the files of a process held still share. */
#ifndef DP_PMODULES_STILL_INTERNAL_H
#define DP_PMODULES_STILL_INTERNAL_H

#include "pmodules/source/pages.h"
#include "pmodules/source/stopped.h"

#include "injector/tracee/borrow/copy.h"
#include "injector/target/target.h"
#include "injector/resident/stub_map.h"

struct dp_core;

struct dp_stopped {
	struct dp_stopped_options options;
	enum dp_stopped_mode mode; /* what it has come to: fork may have become stop */
	/* No more of it is used than what freezing and borrowing look at: nothing of ours is put into the process. */
	struct dp_target target;
	struct dp_stopped_thread *thread;
	size_t nthreads;
	struct dp_stub_map visible; /* dynprobe's own code that stands in the process */
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

/* stopped.c: without maps and image. */
struct dp_error *dp_stopped_begin(pid_t pid, const struct dp_stopped_options *options, struct dp_stopped **ret) DP_MUST_CHECK;

/* stopped_threads.c: what /proc says of the threads before they are stopped; the registers of one that stands. */
struct dp_error *dp_stopped_list(struct dp_stopped *s) DP_MUST_CHECK;
void dp_stopped_registers(const struct dp_held *h, struct dp_stopped_thread *t);
/* The threads of the freeze, ascending; what was known of them before is taken over. */
struct dp_error *dp_stopped_take_threads(struct dp_stopped *s) DP_MUST_CHECK;
void dp_stopped_free_threads(struct dp_stopped_thread *thread, size_t n);

/* stopped_hit.c */
struct dp_error *dp_stopped_take_hit(struct dp_stopped *s) DP_MUST_CHECK;

/* stopped_current.c: of the texts of /proc/PID/maps. */
bool dp_stopped_is_same_code(const char *was, const char *is);

/* stopped_read.c */
void dp_stopped_reserve(struct dp_stopped *s);
/* Stacks, and (mode stop) what the rehearsal has read, in as few calls as can be. All threads stand. */
void dp_stopped_read_all(struct dp_stopped *s);

/* stopped_stubs.c: threads in dynprobe's own code are shown, or led, to where their program is. */
struct dp_error *dp_stopped_stubs_find(struct dp_stopped *s) DP_MUST_CHECK;
struct dp_error *dp_stopped_stubs_leave(struct dp_stopped *s) DP_MUST_CHECK;
void dp_stopped_stubs_show(const struct dp_stopped *s, struct dp_stopped_thread *t);

#endif
