/* SPDX-License-Identifier: MIT */
/* Frames of generated code: the walk follows frame pointers if they lead back into a module; otherwise it ends there. */
#include "agent/unwind/unwind.h"
#include "helper_unwind.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX 100

static struct test_unwind *unwinder;
static uint64_t direct[MAX], through[MAX];
static size_t ndirect, nthrough;
static volatile int calls;

static void __attribute__((noinline)) walk(uint64_t *pcs, size_t *n)
{
	struct dp_regs regs;
	ucontext_t uc;

	getcontext(&uc);
	test_unwind_regs(&uc, &regs);
	*n = test_unwind_walk(unwinder, &regs, pcs, MAX);
}

static void called_back(void)
{
	walk(through, &nthrough);
	calls++; /* prevents a tail call */
}

static uint8_t *generate(const void *code, size_t n)
{
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	memcpy(p, code, n);
	return p;
}

/* Walks once directly, and once through `code`, which must call the function in rdi. */
static uint8_t *walk_through(const void *code, size_t n)
{
	uint8_t *p = generate(code, n);

	unwinder = test_unwind_create();
	walk(direct, &ndirect);
	((void (*)(void (*)(void)))p)(called_back);
	unwinder = test_unwind_destroy(unwinder);
	return p;
}

Test(unwind_generated, frame_pointers_lead_back)
{
	/* push rbp; mov rbp, rsp; call rdi; pop rbp; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
	uint8_t *p = walk_through(code, sizeof(code));

	/* expected: walk, called_back, the generated code, then this function's frames as without it */
	cr_assert_eq(nthrough, ndirect + 2, "%zu and %zu frames", nthrough, ndirect);
	cr_assert_eq(through[2], (uint64_t)p + 6);
	for (size_t i = 0; i < nthrough; i++) /* only the caller of the code that has no table is found by its frame pointer */
		cr_assert_eq(dp_frame_is_by_pointer(through[i]), i == 3, "frame %zu: %#lx", i, through[i]);
	cr_assert_arr_eq(through + 4, direct + 2, 8 * (ndirect - 2));
	munmap(p, 4096);
}

Test(unwind_generated, without_a_frame_the_walk_ends)
{
	/* push rbp; xor ebp, ebp; call rdi; pop rbp; ret */
	static const uint8_t code[] = {0x55, 0x31, 0xed, 0xff, 0xd7, 0x5d, 0xc3};
	uint8_t *p = walk_through(code, sizeof(code));

	cr_assert_eq(nthrough, 3);
	cr_assert_eq(through[2], (uint64_t)p + 5);
	munmap(p, 4096);
}

/* A chain of frame pointers that leads nowhere ends with the first pc outside of all modules. */
Test(unwind_generated, chain_into_nowhere_is_cut)
{
	/* push rbp; push 0x1111; push 0; mov rbp, rsp; call rdi; pop; pop; pop rbp; ret */
	static const uint8_t code[] = {0x55, 0x68, 0x11, 0x11, 0,    0,    0x6a, 0,   0x48,
	                               0x89, 0xe5, 0xff, 0xd7, 0x59, 0x59, 0x5d, 0xc3};
	uint8_t *p = generate(code, sizeof(code));

	unwinder = test_unwind_create();
	((void (*)(void (*)(void)))p)(called_back);
	unwinder = test_unwind_destroy(unwinder);
	cr_assert_eq(nthrough, 3);
	cr_assert_eq(through[2], (uint64_t)p + 13);
	munmap(p, 4096);
}

/* Interpreters push a return address and jump: where code is known to be generated, that is a frame if the chain leads back. */
Test(unwind_generated, a_jump_instead_of_a_call)
{
	/* push rbp; mov rbp, rsp; lea rax, [rip + 3]; push rax; jmp rdi; pop rbp; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x05, 3, 0, 0, 0, 0x50, 0xff, 0xe7, 0x5d, 0xc3};
	uint8_t *p = walk_through(code, sizeof(code));

	cr_assert_eq(nthrough, ndirect + 2, "%zu and %zu frames", nthrough, ndirect);
	cr_assert_eq(through[2], (uint64_t)p + 14);
	cr_assert_arr_eq(through + 4, direct + 2, 8 * (ndirect - 2));
	munmap(p, 4096);
}

/* The same, but the memory is newer than the tables, or the chain leads nowhere. */
Test(unwind_generated, a_jump_in_memory_that_is_not_known)
{
	/* push rbp; mov rbp, rsp; lea rax, [rip + 3]; push rax; jmp rdi; pop rbp; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x05, 3, 0, 0, 0, 0x50, 0xff, 0xe7, 0x5d, 0xc3};
	/* push rbp; xor ebp, ebp; lea rax, [rip + 3]; push rax; jmp rdi; pop rbp; ret */
	static const uint8_t nowhere[] = {0x55, 0x31, 0xed, 0x48, 0x8d, 0x05, 3, 0, 0, 0, 0x50, 0xff, 0xe7, 0x5d, 0xc3};

	unwinder = test_unwind_create();
	uint8_t *p = generate(code, sizeof(code));
	((void (*)(void (*)(void)))p)(called_back);
	cr_assert_eq(nthrough, 2);
	unwinder = test_unwind_destroy(unwinder);
	munmap(p, 4096);
	p = walk_through(nowhere, sizeof(nowhere));
	cr_assert_eq(nthrough, 2);
	munmap(p, 4096);
}

/* An address that no call can have pushed is not a frame: here the address of a byte in data. */
Test(unwind_generated, data_is_no_caller)
{
	/* push rbp; lea rax, [rip + 15]; push rax; push 0; mov rbp, rsp; call rdi; pop; pop; pop rbp; ret; data */
	static const uint8_t code[] = {0x55, 0x48, 0x8d, 0x05, 0x0f, 0,    0,    0,    0x50, 0x6a, 0,    0x48, 0x89, 0xe5,
	                               0xff, 0xd7, 0x59, 0x59, 0x5d, 0xc3, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
	uint8_t *p = generate(code, sizeof(code));

	unwinder = test_unwind_create();
	((void (*)(void (*)(void)))p)(called_back);
	unwinder = test_unwind_destroy(unwinder);
	cr_assert_eq(nthrough, 3);
	cr_assert_eq(through[2], (uint64_t)p + 16);
	munmap(p, 4096);
}

static const uint8_t calls_by_form[][8] = {
        {0x90, 0x90, 0x90, 0xe8, 1, 2, 3, 4},             /* call rel32 */
        {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0}, /* call rax */
        {0x90, 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0x13}, /* call [r11] */
        {0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x53, 0x18}, /* call [rbx + 24] */
        {0x90, 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x18}, /* call [rsp + 24] */
        {0x90, 0x90, 0xff, 0x15, 1, 2, 3, 4},             /* call [rip + n] */
        {0x90, 0xff, 0x94, 0xc4, 1, 2, 3, 4},             /* call [rsp + rax * 8 + n] */
        {0x90, 0x90, 0x90, 0xe9, 1, 2, 3, 4},             /* not: jmp */
        {0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0}, /* not: jmp rax */
        {0x90, 0xff, 0x34, 0xc4, 0x90, 0x90, 0x90, 0x90}, /* not: push */
};

Test(unwind_generated, calls_are_known_in_every_form)
{
	struct dp_agent agent = {.pid = (uint32_t)getpid()};

	for (size_t i = 0; i < sizeof(calls_by_form) / sizeof(calls_by_form[0]); i++)
		cr_assert_eq(test_unwind_behind_call(&agent, (uint64_t)calls_by_form[i] + 8), i < 7, "form %zu", i);
	cr_assert_not(test_unwind_behind_call(&agent, 8), "unreadable memory");
}

/* Pages that were readable may be gone: memory found by frame pointers, which are a guess, is not read directly. */
Test(unwind_generated, stack_that_was_longer)
{
	uint8_t *stack = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const uint8_t code[] = {0x90, 0x90};
	uint8_t *p = generate(code, sizeof(code));
	struct dp_regs regs = {.rip = (uint64_t)p};
	uint64_t pcs[MAX];

	cr_assert_neq(stack, MAP_FAILED);
	unwinder = test_unwind_create();
	unwinder->slot.stack_lo = (uint64_t)stack | 4;
	munmap(stack + 8192, 8192);
	regs.gpr[4] = (uint64_t)stack + 64;
	regs.gpr[5] = (uint64_t)stack + 3 * 4096 + 64;
	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, MAX), 1);
	unwinder = test_unwind_destroy(unwinder);
	munmap(stack, 8192);
	munmap(p, 4096);
}

/* ---- guessed rules ------------------------------------------------------------------------------------------------------ */

enum { RBP_SAVED = DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -2), CODE = 0x400000, TABLED = CODE + 0x1000 };

/* One module: from CODE on, a row with `flags` says that the CFA is rsp + `guess`; from TABLED on, a table says rsp + 64. */
static struct built {
	struct dp_unwind head;
	struct dp_unwind_range range;
	struct dp_unwind_row row[3];
	uint32_t pc[2];
	uint16_t which[2];
} built;

static void build(int32_t guess, uint8_t flags)
{
	const struct dp_unwind_row row = {
	        .kind = DP_UNWIND_REG,
	        .reg = 4,
	        .rule = {[DP_UNWIND_RBP] = RBP_SAVED, [DP_UNWIND_RA] = DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -1)},
	        .changed = 1 << DP_UNWIND_RBP};

	built = (struct built){
	        .head = {DP_UNWIND_MAGIC, sizeof(built), 1, 1u << DP_UNWIND_RBP, 1, 3, offsetof(struct built, range),
	                 offsetof(struct built, row)},
	        .range = {CODE, CODE + 0x2000, 2, offsetof(struct built, pc), offsetof(struct built, which), 0},
	        .row = {{0}, row, row},
	        .pc = {0, TABLED - CODE},
	        .which = {1, 2},
	};
	built.row[1].off = guess;
	built.row[1].flags = flags;
	built.row[2].off = 64;
	built.row[2].flags = DP_UNWIND_PLAIN;
	unwinder = test_unwind_create();
	unwinder->agent->unwind = (uint64_t)&built;
}

/* Walks from CODE with rsp at `sp`, twice: the second walk uses the cache. Returns the number of frames. */
static size_t walk_twice(const uint8_t *sp, uint64_t *pcs)
{
	struct dp_regs regs = {.rip = CODE + 1, .gpr = {[4] = (uint64_t)sp}};
	size_t n = test_unwind_walk(unwinder, &regs, pcs, MAX);

	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, MAX), n);
	return n;
}

static uint8_t *pages(size_t n)
{
	uint8_t *p = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static void put(uint8_t *at, uint64_t word)
{
	memcpy(at, &word, sizeof(word));
}

/* A guess leads into the mapping after the stack, which contains something like a frame: it must not count as stack. */
Test(unwind_generated, neighbour_of_the_stack_that_goes_away)
{
	uint8_t *stack = pages(4), *neighbour = stack + 4096;
	uint64_t pcs[MAX];

	build(4096, DP_UNWIND_GUESSED);
	put(neighbour + 56, TABLED + 5);
	put(neighbour + 64 + 56, CODE + 5);
	cr_assert_geq(walk_twice(stack + 64, pcs), 3);
	cr_assert_eq(pcs[1], TABLED + 5);
	cr_assert_eq(pcs[2], CODE + 5);
	cr_assert_eq(unwinder->slot.stack_lo, (uint64_t)stack | 1, "one page of stack, and no more");
	munmap(neighbour, 3 * 4096);
	cr_assert_eq(walk_twice(stack + 64, pcs), 1);
	unwinder = test_unwind_destroy(unwinder);
	munmap(stack, 4096);
}

/* Memory that was stack at an earlier hit is not read directly either, by the guess or by the rows after it. */
Test(unwind_generated, guesses_into_a_stack_that_was_longer)
{
	uint8_t *stack = pages(4);
	uint64_t pcs[MAX];

	build(3 * 4096, DP_UNWIND_GUESSED);
	unwinder->slot.stack_lo = (uint64_t)stack | 4;
	munmap(stack + 8192, 8192);
	cr_assert_eq(walk_twice(stack + 64, pcs), 1);
	built.row[1].off = 8192 - 64; /* the last mapped word */
	put(stack + 8192 - 8, TABLED + 5);
	memset(unwinder->cache, 0, DP_UNWIND_CACHE * sizeof(uint64_t));
	cr_assert_eq(walk_twice(stack + 64, pcs), 2);
	cr_assert_eq(pcs[1], TABLED + 5);
	unwinder = test_unwind_destroy(unwinder);
	munmap(stack, 8192);
}

/* Frames found by frame pointers are a guess too, and so are all frames after them. */
Test(unwind_generated, tables_behind_frame_pointers)
{
	uint8_t *stack = pages(4), *neighbour = stack + 4096;
	static const uint8_t code[] = {0x90, 0x90};
	uint8_t *p = generate(code, sizeof(code));
	struct dp_regs regs = {.rip = (uint64_t)p, .gpr = {[4] = (uint64_t)stack + 64, [5] = (uint64_t)neighbour}};
	uint64_t pcs[MAX];

	build(8, DP_UNWIND_GUESSED);
	put(neighbour + 8, TABLED + 5);
	put(neighbour + 16 + 56, CODE + 5);
	cr_assert_geq(test_unwind_walk(unwinder, &regs, pcs, MAX), 3);
	cr_assert_eq(pcs[1], (TABLED + 5) | DP_FRAME_BY_POINTER);
	cr_assert_eq(pcs[2], CODE + 5);
	cr_assert_eq(unwinder->slot.stack_lo, (uint64_t)stack | 1);
	unwinder->desc.event = 1; /* for LTTng */
	cr_assert_geq(test_unwind_walk(unwinder, &regs, pcs, MAX), 3);
	cr_assert_eq(pcs[1], TABLED + 5, "readers of LTTng's traces expect addresses");
	unwinder = test_unwind_destroy(unwinder);
	munmap(stack, 4 * 4096);
	munmap(p, 4096);
}

/* At a generated function's first or last instruction rbp is the caller's; which one it is tells where the return address is. */
Test(unwind_generated, first_and_last_instructions)
{
	static const struct {
		uint8_t code[8];
		unsigned words; /* above rsp */
		bool is_edge;
	} at[] = {
	        {{0x55, 0x48, 0x89, 0xe5}, 0, true},       /* push rbp */
	        {{0xf3, 0x0f, 0x1e, 0xfa, 0x55}, 0, true}, /* endbr64; push rbp */
	        {{0x48, 0x89, 0xe5}, 1, true},             /* mov rbp, rsp */
	        {{0x48, 0x8b, 0xec}, 1, true},             /* the same */
	        {{0xc3}, 0, true},                         /* ret */
	        {{0xc2, 8, 0}, 0, true},                   /* ret 8 */
	        {{0x5d, 0xc3}, 0, false},                  /* pop rbp */
	        {{0x90, 0x55}, 0, false},                  /* nop */
	        {{0xe9, 1, 2, 3, 4}, 0, false},            /* jmp: a probe */
	};
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		uint8_t *stack = pages(1), *p = generate(at[i].code, sizeof(at[i].code));
		struct dp_regs regs = {.rip = (uint64_t)p, .gpr = {[4] = (uint64_t)stack + 64}};
		uint64_t pcs[MAX];

		build(8, DP_UNWIND_GUESSED);
		put(stack + 64 + 8 * at[i].words, TABLED + 5);
		cr_expect_eq(test_unwind_walk(unwinder, &regs, pcs, MAX) >= 2, at[i].is_edge, "number %zu", i);
		if (at[i].is_edge)
			cr_expect_eq(pcs[1], (TABLED + 5) | DP_FRAME_BY_POINTER, "number %zu", i);
		unwinder = test_unwind_destroy(unwinder);
		munmap(stack, 4096);
		munmap(p, 4096);
	}
}
