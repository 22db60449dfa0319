/* SPDX-License-Identifier: MIT */
/* Counting for the summary's text and JSON. */
#ifndef DP_OUTPUT_REPORTS_SUMMARY_H
#define DP_OUTPUT_REPORTS_SUMMARY_H

#include "output/output.h"

/* Causes of loss. dp_loss_names has a name for people and a key for programs for each. */
enum dp_loss_cause {
	DP_LOSS_FULL,
	DP_LOSS_NO_SLOT,
	DP_LOSS_FORKED,
	DP_LOSS_ABANDONED,
	DP_LOSS_DAMAGED,
	DP_LOSS_NESTED,
	DP_LOSS_UNPRIMED,
	DP_LOSS_NO_STACK,
	DP_LOSS_OVERWRITTEN,
	DP_LOSS_UNREADABLE,
	DP_LOSS_UNWANTED,
	DP_LOSS_UNPAIRED,
	DP_LOSS_CROWDED,
	DP_LOSS_OTHER,
	DP_LOSS_COUNT
};

extern const struct dp_loss_name {
	const char *text, *key;
	const char *advice; /* how to lose none, or NULL */
} dp_loss_names[DP_LOSS_COUNT];

struct dp_counts {
	uint64_t recorded, lost, loss[DP_LOSS_COUNT];
	size_t placed, refused, retired;
	size_t left_out; /* of the refused */
};

/* The counts of one probe, or of all. hits = recorded + lost. */
struct dp_counts dp_summary_count(const struct dp_summary_probe *probe, size_t n);

struct dp_process_counts {
	pid_t pid;
	const char *comm; /* or NULL */
	struct dp_counts counts;
};
/* The counts of the process of probe *i, which moves to the next process; false at the end. */
bool dp_summary_process(const struct dp_summary *s, size_t *i, struct dp_process_counts *ret);

/* Counts equal words: tactics or tags. Probes for which `word` is NULL are left out. */
struct dp_group {
	const char *word;
	size_t n;
};
/* Writes at most `max` groups in order of appearance and returns how many; `word` picks the word of a probe. */
size_t dp_summary_group(const struct dp_summary *s, const char *(*word)(const struct dp_summary_probe *), struct dp_group *groups,
                        size_t max);
const char *dp_summary_tactic(const struct dp_summary_probe *p);      /* of a placed probe */
const char *dp_summary_refusal_tag(const struct dp_summary_probe *p); /* of a refused probe */
/* of one that is only a note; of the other refused ones: */
const char *dp_summary_left_out_tag(const struct dp_summary_probe *p);
const char *dp_summary_trouble_tag(const struct dp_summary_probe *p);

#endif
