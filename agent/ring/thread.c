/* SPDX-License-Identifier: MIT */
/*
 * Finds this thread's slot.
 *
 * A slot belongs to the thread whose key and tid are in it, and changes owner by cmpxchg of its {tid, state} word only. The
 * thread table is only a cache: its entries may be stale, doubled or lost, and at worst that costs a walk through the slots. So
 * nothing here needs a lock, and a signal handler may run all of it in the middle of any of it.
 *
 * How a slot changes owner (tid and state; P = DP_TID_PENDING, S = DP_TID_SUSPECT):
 *
 *   FREE, or DEAD (*) ->  mine|P CLAIM  ->  mine|P USED  ->  mine USED             a new thread (a fork child's: its process's
 *                                                                                  number|P|S CLAIM)
 *   other USED        ->  mine|P USED                    ->  mine USED             same key: the other is gone, its TCB reused
 *   other USED        ->  other|S USED  ->  DEAD                                   by the tool, which looks for `other` in
 *                                                                                  between
 *   other USED        ->  DEAD                                                     by any thread, without a tool (sweep.c)
 *
 * (*) of this process, or of none (agent/abi.h).
 *
 * P keeps the fast path out until the DP_RECORD_THREAD is written.
 */
#include "agent/agent.h"
#include "agent/syscall.h"

#define REACH 64u /* table entries tried, from the key's own place on */

bool dp_thread_begin(struct dp_agent *agent, const struct dp_probe_desc *desc, struct dp_thread *self)
{
	do {
		if (DP_LOAD(&agent->live) != DP_LIVE && !dp_follows(agent, desc))
			return false;
		self->process = DP_LOAD(&agent->process);
		self->pid = DP_LOAD(&agent->pid);
		self->identity = DP_LOAD(&agent->identity);
		self->tid_offset = DP_LOAD(&agent->tid_offset);
	} while (!dp_thread_stays(agent, self));
	return true;
}

void dp_thread_name(struct dp_thread *self)
{
	if (self->identity == DP_ID_TID) {
		self->tid = (uint32_t)dp_syscall0(DP_SYS_GETTID);
		self->key = self->tid;
		return;
	}
	__asm__("movq %%fs:0, %0" : "=r"(self->key));
	__asm__("movl %%fs:(%1), %0" : "=r"(self->tid) : "r"((uint64_t)self->tid_offset));
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* What the unwinder knows of the earlier owner's stack. A hit that was left by a longjmp may have its memo still. */
static void forget_stack(struct dp_slot *slot)
{
	uint64_t *taken = (uint64_t *)(uintptr_t)slot->memo;

	slot->stack_lo = 0;
	slot->stack_hi = 0;
	if (taken)
		DP_STORE(taken, 0);
}

static enum dp_slot_state state_of(uint64_t word)
{
	return (enum dp_slot_state)(word >> 32);
}

/* Whether the slot is this thread's. Takes it over from an earlier thread with the same key. */
static bool own(const struct dp_agent *agent, struct dp_slot *slot, const struct dp_thread *self)
{
	for (;;) {
		uint64_t word = DP_LOAD(dp_slot_word(slot));
		uint32_t tid = (uint32_t)word;

		if (state_of(word) != DP_SLOT_USED || DP_LOAD(&slot->key) != self->key ||
		    DP_LOAD(&slot->process) != self->process || !dp_thread_stays(agent, self))
			return false;
		if ((tid & ~DP_TID_PENDING) == self->tid)
			return true;
		if (dp_cmpxchg(dp_slot_word(slot), word, dp_slot_pack(self->tid | DP_TID_PENDING, DP_SLOT_USED)))
			break;
	}
	forget_stack(slot);
	return true;
}

/* A slot of this thread that is not in the table. */
static struct dp_slot *find_owned(const struct dp_agent *agent, const struct dp_thread *self)
{
	struct dp_slot *slots = dp_agent_slots(agent);

	for (uint32_t i = 0; slots && i < DP_LOAD(&agent->nslots); i++) {
		struct dp_slot *slot = &slots[i];

		if (state_of(DP_LOAD(dp_slot_word(slot))) == DP_SLOT_FREE)
			break;
		if (own(agent, slot, self))
			return slot;
	}
	return NULL;
}

static bool may_claim(const struct dp_slot *slot, enum dp_slot_state state, const struct dp_thread *self)
{
	const uint32_t process = DP_LOAD(&slot->process);

	return state == DP_SLOT_FREE || (state == DP_SLOT_DEAD && (process == self->process || process == DP_PROCESS_NONE));
}

/* False also if a handler has forked in the middle, and the other process was faster: the slot is its parent's. */
static bool claim(struct dp_slot *slot, const struct dp_thread *self)
{
	const uint32_t who = self->process ? (uint32_t)self->process | DP_TID_CHILD : self->tid | DP_TID_PENDING;
	const uint64_t word = DP_LOAD(dp_slot_word(slot)), claimed = dp_slot_pack(who, DP_SLOT_CLAIM);

	if (!may_claim(slot, state_of(word), self))
		return false;
	if (!dp_cmpxchg(dp_slot_word(slot), word, claimed))
		return false;
	forget_stack(slot);
	slot->apart = 0;
	DP_STORE(&slot->process, (uint32_t)self->process);
	DP_STORE(&slot->pid, self->process ? self->pid : 0);
	DP_STORE(&slot->key, self->key);
	return dp_cmpxchg(dp_slot_word(slot), claimed, dp_slot_pack(self->tid | DP_TID_PENDING, DP_SLOT_USED));
}

/* A search that found nothing is repeated only after a slot was given back: threads without a slot must not pay for it. */
static bool exhausted(const struct dp_agent *agent)
{
	const struct dp_control *control = dp_agent_control(agent);

	return !control || DP_LOAD(&agent->exhausted) == DP_LOAD(&control->slots_freed) + 1;
}

static struct dp_slot *claim_any(struct dp_agent *agent, const struct dp_thread *self)
{
	const struct dp_control *control = dp_agent_control(agent);
	struct dp_slot *slots = dp_agent_slots(agent);
	uint64_t freed;

	if (!control || !slots)
		return NULL;
	do {
		freed = DP_LOAD(&control->slots_freed);
		for (uint32_t i = 0; i < DP_LOAD(&agent->nslots); i++) {
			if (claim(&slots[i], self))
				return &slots[i];
		}
	} while (dp_slots_sweep(agent));
	if (dp_thread_stays(agent, self))
		DP_STORE(&agent->exhausted, freed + 1);
	return NULL;
}

/* A hit in a signal handler took another slot for us meanwhile: this one was never used. */
static void give_back(struct dp_agent *agent, struct dp_slot *slot)
{
	struct dp_control *control = dp_agent_control(agent);

	if (!control)
		return;
	DP_STORE(dp_slot_word(slot), dp_slot_pack(0, DP_SLOT_DEAD));
	__atomic_fetch_add(&control->slots_freed, 1, __ATOMIC_RELEASE);
}

/* ---- table ----------------------------------------------------------------------------------- */

/* Thread ids are small numbers: unshifted, all would hash to the end of the table. */
static struct dp_thread_entry *entry_at(struct dp_agent *agent, const struct dp_thread *self, uint32_t n)
{
	uint64_t key = self->identity == DP_ID_TID ? self->key << 32 : self->key;
	uint64_t index = (key * DP_HASH_MULT) >> (64 - DP_TABLE_BITS);

	return &agent->table[(index + n) & (DP_TABLE_SIZE - 1)];
}

static struct dp_slot *entry_slot(const struct dp_thread_entry *entry)
{
	return (struct dp_slot *)(uintptr_t)DP_LOAD(&entry->slot);
}

static struct dp_thread_entry *find_entry(struct dp_agent *agent, const struct dp_thread *self)
{
	for (uint32_t n = 0; n < REACH; n++) {
		struct dp_thread_entry *entry = entry_at(agent, self, n);
		uint64_t key = DP_LOAD(&entry->key);

		if (key == self->key)
			return entry;
		if (key == 0 && !entry_slot(entry))
			break;
	}
	return NULL;
}

/* Takes an entry that is free, or whose slot belongs to a thread with another key. */
static bool take_entry(struct dp_thread_entry *entry, uint64_t key, struct dp_slot *slot)
{
	uint64_t old = DP_LOAD(&entry->key);
	struct dp_slot *was = entry_slot(entry);

	if (!old) {
		if (was || !dp_cmpxchg(&entry->slot, 0, (uint64_t)(uintptr_t)slot))
			return false;
	} else {
		if (!was || (DP_LOAD(&was->key) == old && state_of(DP_LOAD(dp_slot_word(was))) == DP_SLOT_USED))
			return false;
		if (!dp_cmpxchg(&entry->key, old, 0))
			return false;
		DP_STORE(&entry->slot, (uint64_t)(uintptr_t)slot);
	}
	DP_STORE(&entry->key, key);
	return true;
}

/* Enters `slot` in the table; if that already has another slot of this thread, returns the other one. */
static struct dp_slot *publish(struct dp_agent *agent, const struct dp_thread *self, struct dp_slot *slot, bool fresh)
{
	struct dp_thread_entry *entry = find_entry(agent, self);

	if (entry) {
		struct dp_slot *other = entry_slot(entry);

		if (fresh && other && other != slot && own(agent, other, self)) {
			give_back(agent, slot);
			return other;
		}
		DP_STORE(&entry->slot, (uint64_t)(uintptr_t)slot);
		return slot;
	}
	for (uint32_t n = 0; n < REACH; n++) {
		if (take_entry(entry_at(agent, self, n), self->key, slot))
			break;
	}
	return slot;
}

/*
 * After a raw clone, the id word of a child's first thread is its parent's: then the whole process identifies its threads by
 * gettid(). The stubs' fast path finds no entry of theirs, because an id is no control block's address.
 */
static void check_word(struct dp_agent *agent, struct dp_thread *self)
{
	if (!self->process || self->identity == DP_ID_TID || self->tid == (uint32_t)dp_syscall0(DP_SYS_GETTID))
		return;
	agent->identity = DP_ID_TID;
	self->identity = DP_ID_TID;
	dp_thread_name(self);
}

/* What a child has entered in its table in the middle of its parent's hit. */
static void withdraw(struct dp_agent *agent, const struct dp_thread *self, const struct dp_slot *slot)
{
	for (uint32_t n = 0; n < REACH; n++) {
		struct dp_thread_entry *entry = entry_at(agent, self, n);

		if (entry_slot(entry) != slot)
			continue;
		DP_STORE(&entry->key, 0);
		DP_STORE(&entry->slot, 0);
	}
}

static struct dp_slot *publish_own(struct dp_agent *agent, const struct dp_thread *self, struct dp_slot *slot, bool fresh)
{
	slot = publish(agent, self, slot, fresh);
	if (dp_thread_stays(agent, self))
		return slot;
	withdraw(agent, self, slot);
	return NULL;
}

struct dp_slot *dp_thread_slot(struct dp_agent *agent, struct dp_thread *self)
{
	struct dp_thread_entry *entry = find_entry(agent, self);
	struct dp_slot *slot = entry ? entry_slot(entry) : NULL;

	if (slot && own(agent, slot, self))
		return slot;
	if (exhausted(agent) && !dp_slots_retry(agent))
		return NULL;
	slot = find_owned(agent, self);
	if (slot)
		return publish_own(agent, self, slot, false);
	check_word(agent, self);
	slot = claim_any(agent, self);
	return slot ? publish_own(agent, self, slot, true) : NULL;
}

/* ---- announcement ---------------------------------------------------------------------------- */

/*
 * Only this thread writes to the slot from here on, so reservations below head that are not committed never will be. Only the
 * outermost of nested hits may record that, before it reserves anything itself.
 */
static void settle(struct dp_slot *slot, uint32_t tid)
{
	uint64_t head = DP_LOAD(&slot->head);

	if (slot->settled_tid == tid)
		return;
	DP_STORE(&slot->settled_tid, tid);
	DP_STORE(&slot->settled, head);
}

bool dp_thread_announce(const struct dp_agent *agent, struct dp_slot *slot, const struct dp_thread *self)
{
	const uint32_t size = sizeof(struct dp_record) + sizeof(uint64_t);
	struct dp_record *record;

	if (DP_LOAD(dp_slot_word(slot)) == dp_slot_pack(self->tid, DP_SLOT_USED))
		return true;
	settle(slot, self->tid);
	record = dp_ring_reserve(agent, slot, size);
	if (!record)
		return false;
	record->tsc = dp_rdtsc();
	*(uint64_t *)(void *)record->payload = dp_thread_word(self->process ? self->pid : 0, self->tid);
	dp_ring_commit(record, size, DP_RECORD_THREAD);
	dp_cmpxchg(dp_slot_word(slot), dp_slot_pack(self->tid | DP_TID_PENDING, DP_SLOT_USED),
	           dp_slot_pack(self->tid, DP_SLOT_USED));
	return true;
}
