/* SPDX-License-Identifier: MIT */
/* An event, as seen by liblttng-ust and by our hits. */
#ifndef DP_AGENT_LTTNG_EVENT_H
#define DP_AGENT_LTTNG_EVENT_H

#include "agent/lttng/hosted.h"

#include <lttng/tracepoint-types.h>
#include <lttng/ust-events.h>

/* As in <lttng/tracepoint.h>, which would add a constructor to every file that includes it. */
int lttng_ust_tracepoint_module_register(struct lttng_ust_tracepoint *const *start, int n);

struct dp_lttng_event {
	struct lttng_ust_tracepoint tp; /* its state is the gate: 0 while no session wants the event */
	void (*callback)(void);         /* identifies our entry in tp.probes */
	const struct dp_sink_field *fields;
	uint32_t nfields;
	bool mask;
	/* For registering only. */
	bool live; /* some probe emits it; otherwise it is parked */
	struct dp_lttng_event *next;
	char *name;
	const char *uri;
	const int *loglevel;
	struct lttng_ust_event_desc desc;
	struct lttng_ust_tracepoint_class class;
};

/* fields.c: NULL, or what is wrong with the fields: a trace with two fields of one name cannot be read. */
const char *dp_lttng_check_fields(const struct dp_sink_field *fields, uint32_t n, bool mask);
/* LTTng's description of them; NULL when out of memory. Never freed: LTTng keeps pointers to it. */
const struct lttng_ust_event_field **dp_lttng_describe(const struct dp_sink_field *fields, uint32_t n, bool mask, size_t *ret_n);

/* filter.c: lays the payload's values out for LTTng's bytecode interpreter. `to` has 2 words for each field and the mask. */
void dp_lttng_operands(const struct dp_lttng_event *event, const uint8_t *payload, uint64_t *to);

#endif
