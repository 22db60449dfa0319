/* SPDX-License-Identifier: MIT */
/* Processes that ended during a run that goes on: their counts are kept, their sessions are not. */
#ifndef DP_SESSION_RUN_PAST_H
#define DP_SESSION_RUN_PAST_H

#include "session/run/run.h"

struct dp_past; /* opaque */
/* Adds the counts of session number `k`, whose rings have been read for the last time, and destroys it. */
void dp_past_take(struct dp_run *run, size_t k);
/* Counts a process that could not be probed. Takes `why`. */
void dp_past_refuse(struct dp_run *run, struct dp_error *why);
/* At most two rows for each probe: of the processes where it was placed, and of those where it was refused. */
size_t dp_past_nrows(const struct dp_run *run);
size_t dp_past_rows(const struct dp_run *run, struct dp_summary_probe *ret);
/* Adds to the summary what is not of a single probe. */
void dp_past_sum(const struct dp_run *run, struct dp_summary *sum);
/* Their fork children. */
const struct dp_children *dp_past_children(const struct dp_run *run);
unsigned dp_past_followed(const struct dp_run *run);
/* Had one of them a place for probe `i`? */
bool dp_past_has(const struct dp_run *run, size_t i);
uint64_t dp_past_lost(const struct dp_run *run);
/* Was a probe refused in one of them, not counting those that patterns leave out? */
bool dp_past_refused(const struct dp_run *run);
struct dp_past *dp_past_destroy(struct dp_past *p);

#endif
