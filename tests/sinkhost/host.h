/* SPDX-License-Identifier: MIT */
/* Plays dynprobe's part of agent/sink.h inside one process: loads the sink, registers events, and hits them as a stub does. */
#ifndef DP_TESTS_SINKHOST_HOST_H
#define DP_TESTS_SINKHOST_HOST_H

#include "agent/sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_EVENTS 2048
#define HOST_FIELDS 8192

struct host_event {
	struct dp_probe_desc desc;
	struct dp_lost lost;
	const volatile uint32_t *gate;
};

/* Loads the sink on a thread of its own, with a descriptor table of its own unless liblttng-ust is already here. Exits on
 * failure. */
struct dp_sink *host_load(const char *path);
/* Begins a request. Add events, then call host_serve(). */
void host_begin(void);
void host_add(const char *name, bool mask);
void host_field(const char *name, enum dp_sink_type type, uint32_t size, bool hex);
void host_release(uint64_t event);
const struct dp_sink_event *host_serve(void); /* the answers, in order */
/* Makes a probe from the sink's reply. */
void host_probe(struct host_event *ret, const struct dp_sink_event *answer, uint64_t site);
void host_prime(void);
/* Does what a stub does. Returns false if the hit was lost. */
bool host_hit(const struct host_event *e, const void *payload, size_t size);
bool host_hit_capture(const struct host_event *e, const void *payload, size_t size);
extern struct dp_agent host_agent; /* set live to 0 to be a fork child */

/* hit.S: calls them as a stub does. Returns the record, or NULL. */
struct dp_record *host_enter(uint64_t enter, const struct dp_probe_desc *desc);
void host_emit(uint64_t emit, const struct dp_probe_desc *desc, struct dp_record *record, uint64_t size);

#endif
