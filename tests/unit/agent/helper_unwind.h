/* SPDX-License-Identifier: MIT */
/* The agent's walker, built into a test: tables of this process, one slot with its cache, and any registers. */
#ifndef DP_TESTS_HELPER_UNWIND_H
#define DP_TESTS_HELPER_UNWIND_H

#include "agent/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <ucontext.h>

struct test_unwind {
	uint8_t *block;
	size_t size;
	struct dp_agent *agent;
	struct dp_slot slot;
	struct dp_probe_desc desc;
	uint64_t *cache;
	uint64_t *memo;
};

/* Tables for everything that is mapped now. Fails the test on an error. */
struct test_unwind *test_unwind_create(void);
struct test_unwind *test_unwind_destroy(struct test_unwind *t);
/* Empties cache and memo. */
void test_unwind_forget(struct test_unwind *t);
/* Async-signal-safe. Returns the number of frames. */
size_t test_unwind_walk(struct test_unwind *t, const struct dp_regs *regs, uint64_t *pcs, uint32_t limit);
/* Could a call have left `pc` as its return address? */
bool test_unwind_behind_call(const struct dp_agent *agent, uint64_t pc);
void test_unwind_regs(const ucontext_t *uc, struct dp_regs *ret);
/* From now on walks read the memory of `pid` (a stopped fork); 0: our own. */
void test_unwind_memory_of(pid_t pid);
/* Before each direct load of a walk; NULL: nothing. */
void test_unwind_on_load(void (*call)(void));

#endif
