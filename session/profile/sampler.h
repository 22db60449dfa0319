/* SPDX-License-Identifier: MIT */
/*
 * Samples one process's stacks by CPU time, or by the time that its threads wait, with names for the addresses. Changes nothing
 * in the process. The caller sleeps between calls of dp_sampler_drain(), and decides when to end.
 */
#ifndef DP_SESSION_PROFILE_SAMPLER_H
#define DP_SESSION_PROFILE_SAMPLER_H

#include "injector/perf/samples.h"
#include "injector/perf/waits.h"
#include "output/output.h"
#include "session/profile/stacks.h"
#include "session/thread_names.h"

struct dp_sampler {
	/* Set by the caller; 0 is the default: */
	pid_t pid;
	int pid_fd;
	bool off_cpu;             /* waits instead of samples */
	bool starts;              /* `pid` is a command that has not called exec yet: sampling begins when it does */
	uint64_t most;            /* maximum number of samples; 0: no limit */
	struct dp_stacks *stacks; /* stack counters; owned. NULL: `event` gets each sample, with the field "backtrace:127", of a
	                             wait also its duration (uint64_t) */
	void (*event)(const struct dp_event *event, void *data);
	void *data;
	/* Results. */
	char comm[32]; /* the process's name; the caller may change it */
	struct dp_images images;
	uint64_t taken, cut, crowded, stale;                               /* stale: code was mapped since the names were read */
	struct dp_sampler_times {                                          /* of waits; `taken` is their number */
		uint64_t ns, preempted, preempted_ns, open, bare, bare_ns; /* bare: their stacks were lost */
	} times;
	struct dp_waits_stats missed;
	size_t unseen; /* threads that never came or went */
	/* Private. */
	struct dp_samples *switches;
	struct dp_waits *waits;
	struct dp_thread_names threads;
	uint64_t nameless, tried_ns;
	struct dp_samples *samples;
	struct dp_sample_walker *walker;
	uint32_t walked; /* the image whose unwind tables the walker uses */
	bool look_failed;
	uint64_t end_ns;
};

struct dp_error *dp_sampler_open(struct dp_sampler *s, unsigned hz) DP_MUST_CHECK;
/* Reads the mapped code: call it before a process is sampled; for a command, when it runs. */
struct dp_error *dp_sampler_look(struct dp_sampler *s) DP_MUST_CHECK;
struct dp_error *dp_sampler_start(struct dp_sampler *s) DP_MUST_CHECK;
void dp_sampler_stop(struct dp_sampler *s);
void dp_sampler_drain(struct dp_sampler *s);
/* The last one, after dp_sampler_stop(): also what has not ended. */
void dp_sampler_end(struct dp_sampler *s);
void dp_sampler_stats(const struct dp_sampler *s, struct dp_samples_stats *ret);
bool dp_sampler_has_all(const struct dp_sampler *s);
/* The number of samples without names, because their code was gone. */
uint64_t dp_sampler_unnamed(const struct dp_sampler *s);
void dp_sampler_fini(struct dp_sampler *s);

/* sampled_command.c: a command that waits before exec until it can be sampled. Until then it dies with us. */
struct dp_sampled_command {
	pid_t pid;
	int go, told; /* ends of pipes; -1: none */
};
/* The caller must call dp_sampled_command_fini() also after an error. */
struct dp_error *dp_sampled_command_start(struct dp_sampled_command *c, char **words) DP_MUST_CHECK;
/* Lets the command run. DP_TAG_EXEC if it cannot be executed. */
struct dp_error *dp_sampled_command_go(struct dp_sampled_command *c, const char *name) DP_MUST_CHECK;
void dp_sampled_command_fini(struct dp_sampled_command *c);

#endif
