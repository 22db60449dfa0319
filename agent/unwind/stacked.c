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

/* `words` has `n` frames after the place of the key's values, which the stub has put behind the result. */
static void enter(struct dp_capture *capture, const struct dp_op *op, uint64_t *words, uint64_t n)
{
	struct dp_cells *cells = (struct dp_cells *)(void *)capture->record;
	const uint64_t *given = (const uint64_t *)(cells + 1), nkeys = keys_of(op), most = op->addr >> 32;

	for (uint64_t i = 1; i <= nkeys; i++)
		words[i] = i == op->field ? (n > 1 ? words[nkeys + 2] : 0) : given[i];
	words[0] = nkeys + (n < most || !op->addr ? n : most);
	*cells = dp_agg_find(capture->desc, dp_agg_hash(words), words);
}

static void find_cells(struct dp_capture *capture, const struct dp_op *op)
{
	const struct dp_op limited = {.size = op->size < DEPTH ? op->size : DEPTH};
	struct dp_capture own = *capture;
	uint64_t words[1 + DP_AGG_KEYS + DEPTH];
	const uint64_t nkeys = keys_of(op);
	uint8_t *bytes = (uint8_t *)(words + nkeys) + 7; /* the count's byte; the frames after it are aligned words */

	own.cursor = bytes;
	dp_agent_backtrace(&own, &limited);
	enter(capture, op, words, *bytes);
}

static void find_cells_of_site(struct dp_capture *capture, const struct dp_op *op)
{
	uint64_t words[1 + DP_AGG_KEYS + 1];

	words[1 + keys_of(op)] = capture->regs->rip;
	enter(capture, op, words, 1);
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
