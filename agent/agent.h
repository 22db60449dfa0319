/* SPDX-License-Identifier: MIT */
/* Shared by the agent's files. The contract with the tool is abi.h. */
#ifndef DP_AGENT_AGENT_H
#define DP_AGENT_AGENT_H

#include "agent/abi.h"

#include <stdbool.h>

/* Exports an entry point named in abi.h; the blob exports nothing else. */
#define DP_EXPORT __attribute__((visibility("default"), used))

struct dp_thread { /* the thread that hit the probe */
	uint64_t key;
	uint32_t tid;
	uint32_t identity;   /* this and the following as in struct dp_agent */
	uint32_t tid_offset;
	uint32_t pid;
	uint64_t process;
};

struct dp_reservation { /* returned in rax and rdx */
	struct dp_record *record;
	struct dp_slot *slot;
};

/* ---- thread.c: which slot is this thread's --------------------------------------------------- */

/*
 * Reads who hits, all but key and tid, while no signal handler forks: a child that goes on with this hit is told apart by
 * dp_thread_stays(). False: a fork child whose hits are not recorded.
 */
bool dp_thread_begin(struct dp_agent *agent, const struct dp_probe_desc *desc, struct dp_thread *self);
/* Then key and tid. */
void dp_thread_name(struct dp_thread *self);
/* Is this still the process that has begun? After that, what it has entered in the agent's tables is its own. */
static inline bool dp_thread_stays(const struct dp_agent *agent, const struct dp_thread *self)
{
	return __atomic_load_n(&agent->live, __ATOMIC_ACQUIRE) && __atomic_load_n(&agent->process, __ATOMIC_ACQUIRE) == self->process;
}
/*
 * The thread's slot, claimed if it has none; NULL if none is left. Its owner may still have to announce itself. Corrects *self if
 * the thread id word of a fork child's thread proves to be its parent's.
 */
struct dp_slot *dp_thread_slot(struct dp_agent *agent, struct dp_thread *self);
/* Writes the DP_RECORD_THREAD that must precede the thread's first record in this slot. False if the ring is full. */
bool dp_thread_announce(const struct dp_agent *agent, struct dp_slot *slot, const struct dp_thread *self);

/* ---- follow.c: fork children that record ------------------------------------------------------- */

/* In a process that is not the target: whether its hits are recorded. Joins at the first one. */
bool dp_follows(struct dp_agent *agent, const struct dp_probe_desc *desc);

/* ---- ring.c: room for a record --------------------------------------------------------------- */

/* `size` bytes, a multiple of 8 and at most DP_RECORD_MAX; NULL if the ring is full. */
struct dp_record *dp_ring_reserve(const struct dp_agent *agent, struct dp_slot *slot, uint32_t size);
/* One 8-byte store makes the record visible to the consumer. */
void dp_ring_commit(struct dp_record *record, uint32_t size, uint16_t probe);

/* ---- full.c: a hit that waits for room ----------------------------------------------------------- */

struct dp_patience {    /* of one hit; begins as zeroes */
	uint64_t begun; /* time stamp counter at the first wait; 0: none */
	uint64_t tail;  /* of the slot, and `passes` when it was first seen there */
	uint32_t since;
	uint32_t seen; /* `drained` before the last try */
};
/* The slot's ring is full. Waits until there may be room; then try again, from the start of the hit. False: lose it. */
bool dp_full_wait(struct dp_on_full *f, const struct dp_agent *agent, struct dp_slot *slot, struct dp_patience *p);
/* After the last try of a hit that has waited. */
void dp_full_note(struct dp_on_full *f, const struct dp_patience *p);

/* ---- overwrite.c: the flight recorder ---------------------------------------------------------- */

/* Gives up the ring's oldest records, so that `size` bytes may fit. False if none were given up. */
bool dp_ring_overwrite(const struct dp_agent *agent, struct dp_slot *slot, uint32_t size);

/* ---- sweep.c ----------------------------------------------------------------------------------- */

/* Whether to search again although no slot was left. Never true while a tool manages the slots. */
bool dp_slots_retry(struct dp_agent *agent);
/* Frees slots whose owners are gone, if no tool does that. Returns how many. */
unsigned dp_slots_sweep(struct dp_agent *agent);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* Copies n bytes from the process's own address `src` without ever faulting. 0, or -1 if not all of it is readable. */
int dp_self_read(const struct dp_agent *agent, void *dst, uint64_t src, uint32_t n);
/*
 * Copies the string at op->addr, at most op->size bytes with its NUL; `count`: its length, see op->count. Returns its length without
 * the NUL (one that was cut ends in "..."), or -1 if it is not readable. *written: how many bytes of dst may have changed.
 */
#define DP_SELF_NULL (-2) /* the pointer is NULL: nothing was read */
int64_t dp_self_text(const struct dp_agent *agent, uint8_t *dst, const struct dp_op *op, uint64_t count, uint32_t *written);

/* ---- entry points ---------------------------------------------------------------------------- */

/* Called by dp_thunk_acquire. `record` is NULL if the hit is lost (and counted). */
struct dp_reservation dp_acquire(const struct dp_probe_desc *desc);
DP_EXPORT void dp_agent_read(struct dp_capture *capture, const struct dp_op *op);
DP_EXPORT void dp_agent_string(struct dp_capture *capture, const struct dp_op *op, uint64_t count);
DP_EXPORT void dp_agent_backtrace(struct dp_capture *capture, const struct dp_op *op);
DP_EXPORT void dp_agent_backtrace_apart(struct dp_capture *capture, const struct dp_op *op);
/* Calls `to` on the stack of capture->slot; 0 if it has none, or uses it already. All signals are blocked (agent/unwind/apart.S).
 */
int dp_apart_call(struct dp_capture *capture, const struct dp_op *op, void (*to)(struct dp_capture *, const struct dp_op *));
DP_EXPORT void dp_agent_finish(struct dp_capture *capture);

/* ---- memory.c: gcc calls these for struct copies and initializers ---------------------------- */

void *memcpy(void *dst, const void *src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int byte, size_t n);

/* ---- atomic words ---------------------------------------------------------------------------- */

#define DP_LOAD(p)         __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define DP_STORE(p, value) __atomic_store_n((p), (value), __ATOMIC_RELEASE)

/* Against signal handlers of the same thread only: one instruction, without the lock prefix's 20 cycles. */
static inline bool dp_cmpxchg_local(uint64_t *p, uint64_t from, uint64_t to)
{
	bool done;

	__asm__ volatile("cmpxchg %3, %1" : "=@ccz"(done), "+m"(*p), "+a"(from) : "r"(to) : "memory");
	return done;
}

/* Against every thread, and the tool. */
static inline bool dp_cmpxchg(uint64_t *p, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(p, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static inline uint64_t dp_rdtsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/* A slot's tid and state, which only ever change together. */
static inline uint64_t *dp_slot_word(struct dp_slot *slot)
{
	return (uint64_t *)(void *)&slot->tid;
}

/*
 * A signal handler may interrupt any function here and fork: then it goes on in the child with a wiped agent. So read what is
 * needed once, addresses before counts. NULL: that has happened; lose the hit.
 */
static inline struct dp_control *dp_agent_control(const struct dp_agent *agent)
{
	return (struct dp_control *)(uintptr_t)DP_LOAD(&agent->control);
}

static inline struct dp_slot *dp_agent_slots(const struct dp_agent *agent)
{
	return (struct dp_slot *)(uintptr_t)DP_LOAD(&agent->slots);
}

static inline uint64_t dp_slot_pack(uint32_t tid, enum dp_slot_state state)
{
	return (uint64_t)state << 32 | tid;
}
_Static_assert(offsetof(struct dp_slot, state) == offsetof(struct dp_slot, tid) + 4, "one word");
_Static_assert(offsetof(struct dp_slot, tid) % 8 == 0, "one aligned word");

#endif
