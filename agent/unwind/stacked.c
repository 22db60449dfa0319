/* SPDX-License-Identifier: MIT */
/* Keys that are backtraces: a hit unwinds, and counts in the cells of the chain that it finds (agent/aggregate.c). */
#include "agent/aggregate.h"
#include "agent/syscall.h"

#define DEPTH 63u /* words on the stack of the hit */

/* The thread's slot; NULL: none, and the hit is counted as lost. */
static struct dp_slot *find_slot(const struct dp_capture *capture)
{
	struct dp_agent *agent = (struct dp_agent *)(uintptr_t)capture->desc->agent;
	struct dp_thread self;
	struct dp_slot *slot;

	if (!dp_thread_begin(agent, capture->desc, &self)) {
		dp_agg_lose_forked(capture->desc);
		return NULL;
	}
	dp_thread_name(&self);
	slot = dp_thread_slot(agent, &self);
	if (!slot)
		__atomic_fetch_add(&((struct dp_lost *)(uintptr_t)capture->desc->lost)->no_slot, 1, __ATOMIC_RELAXED);
	return slot;
}

static uint64_t keys_of(const struct dp_op *op)
{
	const uint64_t n = op->addr & UINT32_MAX;

	return n < DP_AGG_KEYS ? n : DP_AGG_KEYS;
}

/* The values that the stub has put behind the result, and the strings. Returns how many words they are. */
static uint64_t take_values(const struct dp_capture *capture, const struct dp_op *op, uint64_t *words)
{
	const struct dp_cells *cells = (const struct dp_cells *)(const void *)capture->record;

	return keys_of(op) ? keys_of(op) + dp_agg_texts(capture->desc, (const uint64_t *)(cells + 1), words) : 0;
}

/* `words` has `n` frames behind `values` words. */
static void enter(struct dp_capture *capture, const struct dp_op *op, uint64_t *words, uint64_t values, uint64_t n)
{
	const uint64_t most = op->addr >> 32;

	if (op->field)
		words[op->field] = n > 1 ? words[values + 2] : 0;
	words[0] = values + (n < most || !op->addr ? n : most);
	*(struct dp_cells *)(void *)capture->record = dp_agg_find(capture->desc, dp_agg_hash(words), words);
}

static inline __attribute__((always_inline)) void find_in(struct dp_capture *capture, const struct dp_op *op, uint64_t *words)
{
	const struct dp_op limited = {.size = op->size < DEPTH ? op->size : DEPTH};
	struct dp_capture own = *capture;
	const uint64_t values = take_values(capture, op, words), last = values ? words[values] : 0;
	uint8_t *bytes = (uint8_t *)(words + values) + 7; /* the count's byte; the frames after it are aligned words */
	uint64_t n = 0;

	if (limited.size) {
		own.cursor = bytes;
		dp_agent_backtrace(&own, &limited);
		n = *bytes;
		words[values] = last;
	}
	enter(capture, op, words, values, n);
}

static __attribute__((noinline)) void find_cells_by_texts(struct dp_capture *capture, const struct dp_op *op)
{
	uint64_t words[1 + DP_AGG_KEYS + DP_AGG_TEXT_WORDS + DEPTH];

	find_in(capture, op, words);
}

static __attribute__((noinline)) void find_cells_by_frames(struct dp_capture *capture, const struct dp_op *op)
{
	uint64_t words[1 + DP_AGG_KEYS + DEPTH];

	find_in(capture, op, words);
}

/* Without strings it needs less of the stack. */
static void find_cells(struct dp_capture *capture, const struct dp_op *op)
{
	if (capture->desc->reserve)
		find_cells_by_texts(capture, op);
	else
		find_cells_by_frames(capture, op);
}

/* Without the slot's stack, which a hit of the thread uses. Strings have no room on a small one. */
static void find_cells_of_site(struct dp_capture *capture, const struct dp_op *op)
{
	uint64_t words[1 + DP_AGG_KEYS + 1];

	if (capture->desc->reserve) {
		__atomic_fetch_add(&((struct dp_lost *)(uintptr_t)capture->desc->lost)->no_stack, 1, __ATOMIC_RELAXED);
		return;
	}
	const uint64_t values = take_values(capture, op, words);

	words[1 + values] = capture->regs->rip;
	enter(capture, op, words, values, 1);
}

void dp_agent_stacked(struct dp_capture *capture, const struct dp_op *op)
{
	*(struct dp_cells *)(void *)capture->record = (struct dp_cells){0, 0};
	capture->slot = find_slot(capture);
	if (capture->slot)
		find_cells(capture, op);
}

void dp_agent_stacked_apart(struct dp_capture *capture, const struct dp_op *op)
{
	uint64_t mask;
	const int64_t failed = dp_syscall_block_signals(&mask); /* before the slot is known: a handler may fork */

	*(struct dp_cells *)(void *)capture->record = (struct dp_cells){0, 0};
	capture->slot = find_slot(capture);
	if (capture->slot && !dp_apart_call(capture, op, find_cells))
		find_cells_of_site(capture, op);
	if (!failed)
		dp_syscall_restore_signals(&mask);
}

void dp_agent_stacked_done(struct dp_capture *capture)
{
	(void)capture;
}
