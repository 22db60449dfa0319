/* SPDX-License-Identifier: MIT */
/* Does in the test's own process what the tool does in a target; and a stub's hit, written in C. */
#ifndef DP_TEST_WORLD_H
#define DP_TEST_WORLD_H

#include "agent/agent.h"

#define WORLD_PROBES 12

struct dp_debug_ctx {
	struct dp_control *control; /* MAP_SHARED, like the memfd */
	size_t size;
	struct dp_lost *lost;
	struct dp_slot *slots;
	uint8_t *rings;
	struct dp_agent *agent; /* private, wiped on fork */
	struct dp_probe_desc desc[WORLD_PROBES];
	/* Entry points of hits: the agent's own functions, or those of the blob. */
	struct dp_reservation (*acquire)(const struct dp_probe_desc *desc);
	void (*finish)(struct dp_capture *capture);
};

/* `reserve` of every probe starts as 64. */
struct dp_debug_ctx *world_create(uint32_t nslots, uint64_t ring_size, enum dp_identity identity);
void world_destroy(struct dp_debug_ctx *w);

/* A hit up to the reservation: a stub's fast path, then the slow one. record is NULL if the hit is lost. */
struct dp_reservation world_reserve(struct dp_debug_ctx *w, unsigned probe);
/* A whole hit with n bytes of payload. Returns false if it was lost. */
bool world_hit(struct dp_debug_ctx *w, unsigned probe, const void *payload, size_t n);
/* n hits of probe 0, whose payload counts them. Returns how many were recorded. */
unsigned world_hits(struct dp_debug_ctx *w, unsigned n);
/* The sum of all counters of all probes. */
uint64_t world_lost(const struct dp_debug_ctx *w);

/* The offset of the thread id from %fs:0 in glibc. */
uint32_t world_tid_offset(void);
uint64_t world_key(void);
/* Replaces the running thread's id where the agent reads it; returns the real one. */
uint32_t world_set_tid(uint32_t tid);

/* A simple consumer: takes committed records of one slot off its ring, as the tool does. Returns the number of hits. */
typedef void (*world_record_fn)(const struct dp_record *record, void *data);
unsigned world_drain(struct dp_slot *slot, world_record_fn each, void *data);

/* A thread that sends SIGUSR1 to the thread in *victim as fast as it can, until world_storm_over. */
extern volatile int world_storm_over;
void *world_storm(void *victim);

#endif
