/* SPDX-License-Identifier: MIT */
/*
 * Hands the hits of one ring out where they are, in batches. Most records are plain: committed, of a known probe, of a possible
 * size. A short loop takes those; every other one is looked at as in a merged pass (drain_lane.c). A batch is zeroed and given
 * back to the thread as soon as the consumer has it, while it is still in the cache.
 */
#include "injector/ring/drain_batch.h"

#define AHEAD 512u /* bytes that are fetched in advance; for writing, because they will be zeroed */
#define LEAST ((uint32_t)sizeof(struct dp_record))

/* Fetches a line for writing. (The compiler emits this instruction only where told that all processors have it; those without
 * ignore it.) */
static inline void fetch(const uint8_t *line)
{
	__asm__ volatile("prefetchw %0" : : "m"(*line));
}

/* A thread cannot hit a probe in the future. The counter is read only where a record may be newer than the last reading. */
static bool is_believable(struct dp_batch *b, uint64_t tsc)
{
	if (tsc > b->latest)
		b->latest = dp_clock_tsc() + DP_TICKS_WRONG;
	return tsc <= b->latest;
}

static inline uint64_t ns_of(struct dp_batch *b, uint64_t tsc)
{
	if (dp_clock_line_has(&b->line, tsc) || dp_clock_line(b->clock, tsc, &b->line))
		return dp_clock_line_ns(&b->line, tsc);
	return dp_clock_ns(b->clock, tsc);
}

static inline void add(struct dp_batch *b, struct dp_lane *lane, uint64_t tsc, const struct dp_hits_item *item)
{
	/* A signal handler's hit may follow the hit it interrupted, and be older. */
	if (tsc > lane->last_key)
		lane->last_key = tsc;
	b->item[b->hits.n] = *item;
	b->item[b->hits.n++].ns = ns_of(b, lane->last_key);
}

void dp_batch_add(struct dp_batch *b, struct dp_lane *lane, uint64_t tsc, const struct dp_hits_item *item)
{
	add(b, lane, tsc, item);
}

/* Takes plain records from `pos` on, as long as there are some and the batch has room. Returns the position after them. */
static uint64_t take_plain(struct dp_lane *lane, uint64_t pos, const struct dp_collect *pass)
{
	struct dp_batch *b = pass->batch;
	while (pos < lane->head && b->hits.n < DP_BATCH_MOST) {
		const uint64_t at = pos & lane->mask;
		const uint64_t *word = (const uint64_t *)(const void *)(lane->ring + at);
		fetch(lane->ring + ((at + AHEAD) & lane->mask));
		const uint64_t first = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		const uint32_t size = (uint32_t)first;
		/* The upper half has the flags, too, of which none is known. */
		if (first >> 32 >= pass->nprobes || size - LEAST > DP_RECORD_MAX - LEAST || size % 8 || size > lane->head - pos ||
		    size > lane->mask + 1 - at)
			break;
		const uint64_t tsc = *(const volatile uint64_t *)(word + 1);
		if (!is_believable(b, tsc))
			break;
		add(b, lane, tsc,
		    &(struct dp_hits_item){.payload = (const uint8_t *)(word + 2),
		                           .probe = (uint16_t)(first >> 32),
		                           .len = (uint16_t)(size - LEAST)});
		pos += size;
	}
	return pos;
}

/* The hits so far go to the consumer, and their bytes back to the thread. */
static void pass_on(struct dp_batch *b, struct dp_lane *lane, uint64_t pos)
{
	if (b->hits.n) {
		b->hits.pid = lane->pid;
		b->hits.tid = lane->tid;
		b->each(&b->hits, b->data);
		b->hits.n = 0;
	}
	if (pos != lane->tail)
		dp_lane_consume(lane, pos);
	lane->filler = UINT64_MAX;
}

void dp_lane_batches(struct dp_lane *lane, const struct dp_collect *pass, const bool *broken)
{
	struct dp_batch *b = pass->batch;
	uint64_t pos = lane->tail;
	enum dp_lane_step result = DP_STEP_ON;

	lane->filler = UINT64_MAX;
	while (pos < lane->head && result == DP_STEP_ON && !*broken) {
		pos = take_plain(lane, pos, pass);
		pass_on(b, lane, pos);
		if (pos < lane->head && !*broken)
			result = dp_lane_step(lane, &pos, pass);
	}
	pass_on(b, lane, pos);
	dp_lane_note_pending(lane, result == DP_STEP_STUCK, pass);
}
