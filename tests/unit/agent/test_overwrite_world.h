/* SPDX-License-Identifier: MIT */
/* A ring that overwrites its records, and checks that it is consistent at any time. */
#ifndef DP_TEST_OVERWRITE_WORLD_H
#define DP_TEST_OVERWRITE_WORLD_H

#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#define RING 16384u

static struct dp_debug_ctx *w;

static inline void begin(void)
{
	w = world_create(4, RING, DP_ID_SELF);
	w->control->overwrite = 1;
}

static inline void end(void)
{
	world_destroy(w);
}

static inline uint64_t overwritten(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < WORLD_PROBES; i++)
		n += w->lost[i].overwritten;
	return n;
}

/* Memory outside of [tail, head) must be zero, or a later record would seem to be committed too early. */
static inline bool free_is_zero(const struct dp_slot *slot)
{
	for (uint64_t pos = slot->head; pos < slot->tail + slot->mask + 1; pos += 8)
		if (*(const uint64_t *)(uintptr_t)(slot->base + (pos & slot->mask)))
			return false;
	return true;
}

/* The remaining records have ascending numbers, without a gap per probe, up to the last one. */
struct seen {
	uint64_t n, last[WORLD_PROBES], each[WORLD_PROBES], tid;
	bool gap, other_thread;
};

static void see(const struct dp_record *r, void *data)
{
	struct seen *s = data;
	uint64_t value = *(const uint64_t *)(const void *)r->payload;

	if (r->probe == DP_RECORD_THREAD) {
		s->tid = value;
	} else if (r->probe < WORLD_PROBES) {
		s->gap |= s->each[r->probe] && value != s->last[r->probe] + 1;
		s->last[r->probe] = value;
		s->each[r->probe]++;
		s->n++;
		s->other_thread |= s->tid != (uint64_t)gettid();
	}
}

/* What a tool does when it takes over. */
static inline struct seen take_over(struct dp_slot *slot)
{
	struct seen s = {0};

	__atomic_store_n(&w->control->overwrite, 0, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&slot->reclaiming, __ATOMIC_SEQ_CST))
		;
	s.tid = slot->tail_tid;
	world_drain(slot, see, &s);
	return s;
}

#endif
