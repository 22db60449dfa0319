/* SPDX-License-Identifier: MIT */
/* Losses, and the slots of threads that have ended. */
#include "injector/ring/drain_internal.h"

#include <string.h>

/* ---- loss and reuse -------------------------------------------------------------------------- */

void dp_loss_of(const struct dp_lost *lost, struct dp_loss *ret)
{
	*ret = (struct dp_loss){
	        .full = __atomic_load_n(&lost->full, __ATOMIC_RELAXED),
	        .no_slot = __atomic_load_n(&lost->no_slot, __ATOMIC_RELAXED),
	        .forked = __atomic_load_n(&lost->forked, __ATOMIC_RELAXED),
	        .other = __atomic_load_n(&lost->other, __ATOMIC_RELAXED),
	        .nested = __atomic_load_n(&lost->nested, __ATOMIC_RELAXED),
	        .unprimed = __atomic_load_n(&lost->unprimed, __ATOMIC_RELAXED),
	        .no_stack = __atomic_load_n(&lost->no_stack, __ATOMIC_RELAXED),
	        .overwritten = __atomic_load_n(&lost->overwritten, __ATOMIC_RELAXED),
	        .unreadable = __atomic_load_n(&lost->unreadable, __ATOMIC_RELAXED),
	        .unwanted = __atomic_load_n(&lost->unwanted, __ATOMIC_RELAXED),
	};
}

void dp_drain_loss(const struct dp_drain *d, unsigned probe, struct dp_loss *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (probe >= d->nprobes)
		return;
	dp_loss_of(&d->lost[probe], ret);
	if (probe == 0) {
		ret->abandoned = d->abandoned;
		ret->damaged = d->damaged;
	}
}

static bool swap_word(struct dp_lane *lane, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n((uint64_t *)(void *)&lane->slot->tid, &from, to, false, __ATOMIC_SEQ_CST,
	                                   __ATOMIC_SEQ_CST);
}

static uint64_t pack(uint32_t tid, uint64_t state)
{
	return state << 32 | tid;
}

/* The slot has no owner, and cannot be claimed yet. */
static void dead(struct dp_drain *d, struct dp_lane *lane)
{
	dp_room_clear(&d->room, lane);
	lane->gone = 0;
	swap_word(lane, pack(0, DP_SLOT_CLAIM), pack(0, DP_SLOT_DEAD));
	__atomic_fetch_add(&d->control->slots_freed, 1, __ATOMIC_RELEASE);
}

/* Who is asked whether the owners of slots live. */
struct reaper {
	bool (*alive)(pid_t ns_tid, void *data);
	dp_owner_fn state; /* or NULL */
	void *data;
};

static bool is_claimed_by_child(uint64_t word)
{
	return word >> 32 == DP_SLOT_CLAIM && ((uint32_t)word & DP_TID_CHILD) == DP_TID_CHILD;
}

/* While a slot is being claimed, all in it but this word is its last owner's. */
static struct dp_slot_owner owner_of(const struct dp_lane *lane, uint32_t tid)
{
	const uint64_t word = dp_lane_word(lane);

	if (is_claimed_by_child(word))
		return (struct dp_slot_owner){.process = (uint32_t)word & DP_TID_MASK};
	if (word >> 32 == DP_SLOT_CLAIM)
		return (struct dp_slot_owner){.tid = (pid_t)tid};
	return (struct dp_slot_owner){.process = lane->slot->process, .pid = (pid_t)lane->slot->pid, .tid = (pid_t)tid};
}

static enum dp_owner_state ask(const struct reaper *r, const struct dp_lane *lane, uint32_t tid)
{
	const struct dp_slot_owner owner = owner_of(lane, tid);

	if (r->state && owner.process)
		return r->state(&owner, r->data);
	if (tid && r->alive((pid_t)tid, r->data))
		return DP_OWNER_LIVES;
	return r->state ? r->state(&owner, r->data) : DP_OWNER_ENDED;
}

/*
 * Thread ids are reused. So mark the slot as suspect first, which sends any hit in it to the agent's slow path, then check for
 * the thread again; only after that is it certain that no thread uses the slot.
 */
static void reap(struct dp_drain *d, struct dp_lane *lane, const struct reaper *r)
{
	uint64_t word = dp_lane_word(lane), state = word >> 32, suspect;
	uint32_t tid = (uint32_t)word & DP_TID_MASK;
	enum dp_owner_state owner;

	if (state != DP_SLOT_USED && state != DP_SLOT_CLAIM)
		return;
	if (!tid || ask(r, lane, tid) == DP_OWNER_LIVES)
		return;
	suspect = pack(tid | DP_TID_SUSPECT, state);
	if (word != suspect && !swap_word(lane, word, suspect))
		return;
	owner = ask(r, lane, tid);
	lane->gone = owner == DP_OWNER_LIVES ? 0 : suspect;
	if (!lane->gone)
		return;
	if (__atomic_load_n(&lane->slot->head, __ATOMIC_ACQUIRE) != lane->tail ||
	    !swap_word(lane, suspect, pack(0, DP_SLOT_CLAIM)))
		return;
	if (owner == DP_OWNER_PROCESS_ENDED)
		__atomic_store_n(&lane->slot->process, DP_PROCESS_NONE, __ATOMIC_RELEASE);
	dead(d, lane);
}
/* A slot that only its former owner's process could take: nobody can, if the process has ended. */
static void release(struct dp_drain *d, struct dp_lane *lane, const struct reaper *r)
{
	if (lane->slot->process == DP_PROCESS_NONE || ask(r, lane, 0) != DP_OWNER_PROCESS_ENDED)
		return;
	__atomic_store_n(&lane->slot->process, DP_PROCESS_NONE, __ATOMIC_RELEASE);
	__atomic_fetch_add(&d->control->slots_freed, 1, __ATOMIC_RELEASE);
}

/* A process of which nothing is left will not complete its claim; a thread that has ended counts as if it did. */
static void reap_claim(struct dp_drain *d, struct dp_lane *lane, const struct reaper *r)
{
	if (ask(r, lane, 0) != DP_OWNER_PROCESS_ENDED || !swap_word(lane, dp_lane_word(lane), pack(0, DP_SLOT_CLAIM)))
		return;
	__atomic_store_n(&lane->slot->process, DP_PROCESS_NONE, __ATOMIC_RELEASE);
	dead(d, lane);
}

static void reap_one(struct dp_drain *d, struct dp_lane *lane, const struct reaper *r)
{
	if (dp_lane_word(lane) == pack(0, DP_SLOT_CLAIM)) /* a tool was killed while freeing it */
		dead(d, lane);
	else if (is_claimed_by_child(dp_lane_word(lane)))
		reap_claim(d, lane, r);
	else if (r->state && dp_lane_word(lane) == pack(0, DP_SLOT_DEAD))
		release(d, lane, r);
	else
		reap(d, lane, r);
}

void dp_drain_follow(struct dp_drain *d, dp_owner_fn state)
{
	d->owner_state = state;
}

void dp_drain_reap(struct dp_drain *d, bool (*alive)(pid_t ns_tid, void *data), void *data)
{
	const struct reaper r = {alive, d->owner_state, data};

	for (uint32_t i = 0; i < d->nused; i++)
		reap_one(d, &d->lane[i], &r);
	dp_room_inspect(&d->room, d->lane, d->nused);
}
