/* SPDX-License-Identifier: MIT */
/* Walks that are repeated from a memo: the result is that of a walk without, whatever has changed, and whatever comes between. */
#include "agent/unwind/unwind.h"
#include "helper_unwind.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define MAX    40
#define ROUNDS 30000

static struct test_unwind *unwinder;
static struct dp_slot bare; /* without a memo */
static uint64_t seed = 88172645463325252u;
static volatile int sink;
static void (*at_the_bottom)(const struct dp_regs *);
static uint64_t top; /* of the stack of interest */

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
	bare = unwinder->slot;
	bare.memo = 0;
}

static void teardown(void)
{
	test_unwind_on_load(NULL);
	unwinder = test_unwind_destroy(unwinder);
}

TestSuite(unwind_memo, .init = setup, .fini = teardown);

/* ---- a stack of frames of several kinds ---------------------------------------------------------------------------- */

/* With frames as in any program, or reading and writing words of whole frames. */
#define ON_STACK __attribute__((noinline, no_sanitize("address")))

static void descend(int depth);

#define LEVEL(n, bytes, options)                                                                                                 \
	ON_STACK static void __attribute__((optimize(options))) level_##n(int depth)                                             \
	{                                                                                                                        \
		char block[bytes];                                                                                               \
                                                                                                                                 \
		memset(block, depth, sizeof(block));                                                                             \
		descend(depth - 1);                                                                                              \
		sink += block[depth];                                                                                            \
	}
LEVEL(0, 40, "omit-frame-pointer")
LEVEL(1, 104, "no-omit-frame-pointer")
LEVEL(2, 200, "omit-frame-pointer")
LEVEL(3, 336, "no-omit-frame-pointer")

ON_STACK static void bottom(void)
{
	struct dp_regs regs;
	ucontext_t uc;

	getcontext(&uc);
	test_unwind_regs(&uc, &regs);
	at_the_bottom(&regs);
	sink++;
}

ON_STACK static void descend(int depth)
{
	static void (*const level[])(int) = {level_0, level_1, level_2, level_3};

	if (depth > 0)
		level[depth % 4](depth);
	else
		bottom();
	sink++;
}

static void with_frames(int depth, void (*check)(const struct dp_regs *))
{
	top = (uint64_t)__builtin_frame_address(0);
	at_the_bottom = check;
	descend(depth);
}

/* ---- walks ---------------------------------------------------------------------------------------------------------- */

struct trace {
	size_t n;
	uint64_t pc[MAX];
};

static struct trace walk(const struct dp_regs *regs, uint32_t limit)
{
	struct trace t;

	t.n = test_unwind_walk(unwinder, regs, t.pc, limit);
	return t;
}

/* By tables and cache alone. */
static struct trace plainly(const struct dp_regs *regs, uint32_t limit)
{
	const struct dp_slot with = unwinder->slot;
	struct trace t;

	unwinder->slot = bare;
	t = walk(regs, limit);
	bare = unwinder->slot;
	unwinder->slot = with;
	return t;
}

static bool same(const struct trace *a, const struct trace *b)
{
	return a->n == b->n && !memcmp(a->pc, b->pc, a->n * 8);
}

static void compare(const struct dp_regs *regs, uint32_t limit)
{
	const struct trace with = walk(regs, limit), without = plainly(regs, limit);

	cr_assert(same(&with, &without), "%zu frames, and %zu without the memo", with.n, without.n);
}

/* Rows that say nothing: whoever looks one up has to guess. */
static void lose_tables(void)
{
	struct dp_unwind *head = (struct dp_unwind *)unwinder->block;

	memset(unwinder->block + head->rows_offset, 0, head->nrows * sizeof(struct dp_unwind_row));
}

/* ---- tests ---------------------------------------------------------------------------------------------------------- */

static void repeats(const struct dp_regs *regs)
{
	const struct trace before = walk(regs, 16);

	cr_assert_eq(before.n, 16);
	lose_tables();
	const struct trace after = walk(regs, 16), fewer = walk(regs, 7);

	cr_assert(same(&before, &after), "%zu frames", after.n);
	cr_assert_eq(fewer.n, 7);
	cr_assert_arr_eq(fewer.pc, before.pc, 7 * 8);
}

Test(unwind_memo, repeats_without_a_look_at_the_tables)
{
	with_frames(12, repeats);
}

static void replaced(const struct dp_regs *regs)
{
	const struct trace before = walk(regs, 16);

	((struct dp_unwind *)unwinder->block)->generation++;
	lose_tables();
	const struct trace after = walk(regs, 16);

	cr_assert(!same(&before, &after), "it knows a walk by tables that were replaced");
}

Test(unwind_memo, of_replaced_tables)
{
	with_frames(12, replaced);
}

static void limits(const struct dp_regs *regs)
{
	for (int round = 0; round < 400; round++)
		compare(regs, (uint32_t)(1 + random64() % MAX));
}

Test(unwind_memo, any_limit)
{
	with_frames(3, limits);
	with_frames(12, limits);
	with_frames(30, limits);
}

static bool is_in(const struct trace *t, uint64_t pc)
{
	size_t i = 0;

	while (i < t->n && t->pc[i] != pc)
		i++;
	return i < t->n;
}

/* A word between rsp and `top`; with `of`, one that is a return address of that trace. */
ON_STACK static uint64_t *any_word(uint64_t rsp, const struct trace *of)
{
	uint64_t *word;

	do {
		word = (uint64_t *)rsp + random64() % ((top - rsp) / 8);
	} while (of && !is_in(of, *word));
	return word;
}

static void change_a_register(struct dp_regs *regs, const struct trace *of)
{
	switch (random64() % 4) {
	case 0:
		regs->rip = of->pc[random64() % of->n];
		break;
	case 1:
		regs->gpr[4] += 8 * (random64() % 16);
		break;
	default:
		regs->gpr[random64() % 2 ? 5 : 3] = (uint64_t)any_word(regs->gpr[4], NULL); /* rbp, rbx */
	}
}

/* A word of the stack, or a register, is another: often one that the walk depends on. */
ON_STACK static void changes(const struct dp_regs *good)
{
	const uint64_t rsp = good->gpr[4];
	const struct trace all = plainly(good, 16);

	for (int round = 0; round < ROUNDS; round++) {
		const struct trace *of = round % 2 ? &all : NULL;
		uint64_t *word = any_word(rsp, of), kept = *word;
		struct dp_regs regs = *good;

		for (int i = 0; i < 3; i++)
			walk(good, 16);
		if (round % 4 == 0)
			change_a_register(&regs, &all);
		else
			*word = random64() % 4 ? *any_word(rsp, of) : kept + 1 + random64() % 16;
		/* Not by compare(): an assertion would return through the changed stack. */
		const struct trace with = walk(&regs, 16), without = plainly(&regs, 16);

		*word = kept;
		cr_assert(same(&with, &without), "round %d: %zu and %zu frames", round, with.n, without.n);
	}
}

Test(unwind_memo, a_word_or_a_register_changes)
{
	with_frames(12, changes);
}

#define AREA  65536u
#define SMALL 1200u /* one frame of bottom(), and less than two */

/* The stack up to `top`, moved to `to`: what points into it as well. */
ON_STACK static struct dp_regs moved(const struct dp_regs *regs, uint8_t *to)
{
	struct dp_regs r = *regs;
	const uint64_t from = regs->gpr[4], size = top - from, by = (uint64_t)to - from;

	for (uint64_t at = 0; at < size; at += 8) {
		const uint64_t word = *(uint64_t *)(from + at);

		*(uint64_t *)(to + at) = word - from < size ? word + by : word;
	}
	for (int i = 3; i < 6; i++) /* rbx, rsp, rbp */
		if (r.gpr[i] - from < size)
			r.gpr[i] += by;
	return r;
}

/* A coroutine with a small stack where one with a large stack was: the known range is still that of the large one. */
ON_STACK static void shrinks(const struct dp_regs *regs)
{
	uint8_t *area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *const low = area + DP_UNWIND_PAGE - SMALL;
	const struct dp_regs r = moved(regs, low);
	const struct trace first = plainly(regs, 32);

	cr_assert(top - regs->gpr[4] > 2 * DP_UNWIND_PAGE && first.n == 32);
	for (int i = 0; i < 3; i++)
		walk(&r, 32);
	uint64_t *word = (uint64_t *)low;
	while (*word != first.pc[1])
		word++;
	cr_assert_lt((uint8_t *)word, area + DP_UNWIND_PAGE);
	*word = 0; /* its first function has no caller */
	munmap(area + DP_UNWIND_PAGE, AREA - DP_UNWIND_PAGE);
	cr_assert_eq(walk(&r, 32).n, 1);
	munmap(area, DP_UNWIND_PAGE);
}

Test(unwind_memo, smaller_stack_in_the_place_of_another)
{
	with_frames(38, shrinks);
}

static struct trace expected;
static struct dp_regs outer, inner;
static long countdown;

static void walk_in_between(void)
{
	if (countdown-- == 0)
		walk(&inner, 16);
}

static void wipe_in_between(void)
{
	if (countdown-- == 0)
		memset(unwinder->memo, 0, DP_UNWIND_MEMO);
}

/* Something happens before the nth load of a walk that is repeated, and of one that is learned. */
static void interrupted(const struct dp_regs *regs, void (*event)(void))
{
	outer = inner = *regs;
	expected = plainly(regs, 16);
	for (long at = 0; at < 120; at++) {
		const bool known = random64() % 2;

		test_unwind_forget(unwinder);
		if (known)
			walk(&outer, 16);
		inner.gpr[4] = outer.gpr[4] + 8 * (random64() % 4);
		inner.rip = random64() % 2 ? outer.rip : expected.pc[1];
		countdown = at;
		test_unwind_on_load(event);
		const struct trace got = walk(&outer, 16);
		test_unwind_on_load(NULL);
		const struct trace next = walk(&outer, 16);

		cr_assert(same(&expected, &got), "event before load %ld", at);
		cr_assert(same(&expected, &next), "after an event before load %ld", at);
		cr_assert_eq(unwinder->memo[0], 0, "the memo is still taken");
	}
}

static void by_a_walk(const struct dp_regs *regs)
{
	interrupted(regs, walk_in_between);
}

Test(unwind_memo, a_signal_handler_walks_in_between)
{
	with_frames(12, by_a_walk);
}

static void by_a_fork(const struct dp_regs *regs)
{
	interrupted(regs, wipe_in_between);
}

Test(unwind_memo, a_fork_wipes_it_in_between)
{
	with_frames(12, by_a_fork);
}

/* A handler has left a walk for good. */
static void left_taken(const struct dp_regs *regs)
{
	const struct trace before = walk(regs, 16);

	unwinder->memo[0] = 1;
	const struct trace after = walk(regs, 16);

	cr_assert(same(&before, &after));
	lose_tables();
	const struct trace lost = walk(regs, 16);

	cr_assert(!same(&before, &lost), "it used a memo that another walk may be changing");
}

Test(unwind_memo, not_used_while_it_is_taken)
{
	with_frames(12, left_taken);
}
