/* SPDX-License-Identifier: MIT */
/* Shared by the files of the stopped-process source. */
#ifndef DP_PMODULES_SOURCE_STOPPED_INTERNAL_H
#define DP_PMODULES_SOURCE_STOPPED_INTERNAL_H

#include "pmodules/source/pages.h"
#include "pmodules/source/stopped.h"

#include "injector/tracee/borrow/copy.h"
#include "injector/target/target.h"
#include "injector/resident/stub_map.h"

struct dp_core;

struct dp_stopped {
	struct dp_stopped_options options;
	enum dp_stopped_mode mode; /* the actual one: fork may have become stop */
	/* Only freezing and borrowing use it: nothing of ours is put into the process. */
	struct dp_target target;
	struct dp_stopped_thread *thread;
	size_t nthreads;
	struct dp_stub_map visible; /* dynprobe's own code in the process */
	struct dp_freeze freeze;
	struct dp_priority priority;
	bool held;                                    /* now */
	bool was_held;                                /* there was a hold */
	bool hit_waits;                               /* the hit's thread waits for another hold */
	uint64_t begin_ns, stood_ns, read_ns, end_ns; /* of the last hold */
	uint64_t until_ns;                            /* end of the time for this hold; or DP_FOREVER */
	uint64_t longest_ns, sum_ns;                  /* of all finished holds, failed attempts included */
	unsigned holds, vain;                         /* successful; failed */
	unsigned unsettled;                           /* failed because of a thread in dynprobe's own code */
	uint64_t spent_ns;                            /* on failed attempts for the next hold */
	size_t nlate; /* pages read after the hold */
	struct dp_page_cache pages;
	struct dp_copy *copy; /* mode fork */
	bool has_devices;     /* devices may write to its memory at any time */
	char why_not_fork[256];
	struct dp_core *core;
};

/* stopped.c: like dp_stopped_open(), without maps and image. */
struct dp_error *dp_stopped_begin(pid_t pid, const struct dp_stopped_options *options, struct dp_stopped **ret) DP_MUST_CHECK;

/* stopped_threads.c: reads the threads from /proc before the stop; reads the registers of a stopped thread. */
struct dp_error *dp_stopped_list(struct dp_stopped *s) DP_MUST_CHECK;
void dp_stopped_registers(const struct dp_held *h, struct dp_stopped_thread *t);
/* Takes over the frozen threads, ascending, with what was known of them before. */
struct dp_error *dp_stopped_take_threads(struct dp_stopped *s) DP_MUST_CHECK;
void dp_stopped_free_threads(struct dp_stopped_thread *thread, size_t n);

/* stopped_hit.c */
struct dp_error *dp_stopped_take_hit(struct dp_stopped *s) DP_MUST_CHECK;

/* stopped_current.c: compares two texts of /proc/PID/maps. */
bool dp_stopped_is_same_code(const char *was, const char *is);

/* stopped_read.c */
void dp_stopped_reserve(struct dp_stopped *s);
/* Reads stacks and (mode stop) prefetched pages, in as few calls as possible. All threads are stopped. */
void dp_stopped_read_all(struct dp_stopped *s);

/* stopped_stubs.c: threads in dynprobe's own code are shown at, or moved to, the place in their program. */
struct dp_error *dp_stopped_stubs_find(struct dp_stopped *s) DP_MUST_CHECK;
struct dp_error *dp_stopped_stubs_leave(struct dp_stopped *s) DP_MUST_CHECK;
void dp_stopped_stubs_show(const struct dp_stopped *s, struct dp_stopped_thread *t);

#endif
