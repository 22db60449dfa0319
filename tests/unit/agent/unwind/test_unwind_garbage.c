/* SPDX-License-Identifier: MIT */
/* A walk ends, within its limit and without a fault, whatever registers, stacks, caches and tables contain. */
#include "agent/unwind/unwind.h"
#include "helper_unwind.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX    DP_BACKTRACE_MAX
#define ROUNDS 20000

static struct test_unwind *unwinder;
static uint64_t seed = 88172645463325252u;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void setup(void)
{
	unwinder = test_unwind_create();
}

static void teardown(void)
{
	unwinder = test_unwind_destroy(unwinder);
}

TestSuite(unwind_garbage, .init = setup, .fini = teardown);

/* A macro: the frame that the registers describe must be alive during the walk. */
#define HERE(regs)                                                                                                               \
	do {                                                                                                                     \
		ucontext_t uc_;                                                                                                  \
		getcontext(&uc_);                                                                                                \
		test_unwind_regs(&uc_, regs);                                                                                    \
	} while (0)

/* An address that may be meaningful: in a module, on the stack, near a page's end, or random. */
static uint64_t likely(const struct dp_regs *regs)
{
	switch (random64() % 5) {
	case 0:
		return random64();
	case 1:
		return regs->gpr[4] + random64() % 65536 - 1024;
	case 2:
		return ((regs->gpr[4] + random64() % 65536) | 4095) - random64() % 8;
	case 3:
		return (uint64_t)&random64 + random64() % 4096;
	default:
		return (uint64_t)&qsort + random64() % 65536;
	}
}

static void walk(const struct dp_regs *regs)
{
	uint64_t pcs[MAX];
	size_t n = test_unwind_walk(unwinder, regs, pcs, MAX);

	cr_assert(n >= 1 && n <= MAX, "%zu frames", n);
	cr_assert_eq(pcs[0], regs->rip);
}

Test(unwind_garbage, registers)
{
	struct dp_regs good, regs;

	HERE(&good);
	for (int round = 0; round < ROUNDS; round++) {
		regs = good;
		for (int i = 0; i < 3; i++)
			regs.gpr[random64() % 16] = likely(&good);
		if (round % 2)
			regs.rip = likely(&good) & (DP_UNWIND_PC_MAX - 1);
		if (regs.rip)
			walk(&regs);
	}
}

/* A stack of random words that ends at an unmapped page. */
Test(unwind_garbage, stack_that_ends_at_a_hole)
{
	uint8_t *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *word = (uint64_t *)p;
	struct dp_regs regs;

	cr_assert_neq(p, MAP_FAILED);
	munmap(p + 2 * 4096, 4096);
	HERE(&regs);
	regs.gpr[4] = (uint64_t)p;
	for (int round = 0; round < ROUNDS / 10; round++) {
		for (int i = 0; i < 1024; i++)
			word[i] = likely(&regs);
		regs.gpr[4] = (uint64_t)p + random64() % 8192;
		regs.gpr[5] = (uint64_t)p + random64() % 8192;
		regs.rip = (uint64_t)&qsort + random64() % 100000;
		walk(&regs);
	}
}

Test(unwind_garbage, cache)
{
	struct dp_regs regs;

	HERE(&regs);
	for (int round = 0; round < ROUNDS / 10; round++) {
		for (unsigned i = 0; i < DP_UNWIND_CACHE; i += 1 + random64() % 8)
			unwinder->cache[i] ^= random64() >> random64() % 64;
		walk(&regs);
	}
}

Test(unwind_garbage, memo)
{
	struct dp_regs regs;

	HERE(&regs);
	for (int round = 0; round < ROUNDS; round++) {
		for (unsigned i = 1; i < DP_UNWIND_MEMO / 8; i += 1 + random64() % 8)
			unwinder->memo[i] ^= random64() >> random64() % 64;
		walk(&regs); /* learns */
		unwinder->memo[1 + random64() % (DP_UNWIND_MEMO / 8 - 1)] ^= random64() >> random64() % 64;
		walk(&regs);
	}
}

/* The agent trusts the header; it checks ranges, rows and indices. */
Test(unwind_garbage, tables)
{
	struct dp_unwind *head = (struct dp_unwind *)unwinder->block;
	uint8_t *keep = malloc(unwinder->size);
	struct dp_regs regs;

	cr_assert(keep);
	memcpy(keep, unwinder->block, unwinder->size);
	HERE(&regs);
	for (int round = 0; round < 300; round++) {
		size_t span = round % 2 ? unwinder->size : head->rows_offset + head->nrows * sizeof(struct dp_unwind_row);

		for (int i = 0; i < 3000; i++)
			unwinder->block[sizeof(*head) + random64() % (span - sizeof(*head))] = (uint8_t)random64();
		test_unwind_forget(unwinder);
		walk(&regs);
		walk(&regs);
		memcpy(unwinder->block, keep, unwinder->size);
	}
	free(keep);
}

Test(unwind_garbage, wrong_or_missing_tables)
{
	struct dp_unwind *head = (struct dp_unwind *)unwinder->block;
	struct dp_regs regs;
	uint64_t pcs[MAX];

	HERE(&regs);
	head->magic++;
	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, MAX), 1);
	head->magic--;
	head->rows_offset = (uint32_t)head->size;
	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, MAX), 1);
	unwinder->agent->unwind = 0;
	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, MAX), 1);
	cr_assert_eq(pcs[0], regs.rip);
}

Test(unwind_garbage, slot_without_cache)
{
	struct dp_regs regs;
	uint64_t with[MAX], without[MAX];
	size_t n;

	HERE(&regs);
	n = test_unwind_walk(unwinder, &regs, with, MAX);
	cr_assert_gt(n, 2);
	unwinder->slot.cache = 0;
	unwinder->slot.memo = 0;
	cr_assert_eq(test_unwind_walk(unwinder, &regs, without, MAX), n);
	cr_assert_arr_eq(with, without, 8 * n);
}

/* What is known from replaced tables must not be used with the new tables. */
Test(unwind_garbage, cache_of_replaced_tables)
{
	struct test_unwind *newer = test_unwind_create();
	struct dp_unwind *head = (struct dp_unwind *)unwinder->block;
	struct dp_unwind_row *rows = (struct dp_unwind_row *)(unwinder->block + head->rows_offset);
	struct dp_regs regs;
	uint64_t before[MAX], after[MAX];
	size_t n;

	HERE(&regs);
	n = test_unwind_walk(newer, &regs, before, MAX);
	cr_assert_gt(n, 3);
	memset(rows, 0, head->nrows * sizeof(*rows)); /* makes the old tables useless */
	walk(&regs);
	newer->slot.cache = unwinder->slot.cache;
	newer->slot.memo = unwinder->slot.memo;
	cr_assert_eq(test_unwind_walk(newer, &regs, after, MAX), n);
	cr_assert_arr_eq(before, after, 8 * n);
	test_unwind_destroy(newer);
}
