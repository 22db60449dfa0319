/* SPDX-License-Identifier: MIT */
/*
 * tally MODE [N]: calls functions, and at its end prints the number of calls and the sum of arguments ("foo HITS SUM").
 *
 *	threads	8 threads call foo() N times each
 *	churn	N threads, 20 at a time, call foo() 100 times each
 *	fork	4 children call foo() N times each while the parent does
 *	signals	one thread calls foo() N times, and its timer's handler does in between
 *	calls	recursion, tail calls, and calls that end by longjmp() after 0.3 s; "slow" is how many of the others took 0.2 s
 *	bare	8 threads without a control block of their own call foo() N times each, after a line on standard input
 *	loop	foo() until SIGTERM
 */
#include "target_foo.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define SLOW_NS 199000000 /* 0.2 s, and a millisecond less, because another clock may differ */

static long each;
static _Atomic long in_handlers;
static jmp_buf back;

TARGET_PROBED long rec(long n)
{
	volatile long below; /* volatile, so that the compiler does not turn the recursion into a loop */
	if (!n)
		return 0;
	below = rec(n - 1);
	return below + 1;
}

TARGET_PROBED unsigned tailed(unsigned a)
{
	return foo(a + 1, "tail");
}

TARGET_PROBED int maybe(int leave)
{
	if (leave) {
		target_sleep_us(300000);
		longjmp(back, 1);
	}
	return leave + 1;
}

static bool bad;

static void call(long i)
{
	if (foo((unsigned)i, "t") != (unsigned)i * 31 + 't')
		bad = true;
}

static void *many(void *n)
{
	for (long i = 0; i < *(long *)n; i++)
		call(i);
	return n;
}

static void together(unsigned n, long *calls)
{
	pthread_t thread[20];
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, many, calls))
			exit(2);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
}

static void report(const char *name, long hits, long sum)
{
	printf("%s %ld %ld\n", name, hits, sum);
}

static long sum_to(long n)
{
	return n * (n - 1) / 2;
}

static void threads(void)
{
	together(8, &each);
	report("foo", 8 * each, 8 * sum_to(each));
}

static void churn(void)
{
	long hundred = 100;
	for (long i = 0; i < each; i += 20)
		together(20, &hundred);
	report("foo", each * 100, each * sum_to(100));
}

static void forks(void)
{
	pid_t child[4];
	call(0); /* so that the parent's cells are in use before the fork */
	for (unsigned i = 0; i < 4; i++) {
		child[i] = fork();
		if (!child[i]) {
			many(&each);
			_exit(bad);
		}
	}
	many(&each);
	for (unsigned i = 0; i < 4; i++) {
		int status;
		if (waitpid(child[i], &status, 0) < 0 || status)
			bad = true;
	}
	report("foo", each + 1, sum_to(each));
	report("children", 4 * each, 4 * sum_to(each));
}

static void on_alarm(int sig)
{
	(void)sig;
	call(0);
	in_handlers++;
}

static void signals(void)
{
	const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	many(&each);
	setitimer(ITIMER_REAL, &never, NULL);
	report("foo", each + in_handlers, sum_to(each));
}

static void calls(void)
{
	volatile long slow = 0; /* volatile, and so kept by longjmp() */
	for (long i = 0; i < each; i++)
		if (rec(50) != 50)
			bad = true;
	for (long i = 0; i < each; i++)
		if (tailed((unsigned)i) == (unsigned)i)
			bad = true;
	for (volatile long i = 0; i < 3; i++) {
		if (!setjmp(back))
			maybe(1);
		for (long k = 0; k < each; k++) { /* from here, so that the stack is as it was in the call above */
			const uint64_t begin = target_now_ns();
			bad |= maybe(0) != 1;
			slow += target_now_ns() - begin >= SLOW_NS;
		}
	}
	report("rec", 51 * each, 0);
	report("tailed", each, 0);
	report("maybe", 3 * each, 0);
	report("left", 3, 0);
	report("slow", slow, 0);
}

/* clone() without CLONE_SETTLS: %fs is not changed, so all of them have main's. */
static volatile int go;
static int ended[8];

static int bare_thread(void *unused)
{
	(void)unused;
	while (!go)
		syscall(SYS_sched_yield);
	many(&each);
	return 0;
}

static void bare(void)
{
	static char stack[8][65536] __attribute__((aligned(16)));
	const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
	for (unsigned i = 0; i < 8; i++) {
		ended[i] = 1;
		if (clone(bare_thread, stack[i] + sizeof(stack[0]), flags, NULL, NULL, NULL, &ended[i]) < 0)
			exit(2);
	}
	target_ready();
	if (getchar() == EOF)
		exit(2);
	go = 1;
	for (unsigned i = 0; i < 8; i++)
		while (*(volatile int *)&ended[i])
			sched_yield();
	report("foo", 8 * each, 8 * sum_to(each));
}

static void loop(void)
{
	target_stop_on_term();
	target_ready();
	for (long i = 0; !target_stop; i++)
		call(i & 15);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {{"threads", threads}, {"churn", churn}, {"fork", forks},
	             {"signals", signals}, {"calls", calls}, {"bare", bare}, {"loop", loop}};
	each = argc > 2 ? atol(argv[2]) : 1000;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (argc > 1 && !strcmp(argv[1], modes[i].name)) {
			modes[i].run();
			puts(bad ? "RESULT BAD" : "RESULT OK");
			return bad;
		}
	return 2;
}
