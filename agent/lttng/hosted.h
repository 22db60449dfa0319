/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of libdynprobe-lttng.so. It is an ordinary shared object of the target's libc, but part of it runs inside a
 * hit: those files (hit.S, enter.c, emit.c, filter.c, the first half of service.c) call nothing that may allocate, lock or block.
 */
#ifndef DP_AGENT_LTTNG_HOSTED_H
#define DP_AGENT_LTTNG_HOSTED_H

#include "agent/lttng/layout.h"
#include "agent/sink.h"
#include "agent/unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_LTTNG_PROVIDER "dynprobe"
#define DP_LTTNG_FIELDS   256u            /* per event */

struct lttng_ust_urcu_reader;

/* ---- a thread's block --------------------------------------------------------------------------------------------- */

struct dp_block {
	uint64_t busy;               /* rsp of the current hit, 0: none */
	uint64_t move;               /* top of `stack` if the current hit must not use the thread's own stack, else 0 */
	uint64_t stack_lo, stack_hi; /* of the thread's regular stack */
	uint64_t sigmask;            /* while moved: the thread's own */
	uint64_t reading;            /* RCU nesting + 1 while the current hit is a reader, else 0 */
	uint64_t abandoned;          /* `reading` of a hit that a longjmp left; the next emit ends it */
	struct lttng_ust_urcu_reader *
	        *reader;       /* the thread's variables of these names: their addresses are constant, and */
	int *errno_at;         /* looking one up costs a call */
	struct dp_block *next; /* next free one */
	uint64_t thread;       /* thread pointer of its thread; 0: shared by all guest threads */
	struct dp_slot slot __attribute__((aligned(64))); /* for the unwinder */
	uint8_t record[DP_RECORD_MAX];                    /* header unused */
	uint64_t operands[2 * DP_LTTNG_FIELDS];           /* input of LTTng's filters and captures */
	uint64_t cache[DP_UNWIND_CACHE];
	uint64_t memo[DP_UNWIND_MEMO / sizeof(uint64_t)];
	uint8_t guard[4096] __attribute__((aligned(4096)));
	uint8_t stack[65536];
};
_Static_assert(offsetof(struct dp_block, busy) == DP_BLOCK_BUSY, "layout.h");
_Static_assert(offsetof(struct dp_block, move) == DP_BLOCK_MOVE, "layout.h");
_Static_assert(offsetof(struct dp_block, stack_lo) == DP_BLOCK_STACK_LO, "layout.h");
_Static_assert(offsetof(struct dp_block, stack_hi) == DP_BLOCK_STACK_HI, "layout.h");
_Static_assert(offsetof(struct dp_block, sigmask) == DP_BLOCK_SIGMASK, "layout.h");
_Static_assert(offsetof(struct dp_block, thread) == DP_BLOCK_THREAD, "layout.h");
_Static_assert(offsetof(struct dp_block, slot) == DP_BLOCK_SLOT, "layout.h");
_Static_assert(offsetof(struct dp_block, record) == DP_BLOCK_RECORD, "layout.h");
_Static_assert(DP_LTTNG_LIVE == DP_LIVE, "layout.h");
_Static_assert(DP_LTTNG_STACK == DP_SINK_STACK, "layout.h");
_Static_assert(DP_LTTNG_RECORD_HEADER == offsetof(struct dp_record, payload), "layout.h");

/* The thread's block, NULL until it is primed and after its key destructors have begun. */
extern __thread struct dp_block *dp_lttng_block __attribute__((tls_model("initial-exec")));

/*
 * enter.c. Between the two the pointer means "being primed"; while it is NULL, the thread runs no code that the sink calls.
 * False: it has a block, or is being primed. End with NULL if there is none. No effect on a thread that has become a guest.
 */
bool dp_lttng_begin_priming(void);
void dp_lttng_end_priming(struct dp_block *block);
/* thread.c. False, with errno: threads cannot be primed. */
bool dp_lttng_threads_init(struct dp_sink *sink);
void dp_lttng_prime(void);

/* ---- hits --------------------------------------------------------------------------------------------------------- */

/* hit.S */
extern uint32_t dp_lttng_vector; /* see layout.h; set before the first hit */
extern const char dp_lttng_callbacks[DP_LTTNG_EVENTS];
void dp_lttng_enter(void);
void dp_lttng_emit(void);
void dp_lttng_emit_capture(void);
void dp_lttng_prime_hook(void);

/* enter.c. Offset of a thread's pointer to its block from its thread pointer (psABI, variant II). */
uint64_t dp_lttng_block_offset(void);
/* enter.c: decides what the fast path in hit.S does not. True: the hit goes on in `block`. */
bool dp_lttng_enter_slow(const struct dp_probe_desc *desc, uint64_t rsp);
/* emit.c: called with the vector state saved */
void dp_lttng_record(const struct dp_probe_desc *desc, const uint8_t *payload, uint64_t size, struct dp_block *block);

static inline void dp_lttng_lose(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- requests ----------------------------------------------------------------------------------------------------- */

void dp_lttng_serve(struct dp_sink *sink);

#endif
