/* SPDX-License-Identifier: MIT */
/* longjmper: leaves foo() by longjmp and by siglongjmp out of a signal handler. */
#include "target.h"

#include <setjmp.h>
#include <sys/time.h>

static jmp_buf back;
static sigjmp_buf sigback;
static volatile sig_atomic_t armed;

TARGET_PROBED unsigned foo(unsigned a, bool leave)
{
	if (leave)
		longjmp(back, (int)(a % 1000) + 1);
	return a + 1;
}

static void on_alarm(int sig)
{
	if (armed) {
		armed = 0;
		siglongjmp(sigback, sig);
	}
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval every = {{0, 900}, {0, 900}};
	volatile unsigned i = 0;
	volatile long bad = 0;

	target_stop_on_term();
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	target_ready();
	for (; !target_stop; i++) {
		int r = setjmp(back);
		if (r == 0) {
			foo(i, true);
			bad++; /* must not come back here */
		} else if (r != (int)(i % 1000) + 1) {
			bad++;
		}
		if (i % 64 == 0 && sigsetjmp(sigback, 1) == 0) {
			armed = 1;
			while (armed)
				bad += foo(i, false) != i + 1;
		}
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
