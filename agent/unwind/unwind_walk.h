/* SPDX-License-Identifier: MIT */
/* The state of one walk, and the inline functions of its hot path. */
#ifndef DP_AGENT_UNWIND_UNWIND_WALK_H
#define DP_AGENT_UNWIND_UNWIND_WALK_H

#include "agent/agent.h"
#include "agent/unwind/unwind.h"

#define DP_UNWIND_REACH    64u /* pages that a range grows at once, each checked by one system call */
#define DP_UNWIND_SWITCHES 8u  /* times that a walk may change to another stack */

enum { DP_GPR_RBX = 3, DP_GPR_RSP = 4, DP_GPR_RBP = 5, DP_GPR_R12 = 12 };
#define DP_GPR_SAVED ((1u << DP_GPR_RBX) | (1u << DP_GPR_RSP) | (1u << DP_GPR_RBP) | (0xfu << DP_GPR_R12))

struct dp_walk {
	const struct dp_agent *agent;
	struct dp_slot *slot;
	const uint8_t *block;
	const struct dp_unwind *head;
	const struct dp_unwind_row *rows;
	uint32_t nrows;
	uint64_t *cache;
	uint32_t place; /* of the frame's cache entry */
	uint32_t generation;
	uint32_t rare; /* rules that matter but that the plain step does not handle */
	uint64_t gpr[16];
	uint64_t pc;
	uint64_t lo, hi;   /* readable stack */
	uint64_t span;     /* words may start in [lo, lo + span) */
	uint32_t known;    /* registers whose value is known in this frame */
	uint32_t switches; /* left */
	uint8_t exact;     /* pc is not a return address */
	uint8_t own;       /* lo..hi is on the stack of the hit: worth keeping */
	uint8_t guessed;   /* lo..hi is empty, and stays so */
	uint64_t how;      /* DP_FRAME_BY_POINTER if this frame was found so, and the record is for the tool; or 0 */
	uint64_t marks;    /* what `how` may be */
};

#define DP_NOINLINE    __attribute__((noinline))
#define DP_LIKELY(x)   __builtin_expect(!!(x), 1)
#define DP_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- unwind_stack.c: what may be read directly --------------------------------------------------------------------- */

/* rsp left the known range: a deeper call, or another stack. */
void dp_walk_enter_stack(struct dp_walk *w);
/* rsp has left the known range: a deeper call, or another stack. */
void dp_walk_change_stack(struct dp_walk *w);
/*
 * The walk continues by a guess. From here on nothing is read directly: a wrong guess may lead to any memory, even to a former
 * stack that may be unmapped at any moment. Nothing that such a walk has read is kept.
 */
void dp_walk_guess_from_here(struct dp_walk *w);
/* Reads a word outside of the known range without faulting. */
int dp_walk_read_far(struct dp_walk *w, uint64_t addr, uint64_t *ret);

/* ---- unwind_lookup.c ------------------------------------------------------------------------------------------------ */

/* The rule for frame `depth`, or NULL outside of all modules. */
const struct dp_unwind_row *dp_walk_lookup(struct dp_walk *w, uint32_t depth);

/* ---- unwind_step.c -------------------------------------------------------------------------------------------------- */

/* Steps to the caller, by any rule. 0 if it is unknown. */
int dp_walk_step(struct dp_walk *w, const struct dp_unwind_row *row);
/* Whether pc follows a call, in readable memory. With wrong tables, chains lead into data. */
int dp_walk_behind_call(struct dp_walk *w);

/* ---- hot ------------------------------------------------------------------------------------------------------------ */

/* Loads from the program's memory, which the compiler does not know. A test may read another process here. */
#ifndef DP_UNWIND_LOAD
static inline uint64_t dp_walk_load(uint64_t addr)
{
	uint64_t word;

	__asm__ volatile("movq (%1), %0" : "=r"(word) : "r"(addr) : "memory");
	return word;
}
#define DP_UNWIND_LOAD dp_walk_load
#endif

/* Code of the program; a walker that has only a copy of the stack reads it elsewhere. */
#ifndef DP_UNWIND_READ_CODE
#define DP_UNWIND_READ_CODE dp_self_read
#endif

/* Can be read directly. */
static inline int dp_walk_in_range(const struct dp_walk *w, uint64_t addr)
{
	return addr - w->lo < w->span;
}

static inline void dp_walk_set_range(struct dp_walk *w, uint64_t lo, uint64_t hi)
{
	w->lo = lo;
	w->hi = hi;
	w->span = hi > lo ? hi - lo - (sizeof(uint64_t) - 1) : 0;
}

static inline int dp_walk_read(struct dp_walk *w, uint64_t addr, uint64_t *ret)
{
	if (DP_UNLIKELY(!dp_walk_in_range(w, addr)))
		return dp_walk_read_far(w, addr, ret);
	*ret = DP_UNWIND_LOAD(addr);
	return 1;
}

static inline uint64_t dp_walk_set(uint64_t pc)
{
	return (pc ^ pc >> DP_UNWIND_SETS_SHIFT) & (DP_UNWIND_ENTRIES / 2 - 1);
}

/* An entry without its row. Too wide for any entry if pc is not a user address. */
static inline uint64_t dp_walk_key(const struct dp_walk *w, uint64_t pc)
{
	return (pc >> DP_UNWIND_SETS_SHIFT) << 10 | w->generation;
}

static inline uint64_t dp_walk_entry(const struct dp_walk *w, uint64_t place)
{
	return __atomic_load_n(&w->cache[place], __ATOMIC_RELAXED);
}

/* The last place of frame `depth`'s entry when the next inner frame's was at `place`. */
static inline uint16_t *dp_walk_guess(const struct dp_walk *w, uint32_t place, uint32_t depth)
{
	return (uint16_t *)(w->cache + DP_UNWIND_ENTRIES) + (place + depth * 61) % DP_UNWIND_ENTRIES;
}

#endif
