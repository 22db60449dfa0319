/* SPDX-License-Identifier: MIT */
/*
 * A hit that waits where its ring is full: it goes on in any case, nobody waits without need, and whatever interrupts the wait
 * leaves a working ring.
 */
#include "agent/futex.h"
#include "tests/unit/agent/world.h"
#include "tests/unit/until.h"

#include <criterion/criterion.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING    16384u
#define THREADS 4u
#define FOREVER (UINT64_C(1) << 41) /* ticks: minutes */
#define TICK    (UINT64_C(1) << 30) /* a quarter of a ns */

static struct dp_debug_ctx *w;
static struct dp_on_full *f;

static void begin(void)
{
	w = world_create(THREADS + 1, RING, DP_ID_SELF);
	f = &w->control->on_full;
	*f = (struct dp_on_full){.wait_ticks = FOREVER, .tick = TICK, .served = 1};
}

static void end(void)
{
	world_destroy(w);
}

TestSuite(full, .init = begin, .fini = end, .timeout = 120);

static void say_drained(void)
{
	__atomic_fetch_add(&f->passes, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&f->drained, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &f->drained, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Until a hit finds the ring full: with `served` 0 that one is lost. */
static void fill_ring(void)
{
	f->served = 0;
	while (world_hits(w, 1))
		;
	f->served = 1;
}

static bool hit(void)
{
	return world_hits(w, 1) == 1;
}

/* ---- a tool that reads --------------------------------------------------------------------------------------------------- */

static volatile bool over;
static volatile unsigned drained;

static void *tool(void *slots)
{
	for (bool last = false; !last;) {
		last = over;
		for (unsigned i = 0; i < (slots ? THREADS + 1 : 0); i++)
			drained += world_drain(&w->slots[i], NULL, NULL);
		say_drained();
	}
	return NULL;
}

static void *many_hits(void *recorded)
{
	*(unsigned *)recorded = world_hits(w, 20000);
	return NULL;
}

Test(full, no_hit_is_lost_while_a_tool_reads)
{
	pthread_t reader, thread[THREADS];
	unsigned recorded[THREADS];

	cr_assert_eq(pthread_create(&reader, NULL, tool, w->slots), 0);
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, many_hits, &recorded[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	over = true;
	pthread_join(reader, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		cr_expect_eq(recorded[i], 20000);
	cr_expect_eq(drained, 20000 * THREADS);
	cr_expect_eq(world_lost(w), 0);
	cr_expect_gt(f->hits, 0);
	cr_expect_gt(f->ticks, 0);
	cr_expect_eq(f->late, 0);
}

/* ---- a tool that does not ------------------------------------------------------------------------------------------------ */

Test(full, a_tool_that_stands_still_costs_one_wait_and_only_one)
{
	fill_ring();
	f->wait_ticks = 1 << 20;
	cr_expect_not(hit());
	cr_expect_eq(f->late, 1);
	cr_expect_eq(f->served, 0);
	f->wait_ticks = FOREVER;
	cr_expect_not(hit());
	cr_expect_eq(f->hits, 1, "nobody waits until a tool reads again");
	f->served = 1;
	world_drain(&w->slots[0], NULL, NULL);
	cr_expect(hit());
	cr_expect_eq(w->lost[0].full, 3);
}

static void *one_wait(void *lost)
{
	f->served = 0;
	while (world_hits(w, 1))
		;
	__atomic_fetch_add((unsigned *)lost, 1, __ATOMIC_SEQ_CST);
	while (*(volatile unsigned *)lost < THREADS)
		;
	f->served = 1;
	world_hits(w, 1);
	return NULL;
}

static pid_t dead_process(void)
{
	const pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

Test(full, a_dead_tool_is_noticed_and_all_go_on)
{
	pthread_t thread[THREADS];
	unsigned lost = 0;

	f->tool = (uint32_t)dead_process();
	for (unsigned i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, one_wait, &lost), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL); /* they would wait for minutes */
	cr_expect_geq(f->late, 1);
	cr_expect_eq(f->served, 0);
	cr_expect_eq(w->lost[0].full, 2 * THREADS);
}

Test(full, who_waits_in_vain_lets_the_others_go)
{
	pthread_t thread;
	unsigned lost = THREADS - 1;

	cr_assert_eq(pthread_create(&thread, NULL, one_wait, &lost), 0);
	cr_assert(until(f->waits));
	cr_assert(until(({
		f->served = 0;
		say_drained();
		pthread_tryjoin_np(thread, NULL) == 0;
	})));
	cr_expect_eq(f->late, 0, "that one did not wait for all of its time");
}

/* ---- what no tool can help ---------------------------------------------------------------------------------------------- */

Test(full, a_hit_on_top_of_another_does_not_wait_for_it)
{
	pthread_t reader;

	cr_assert(hit());
	cr_assert_not_null(world_reserve(w, 0).record); /* never committed */
	cr_assert_eq(pthread_create(&reader, NULL, tool, w->slots), 0);
	while (hit())
		;
	cr_expect_eq(f->hits, 1);
	over = true;
	pthread_join(reader, NULL);
	f->served = 1;
	cr_expect_not(hit(), "without a tool this would wait for minutes");
	cr_expect_eq(f->hits, 1);
	cr_expect_eq(f->late, 0);
}

Test(full, a_ring_without_memory_is_not_waited_for)
{
	for (unsigned i = 0; i <= THREADS; i++)
		w->slots[i].room = 0;
	cr_expect_not(hit());
	cr_expect_eq(f->hits, 0);
	cr_expect_eq(w->lost[0].full, 1);
}

/* ---- the program's signals while a hit waits ---------------------------------------------------------------------------- */

static sigjmp_buf back;
static volatile int signals;
static volatile pid_t child;

static void jump_out(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

static void nested_hit(int sig)
{
	(void)sig;
	signals++;
	world_hits(w, 1);
}

static void fork_off(int sig)
{
	(void)sig;
	child = fork();
}

static void handle(void (*handler)(int))
{
	const struct sigaction action = {.sa_handler = handler};

	sigaction(SIGUSR1, &action, NULL);
}

/* Sends a signal to the thread that waits, as often as it waits anew. */
struct sender {
	pthread_t to;
	unsigned times;
	bool drain; /* then */
};

static void *send_signals(void *arg)
{
	const struct sender *s = arg;
	uint32_t seen = 0;

	for (unsigned i = 0; i < s->times; i++) {
		cr_assert(until(DP_LOAD(&f->waits) != seen));
		seen = DP_LOAD(&f->waits);
		pthread_kill(s->to, SIGUSR1);
	}
	cr_assert(until(!s->drain || DP_LOAD(&f->waits) > seen || signals || child));
	if (s->drain) {
		world_drain(&w->slots[0], NULL, NULL);
		say_drained();
	}
	return NULL;
}

Test(full, a_handler_that_jumps_out_of_the_wait_takes_nothing_along)
{
	struct sender s = {.to = pthread_self(), .times = 20};
	pthread_t sender;
	volatile unsigned jumps = 0;

	handle(jump_out);
	fill_ring();
	cr_assert_eq(pthread_create(&sender, NULL, send_signals, &s), 0);
	if (sigsetjmp(back, 1))
		jumps++;
	if (jumps < s.times)
		hit();
	pthread_join(sender, NULL);
	cr_expect_eq(f->hits, s.times);
	cr_expect_eq(f->late, 0);
	world_drain(&w->slots[0], NULL, NULL);
	cr_expect_eq(world_hits(w, 100), 100);
	cr_expect_eq(world_drain(&w->slots[0], NULL, NULL), 100);
	cr_expect_eq(w->slots[0].head, w->slots[0].tail, "no reservation is left");
}

Test(full, handlers_run_while_a_hit_waits_and_may_wait_too)
{
	struct sender s = {.to = pthread_self(), .times = 1, .drain = true};
	pthread_t sender;

	handle(nested_hit);
	fill_ring();
	cr_assert_eq(pthread_create(&sender, NULL, send_signals, &s), 0);
	cr_expect(hit());
	pthread_join(sender, NULL);
	cr_expect_eq(signals, 1);
	cr_expect_eq(world_lost(w), 1, "by fill_ring()");
}

/* The child comes out of its parent's wait, and must not write into its parent's ring. */
Test(full, a_child_forked_by_a_handler_in_the_wait_records_nothing)
{
	struct sender s = {.to = pthread_self(), .times = 1, .drain = true};
	const pid_t self = getpid();
	pthread_t sender;
	int status = -1;

	handle(fork_off);
	fill_ring();
	cr_assert_eq(pthread_create(&sender, NULL, send_signals, &s), 0);
	const bool recorded = hit();
	if (getpid() != self)
		_exit(recorded);
	cr_expect(recorded);
	pthread_join(sender, NULL);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0);
	cr_expect_eq(w->lost[0].forked, 1);
	cr_expect_eq(world_drain(&w->slots[0], NULL, NULL), 1);
}
