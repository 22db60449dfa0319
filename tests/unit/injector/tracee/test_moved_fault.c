/* SPDX-License-Identifier: MIT */
/* A thread that faulted in a stub, was stopped before the signal was delivered, and is moved: the value of si_addr. */
#include "helper_tracee.h"
#include "injector/patch/quiesce/quiesce.h"
#include "injector/target/target.h"
#include "injector/tracee/stop/moved_fault.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The "stub" with the thread, and the place in the program that it stands for. */
__asm__(".pushsection .text\nmf_stub: jmp mf_stub\nmf_original: jmp mf_original\n.popsection\n");
extern const char mf_stub[], mf_original[];

static uint64_t address(const char *of)
{
	return (uint64_t)(uintptr_t)of;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	tr->value[1] = (long)(uintptr_t)info->si_addr;
	tr->handled = sig;
	for (;;)
		pause();
}

/* The kernel queues a fault like this, and lets a process send it to itself. While blocked, it stays in the queue. */
static void faults(void)
{
	siginfo_t info = {.si_signo = SIGFPE, .si_code = FPE_INTDIV};
	sigset_t set;
	info.si_addr = (void *)mf_stub;
	sigaction(SIGFPE, &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGFPE);
	sigprocmask(SIG_BLOCK, &set, NULL);
	syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), SIGFPE, &info);
	tr->ready = 1;
	((void (*)(void))(uintptr_t)mf_stub)();
}

static void unblock(pid_t pid)
{
	const uint64_t none = 0;
	cr_assert_eq(ptrace(PTRACE_SETSIGMASK, pid, (void *)sizeof(none), &none), 0);
}

static void leave_the_call(pid_t pid)
{
	struct dp_freeze f;
	const struct dp_process p = tr_process(pid);
	for (bool there = false; !there;) {
		tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
		there = f.thread[0].regs.rip == address(mf_stub);
		dp_thaw_all(&f);
	}
}

Test(moved_fault, a_signal_in_the_queue_keeps_the_thread_where_it_is)
{
	char why[128] = "";
	const pid_t pid = tr_spawn(faults);
	leave_the_call(pid);
	struct dp_placed placed = {.pair = {{.stub = address(mf_stub), .original = address(mf_original)}}, .npairs = 1};
	const struct dp_installation in = {.placed = &placed, .nplaced = 1};
	struct dp_target t = {.process = tr_process(pid)};
	struct dp_freeze f;
	tr_ok(dp_freeze_all(&t.process, TR_LIMIT, &f));
	unblock(pid);
	cr_assert_not(dp_quiesce(&t, &in, &f, why));
	cr_assert_not(f.thread[0].regs_changed);
	dp_thaw_all(&f);
	cr_assert(tr_await_value(&tr->handled, SIGFPE));
	cr_assert_eq((uint64_t)tr->value[1], address(mf_stub));
	tr_kill(pid);
}

static int stop_of(pid_t pid)
{
	int status = 0;
	cr_assert_eq(waitpid(pid, &status, __WALL), pid);
	cr_assert(WIFSTOPPED(status));
	return status >> 8;
}

Test(moved_fault, a_signal_that_is_about_to_be_delivered_moves_along)
{
	const pid_t pid = tr_spawn(faults);
	leave_the_call(pid);
	cr_assert_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	cr_assert_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	cr_assert_eq(stop_of(pid), SIGTRAP | PTRACE_EVENT_STOP << 8);
	unblock(pid);
	cr_assert_eq(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	cr_assert_eq(stop_of(pid), SIGFPE);
	struct dp_held h = {.tid = pid, .pending_signal = SIGFPE};
	cr_assert_eq(ptrace(PTRACE_GETREGS, pid, NULL, &h.regs), 0);
	cr_assert_not(dp_fault_waits(&h));
	const struct dp_pc_pair pair = {.stub = address(mf_stub), .original = address(mf_original)};
	dp_move_to_original(&h, &pair, 1);
	cr_assert_eq(h.regs.rip, address(mf_original));
	cr_assert_eq(ptrace(PTRACE_SETREGS, pid, NULL, &h.regs), 0);
	cr_assert_eq(ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)SIGFPE), 0);
	cr_assert(tr_await_value(&tr->handled, SIGFPE));
	cr_assert_eq((uint64_t)tr->value[1], address(mf_original));
	tr_kill(pid);
}
