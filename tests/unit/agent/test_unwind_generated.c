/* SPDX-License-Identifier: MIT */
/* Frames of code that no module holds: followed by frame pointers where that leads back into one, else the walk ends there. */
#include "agent/unwind.h"
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
	calls++; /* not a tail call */
}

static uint8_t *generate(const void *code, size_t n)
{
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	memcpy(p, code, n);
	return p;
}

/* Walks once from here, once through `code`, which is to call what rdi holds. */
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

	/* walk, called_back, the generated code, then as without it from this function's frame on */
	cr_assert_eq(nthrough, ndirect + 2, "%zu and %zu frames", nthrough, ndirect);
	cr_assert_eq(through[2], (uint64_t)p + 6);
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

/* A chain that leads into nowhere is not believed: it ends with the first pc outside of all modules. */
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

/* What no call can have left on the stack is no frame: here the address of a byte in the midst of data. */
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
	cr_assert_not(test_unwind_behind_call(&agent, 8), "what cannot be read");
}

/* Pages that were seen may be gone: what frame pointers lead to, a guess, is not read directly. */
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
