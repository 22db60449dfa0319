/* SPDX-License-Identifier: MIT */
/*
 * Probes at random instructions of a live program, installed and removed again and again, to prove that the program does not
 * notice: batch.c chooses instructions, round.c installs them, lets the program run, removes them and compares the text with the
 * files, tally.c keeps the figures.
 */
#ifndef DP_TESTS_TORTURE_H
#define DP_TESTS_TORTURE_H

#include "session/code/hooks.h"
#include "injector/injector.h"

#include <stdio.h>

enum mode {            /* what the probes of a round do */
	    MODE_NONE, /* a condition that is never true */
	    MODE_REGS,
	    MODE_MEMORY, /* a string, and a word that cannot be read */
	    MODE_BACKTRACE,
	    MODE_COUNT,
};
extern const char *const mode_name[MODE_COUNT];

struct options {
	pid_t pid;
	char **command; /* or NULL */
	double seconds;
	uint64_t seed;
	size_t batch;
	const char *module;  /* a glob of file names */
	int mode;            /* enum mode, or MODE_COUNT for all in turn */
	unsigned stay_ms;    /* how long a batch stays installed */
	unsigned tactics;    /* bit set of enum dp_tactic, 0: the planner's own choice */
	const char *batches; /* directory that gets the last batches, or NULL */
	const char *replay;  /* a batch to install again and again, or NULL */
	size_t first, last;  /* of its lines */
	const char *report;  /* file for the figures, or NULL */
	FILE *log;
};

static inline bool failed(struct dp_error *err)
{
	const bool yes = err;
	dp_error_destroy(err);
	return yes;
}

/* ---- batch.c ---- */

struct place {
	struct dp_site site;
	uint64_t file_addr, file_function; /* addresses in the module's file: the same in every run */
};
struct batch {
	struct place *place;
	size_t n;
};
struct hot; /* functions that ran in earlier rounds */
struct hot *hot_create(void);
struct hot *hot_destroy(struct hot *hot);
void hot_add(struct hot *hot, const struct place *place);

uint64_t random_next(uint64_t *state);
/* Chooses instructions of the matching modules, half of them in functions that are known to run. */
struct dp_error *batch_choose(struct dp_image *image, const struct options *o, const struct hot *hot, uint64_t seed,
                              struct batch *ret) DP_MUST_CHECK;
struct dp_error *batch_load(struct dp_image *image, const struct options *o, struct batch *ret) DP_MUST_CHECK;
struct dp_error *batch_save(const struct batch *b, const char *path, uint64_t seed) DP_MUST_CHECK;
void batch_fini(struct batch *b);

/* ---- tally.c ---- */

struct tally {
	size_t rounds, asked, planned, placed[DP_TACTIC_COUNT], refused[DP_TAG_COUNT];
	size_t no_install[DP_TAG_COUNT], no_open[DP_TAG_COUNT]; /* rounds without probes, by reason */
	size_t hits, lost, left_bytes, left_sites, changed_bytes, sites_hit;
	uint64_t pause_ns, install_ns, plan_ns;
};
void tally_add(struct tally *sum, const struct tally *one);
void tally_print(const struct tally *t, FILE *to);
void tally_json(const struct tally *t, FILE *to);

/* ---- round.c ---- */

struct round {
	const struct options *o;
	struct dp_target *target;
	struct batch batch;
	enum mode mode;
	unsigned tactics; /* as in options */
	struct dp_hooks hooks; /* while the agent's handler is wanted */
	struct tally *tally;
	size_t *hits; /* of each place */
};
/* Plans, installs, runs, removes. The target may end at any time: that is not an error, but `in_time` is then false. */
struct dp_error *round_run(struct round *r, bool *in_time) DP_MUST_CHECK;
/* Compares the text with the files, and forgets the batch's modules. */
void round_compare(struct round *r);

#endif
