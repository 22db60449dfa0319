/* SPDX-License-Identifier: MIT */
/*
 * What the user asked of resident probes, as a JSON text in the target's memory. The target can overwrite it, so nothing in a
 * text that is read back is trusted: its length is bounded, every word must parse as it did on the command line, and the layout
 * of records is computed again from the contexts and the site.
 */
#ifndef DP_SESSION_MANIFEST_H
#define DP_SESSION_MANIFEST_H

#include "session/trace_spec.h"

struct dp_manifest_probe {
	char *name, *spec;
	bool entry, leaves;
	uint64_t site; /* the address that gives names in the contexts their meaning; or 0 */
	struct dp_typed typed;
	uint64_t event; /* sink lttng: its handle in the sink; or 0 */
};

#define DP_MANIFEST_PROBES 8192u /* maximum */

struct dp_manifest { /* probe[i] is the i-th probe of its installation */
	bool lttng;
	char *session; /* of LTTng; or NULL */
	char *filter;  /* of the session's rule; or NULL */
	struct dp_manifest_probe *probe;
	size_t n;
};

/* Copies what `trace` asks for. The caller fills in the events and sites. */
struct dp_error *dp_manifest_of(const struct dp_trace_spec *trace, bool lttng, const char *session,
                                struct dp_manifest *ret) DP_MUST_CHECK;
/* The text, malloc'ed. DP_TAG_USAGE if there are too many probes, or the text does not fit into an installation. */
struct dp_error *dp_manifest_write(const struct dp_manifest *m, char **ret) DP_MUST_CHECK;
/* DP_TAG_MANIFEST if dp_manifest_write() cannot have made the text. */
struct dp_error *dp_manifest_parse(const char *text, struct dp_manifest *ret) DP_MUST_CHECK;
void dp_manifest_fini(struct dp_manifest *m);

#endif
