/* SPDX-License-Identifier: MIT */
/*
 * Hits in unusual situations: unprimed, nested, left by longjmp, on small and foreign stacks, in fork children, in threads
 * that end.
 */
#include "fake.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static struct host_event probe;
static struct dp_sink *sink;

static void set_up(void)
{
	sink = fake_session(&probe);
	host_prime();
}

static bool hit(uint64_t value)
{
	return host_hit(&probe, &value, sizeof(value));
}

TestSuite(hits, .init = set_up, .timeout = 30);

Test(hits, arrive_once_with_payload_site_and_errno)
{
	errno = 77;
	cr_assert(hit(42));
	cr_assert_eq(errno, 77);
	cr_assert_eq(fake.committed, 1);
	cr_assert_eq(fake.size, 8);
	cr_assert_eq(*(uint64_t *)(void *)fake.payload, 42);
	cr_assert_eq(fake.ip, (void *)0x1234);
	cr_assert(host_hit_capture(&probe, "12345", 5));
	cr_assert_eq(fake.size, 5);
	cr_assert_eq(memcmp(fake.payload, "12345", 5), 0);
}

Test(hits, prime_is_idempotent)
{
	const uint64_t primed = sink->primed;
	host_prime();
	cr_assert_eq(sink->primed, primed);
	cr_assert_eq(primed, 1);
}

/* ---- nesting --------------------------------------------------------------------------------------------------- */

static void nested_hit(void)
{
	cr_assert_not(hit(1));
}

Test(hits, inside_of_a_hit_are_lost_and_counted)
{
	fake.inside = nested_hit;
	cr_assert(hit(2));
	cr_assert_eq(probe.lost.nested, 1);
	fake.inside = NULL;
	cr_assert(hit(3));
	cr_assert_eq(fake.committed, 2);
}

static sigjmp_buf out;

static void leave(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

static void raise_inside(void)
{
	fake.inside = NULL;
	raise(SIGUSR1);
}

/* Ends only when no thread is in an RCU read section. */
static void *grace_period(void *unused)
{
	void *common = dlopen("liblttng-ust-common.so.1", RTLD_NOW | RTLD_NOLOAD);
	((void (*)(void))dlsym(common, "lttng_ust_urcu_synchronize_rcu"))();
	return unused;
}

Test(hits, after_one_that_longjmp_left_go_on_and_grace_periods_end)
{
	pthread_t thread;
	signal(SIGUSR1, leave);
	fake.inside = raise_inside;
	if (!sigsetjmp(out, 1))
		hit(1);
	cr_assert_eq(fake.committed, 0);
	cr_assert(hit(2));
	cr_assert_eq(fake.committed, 1);
	pthread_create(&thread, NULL, grace_period, NULL);
	pthread_join(thread, NULL); /* or the test times out */
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void *unprimed(void *unused)
{
	(void)unused;
	cr_assert_not(hit(1));
	return NULL;
}

Test(hits, in_unprimed_threads_are_lost_and_counted)
{
	pthread_t thread;
	pthread_create(&thread, NULL, unprimed, NULL);
	pthread_join(thread, NULL);
	cr_assert_eq(probe.lost.unprimed, 1);
	cr_assert_eq(fake.reserved, 0);
}

static pthread_key_t key;

static void in_destructor(void *round)
{
	if ((uintptr_t)round < 4)
		pthread_setspecific(key, (void *)((uintptr_t)round + 1));
	hit((uintptr_t)round);
}

static void *primed(void *unused)
{
	host_prime();
	pthread_setspecific(key, (void *)1);
	cr_assert(hit(1));
	return unused;
}

Test(hits, of_ending_threads_do_no_harm_and_blocks_are_used_again)
{
	pthread_key_create(&key, in_destructor);
	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, primed, NULL);
		pthread_join(thread, NULL);
	}
	cr_assert_eq(fake.committed + probe.lost.unprimed, 200 * 5);
	cr_assert_eq(sink->primed, 201);
}

Test(hits, in_a_fork_child_are_lost_and_it_may_exit)
{
	const pid_t child = fork();
	if (child == 0) {
		host_agent.live = 0;
		exit(hit(1) || probe.lost.forked != 1 || fake.reserved);
	}
	int status;
	waitpid(child, &status, 0);
	cr_assert_eq(status, 0);
}

/* ---- stacks ---------------------------------------------------------------------------------------------------- */

static bool on_thread_stack(uint64_t address)
{
	pthread_attr_t attr;
	void *low;
	size_t size;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	return address - (uint64_t)(uintptr_t)low < size;
}

static sigset_t seen_mask;

static void look_at_mask(void)
{
	sigprocmask(SIG_SETMASK, NULL, &seen_mask);
}

Test(hits, with_room_stay_on_their_stack)
{
	fake.inside = look_at_mask;
	cr_assert(hit(1));
	cr_assert(on_thread_stack(fake.rsp));
	cr_assert_not(sigismember(&seen_mask, SIGUSR1));
}

static void in_handler(int sig)
{
	(void)sig;
	hit(5);
}

Test(hits, on_a_small_alternate_stack_move_away_with_signals_blocked)
{
	const size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 2048;
	char *memory = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alt = {.ss_sp = memory + 4096, .ss_size = size};
	sigset_t before, after;
	mprotect(memory, 4096, PROT_NONE);
	sigaltstack(&alt, NULL);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = in_handler, .sa_flags = SA_ONSTACK}, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	fake.inside = look_at_mask;
	raise(SIGUSR1);
	sigprocmask(SIG_SETMASK, NULL, &after);
	cr_assert_eq(fake.committed, 1);
	cr_assert_not(on_thread_stack(fake.rsp));
	cr_assert(fake.rsp - (uint64_t)(uintptr_t)memory > size + 4096, "it used the alternate stack");
	cr_assert(sigismember(&seen_mask, SIGUSR2));
	cr_assert_eq(memcmp(&before, &after, 8), 0);
	fake.inside = NULL;
	cr_assert(hit(6));
	cr_assert(on_thread_stack(fake.rsp));
}

static ucontext_t home, away;

static void coroutine(void)
{
	hit(7);
}

Test(hits, on_a_coroutine_of_a_page)
{
	static char stack[8192] __attribute__((aligned(4096)));
	getcontext(&away);
	away.uc_stack.ss_sp = stack;
	away.uc_stack.ss_size = sizeof(stack);
	away.uc_link = &home;
	makecontext(&away, coroutine, 0);
	swapcontext(&home, &away);
	cr_assert_eq(fake.committed, 1);
	cr_assert(fake.rsp < (uint64_t)(uintptr_t)stack || fake.rsp >= (uint64_t)(uintptr_t)(stack + sizeof(stack)));
}

__attribute__((noinline)) static void deep(uint64_t low)
{
	volatile char frame[1024];
	frame[0] = 1;
	if ((uint64_t)(uintptr_t)&frame[0] - low > 8192)
		deep(low);
	else
		hit(8);
	frame[1] = 2; /* prevents a tail call */
}

static void *at_the_end_of_the_stack(void *unused)
{
	pthread_attr_t attr;
	void *low;
	size_t size;
	host_prime();
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	deep((uint64_t)(uintptr_t)low);
	cr_assert_eq(fake.committed, 1);
	cr_assert_not(on_thread_stack(fake.rsp));
	return unused;
}

Test(hits, with_little_stack_left_move_away)
{
	pthread_t thread;
	pthread_create(&thread, NULL, at_the_end_of_the_stack, NULL);
	pthread_join(thread, NULL);
	cr_assert_eq(fake.committed, 1);
}
