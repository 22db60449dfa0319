/* SPDX-License-Identifier: MIT */
/* Our walk of this stack against libgcc's, through all the code that makes stacks hard to unwind. */
#include "agent/unwind/unwind.h"
#include "helper_unwind.h"

#include <alloca.h>
#include <criterion/criterion.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#define MAX 120

struct trace {
	uint64_t pc[MAX];
	size_t n;
};

static struct test_unwind *unwinder;
static volatile int sink;
static int compared, different;

static void setup(void)
{
	unwinder = test_unwind_create();
	compared = different = 0;
}

static void teardown(void)
{
	unwinder = test_unwind_destroy(unwinder);
}

TestSuite(unwind_self, .init = setup, .fini = teardown);

static _Unwind_Reason_Code collect(struct _Unwind_Context *context, void *data)
{
	struct trace *t = data;
	uint64_t pc = _Unwind_GetIP(context);

	if (t->n == MAX || !pc)
		return _URC_END_OF_STACK;
	t->pc[t->n++] = pc;
	return _URC_NO_REASON;
}

/* Async-signal-safe once both unwinders have run. Walks twice: from nothing, and as the first walk was. */
static void __attribute__((noinline)) compare(void)
{
	struct trace expect = {.n = 0}, cold, hot;
	struct dp_regs regs;
	ucontext_t uc;

	test_unwind_forget(unwinder);
	getcontext(&uc);
	test_unwind_regs(&uc, &regs);
	cold.n = test_unwind_walk(unwinder, &regs, cold.pc, MAX);
	hot.n = test_unwind_walk(unwinder, &regs, hot.pc, MAX);
	_Unwind_Backtrace(collect, &expect);
	compared++;
	if (cold.n != expect.n || memcmp(cold.pc + 1, expect.pc + 1, (cold.n - 1) * 8) || cold.pc[0] != regs.rip)
		different++;
	if (hot.n != cold.n || memcmp(hot.pc, cold.pc, cold.n * 8))
		different++;
}

static void check(int times)
{
	cr_assert_eq(compared, times);
	cr_assert_eq(different, 0);
}

static void __attribute__((noinline)) recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		compare();
	sink++;
}

Test(unwind_self, recursion)
{
	recurse(0);
	recurse(60);
	check(2);
}

static int compare_ints(const void *a, const void *b)
{
	compare();
	return *(const int *)a - *(const int *)b;
}

Test(unwind_self, libc_calls_back)
{
	int values[5] = {3, 1, 2, 5, 4}, key = 2;

	qsort(values, 5, sizeof(int), compare_ints);
	bsearch(&key, values, 5, sizeof(int), compare_ints);
	cr_assert_geq(compared, 5);
	cr_assert_eq(different, 0);
}

static void on_signal(int sig)
{
	(void)sig;
	compare();
}

static void handle(int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};

	cr_assert_eq(sigaction(SIGUSR1, &sa, NULL), 0);
}

Test(unwind_self, signal_on_the_same_stack)
{
	handle(0);
	raise(SIGUSR1);
	raise(SIGUSR1);
	check(2);
}

Test(unwind_self, signal_on_an_alternate_stack)
{
	stack_t ss = {.ss_sp = malloc(1 << 18), .ss_size = 1 << 18};

	cr_assert_eq(sigaltstack(&ss, NULL), 0);
	handle(SA_ONSTACK);
	compare();
	raise(SIGUSR1);
	compare();
	raise(SIGUSR1);
	check(4);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	free(ss.ss_sp);
}

static void *in_thread(void *arg)
{
	recurse(3);
	raise(SIGUSR1);
	return arg;
}

Test(unwind_self, threads_end_at_clone)
{
	pthread_t thread;

	handle(0);
	compare();
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, in_thread, NULL), 0);
		pthread_join(thread, NULL);
	}
	check(7);
}

__attribute__((noinline)) static void with_alloca(size_t n)
{
	char *p = alloca(n);

	memset(p, 1, n);
	compare();
	sink += p[n / 2];
}

__attribute__((noinline)) static void realigned(size_t n)
{
	char block[64] __attribute__((aligned(128)));
	char more[n];

	memset(block, 1, sizeof(block));
	memset(more, 2, n);
	with_alloca(n);
	sink += block[7] + more[n / 2];
}

__attribute__((noinline, force_align_arg_pointer)) static void forced(void)
{
	realigned(100);
	sink++;
}

Test(unwind_self, alloca_and_realigned_stacks)
{
	with_alloca(3000);
	realigned(777);
	forced();
	check(3);
}

__attribute__((noinline)) static void big_frame(void)
{
	char pages[150000];

	memset(pages, 1, sizeof(pages));
	recurse(2);
	sink += pages[5];
}

Test(unwind_self, frames_of_many_pages)
{
	compare();
	big_frame();
	compare();
	check(3);
}

Test(unwind_self, limit_is_kept)
{
	struct dp_regs regs;
	ucontext_t uc;
	uint64_t pcs[MAX];

	getcontext(&uc);
	test_unwind_regs(&uc, &regs);
	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, 0), 0);
	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, 1), 1);
	cr_assert_eq(pcs[0], regs.rip);
	cr_assert_eq(test_unwind_walk(unwinder, &regs, pcs, 2), 2);
}
