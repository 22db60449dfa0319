/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent/step.h"

#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG 0x100

static volatile unsigned left;
static volatile pid_t made;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig, (void)info;
	if (!left || --left)
		return;
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	made = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

bool step_fork(unsigned n, void (*work)(void), pid_t *child)
{
	const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	left = n;
	made = -1;
	sigaction(SIGTRAP, &action, NULL);
	__asm__ volatile("lea -128(%%rsp),%%rsp; pushfq; orq $0x100,(%%rsp); popfq; lea 128(%%rsp),%%rsp" ::: "memory", "cc");
	work();
	__asm__ volatile("lea -128(%%rsp),%%rsp; pushfq; andq $~0x100,(%%rsp); popfq; lea 128(%%rsp),%%rsp" ::: "memory", "cc");
	*child = made;
	return !left;
}
