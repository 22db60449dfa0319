/* SPDX-License-Identifier: MIT */
/*
 * A thread that was preempted, or got a signal, between a short jump and the embedded jump that it leads to, in another site's
 * bytes. If dynprobe removed them now, the thread would be in the middle of an instruction. The site with the short jump is `jmp
 * *%rbx`.
 */
#include "helper_probe.h"

#include "injector/patch/restore.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>

__asm__(".pushsection .text\n"
        ".balign 4096\n"
        ".globl hl_text\n"
        "hl_text:\n"
        "	movl $1, %eax\n"
        "	jmp *%rbx\n"
        "	.balign 4096, 0xcc\n"
        ".popsection\n");

extern uint8_t hl_text[];

static const uint8_t original[] = {0xb8, 1, 0, 0, 0, 0xff, 0xe3};
static const uint8_t host[] = {0xe9, 9, 0xeb, 1, 9}; /* the embedded jump at its third byte leads past its end */

enum { HIDDEN = 2, SITE = 5 };
enum { LANDED, IN_HANDLER, LEAVE_HANDLER };

static uint64_t at(unsigned offset)
{
	return (uint64_t)(uintptr_t)hl_text + offset;
}

static bool holds(pid_t pid, const uint8_t *bytes, unsigned from, size_t n)
{
	uint8_t now[16];
	const struct dp_process p = {.pid = pid, .alive = pid};
	return dp_mem_read(&p, dp_addr_of(at(from)), now, n) == n && !memcmp(now, bytes, n);
}

static void landed(void)
{
	tr->value[LANDED] = 1;
	for (;;)
		tr->calls++;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	(void)sig;
	(void)info;
	u->uc_mcontext.gregs[REG_RIP] = (greg_t)at(HIDDEN);
	u->uc_mcontext.gregs[REG_RBX] = (greg_t)(uintptr_t)landed;
	u->uc_mcontext.gregs[REG_RSP] = (u->uc_mcontext.gregs[REG_RSP] & ~15LL) - 1032;
	tr->value[IN_HANDLER] = 1;
	while (!tr->value[LEAVE_HANDLER])
		tr->calls++;
}

static void target(void)
{
	sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, NULL);
	pr_calling();
}

static struct dp_target *installed(pid_t pid)
{
	struct dp_plan plans[] = {
	        {.site = at(0), .probe = 0, .len = 5, .changed = 5},
	        {.site = at(SITE),
	         .probe = 1,
	         .len = 2,
	         .changed = 2,
	         .new_bytes = {0xeb, 0xfb},
	         .nsupports = 1,
	         .support = {at(0)},
	         .npairs = 1,
	         .pair = {{.stub = at(HIDDEN), .original = at(SITE)}}},
	};
	struct dp_install_result results[2] = {{NULL}};
	struct dp_install_stats stats;
	struct dp_space *space = NULL;
	struct dp_runtime runtime;
	uint64_t lost;
	struct dp_target *t = pr_open(pid, PR_GATES);
	memcpy(plans[0].old_bytes, original, 5);
	memcpy(plans[0].new_bytes, host, sizeof(host));
	memcpy(plans[1].old_bytes, original + SITE, 2);
	tr_ok(dp_space_from_image(dp_target_image(t), &space));
	tr_ok(dp_target_prepare(t, space, 2, &runtime, &lost));
	tr_ok(dp_target_install(t, NULL, 0, plans, 2, NULL, 0, results, &stats));
	tr_ok(results[0].refused);
	tr_ok(results[1].refused);
	dp_space_destroy(space);
	return t;
}

/* Leaves the process stopped at the embedded jump, as if it had lost its processor. */
static void stop_between(pid_t pid)
{
	struct user_regs_struct r;
	int status;
	cr_assert_eq(ptrace(PTRACE_ATTACH, pid, NULL, NULL), 0);
	cr_assert_eq(waitpid(pid, &status, __WALL), pid);
	cr_assert_eq(ptrace(PTRACE_GETREGS, pid, NULL, &r), 0);
	r.rip = at(HIDDEN);
	r.rbx = (uint64_t)(uintptr_t)landed;
	r.rsp = (r.rsp & ~UINT64_C(15)) - 1032;
	r.orig_rax = ~UINT64_C(0);
	cr_assert_eq(ptrace(PTRACE_SETREGS, pid, NULL, &r), 0);
	cr_assert_eq(ptrace(PTRACE_DETACH, pid, NULL, (void *)(long)SIGSTOP), 0);
	cr_assert(tr_await(pid, 'T', -1));
}

static void lands(pid_t pid)
{
	cr_assert(holds(pid, original, 0, sizeof(original)));
	kill(pid, SIGCONT);
	cr_assert(tr_await_value(&tr->value[LANDED], 1), "the thread is in the middle of an instruction");
	tr_kill(pid);
}

Test(hidden_leave, a_thread_between_two_jumps_goes_where_they_come_from)
{
	struct dp_remove_report report;
	pid_t pid = tr_spawn(target);
	struct dp_target *t = installed(pid);
	stop_between(pid);
	tr_ok(dp_target_remove(t, &report));
	cr_assert(report.live);
	cr_assert_eq(report.left_bytes, 0);
	dp_target_close(t);
	lands(pid);
}

Test(hidden_leave, so_it_does_with_all_threads_held)
{
	struct dp_remove_report report = {0};
	struct dp_freeze f = {0};
	pid_t pid = tr_spawn(target);
	struct dp_target *t = installed(pid);
	stop_between(pid);
	tr_ok(dp_freeze_with_retry(t, &f));
	tr_ok(dp_restore_held(t, &t->in, NULL, &f, &report));
	dp_thaw_all(&f);
	cr_assert(!report.occupied);
	lands(pid);
	dp_target_close(t);
}

/* However often removal is tried, and although the short jump is restored already. */
Test(hidden_leave, a_later_try_waits_for_the_handler_as_well)
{
	struct dp_remove_report report = {0};
	pid_t pid = tr_spawn(target);
	struct dp_target *t = installed(pid);
	kill(pid, SIGUSR1);
	cr_assert(tr_await_value(&tr->value[IN_HANDLER], 1));
	for (int i = 0; i < 3; i++) {
		struct dp_freeze f = {0};
		tr_ok(dp_freeze_with_retry(t, &f));
		tr_ok(dp_restore_held(t, &t->in, NULL, &f, &report));
		dp_thaw_all(&f);
		cr_assert(report.occupied, "try %d", i);
		cr_assert(holds(pid, host, 0, sizeof(host)), "try %d", i);
	}
	tr->value[LEAVE_HANDLER] = 1;
	cr_assert(tr_await_value(&tr->value[LANDED], 1));
	dp_target_close(t);
	tr_kill(pid);
}

Test(hidden_leave, where_a_handler_returns_the_bytes_stay)
{
	struct dp_remove_report report;
	pid_t pid = tr_spawn(target);
	struct dp_target *t = installed(pid);
	kill(pid, SIGUSR1);
	cr_assert(tr_await_value(&tr->value[IN_HANDLER], 1));
	tr_ok(dp_target_remove(t, &report));
	cr_assert(report.occupied);
	cr_assert_gt(report.left_bytes, 0);
	cr_assert(holds(pid, host, 0, sizeof(host)), "the handler returns into the middle of an instruction");
	cr_assert(holds(pid, original + SITE, SITE, 2));
	tr->value[LEAVE_HANDLER] = 1;
	cr_assert(tr_await_value(&tr->value[LANDED], 1));
	dp_target_close(t);
	dp_target_close(pr_open(pid, PR_GATES)); /* the next group's removal takes the rest with it */
	cr_assert(holds(pid, original, 0, sizeof(original)));
	cr_assert_eq(pr_mappings(pid), 0);
	tr_kill(pid);
}
