/* SPDX-License-Identifier: MIT */
/*
 * Samples of a process's threads on CPU time, by the kernel's own timers (perf events): registers and the top of the stack, at so
 * many moments of a second that each thread runs. The process is neither stopped nor changed, gets no signal, and may have
 * another tracer.
 */
#ifndef DP_INJECTOR_SAMPLES_H
#define DP_INJECTOR_SAMPLES_H

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
	bool cut; /* the stack goes on behind them */
};

struct dp_samples;
/*
 * Of all threads that `pid` has and will have. `on_exec`: they begin when it executes another program. Not started otherwise.
 * DP_TAG_PERF says why the kernel refuses.
 */
struct dp_error *dp_samples_open(pid_t pid, unsigned hz, bool on_exec, struct dp_samples **ret) DP_MUST_CHECK;
struct dp_error *dp_samples_start(struct dp_samples *s) DP_MUST_CHECK;
void dp_samples_stop(struct dp_samples *s);
/* Hands out what has come. */
void dp_samples_drain(struct dp_samples *s, void (*each)(const struct dp_sample *sample, void *data), void *data);
/* What has happened to the process's code since dp_samples_looked() (or the beginning), as far as is known. During `each` all is
 * known that happened before that sample. Times as a sample's; 0: it has not. */
struct dp_samples_news {
	uint64_t file_ns;  /* code of a file was mapped, for the first time since then */
	uint64_t other_ns; /* code of no file was */
	uint64_t exec_ns;  /* the process became another program */
};
void dp_samples_news(const struct dp_samples *s, struct dp_samples_news *ret);
/* At `ns`, or later, the process's maps were read. */
void dp_samples_looked(struct dp_samples *s, uint64_t ns);

struct dp_samples_stats {
	uint64_t lost;      /* the rings were full */
	uint64_t throttled; /* times that the kernel found the rate too high and paused */
	uint64_t foreign;   /* without a 64-bit user context */
	uint64_t children;  /* processes that it has started: no samples of them */
	bool user_only;     /* the kernel lets us see no time that is spent inside of it */
};
void dp_samples_stats(const struct dp_samples *s, struct dp_samples_stats *ret);
struct dp_samples *dp_samples_destroy(struct dp_samples *s);

/* samples_walk.c: a walk with tables of dp_unwind_compile() over the sample's copy of the stack. At most `most` frames; how many.
 */
struct dp_sample_walker;
struct dp_error *dp_sample_walker_create(struct dp_sample_walker **ret) DP_MUST_CHECK;
/* New tables; they must live until the next ones. */
void dp_sample_walker_tables(struct dp_sample_walker *w, const uint8_t *unwind);
size_t dp_sample_walk(struct dp_sample_walker *w, const struct dp_sample *sample, uint64_t *pc, size_t most);
/* Did the last walk end where the copy of the stack ends? */
bool dp_sample_left(void);
struct dp_sample_walker *dp_sample_walker_destroy(struct dp_sample_walker *w);

/* samples_image.c: the process that a thread belongs to; `tid` if there is no such thread. */
pid_t dp_samples_leader(pid_t tid);
/* The process's files, and tables for walks, as of now; by /proc alone. Both are the caller's. */
struct dp_image;
struct dp_error *dp_samples_image(pid_t pid, const char *cache_dir, struct dp_image **image, uint8_t **unwind) DP_MUST_CHECK;
void dp_samples_comm(pid_t pid, char *ret, size_t n);

#endif
