/* SPDX-License-Identifier: MIT */
/*
 * Samples of a process's threads on CPU time, by the kernel's perf events: registers and the top of the stack, a given number of
 * times per second of each thread's running time. The process is neither stopped nor changed, gets no signal, and may have
 * another tracer.
 */
#ifndef DP_INJECTOR_PERF_SAMPLES_H
#define DP_INJECTOR_PERF_SAMPLES_H

#include "agent/abi.h"
#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct dp_sample {
	uint64_t ns; /* CLOCK_MONOTONIC */
	pid_t tid;
	uint32_t cpu;
	struct dp_regs regs;
	const uint8_t *stack; /* `n` bytes from rsp on; valid during the call */
	size_t n;
	bool cut; /* the stack continues after them */
};

struct dp_samples;
enum dp_samples_of {
	DP_SAMPLES_OF_TIME,     /* `hz` for each second of CPU time */
	DP_SAMPLES_OF_SWITCHES, /* one whenever a thread leaves the processor, of 8 KiB of stack */
	DP_SAMPLES_NONE,        /* no samples: the switches themselves, for dp_samples_switches() */
};
struct dp_samples_asked {
	enum dp_samples_of of;
	unsigned hz;
	bool on_exec; /* starts when the process calls exec; otherwise at dp_samples_start() */
};
/* Opens events for all current and future threads of `pid`. DP_TAG_PERF says why the kernel refuses. */
struct dp_error *dp_samples_open(pid_t pid, const struct dp_samples_asked *asked, struct dp_samples **ret) DP_MUST_CHECK;
struct dp_error *dp_samples_start(struct dp_samples *s) DP_MUST_CHECK;
void dp_samples_stop(struct dp_samples *s);
/* Passes on the samples that have arrived. */
void dp_samples_drain(struct dp_samples *s, void (*each)(const struct dp_sample *sample, void *data), void *data);
/* Readable when a ring of samples of switches is partly full; -1: there is no such thing, or no memory. */
int dp_samples_wake_fd(const struct dp_samples *s);
/* samples_switches.c: adds the switches that have arrived, of DP_SAMPLES_NONE. */
struct dp_waits;
void dp_samples_switches(struct dp_samples *s, struct dp_waits *to);
/* Threads that were there at the start and of which `waits` has no record. */
size_t dp_samples_unseen(const struct dp_samples *s, const struct dp_waits *waits);
/*
 * Changes to the process's code since dp_samples_inspected() (or the start). During `each`, everything is known that happened
 * before that sample. Times are like a sample's; 0: it did not happen.
 */
struct dp_samples_news {
	uint64_t file_ns;  /* file-backed code was mapped, the first time */
	uint64_t other_ns; /* other code was mapped */
	uint64_t exec_ns;  /* the process called exec */
};
void dp_samples_news(const struct dp_samples *s, struct dp_samples_news *ret);
/* Call it when the process's maps were read at `ns` or later. */
void dp_samples_inspected(struct dp_samples *s, uint64_t ns);

struct dp_samples_stats {
	uint64_t lost;      /* lost because rings were full */
	uint64_t throttled; /* times the kernel paused because the rate was too high */
	uint64_t foreign;   /* samples without a 64-bit user context */
	uint64_t children;  /* child processes; they are not sampled */
	bool user_only;     /* the kernel hides the time spent inside it */
};
void dp_samples_stats(const struct dp_samples *s, struct dp_samples_stats *ret);
struct dp_samples *dp_samples_destroy(struct dp_samples *s);

/* samples_walk.c: unwinds the sample's stack with tables of dp_unwind_compile(). Returns the number of frames, at most `most`. */
struct dp_sample_walker;
/* `pid`: the process, from which code without tables is read; 0: none. */
struct dp_error *dp_sample_walker_create(pid_t pid, struct dp_sample_walker **ret) DP_MUST_CHECK;
/* Sets new tables; they must live until replaced. */
void dp_sample_walker_tables(struct dp_sample_walker *w, const uint8_t *unwind);
size_t dp_sample_walk(struct dp_sample_walker *w, const struct dp_sample *sample, uint64_t *pc, size_t most);
/* Did the last walk end at the end of the stack's copy? */
bool dp_sample_left(void);
struct dp_sample_walker *dp_sample_walker_destroy(struct dp_sample_walker *w);

/* samples_image.c: the process of a thread; `tid` if there is no such thread. */
pid_t dp_samples_leader(pid_t tid);
/* The process's files, and unwind tables, as of now; reads /proc only. The caller owns both. */
struct dp_image;
struct dp_error *dp_samples_image(pid_t pid, const char *cache_dir, struct dp_image **image, uint8_t **unwind) DP_MUST_CHECK;
void dp_samples_comm(pid_t pid, char *ret, size_t n);

#endif
