/* SPDX-License-Identifier: MIT */
/* --function, --probe, --return, --name, -t and --when, which apply to each other (options_probe.c has the rule). */
#ifndef DP_CLI_OPTIONS_OPTIONS_PROBE_H
#define DP_CLI_OPTIONS_OPTIONS_PROBE_H

#include "cli/options/options.h"

struct dp_probe_args {
	struct dp_probe *probe;
	struct dp_typed *typed; /* of each probe */
	size_t n;
	size_t group;      /* first probe of the current group */
	bool group_closed; /* after -t or --when: the next probe begins a new group */
	char *pending_name;
	const char **early_context; /* given before the first probe */
	size_t nearly;
	const char *early_when;
	bool snapshot; /* each probe's last field is DP_CONTEXT_SNAPSHOT */
};

/* After the last option: names the probes, and applies the options before the first probe. */
struct dp_error *dp_args_finish(struct dp_probe_args *a) DP_MUST_CHECK;
void dp_args_fini(struct dp_probe_args *a);

#endif
