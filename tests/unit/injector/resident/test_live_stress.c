/* SPDX-License-Identifier: MIT */
/*
 * The method of docs/live-patching.md under stress: probes come and go under threads that hit them all the time, are interrupted
 * by signals in them, leave handlers by siglongjmp, run handlers on other stacks, start threads and processes, and end. A thread
 * in unmapped code would get a SIGSEGV.
 */
#include "helper_probe.h"

#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 60

static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;
static __thread unsigned char other_stack[32768] __attribute__((aligned(16)));

static void hammer(int n)
{
	int (*volatile foo)(int) = pr_foo, (*volatile bar)(int) = pr_bar, (*volatile baz)(int) = pr_baz;
	for (int i = 0; i < n; i++)
		if (foo(i) != i + 7 || bar(i) != -3 * i || baz(i) != i + 0x101)
			tr->failed++;
	tr->calls++;
}

/* Calls probed functions from any interrupted code, and sometimes does not return to it. */
static void handler(int sig)
{
	(void)sig;
	hammer(3);
	tr->handled++;
	if (may_jump && tr->handled % 3 == 0) {
		may_jump = 0;
		siglongjmp(back, 1);
	}
}

static void own_stack(void)
{
	const stack_t ss = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	sigaltstack(&ss, NULL);
}

static void *jumping(void *none)
{
	(void)none;
	own_stack();
	for (;;) {
		if (!sigsetjmp(back, 1)) {
			may_jump = 1;
			hammer(2000);
		}
		may_jump = 0;
		hammer(10);
	}
	return NULL;
}

static void *short_lived(void *none)
{
	hammer(20);
	return none;
}

static void *starting(void *none)
{
	for (;;) {
		pthread_t t;
		if (!pthread_create(&t, NULL, short_lived, none))
			pthread_join(t, NULL);
		hammer(50);
		tr_sleep_us(300);
	}
	return NULL;
}

static void *forking(void *none)
{
	(void)none;
	for (;;) {
		int status = 0;
		const long failed = tr->failed;
		pid_t pid = fork();
		if (!pid) {
			hammer(300);
			_exit(tr->failed != failed);
		}
		if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
			tr->failed++;
		hammer(50);
		tr_sleep_us(2000);
	}
	return NULL;
}

static void *signalling(void *none)
{
	(void)none;
	for (;;) {
		kill(getpid(), SIGUSR1);
		tr_sleep_us(500);
	}
	return NULL;
}

static void everything(void)
{
	static void *(*const kind[])(void *) = {jumping, starting, forking, signalling};
	const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
	sigaction(SIGUSR1, &action, NULL);
	for (unsigned i = 0; i < 4; i++) {
		pthread_t t;
		pthread_create(&t, NULL, kind[i], NULL);
	}
	tr->ready = 1;
	jumping(NULL);
}

Test(live_stress, probes_come_and_go_under_everything_that_threads_do, .timeout = 250)
{
	pid_t pid = tr_spawn(everything);
	size_t kept = 0, frozen = 0;
	pr_attach_one(pid, PR_FOO, "stays"); /* from here on all threads keep running */
	for (int i = 0; i < ROUNDS; i++) {
		struct dp_remove_report report = {0};
		struct dp_install_result results[2] = {{NULL}};
		struct dp_target *t = pr_open(pid, PR_GATES);
		tr_ok(pr_install(t, (const struct pr_ask[]){{PR_BAR, false}, {PR_BAZ, false}}, 2, results));
		cr_assert(!results[0].refused && !results[1].refused);
		tr_await_value(&tr->calls, tr->calls + 3);
		tr_ok(dp_target_remove(t, &report));
		kept += report.left_bytes != 0;
		frozen += !report.live;
		dp_target_close(t);
		int status;
		cr_assert_eq(waitpid(pid, &status, WNOHANG), 0, "round %d: the target died, status %x", i, status);
		cr_assert_eq(tr->failed, 0, "round %d", i);
		cr_assert(pr_original(pid, PR_BAR) && pr_original(pid, PR_BAZ) && !pr_original(pid, PR_FOO));
	}
	cr_assert_gt(tr->handled, 10, "no signals: the test tests nothing");
	cr_assert_leq(kept, ROUNDS / 10, "%zu of %d groups could not be removed", kept, ROUNDS);
	cr_assert_leq(frozen, ROUNDS / 2, "%zu of %d removals held all threads", frozen, ROUNDS);
	pr_goes_on();
	tr_kill(pid);
}
