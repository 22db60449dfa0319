/* SPDX-License-Identifier: MIT */
/*
 * obstacle call|handler: calls foo() with a string all the time. Until SIGUSR2 another thread is where the fault handler cannot
 * be installed: asleep in a system call whose number is not known from the code, or in a signal handler that blocks all signals.
 */
#include "target_foo.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

static volatile sig_atomic_t may_leave, in_handler;
static int never;

/* Like glibc's pthread_barrier_wait(): no instruction before the call has room for a jump. */
long call_by_number(const long *number, int *futex);
__asm__(".pushsection .text\n"
        "	.p2align 4\n"
        "	.globl call_by_number\n"
        "	.type call_by_number,@function\n"
        "call_by_number:\n"
        "	.cfi_startproc\n"
        "	mov (%rdi),%rax\n"
        "	mov %rsi,%rdi\n"
        "	xor %esi,%esi\n" /* FUTEX_WAIT */
        "	xor %edx,%edx\n"
        "	xor %r10d,%r10d\n"
        "	syscall\n"
        "	cmp $-4096,%rax\n"
        "	ret\n"
        "	.cfi_endproc\n"
        "	.size call_by_number,.-call_by_number\n.popsection\n");

static void wait_for_leave(int sig)
{
	(void)sig;
	in_handler = 1;
	while (!may_leave && !target_stop)
		usleep(1000);
}

static void on_usr2(int sig)
{
	(void)sig;
	may_leave = 1;
}

static void *in_call(void *arg)
{
	static const long number = SYS_futex;
	call_by_number(&number, &never);
	return arg;
}

static void *in_a_handler(void *arg)
{
	pthread_kill(pthread_self(), SIGUSR1);
	while (!target_stop)
		usleep(1000);
	return arg;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = wait_for_leave};
	const bool handler = argc > 1 && !strcmp(argv[1], "handler");
	pthread_t thread;
	long bad = 0;
	target_stop_on_term();
	sigfillset(&action.sa_mask);
	sigaction(SIGUSR1, &action, NULL);
	action.sa_handler = on_usr2;
	sigaction(SIGUSR2, &action, NULL);
	pthread_create(&thread, NULL, handler ? in_a_handler : in_call, NULL);
	while (handler && !in_handler)
		usleep(1000);
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		bad += foo(i, "obstacle") != target_expected(i, "obstacle");
		usleep(500);
	}
	printf(bad ? "RESULT BAD %ld\n" : "RESULT OK\n", bad);
	return bad != 0;
}
