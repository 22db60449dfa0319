/* SPDX-License-Identifier: MIT */
/* The part of the contract (abi.h) about the agent's entry points, which are found by name in its ELF symbol table. */
#ifndef DP_AGENT_ABI_ENTRIES_H
#define DP_AGENT_ABI_ENTRIES_H

#include <stdint.h>

/*
 * dp_thunk_acquire (assembly): the slow path. Called from a stub that has already stepped over the red zone and saved
 * rax, rcx, rdx, rsi and the flags. In: rax = address of the struct dp_probe_desc. Out: rcx = record or 0 (lost, counted), rsi =
 * slot. Changes only rax, rcx, rdx, rsi and flags; vector state untouched; uses < 512 bytes of stack.
 */
#define DP_SYM_ACQUIRE "dp_thunk_acquire"
/*
 * The same for cells. DP_SYM_CELLS: rsi = the thread's block, or 0 (lost, counted); rcx = 1 if it is the shared one.
 * DP_SYM_KEYED: with the key in rdx, rsi = that key's cells.
 */
#define DP_SYM_CELLS "dp_thunk_cells"
#define DP_SYM_KEYED "dp_thunk_keyed"
/*
 * For cells by backtrace, instead of DP_SYM_BACKTRACE, DP_SYM_APART and DP_SYM_FINISH. There is no record: capture->record points
 * to two words, which become the cells' address, or 0, and 1 if the cells are shared.
 */
#define DP_SYM_STACKED       "dp_agent_stacked"
#define DP_SYM_STACKED_APART "dp_agent_stacked_apart"
#define DP_SYM_STACKED_DONE  "dp_agent_stacked_done"
#define DP_SYM_DECIMAL       "dp_agent_decimal" /* struct dp_decimal */
/*
 * What an expression needs and cannot compute inline. In: rax = the operand, rdx = address of a struct dp_ask. Out: rax = the
 * result, rcx = 0 if there is none. Changes only rax, rcx, rdx and flags; needs no stack alignment.
 */
#define DP_SYM_ASK "dp_thunk_ask"
enum dp_ask_kind {
	DP_ASK_LOAD,   /* `size` bytes at the operand */
	DP_ASK_EQUAL,  /* is the string at the operand equal to `text`? 1 or 0 */
	DP_ASK_PREFIX, /* does it start with `text`? */
	DP_ASK_GLOB,   /* does it match `text`, a pattern with * and ?? At most DP_STRING_MAX characters are compared */
	DP_ASK_TID,
	DP_ASK_CPU,
	DP_ASK_THREAD, /* base of the fs segment */
	DP_ASK_PID,    /* in a process of which struct dp_agent does not know it */
};
struct dp_ask {
	uint64_t agent; /* as in struct dp_probe_desc */
	uint8_t kind;   /* enum dp_ask_kind */
	uint8_t size;
	uint8_t comm;  /* 1: the string is the thread's name; the operand is not used */
	uint8_t count; /* enum dp_count: if not NONE, the operand is the address of a struct dp_counted_text */
	uint8_t reserved[4];
	char text[]; /* NUL-terminated */
};
struct dp_counted_text {
	uint64_t addr, n;
};
/*
 * Helpers, C ABI, general registers only: void helper(struct dp_capture *rdi, const struct dp_op *rsi). Each appends at
 * capture->cursor and moves it. The caller has saved every caller-saved register and aligned the stack. The direction flag may be
 * set: the agent has no string instructions.
 */
#define DP_SYM_READ      "dp_agent_read"            /* size bytes at addr */
#define DP_SYM_STRING    "dp_agent_string"          /* bytes at addr up to a NUL or, in rdx, their number (enum dp_count) */
#define DP_SYM_BACKTRACE "dp_agent_backtrace"       /* unwinds from capture->regs */
#define DP_SYM_APART     "dp_agent_backtrace_apart" /* the same, on a stack of the slot's */
#define DP_SYM_PARK      "dp_agent_park"            /* waits for a snapshot; appends its id (8 bytes), or 0 without one */
/* void finish(struct dp_capture *rdi): returns the unused end of the reservation, if nothing follows it, and commits. */
#define DP_SYM_FINISH "dp_agent_finish"
/*
 * void loaded(void): a hook for the function by which the loader notifies debuggers. Returns when the tool has looked, or after
 * DP_LOADED_SECONDS. Preserves vector state. The word at DP_SYM_LOADED_STATE contains the address of struct dp_agent, or 0.
 */
#define DP_SYM_LOADED       "dp_agent_loaded"
#define DP_SYM_LOADED_STATE "dp_agent_loaded_state"
#define DP_LOADED_SECONDS   1
#define DP_LOADED_MOST_NS   UINT64_C(600000000000) /* of --max-wait */

#endif
