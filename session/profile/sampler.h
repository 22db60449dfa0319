/* SPDX-License-Identifier: MIT */
/*
 * Samples of one process's stacks by CPU time, with names for their addresses. Nothing in the process is changed. The caller
 * waits between two calls of dp_sampler_drain(), and decides when to end.
 */
#ifndef DP_SESSION_PROFILE_SAMPLER_H
#define DP_SESSION_PROFILE_SAMPLER_H

#include "injector/perf/samples.h"
#include "output/output.h"
#include "session/profile/stacks.h"

struct dp_sampler {
	/* Set by the caller, as all 0 or: */
	pid_t pid;
	int pid_fd;
	bool starts;              /* `pid` is a command that has not called exec yet: sampling begins when it does */
	uint64_t most;            /* samples; 0: no limit */
	struct dp_stacks *stacks; /* counts stacks; owned. NULL: `event` gets each sample, as fields "backtrace:127" */
	void (*event)(const struct dp_event *event, void *data);
	void *data;
	/* Results. */
	char comm[32]; /* the caller may set another name */
	struct dp_images images;
	uint64_t taken, cut, crowded, stale; /* stale: code was mapped since the names were read */
	/* Own. */
	uint64_t nameless, tried_ns;
	struct dp_samples *samples;
	struct dp_sample_walker *walker;
	uint32_t walked; /* the image whose tables the walker has */
	bool look_failed;
};

struct dp_error *dp_sampler_open(struct dp_sampler *s, unsigned hz) DP_MUST_CHECK;
/* Reads what code is mapped: of a process before it is sampled, of a command once it runs. */
struct dp_error *dp_sampler_look(struct dp_sampler *s) DP_MUST_CHECK;
void dp_sampler_drain(struct dp_sampler *s);
bool dp_sampler_has_all(const struct dp_sampler *s);
/* Samples without names: their code was gone. */
uint64_t dp_sampler_unnamed(const struct dp_sampler *s);
void dp_sampler_fini(struct dp_sampler *s);

/* sampled_command.c: a command that waits before exec until its samples can be kept, and dies with us until then. */
struct dp_sampled_command {
	pid_t pid;
	int go, told; /* -1: none */
};
/* On failure, too, dp_sampled_command_fini() follows. */
struct dp_error *dp_sampled_command_start(struct dp_sampled_command *c, char **words) DP_MUST_CHECK;
/* DP_TAG_EXEC if it cannot be executed. */
struct dp_error *dp_sampled_command_go(struct dp_sampled_command *c, const char *name) DP_MUST_CHECK;
void dp_sampled_command_fini(struct dp_sampled_command *c);

#endif
