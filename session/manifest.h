/* SPDX-License-Identifier: MIT */
/*
 * What was asked of probes that outlive their tool, as a JSON text that lies in the target. The target's memory is the target's
 * to write: nothing in a text that comes back is trusted. It is bounded, every word in it must parse as it had to on the command
 * line, and the layout of records is computed anew from the contexts and the place.
 */
#ifndef DP_SESSION_MANIFEST_H
#define DP_SESSION_MANIFEST_H

#include "session/trace_spec.h"

struct dp_manifest_probe {
	char *name, *spec;
	bool entry, leaves;
	uint64_t site; /* where it was placed: names in the contexts are given their meaning by it; else 0 */
	struct dp_typed typed;
	uint64_t event; /* sink lttng: its handle in the sink; else 0 */
};

#define DP_MANIFEST_PROBES 8192u /* at most */

struct dp_manifest { /* probe[i] is the i-th probe of its installation */
	bool lttng;
	char *session; /* LTTng's, or NULL */
	char *filter;  /* of its rule, or NULL */
	struct dp_manifest_probe *probe;
	size_t n;
};

/* What `options` ask for; the events are for the caller to fill in. */
struct dp_error *dp_manifest_of(const struct dp_trace_spec *trace, bool lttng, const char *session,
                                struct dp_manifest *ret) DP_MUST_CHECK;
/* The text, malloc'ed. DP_TAG_USAGE if there are too many of them, or the text is larger than an installation has room for. */
struct dp_error *dp_manifest_write(const struct dp_manifest *m, char **ret) DP_MUST_CHECK;
/* DP_TAG_MANIFEST if the text is not one that dp_manifest_write() makes. */
struct dp_error *dp_manifest_parse(const char *text, struct dp_manifest *ret) DP_MUST_CHECK;
void dp_manifest_fini(struct dp_manifest *m);

#endif
