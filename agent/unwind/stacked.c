/* SPDX-License-Identifier: MIT */
/* Keys that are backtraces: a hit unwinds, and counts in the cells of the chain that it finds (agent/aggregate.c). */
#include "agent/aggregate.h"
#include "agent/syscall.h"

#define DEPTH 63u /* words on the stack of the hit */

static uint64_t hash(const uint64_t *stack)
{
	uint64_t h = 0;

	for (uint64_t i = 0; i <= stack[0]; i++)
		h = ((h ^ stack[i]) * DP_AGG_MIX) ^ h >> 29;
	return h;
}

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

static void find_cells(struct dp_capture *capture, const struct dp_op *op)
{
	const struct dp_op limited = {.size = op->size < DEPTH ? op->size : DEPTH};
	struct dp_capture own = *capture;
	uint64_t words[2 + DEPTH];
	uint8_t *bytes = (uint8_t *)words + 7; /* the count's byte; the frames after it are aligned words */

	own.cursor = bytes;
	dp_agent_backtrace(&own, &limited);
	words[0] = *bytes;
	*(struct dp_cells *)(void *)capture->record = dp_agg_find(capture->desc, hash(words), words);
}

static void find_cells_of_site(struct dp_capture *capture)
{
	const uint64_t words[] = {1, capture->regs->rip};

	*(struct dp_cells *)(void *)capture->record = dp_agg_find(capture->desc, hash(words), words);
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
		find_cells_of_site(capture);
	if (!failed)
		dp_syscall_restore_signals(&mask);
}

void dp_agent_stacked_done(struct dp_capture *capture)
{
	(void)capture;
}
