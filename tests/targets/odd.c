/* SPDX-License-Identifier: MIT */
/*
 * odd KIND: programs in unusual states.
 *	leaderless	the main thread has ended, another one continues
 *	leaving		the main thread works with another one and ends at SIGUSR1
 *	locked		all memory locked, also future memory
 *	polling		a single thread that always sits in a timed epoll_wait
 *	blocked_call	foo() ends in a system call that blocks for a long time
 */
#include "target_foo.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static _Atomic long bad;
static int pipe_ends[2];

/* A short instruction and then the call: a jump over both ends at the address where the kernel restarts the call. */
long waits(long fd, void *buffer, long n);
__asm__(".pushsection .text\n	.globl waits\n	.type waits,@function\nwaits:\n	.cfi_startproc\n"
        "	xor %eax,%eax\n	mov %rdx,%rdx\n	syscall\n	ret\n	nop\n"
        "	.cfi_endproc\n	.size waits,.-waits\n.popsection\n");

/* Its first instruction crosses a page boundary. */
__asm__(".pushsection .text\n	.p2align 12\n	.skip 4093, 0x90\n	.globl crossing\n	.type "
        "crossing,@function\ncrossing:\n"
        "	.cfi_startproc\n	mov $1,%eax\n	ret\n	.cfi_endproc\n	.size crossing,.-crossing\n.popsection\n");

static void check(unsigned i)
{
	bad += foo(i, "odd") != target_expected(i, "odd");
}

static int result(void)
{
	printf(bad ? "RESULT BAD %ld\n" : "RESULT OK\n", bad);
	return bad != 0;
}

static void *working(void *arg)
{
	for (unsigned i = 0; !target_stop; i++) {
		check(i);
		target_sleep_us(200);
	}
	exit(result());
	return arg;
}

static bool is_leaderless(void);

static void *working_alone(void *arg)
{
	while (!is_leaderless())
		target_sleep_us(1000);
	target_ready();
	return working(arg);
}

static volatile sig_atomic_t leave;

static void on_usr1(int sig)
{
	(void)sig;
	leave = 1;
}

static int leaderless(bool at_once)
{
	pthread_t t;
	leave = at_once;
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_usr1, .sa_flags = SA_RESTART}, NULL);
	pthread_create(&t, NULL, at_once ? working_alone : working, NULL);
	pthread_detach(t);
	if (!at_once)
		target_ready();
	for (unsigned i = 0; !leave; i++) {
		check(i);
		target_sleep_us(200);
	}
	pthread_exit(NULL);
}

/* Its main thread is gone. */
static bool is_leaderless(void)
{
	char state = 0;
	FILE *f = fopen("/proc/self/stat", "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'Z';
}

static int locked(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		perror("mlockall");
	target_ready();
	working(NULL);
	return 0;
}

static int polling(void)
{
	struct epoll_event event;
	int ep = epoll_create1(0);
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		if (epoll_wait(ep, &event, 1, 200) < 0 && !target_stop)
			bad++;
		check(i);
	}
	return result();
}

static void *feeding(void *arg)
{
	while (!target_stop)
		target_sleep_us(1000);
	if (write(pipe_ends[1], "x", 1) != 1)
		bad++;
	return arg;
}

/* Maps all targets of a punned jump at waits+2, so that only a window over both instructions is left. */
static void no_room_for_puns(void)
{
	const unsigned char *site = (const unsigned char *)waits + 2;
	for (int prefixes = 0; prefixes < 3; prefixes++) {
		unsigned char rel[4] = {0};
		int32_t distance;
		memcpy(rel + 2 - prefixes, site + 3, (size_t)(2 + prefixes));
		memcpy(&distance, rel, sizeof(rel));
		uintptr_t at = ((uintptr_t)site + 5 + (uintptr_t)(intptr_t)distance) & ~(uintptr_t)0xfff;
		mmap((void *)(at - 0x10000), 0x40000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	}
}

static int blocked_call(void)
{
	no_room_for_puns();
	pthread_t t;
	char c = 0;
	if (pipe(pipe_ends) != 0 || pthread_create(&t, NULL, feeding, NULL) != 0)
		return 1;
	target_ready();
	bad += waits(pipe_ends[0], &c, 1) != 1 || c != 'x';
	pthread_join(t, NULL);
	return result();
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	target_stop_on_term();
	if (!strcmp(kind, "leaderless"))
		return leaderless(true);
	if (!strcmp(kind, "leaving"))
		return leaderless(false);
	if (!strcmp(kind, "locked"))
		return locked();
	if (!strcmp(kind, "polling"))
		return polling();
	return blocked_call();
}
