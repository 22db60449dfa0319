/* SPDX-License-Identifier: MIT */
/*
 * jumper: leaves probed functions otherwise than by ret. Coroutines by swapcontext() with probed code on both sides, longjmp()
 * over probed frames, siglongjmp() out of a timer's handler that runs on an alternate stack, and out of a probed function that
 * the handler called. Until SIGTERM.
 */
#include "target.h"

#include <setjmp.h>
#include <sys/time.h>
#include <ucontext.h>

#define COROUTINES 3u
#define STACK      (128u << 10)

static ucontext_t home, routine[COROUTINES];
static char stack[COROUTINES][STACK], alternate[64u << 10];
static volatile unsigned given, got;
static jmp_buf back;
static sigjmp_buf sigback;
static volatile sig_atomic_t armed;
static volatile long bad;

TARGET_PROBED unsigned step(unsigned a)
{
	return a * 2654435761u ^ a >> 7;
}

/* Switches to the main program in the middle, and is resumed there. */
TARGET_PROBED unsigned yield(unsigned which, unsigned value)
{
	const unsigned before = step(value);
	got = before;
	swapcontext(&routine[which], &home);
	return before ^ step(value);
}

static void coroutine(unsigned which)
{
	for (;;)
		if (yield(which, given + which) != 0)
			bad++;
}

TARGET_PROBED unsigned resume(unsigned which, unsigned value)
{
	given = value;
	swapcontext(&home, &routine[which]);
	return got;
}

TARGET_PROBED unsigned jump(unsigned value)
{
	if (value)
		longjmp(back, (int)(value % 1000) + 1);
	return value;
}

TARGET_PROBED unsigned deeper(unsigned n, unsigned value)
{
	return n == 0 ? jump(value) : deeper(n - 1, value) + step(n);
}

TARGET_PROBED void leave(int value)
{
	siglongjmp(sigback, value);
}

static void on_alarm(int sig)
{
	bad += step((unsigned)sig) != ((unsigned)sig * 2654435761u ^ (unsigned)sig >> 7);
	if (armed) {
		armed = 0;
		leave(sig);
	}
}

/* A coroutine's result comes one turn late: it computes it before it yields. It is started with `value`. */
static void coroutines(unsigned i)
{
	for (unsigned which = 0; which < COROUTINES; which++) {
		resume(which, i);
		const unsigned now = resume(which, i);
		bad += now != ((i + which) * 2654435761u ^ (i + which) >> 7);
	}
}

static void jumps(volatile unsigned i)
{
	const int r = setjmp(back);
	if (r == 0) {
		deeper(i % 5, i);
		bad++; /* must not come back here */
	} else if (r != (int)(i % 1000) + 1) {
		bad++;
	}
	if (i % 32 == 0 && sigsetjmp(sigback, 1) == 0) {
		armed = 1;
		while (armed)
			step(i);
	}
}

int main(void)
{
	const stack_t other = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART};
	struct itimerval every = {{0, 1000}, {0, 1000}};

	target_stop_on_term();
	sigaltstack(&other, NULL);
	sigaction(SIGALRM, &action, NULL);
	for (unsigned i = 0; i < COROUTINES; i++) {
		getcontext(&routine[i]);
		routine[i].uc_stack.ss_sp = stack[i];
		routine[i].uc_stack.ss_size = STACK;
		makecontext(&routine[i], (void (*)(void))coroutine, 1, i);
	}
	setitimer(ITIMER_REAL, &every, NULL);
	target_ready();
	for (unsigned i = 1; !target_stop; i++) {
		coroutines(i);
		jumps(i);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
