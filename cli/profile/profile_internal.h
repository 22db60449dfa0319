/* SPDX-License-Identifier: MIT */
#ifndef DP_CLI_PROFILE_PROFILE_INTERNAL_H
#define DP_CLI_PROFILE_PROFILE_INTERNAL_H

#include "cli/profile/profile.h"

#include "cli/run/aggregations.h"
#include "session/profile/sampler.h"

#include <poll.h>

struct sampled { /* one process */
	struct dp_sampler s;
	bool ended;
};

struct profile {
	const struct dp_options *o;
	struct dp_trace_spec shown; /* the one event class, as the outputs take it */
	struct dp_probe probe;
	struct dp_typed typed;
	struct dp_sampled_command command;
	int signal_fd;
	struct sampled *item;
	size_t n, failed;    /* failed: processes that are not sampled */
	struct pollfd *wake; /* the signals, the ends of the processes, and their rings that fill up */
	struct dp_outputs out;
	uint64_t start_ns, end_ns;
	const char *ended_by;
	bool leaving; /* it has ended, and its output is still to be read */
	bool hurried; /* a signal came since: what is not read is dropped */
	bool gone_on; /* the command runs on its own */
	bool unread;  /* the reader of the output has gone */
};

/* Why there are no samples. */
#define DP_PROFILE_IDLE "no sample was taken: it used hardly any processor time; --profile off-cpu shows where it waits"

/* profile_report.c */
uint64_t dp_profile_taken(const struct profile *p);
void dp_profile_stats(const struct profile *p, struct dp_samples_stats *ret);
void dp_profile_report_json(const struct profile *p, const struct dp_sampler *sampler, double seconds);
void dp_profile_report(const struct profile *p, double seconds);

#endif
