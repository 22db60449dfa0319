/* SPDX-License-Identifier: MIT */
/* The flight recorder while signal handlers hit probes as well, and while a tool comes and goes. */
#include "test_overwrite_world.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile uint64_t nested_recorded, nested_lost, inside;
static void on_signal(int signo)
{
	uint64_t number;

	(void)signo;
	inside += w->slots[0].reclaiming;
	for (int i = 0; i < 3; i++) {
		number = nested_recorded + 1;
		if (world_hit(w, 1, &number, sizeof(number)))
			nested_recorded++;
		else
			nested_lost++;
	}
}

/* Handlers hit at any instruction of a hit. Every hit is recorded, overwritten or lost, and is counted as that. */
Test(overwrite_nested, signal_storm_keeps_exact_totals, .init = begin, .fini = end)
{
	pthread_t thread, self = pthread_self();
	uint64_t number = 1, lost = 0;
	struct seen s;

	w->desc[0].reserve = 200;
	signal(SIGUSR1, on_signal);
	pthread_create(&thread, NULL, world_storm, &self);
	while (number <= 2000000 || nested_recorded < 3000) {
		if (world_hit(w, 0, &number, sizeof(number)))
			number++;
		else
			lost++;
	}
	world_storm_over = 1;
	pthread_join(thread, NULL);
	signal(SIGUSR1, SIG_IGN);
	cr_expect(free_is_zero(&w->slots[0]));
	s = take_over(&w->slots[0]);
	cr_expect_eq(inside, 0, "a handler ran while records were dropped");
	cr_expect(!s.gap && !s.other_thread);
	cr_expect_eq(s.each[0] + w->lost[0].overwritten, number - 1);
	cr_expect_eq(s.each[1] + w->lost[1].overwritten, nested_recorded);
	cr_expect_eq(w->lost[0].full, lost);
	cr_expect_eq(w->lost[1].full, nested_lost);
	cr_expect_eq(w->slots[0].abandoned, 0);
}

/* ---- a handler's hits at each instruction up to the system call that blocks signals ---- */

static struct {
	unsigned at, steps;
	bool nested;
} step;

static void on_step(int signo, siginfo_t *info, void *context)
{
	static const uint8_t system_call[] = {0x0f, 0x05};
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uint64_t number;

	(void)signo;
	(void)info;
	const bool here = step.steps++ == step.at;
	if (here || !memcmp((const void *)regs[REG_RIP], system_call, 2))
		regs[REG_EFL] &= ~(greg_t)0x100;
	if (!here)
		return;
	step.nested = true;
	for (number = nested_recorded + 1; number <= (step.at % 3) * 500 + 1; number++)
		if (world_hit(w, 1, &number, 8))
			nested_recorded++;
}

static void stepped_hit(void)
{
	uint64_t number = 1;

	__asm__ volatile("pushfq; orq $0x100,(%%rsp); popfq" ::: "memory", "cc");
	world_hit(w, 0, &number, 8);
	__asm__ volatile("pushfq; andq $~0x100,(%%rsp); popfq" ::: "memory", "cc");
}

static void interrupt_at(unsigned k)
{
	struct seen s;
	uint64_t i = 0;

	begin();
	do
		cr_assert(world_hit(w, 2, &i, 8));
	while (++i < RING / 24 || w->slots[0].head + w->desc[0].reserve <= w->slots[0].tail + RING);
	nested_recorded = 0;
	step.at = k;
	step.steps = 0;
	step.nested = false;
	stepped_hit();
	cr_assert(free_is_zero(&w->slots[0]), "step %u", k);
	s = take_over(&w->slots[0]);
	cr_assert(!s.gap && !s.other_thread, "step %u", k);
	cr_assert_eq(s.each[0] + w->lost[0].overwritten + w->lost[0].full, 1, "step %u", k);
	cr_assert_eq(s.each[1] + w->lost[1].overwritten, nested_recorded, "step %u", k);
	cr_assert_eq(s.each[2] + w->lost[2].overwritten, i, "step %u", k);
	cr_assert_eq(w->slots[0].abandoned, 0);
	end();
}

Test(overwrite_nested, handlers_hit_at_every_instruction_before_signals_are_blocked)
{
	struct sigaction sa = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	unsigned k = 0;

	sigaction(SIGTRAP, &sa, NULL);
	do
		interrupt_at(k);
	while (step.nested && ++k);
	cr_expect_gt(k, 100);
}

static sigjmp_buf out;

static void leave(int signo)
{
	uint64_t value = 7;

	(void)signo;
	world_hit(w, 2, &value, 8);
	siglongjmp(out, 1);
}

/* Handlers that never return: the signal mask survives, and the ring loses only unfinished hits. */
Test(overwrite_nested, handlers_that_jump_out_leave_a_working_recorder, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	volatile unsigned jumps = 0;
	volatile uint64_t number = 0;
	sigset_t mask;

	signal(SIGALRM, leave);
	if (sigsetjmp(out, 1))
		jumps++;
	setitimer(ITIMER_REAL, &often, NULL);
	while (jumps < 2000) {
		uint64_t value = ++number;
		if (!world_hit(w, 1, &value, 8) && slot->stuck_at)
			slot->stuck_tsc = dp_rdtsc() - DP_STUCK_TICKS - 1;
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	cr_expect_eq(slot->reclaiming, 0);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	cr_expect(sigisemptyset(&mask));
	slot->stuck_tsc = dp_rdtsc() - DP_STUCK_TICKS - 1;
	for (unsigned i = 0; i < 3; i++)
		world_hit(w, 1, (const void *)&number, 8);
	cr_expect_leq(slot->head - slot->tail, RING);
	cr_expect(free_is_zero(slot));
}

/* ---- hand-over ---------------------------------------------------------------------------------- */

static volatile int hits_over;
static volatile uint64_t made, refused;

static void *hit_for_long(void *arg)
{
	uint64_t value = 1;

	(void)arg;
	while (!hits_over) {
		if (world_hit(w, 5, &value, 8))
			made = value++;
		else
			refused++;
	}
	return NULL;
}

static void see_order(const struct dp_record *r, void *data)
{
	uint64_t *last = data, value = *(const uint64_t *)(const void *)r->payload;

	if (r->probe != 5)
		return;
	cr_assert_gt(value, *last);
	*last = value;
}

/* A tool comes and goes while the thread keeps hitting: each record is seen once, in order and whole, or is counted as lost. */
Test(overwrite_nested, a_tool_takes_over_and_gives_back_under_load, .init = begin, .fini = end)
{
	struct dp_slot *slot = &w->slots[0];
	uint64_t last = 0, drained = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, hit_for_long, NULL);
	for (unsigned round = 0; round < 3000; round++) {
		__atomic_store_n(&w->control->overwrite, 0, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&slot->reclaiming, __ATOMIC_SEQ_CST))
			;
		for (unsigned i = 0; i < 3; i++)
			drained += world_drain(slot, see_order, &last);
		__atomic_store_n(&w->control->overwrite, 1, __ATOMIC_SEQ_CST);
		for (uint64_t goal = made + 1500; made < goal && round % 2;)
			sched_yield();
	}
	hits_over = 1;
	pthread_join(thread, NULL);
	w->control->overwrite = 0;
	drained += world_drain(slot, see_order, &last);
	cr_expect_eq(last, made);
	cr_expect_eq(drained + w->lost[5].overwritten, made);
	cr_expect_eq(w->lost[5].full, refused);
	cr_expect_gt(drained, 3000);
	cr_expect_gt(w->lost[5].overwritten, 3000);
}
