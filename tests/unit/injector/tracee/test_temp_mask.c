/* SPDX-License-Identifier: MIT */
/*
 * Calls with a temporary signal mask, whose threads are stopped and whose masks are set: signals that the call blocks must not
 * end it; signals that only the call lets through must end it, once; also if the call is restarted elsewhere.
 */
#include "helper_tracee.h"

#include "agent/call.h"
#include "injector/lttng/safe/safe.h"
#include "injector/tracee/borrow/call.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/trap/trap.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(sig) (UINT64_C(1) << ((sig)-1))

/* The targets are forks, so addresses are the same. The call blocks SIGUSR2; SIGUSR1 ends it. */
static struct dp_trap trap;
static struct dp_regs was;
static const uint64_t moment = BIT(SIGUSR2);
static const struct timespec long_time = {100, 0};
static bool blocks_usr1; /* the thread blocks it, so that only the call lets it through */
static long (*wait_once)(void);

static void on_signal(int sig)
{
	tr->handled++;
	tr->value[sig]++;
}

static void waiter(void)
{
	const struct sigaction sa = {.sa_handler = on_signal};
	const uint64_t mask = blocks_usr1 ? BIT(SIGUSR1) : 0;
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGUSR2, &sa, NULL);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	tr->ready = 1;
	for (;; tr->calls++)
		if (wait_once() < 0 && errno == EINTR)
			tr->eintr++;
		else
			tr->failed++;
}

static long by_sigsuspend(void)
{
	return syscall(SYS_rt_sigsuspend, &moment, 8);
}

static long by_ppoll(void)
{
	struct timespec ts = long_time;
	return syscall(SYS_ppoll, NULL, 0, &ts, &moment, 8);
}

static long by_pselect(void)
{
	const uint64_t packed[2] = {(uint64_t)(uintptr_t)&moment, 8};
	return syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, packed);
}

static long by_epoll(void)
{
	struct epoll_event e;
	static int fd = -1;
	if (fd < 0)
		fd = epoll_create1(0);
	return syscall(SYS_epoll_pwait, fd, &e, 1, -1, &moment, 8);
}

static pid_t spawn(long (*fn)(void), long nr, bool blocks)
{
	blocks_usr1 = blocks;
	wait_once = fn;
	const pid_t pid = tr_spawn(waiter);
	cr_assert(tr_await(pid, 'S', nr));
	return pid;
}

/* A signal that the call blocks ran its handler and the call continues; then another one ends it. */
static void expect_waits(pid_t pid, long nr)
{
	cr_assert(tr_await_value(&tr->value[SIGUSR2], 1));
	cr_assert(tr_await(pid, 'S', nr));
	cr_expect_eq(tr->eintr, 0, "a blocked signal ended the call");
	kill(pid, SIGUSR1);
	cr_assert(tr_await_value(&tr->calls, 1), "nothing ends the call");
	cr_assert(tr_await(pid, 'S', nr));
	cr_expect_eq(tr->value[SIGUSR1], 1);
	cr_expect_eq(tr->eintr, 1);
	cr_expect_eq(tr->failed, 0);
	tr_kill(pid);
}

static void expect_ended_once(pid_t pid, long nr, long handled)
{
	cr_assert(tr_await_value(&tr->calls, 1), "the signal arrived before the call");
	cr_assert(tr_await(pid, 'S', nr));
	cr_expect_eq(tr->handled, handled);
	cr_expect_eq(tr->eintr, 1);
	cr_expect_eq(tr->failed, 0);
	tr_kill(pid);
}

/* ---- borrowed for system calls ------------------------------------------------------------------------------------------ */

static void borrow_and_send(pid_t pid, int first, int second)
{
	struct dp_borrow *b;
	const struct dp_process p = tr_process(pid);
	tr_ok(dp_borrow_begin(&p, NULL, TR_LIMIT, false, &b));
	tr_remote(b, SYS_getpid, 0, 0, 0, 0, 0, 0);
	kill(pid, first);
	if (second)
		kill(pid, second);
	tr_ok(dp_borrow_end(b, NULL));
}

static void borrow_while_waiting(long (*fn)(void), long nr)
{
	const pid_t pid = spawn(fn, nr, true);
	borrow_and_send(pid, SIGUSR2, 0);
	expect_waits(pid, nr);
}

Test(temp_mask, held_back_while_borrowed_in_sigsuspend)
{
	borrow_while_waiting(by_sigsuspend, SYS_rt_sigsuspend);
}

Test(temp_mask, held_back_while_borrowed_in_ppoll)
{
	borrow_while_waiting(by_ppoll, SYS_ppoll);
}

Test(temp_mask, held_back_while_borrowed_in_pselect)
{
	borrow_while_waiting(by_pselect, SYS_pselect6);
}

Test(temp_mask, held_back_while_borrowed_in_epoll_pwait)
{
	borrow_while_waiting(by_epoll, SYS_epoll_pwait);
}

Test(temp_mask, ended_while_borrowed)
{
	for (int blocks = 0; blocks < 2; blocks++) {
		const pid_t pid = spawn(by_sigsuspend, SYS_rt_sigsuspend, blocks);
		borrow_and_send(pid, SIGUSR1, 0);
		expect_ended_once(pid, SYS_rt_sigsuspend, 1);
		tr->calls = tr->eintr = tr->handled = 0;
	}
}

Test(temp_mask, both_while_borrowed)
{
	for (int blocks = 0; blocks < 2; blocks++) {
		const pid_t pid = spawn(by_sigsuspend, SYS_rt_sigsuspend, blocks);
		borrow_and_send(pid, SIGUSR2, SIGUSR1);
		expect_ended_once(pid, SYS_rt_sigsuspend, 2);
		tr->calls = tr->eintr = tr->handled = 0;
	}
}

Test(temp_mask, one_that_is_ignored_ends_nothing)
{
	const pid_t pid = spawn(by_sigsuspend, SYS_rt_sigsuspend, true);
	borrow_and_send(pid, SIGURG, SIGUSR2);
	expect_waits(pid, SYS_rt_sigsuspend);
}

/* ---- borrowed for a C function ------------------------------------------------------------------------------------------ */

static uint64_t signals_itself(uint64_t sig, uint64_t b)
{
	syscall(SYS_tgkill, getpid(), gettid(), sig);
	return b;
}

Test(temp_mask, held_back_while_it_runs_a_function)
{
	tr_map_call();
	const pid_t pid = spawn(by_sigsuspend, SYS_rt_sigsuspend, true);
	const struct dp_process p = tr_process(pid);
	const uint64_t args[4] = {SIGUSR2, 42};
	struct dp_freeze f;
	uint64_t result = 0;
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	tr_ok(dp_call(&p, &f.thread[0], &tr_call_site, (uint64_t)(uintptr_t)signals_itself, args, TR_LIMIT, &result));
	dp_thaw_all(&f);
	cr_expect_eq(result, 42);
	expect_waits(pid, SYS_rt_sigsuspend);
}

/* ---- traps: masks that are set ------------------------------------------------------------------------------------------ */

static struct dp_target *target_of(pid_t pid)
{
	struct dp_target *t = calloc(1, sizeof(*t));
	t->process = tr_process(pid);
	t->trap.signals = BIT(SIGTRAP);
	return t;
}

static struct dp_freeze hold(struct dp_target *t)
{
	struct dp_freeze f;
	tr_ok(dp_freeze_all(&t->process, TR_LIMIT, &f));
	cr_assert_eq(f.n, 1);
	return f;
}

Test(temp_mask, held_back_while_a_mask_is_given_back)
{
	const pid_t pid = spawn(by_sigsuspend, SYS_rt_sigsuspend, true);
	struct dp_target *t = target_of(pid);
	const uint64_t word = (uint32_t)pid | BIT(SIGTRAP) << DP_TRAP_BLOCKED;
	tr_ok(dp_mem_write(&t->process, dp_addr_of((uint64_t)(uintptr_t)&trap.blocked[(uint32_t)pid % DP_TRAP_THREADS]), &word,
	                   8));
	struct dp_freeze f = hold(t);
	kill(pid, SIGUSR2);
	dp_trap_block(t, (uint64_t)(uintptr_t)&trap, &f.thread[0]);
	dp_thaw_all(&f);
	expect_waits(pid, SYS_rt_sigsuspend);
	free(t);
}

/* ---- traps: a call that a hook makes ------------------------------------------------------------------------------------ */

/* A wait as a hook makes it: the call is made after `hooked`, and may also be made at `anew`, with the registers in `was`. */
long hooked_wait(const uint64_t *mask, uint64_t size, struct dp_regs *regs);
extern const char hook_called[], call_anew[];
__asm__(".pushsection .text\n"
        ".globl hooked_wait\n"
        ".type hooked_wait, @function\n"
        "hooked_wait:\n"
        "	push %rbx\n"
        "	mov %rdx, %rbx\n"
        "	mov $130, %eax\n"
        "	syscall\n"
        ".globl hook_called\n"
        "hook_called:\n"
        "	pop %rbx\n"
        "	ret\n"
        ".globl call_anew\n"
        "call_anew:\n"
        "	syscall\n"
        "	incq value_anew(%rip)\n"
        "	pop %rbx\n"
        "	ret\n"
        ".size hooked_wait, . - hooked_wait\n"
        ".popsection\n");
long value_anew;
_Static_assert(SYS_rt_sigsuspend == 130, "as above");

static long by_hook(void)
{
	const long ret = hooked_wait(&moment, 8, &was);
	tr->value[0] = value_anew;
	errno = (int)-ret;
	return ret < 0 ? -1 : 0;
}

/* The registers that the agent has saved for a thread in the call. */
static void put_regs(struct dp_target *t, const struct user_regs_struct *r)
{
	struct dp_regs regs = {.rip = (uint64_t)(uintptr_t)call_anew, .rflags = r->eflags};
	const uint64_t gpr[16] = {r->orig_rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
	                          r->r8,       r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	memcpy(regs.gpr, gpr, sizeof(gpr));
	tr_ok(dp_mem_write(&t->process, dp_addr_of((uint64_t)(uintptr_t)&was), &regs, sizeof(regs)));
	trap.text = (uint64_t)(uintptr_t)hooked_wait;
	trap.text_size = (uint64_t)(uintptr_t)call_anew - trap.text;
	trap.called = (uint64_t)(uintptr_t)hook_called;
}

Test(temp_mask, a_call_that_its_signal_has_ended_is_not_made_anew)
{
	for (int blocks = 0; blocks < 2; blocks++) {
		const pid_t pid = spawn(by_hook, SYS_rt_sigsuspend, blocks);
		struct dp_target *t = target_of(pid);
		struct dp_freeze f = hold(t);
		put_regs(t, &f.thread[0].regs);
		kill(pid, SIGUSR1);
		cr_assert(!dp_trap_clear(t, &trap, &f.thread[0], false));
		dp_thaw_all(&f);
		expect_ended_once(pid, SYS_rt_sigsuspend, 1);
		cr_expect_eq(tr->value[0], 0);
		tr->calls = tr->eintr = tr->handled = 0;
		free(t);
	}
}

/* Sent while the thread is stopped and has already been moved. */
static void move_and_send(pid_t pid, int sig)
{
	struct dp_target *t = target_of(pid);
	struct dp_freeze f = hold(t);
	put_regs(t, &f.thread[0].regs);
	cr_assert(dp_trap_clear(t, &trap, &f.thread[0], false));
	kill(pid, sig);
	dp_thaw_all(&f);
	free(t);
}

Test(temp_mask, its_signal_ends_a_call_that_is_made_anew)
{
	const pid_t pid = spawn(by_hook, SYS_rt_sigsuspend, true);
	move_and_send(pid, SIGUSR1);
	expect_ended_once(pid, SYS_rt_sigsuspend, 1);
	cr_expect_eq(tr->value[0], 1, "the call was not restarted");
}

Test(temp_mask, held_back_while_a_call_is_moved)
{
	const pid_t pid = spawn(by_hook, SYS_rt_sigsuspend, true);
	move_and_send(pid, SIGUSR2);
	expect_waits(pid, SYS_rt_sigsuspend);
	cr_expect_eq(tr->value[0], 1, "the call was not restarted");
}
