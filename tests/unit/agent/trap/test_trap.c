/* SPDX-License-Identifier: MIT */
/* The agent's SIGTRAP handler and its view of masks and actions: the blob that is mapped into targets, in this process. */
#include "trap_blob.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile sig_atomic_t own, moved;

/* One of our int3s, and the place where its thread continues. */
void trap_here(void);
void trap_entry(void);
extern const char trap_site[];
__asm__(".pushsection .text\ntrap_here:\n.globl trap_site\ntrap_site:	int3\n	ret\n"
        "trap_entry:	addl $1,moved(%rip)\n	ret\n.popsection\n");

static struct dp_trap_action *own_action(void)
{
	return &trap->action[SIGTRAP - 1];
}

static int64_t raw_action(int sig, const struct dp_trap_action *new, struct dp_trap_action *old)
{
	return syscall(SYS_rt_sigaction, sig, new, old, 8L);
}

static void begin(void)
{
	trap_blob();
	trap->table[0] = (struct dp_fixup){at(trap_site), at((const void *)(uintptr_t)trap_entry)};
	trap->sites = at(trap->table);
	trap->nsites = trap->armed = 1;
	trap->signals = DP_TRAP_BIT;
	const struct dp_trap_action ours = {at(symbol(DP_SYM_TRAP)), 0x0c000004, at(symbol(DP_SYM_TRAP_RESTORER)), UINT64_MAX};
	cr_assert_eq(raw_action(SIGTRAP, &ours, own_action()), 0);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)context;
	own += sig == SIGTRAP && info->si_signo == SIGTRAP;
}

void on_restore(void);
__asm__(".pushsection .text\non_restore:	mov $15,%rax\n	syscall\n.popsection\n");

/* Calls through the hook, as a program does. */
static void handle(uint64_t flags)
{
	const struct dp_trap_action new = {at(on_trap), 0x04000004 | flags, at(on_restore), 0};
	cr_assert_eq(call(SYS_rt_sigaction, SIGTRAP, at(&new), 0, 8), 0);
}

/* The agent's handler must not interrupt a call that the program's own action would not interrupt. */
Test(trap, calls_are_restarted_as_behind_the_program_s_own_action)
{
	const uint64_t restart = SA_RESTART, stack = SA_ONSTACK;
	const struct dp_trap_action none = {0}, ignored = {.handler = 1, .flags = stack}, plain = {.handler = 4096},
	                            restarts = {.handler = 4096, .flags = restart | stack};
	for (unsigned sig = SIGILL; sig <= SIGSEGV; sig++) {
		cr_expect_eq(dp_trap_flags(sig, &none) & restart, restart);
		cr_expect_eq(dp_trap_flags(sig, &ignored) & (restart | stack), restart);
		cr_expect_eq(dp_trap_flags(sig, &plain) & (restart | stack), 0);
		cr_expect_eq(dp_trap_flags(sig, &restarts) & (restart | stack), restart | (sig == SIGTRAP ? 0 : stack));
	}
}

Test(trap, hit_goes_to_its_entry, .init = begin)
{
	for (int i = 0; i < 1000; i++)
		trap_here();
	cr_assert_eq(moved, 1000);
}

static __attribute__((noinline, no_sanitize_address)) bool is_marked_below(const volatile uint64_t *from)
{
	for (size_t i = 1; i < 4096; i++)
		if (from[-(ptrdiff_t)i] == DP_FRAME_OVER)
			return true;
	return false;
}

Test(trap, what_is_left_of_its_frame_says_so, .init = begin)
{
	const uint64_t *here = __builtin_frame_address(0);
	handle(0);
	__asm__ volatile("int3"); /* the program's own int3 */
	cr_assert_not(is_marked_below(here));
	trap_here();
	cr_assert(is_marked_below(here));
}

Test(trap, others_go_to_the_program_s_handler, .init = begin)
{
	sigset_t mask;
	handle(0);
	__asm__ volatile("int3");
	raise(SIGTRAP);
	cr_assert_eq(own, 2);
	trap_here();
	cr_assert_eq(own, 2);
	cr_assert_eq(moved, 1);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	cr_assert_not(sigismember(&mask, SIGTRAP));
}

Test(trap, handler_for_one_time_is_gone_after_it, .init = begin)
{
	handle(0x80000000);
	__asm__ volatile("int3");
	cr_assert_eq(own, 1);
	cr_assert_eq(own_action()->handler, 0);
}

static int status_of(void (*act)(void))
{
	int status = 0;
	const pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 0);
		act();
		_exit(moved == 1 ? 42 : 1);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void int3_of_nobody(void)
{
	trap_here();
	__asm__ volatile("int3");
}

static void sent_to_nobody(void)
{
	trap_here();
	raise(SIGTRAP);
}

static void ignored(void)
{
	const struct dp_trap_action new = {1, 0, 0, 0};
	call(SYS_rt_sigaction, SIGTRAP, at(&new), 0, 8);
	sent_to_nobody();
}

static void ignored_int3(void)
{
	const struct dp_trap_action new = {1, 0, 0, 0};
	call(SYS_rt_sigaction, SIGTRAP, at(&new), 0, 8);
	int3_of_nobody();
}

Test(trap, nobody_s_signal_does_what_it_does_without_us, .init = begin)
{
	const int died = status_of(int3_of_nobody), sent = status_of(sent_to_nobody), ign = status_of(ignored),
	          forced = status_of(ignored_int3);
	cr_assert(WIFSIGNALED(died) && WTERMSIG(died) == SIGTRAP, "%x", died);
	cr_assert(WIFSIGNALED(sent) && WTERMSIG(sent) == SIGTRAP, "%x", sent);
	cr_assert(WIFEXITED(ign) && WEXITSTATUS(ign) == 42, "%x", ign);
	cr_assert(WIFSIGNALED(forced) && WTERMSIG(forced) == SIGTRAP, "%x", forced);
}

Test(trap, blocking_is_told_and_not_done, .init = begin)
{
	const uint64_t all = UINT64_MAX;
	uint64_t old = 0, real = 0;
	handle(0);
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_BLOCK, at(&all), at(&old), 8), 0);
	cr_assert_not(old & DP_TRAP_BIT);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &real, 8L);
	cr_assert_not(real & DP_TRAP_BIT);
	trap_here();
	cr_assert_eq(moved, 1);
	raise(SIGTRAP);
	cr_assert_eq(own, 0, "the program sees it as blocked");
	old = 0;
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_UNBLOCK, at(&all), at(&old), 8), 0);
	cr_assert(old & DP_TRAP_BIT);
	cr_assert_eq(own, 1, "it arrives when it is unblocked");
}

Test(trap, masks_of_handlers_are_told_and_not_set, .init = begin)
{
	const struct dp_trap_action new = {at(on_trap), 0x04000004, at(on_restore), UINT64_MAX};
	struct dp_trap_action old = {0}, real = {0};
	cr_assert_eq(call(SYS_rt_sigaction, SIGUSR1, at(&new), 0, 8), 0);
	raw_action(SIGUSR1, NULL, &real);
	cr_assert_not(real.mask & DP_TRAP_BIT);
	cr_assert_eq(call(SYS_rt_sigaction, SIGUSR1, 0, at(&old), 8), 0);
	cr_assert(old.mask & DP_TRAP_BIT);
	cr_assert_eq(old.handler, new.handler);
}

Test(trap, bad_pointers_are_reported_as_ever, .init = begin)
{
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_BLOCK, 8, 0, 8), -EFAULT);
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_BLOCK, 0, 8, 8), -EFAULT);
	cr_assert_eq(call(SYS_rt_sigaction, SIGTRAP, 8, 0, 8), -EFAULT);
	cr_assert_eq(call(SYS_rt_sigaction, SIGUSR1, 8, 0, 8), -EFAULT);
	cr_assert_eq(call(SYS_rt_sigaction, SIGUSR1, 0, 8, 8), -EFAULT);
	struct dp_regs wrong_size = {.gpr = {SYS_rt_sigaction, 0, 0, 0, 0, 0, 0, SIGTRAP, 0, 0, 4}};
	cr_assert_eq(hook(&wrong_size), 0, "the kernel reports the error");
}

Test(trap, hooks_are_idle_until_armed, .init = begin)
{
	const uint64_t all = UINT64_MAX;
	struct dp_regs r = {.gpr = {SYS_rt_sigprocmask, 0, 0, 0, 0, 0, at(&all), SIG_BLOCK, 0, 0, 8}};
	trap->armed = 0;
	cr_assert_eq(hook(&r), 0);
	trap->armed = 1;
	r.gpr[0] = SYS_getpid;
	cr_assert_eq(hook(&r), 0);
}

Test(trap, child_without_handlers_is_not_made, .init = begin)
{
	uint64_t args[11] = {UINT64_C(0x100000000)};
	cr_assert_eq(call(SYS_clone3, at(args), sizeof(args), 0, 0), -ENOSYS);
	args[0] = 0;
	struct dp_regs r = {.gpr = {SYS_clone3, 0, 0, 0, 0, 0, sizeof(args), at(args)}};
	cr_assert_eq(hook(&r), 0, "the program makes other calls itself");
}

/* As posix_spawn() with POSIX_SPAWN_SETSIGDEF does. */
static void reset_in_vfork_child(void)
{
	static struct dp_regs r;
	static struct dp_trap_action none;
	r = (struct dp_regs){.gpr = {SYS_rt_sigaction, 0, 0, 0, 0, 0, at(&none), SIGTRAP, 0, 0, 8}};
	const pid_t pid = vfork();
	if (!pid) {
		hook(&r);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void spawn_and_trap(void)
{
	prctl(PR_SET_DUMPABLE, 1); /* kcmp() needs it */
	reset_in_vfork_child();
	__asm__ volatile("int3");
	cr_assert_eq(own, 1);
	trap_here();
}

static void change_and_trap(void)
{
	const struct dp_trap_action none = {0};
	call(SYS_rt_sigaction, SIGTRAP, at(&none), 0, 8);
	trap_here();
	__asm__ volatile("int3");
}

Test(trap, vfork_children_leave_the_actions_of_whose_memory_they_share, .init = begin)
{
	handle(0);
	reset_in_vfork_child();
	cr_assert_eq(own_action()->handler, at(on_trap));
	const int spawned = status_of(spawn_and_trap), changed = status_of(change_and_trap);
	cr_assert(WIFEXITED(spawned) && WEXITSTATUS(spawned) == 42, "a child of a fork child: %x", spawned);
	cr_assert(WIFSIGNALED(changed) && WTERMSIG(changed) == SIGTRAP, "a fork child's are its own: %x", changed);
}

/* A thread may end with all signals blocked, and a fork child may get its id. */
static void ask_with_an_id_of_old(void)
{
	const uint64_t all = UINT64_MAX, none = 0, tid = (uint64_t)gettid();
	uint64_t old = 0, then = 0, after = 0;
	trap->blocked[tid % DP_TRAP_THREADS] = tid | DP_TRAP_BIT << DP_TRAP_BLOCKED; /* left by the earlier thread */
	call(SYS_rt_sigprocmask, SIG_BLOCK, at(&all), at(&old), 8);
	call(SYS_rt_sigprocmask, SIG_SETMASK, at(&none), at(&then), 8);
	call(SYS_rt_sigprocmask, SIG_BLOCK, 0, at(&after), 8);
	if (!(old & DP_TRAP_BIT) && (then & DP_TRAP_BIT) && !(after & DP_TRAP_BIT))
		_exit(43);
}

/* The same, but a SIGTRAP arrives before the child's first call. */
static void get_one_with_an_id_of_old(void)
{
	const uint64_t tid = (uint64_t)gettid();
	trap->blocked[tid % DP_TRAP_THREADS] = tid | DP_TRAP_BIT << DP_TRAP_BLOCKED;
	raise(SIGTRAP);
	if (own == 1)
		_exit(43);
}

Test(trap, what_a_thread_has_blocked_is_not_its_fork_child_s, .init = begin)
{
	handle(0);
	const int asked = status_of(ask_with_an_id_of_old), sent = status_of(get_one_with_an_id_of_old);
	cr_assert(WIFEXITED(asked) && WEXITSTATUS(asked) == 43, "%x", asked);
	cr_assert(WIFEXITED(sent) && WEXITSTATUS(sent) == 43, "%x", sent);
}

Test(trap, action_that_a_dead_tool_gave_back_is_taken_again, .init = begin)
{
	const struct dp_trap_action program_s = {at(on_trap), 0x04000004, at(on_restore), 0};
	struct dp_trap_action real = {0};
	cr_assert_eq(raw_action(SIGTRAP, &program_s, NULL), 0);
	handle(0);
	cr_assert_eq(raw_action(SIGTRAP, NULL, &real), 0);
	cr_assert_eq(real.handler, at(symbol(DP_SYM_TRAP)));
}

static void *end_blocked(void *arg)
{
	const uint64_t all = UINT64_MAX;
	call(SYS_rt_sigprocmask, SIG_BLOCK, at(&all), 0, 8);
	return arg;
}

/* Threads end with all signals blocked, and leave their entries in the table. */
Test(trap, more_threads_than_places, .init = begin, .timeout = 120)
{
	const uint64_t all = UINT64_MAX;
	uint64_t old = 0;
	memset(trap->blocked, 0x7f, sizeof(trap->blocked)); /* entries of ended threads */
	for (int i = 0; i < 50; i++) {
		pthread_t t;
		cr_assert_eq(pthread_create(&t, NULL, end_blocked, NULL), 0);
		pthread_join(t, NULL);
	}
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_BLOCK, at(&all), 0, 8), 0);
	cr_assert_eq(call(SYS_rt_sigprocmask, SIG_UNBLOCK, at(&all), at(&old), 8), 0);
	cr_assert(old & DP_TRAP_BIT);
}
