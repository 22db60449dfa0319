/* SPDX-License-Identifier: MIT */
/* Decides whether a hit may go on, where the fast path cannot. Runs before the vector state is saved: general registers only. */
#include "agent/lttng/guest/guest.h"
#include "agent/lttng/hosted.h"

__thread struct dp_block *dp_lttng_block;

/* They look like the start of a block whose thread is in a hit. */
static uint64_t guest[16] __attribute__((aligned(64))) = {DP_SINK_GUEST};
static uint64_t priming[16] __attribute__((aligned(64))) = {1};

uint64_t dp_lttng_block_offset(void)
{
	return (uint64_t)(uintptr_t)&dp_lttng_block - (uint64_t)(uintptr_t)__builtin_thread_pointer();
}

void dp_lttng_be_guest(void)
{
	dp_lttng_block = (struct dp_block *)(void *)guest;
}

bool dp_lttng_begin_priming(void)
{
	if (dp_lttng_block)
		return false;
	dp_lttng_block = (struct dp_block *)(void *)priming;
	__asm__ volatile("" ::: "memory");
	return true;
}

void dp_lttng_end_priming(struct dp_block *block)
{
	__asm__ volatile("" ::: "memory"); /* until here a hit in a called function finds the thread unprimed */
	if ((const void *)dp_lttng_block == priming)
		dp_lttng_block = block;
}

static bool regular(const struct dp_block *block, uint64_t rsp)
{
	return rsp >= block->stack_lo && rsp < block->stack_hi;
}

/*
 * The current hit was left for good if the thread is now in a frame above it: a signal handler on the same stack would be below.
 * On other stacks this cannot be decided, as their order means nothing.
 */
static bool abandoned(const struct dp_block *block, uint64_t rsp)
{
	return regular(block, block->busy) && regular(block, rsp) && rsp >= block->busy;
}

static bool choose_stack(struct dp_block *block, uint64_t rsp)
{
	const bool own = regular(block, rsp);
	if (own && rsp - block->stack_lo < DP_SINK_STACK_SMALL)
		return false;
	block->move =
	        own && rsp - block->stack_lo >= DP_SINK_STACK ? 0 : (uint64_t)(uintptr_t)(block->stack + sizeof(block->stack));
	return true;
}

bool dp_lttng_enter_slow(const struct dp_probe_desc *desc, uint64_t rsp)
{
	struct dp_lost *lost = (struct dp_lost *)(uintptr_t)desc->lost;
	struct dp_block *block = dp_lttng_block;
	uint64_t *reason = NULL;
	if ((const void *)block == guest)
		return false;
	if (((const struct dp_agent *)(uintptr_t)desc->agent)->live != DP_LIVE)
		reason = &lost->forked;
	else if (!block || (const void *)block == priming)
		reason = &lost->unprimed;
	else if (block->busy && !abandoned(block, rsp))
		reason = &lost->nested;
	else if (!choose_stack(block, rsp))
		reason = &lost->no_stack;
	if (reason) {
		dp_lttng_lose(reason);
		return false;
	}
	if (block->busy && block->reading)
		block->abandoned = block->reading;
	block->busy = rsp;
	return true;
}
