/* SPDX-License-Identifier: MIT */
/* Threads that cannot be borrowed, or not for long: they end, wait for a vfork child, or have lost their leader. */
#include "helper_tracee.h"

#include "injector/tracee/stop/freeze.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

Test(borrow_ends, refuse_DP_GONE_when_killed_during_it)
{
	pid_t pid = tr_spawn(tr_idle);
	struct dp_process p = tr_process(pid);
	struct dp_borrow *b = tr_lend(&p);
	const uint64_t none[6] = {0};
	int64_t result;
	tr_plain(b, SYS_getpid);
	kill(pid, SIGKILL);
	tr_tag(dp_remote_syscall(b, SYS_getpid, none, &result), DP_TAG_GONE);
	tr_ok(dp_borrow_end(b, NULL));
	tr_kill(pid);
}

static void vforker(void)
{
	pid_t pid = vfork();
	if (pid == 0) {
		tr->ready = 1;
		while (!tr->value[1])
			usleep(1000);
		_exit(0);
	}
	tr->value[2] = 1;
	for (;;)
		pause();
}

Test(borrow_ends, refuse_DP_VFORK_parent_of_a_vfork_child)
{
	pid_t pid = tr_spawn(vforker);
	struct dp_process p = tr_process(pid);
	struct dp_borrow *b;
	struct dp_freeze f;
	tr_tag(dp_borrow_begin(&p, NULL, 2000000, false, &b), DP_TAG_VFORK);
	tr_tag(dp_freeze_all(&p, 2000000, &f), DP_TAG_VFORK);
	tr->value[1] = 1; /* the child ends, and the parent continues freely */
	cr_assert(tr_await_value(&tr->value[2], 1));
	b = tr_lend(&p);
	cr_assert_eq(tr_plain(b, SYS_getpid), pid);
	tr_ok(dp_borrow_end(b, NULL));
	tr_kill(pid);
}

static void *pauser(void *arg)
{
	(void)arg;
	tr->value[0] = gettid();
	tr->ready = 1;
	for (;;)
		pause();
	return NULL;
}

static void headless(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, pauser, NULL);
	syscall(SYS_exit, 0); /* of this thread only: the leader becomes a zombie */
}

Test(borrow_ends, zombie_leader_with_a_living_thread)
{
	pid_t pid = tr_spawn(headless);
	cr_assert(tr_await(pid, 'Z', -1));
	struct dp_process p = tr_process(pid);
	struct dp_freeze f;
	cr_assert(p.leader_zombie);
	cr_assert_eq(p.alive, tr->value[0]);
	struct dp_borrow *b = tr_lend(&p);
	cr_assert_eq(tr_plain(b, SYS_gettid), tr->value[0]);
	tr_ok(dp_borrow_end(b, NULL));
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	cr_assert_eq(f.n, 1);
	dp_thaw_all(&f);
	tr_kill(pid);
}
