/* SPDX-License-Identifier: MIT */
/* Sleeping threads are classified without a stop, from one consistent reading of /proc, or not at all. */
#include "helper_tracee.h"

#include "injector/patch/quiesce/quiesce.h"
#include "injector/target/target.h"
#include "injector/tracee/stop/asleep.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/proc/proc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAITERS 4
#define ROUNDS  50

static int pipe_of[2];

static void reader(void)
{
	char c;
	tr->ready = 1;
	for (;; tr->calls++)
		if (syscall(SYS_read, pipe_of[0], &c, 1, 0, 0, 0) != 1)
			tr->failed++;
}

static void spinner(void)
{
	tr->ready = 1;
	for (;;)
		tr->calls++;
}

static pid_t spawn_reader(void)
{
	cr_assert_eq(pipe(pipe_of), 0);
	const pid_t pid = tr_spawn(reader);
	cr_assert(tr_await(pid, 'S', SYS_read));
	return pid;
}

Test(asleep, its_registers_are_those_of_a_stop)
{
	const pid_t pid = spawn_reader();
	const struct dp_process p = tr_process(pid);
	struct dp_asleep a;
	struct dp_freeze f;
	cr_assert(dp_asleep_take(pid, pid, &a));
	cr_assert(dp_asleep_still(pid, pid, &a));
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	cr_expect_eq(a.pc, f.thread[0].regs.rip);
	cr_expect_eq(a.sp, f.thread[0].regs.rsp);
	cr_expect_eq(a.nr, SYS_read);
	dp_thaw_all(&f);
	tr_kill(pid);
}

Test(asleep, one_that_ran_in_between_is_seen)
{
	const pid_t pid = spawn_reader();
	struct dp_asleep a, again;
	cr_assert(dp_asleep_take(pid, pid, &a));
	cr_assert_eq(write(pipe_of[1], "x", 1), 1);
	cr_assert(tr_await_value(&tr->calls, 1));
	cr_assert(tr_await(pid, 'S', SYS_read));
	cr_assert(dp_asleep_take(pid, pid, &again));
	cr_assert_str_eq(a.text, again.text, "it sleeps at the same place as before");
	cr_expect(!dp_asleep_still(pid, pid, &a));
	cr_expect(dp_asleep_still(pid, pid, &again));
	tr_kill(pid);
}

Test(asleep, running_traced_and_gone_ones_are_not_judged)
{
	struct dp_asleep a;
	bool gone;
	const pid_t runs = tr_spawn(spinner), traced = spawn_reader();
	const struct dp_process p = tr_process(traced);
	cr_expect(!dp_asleep_take(runs, runs, &a));
	tr_ok(dp_held_seize(&p, traced, &gone));
	cr_expect(!dp_asleep_take(traced, traced, &a), "a tracer may put other registers back");
	tr_kill(runs);
	cr_expect(!dp_asleep_take(runs, runs, &a));
	kill(traced, SIGKILL);
	dp_stop_await_end(traced);
}

/* ---- all threads of a process ------------------------------------------------------------------------------------------- */

static void *waiter(void *arg)
{
	int pair[2];
	char c;
	const struct timeval tv = {100, 0};
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)))
		return arg;
	for (;;) {
		__atomic_add_fetch(&tr->ready, 1, __ATOMIC_RELAXED);
		const ssize_t n = recv(pair[0], &c, 1, 0);
		__atomic_add_fetch(n < 0 && errno == EINTR ? &tr->eintr : &tr->failed, 1, __ATOMIC_RELAXED);
	}
}

static void many(void)
{
	pthread_t t;
	for (int i = 1; i < WAITERS; i++)
		pthread_create(&t, NULL, waiter, NULL);
	waiter(NULL);
}

struct seen {
	int stopped, asked;
	bool clear;
};

static bool on_stop(struct dp_freeze *one, void *data)
{
	(void)one;
	((struct seen *)data)->stopped++;
	return true;
}

static bool on_sleep(const struct dp_held *h, void *data)
{
	struct seen *s = data;
	cr_expect(h->regs.rip && h->regs.rsp);
	s->asked++;
	return s->clear;
}

static struct dp_target *target_of(pid_t pid)
{
	struct dp_target *t = calloc(1, sizeof(*t));
	t->process = tr_process(pid);
	return t;
}

static struct seen visit_all(struct dp_target *t, bool clear, int most, bool *all)
{
	struct seen s = {.clear = clear};
	struct dp_for_each_stopped each = {.asleep = on_sleep};
	*all = false;
	for (int i = 0; i < most && !*all; i++)
		tr_ok(dp_for_each_stopped_round(t, &each, on_stop, &s, all));
	dp_for_each_stopped_fini(&each);
	return s;
}

static bool all_asleep(pid_t pid)
{
	struct dp_tids tids;
	size_t n = 0;
	struct dp_asleep a;
	cr_assert(dp_proc_tids(pid, &tids));
	for (size_t i = 0; i < tids.n; i++)
		n += dp_asleep_take(pid, tids.tid[i], &a) && a.nr == SYS_recvfrom;
	free(tids.tid);
	return n == WAITERS;
}

Test(asleep, threads_in_calls_are_not_stopped)
{
	bool all;
	const pid_t pid = tr_spawn(many);
	struct dp_target *t = target_of(pid);
	cr_assert(tr_await_value(&tr->ready, WAITERS));
	cr_assert(until(all_asleep(pid)));
	for (int i = 0; i < ROUNDS; i++) {
		const struct seen s = visit_all(t, true, 2, &all);
		cr_assert(all);
		cr_assert_eq(s.stopped, 0);
		cr_assert_eq(s.asked, WAITERS);
	}
	cr_expect_eq(tr->eintr + tr->failed, 0);
	const struct seen s = visit_all(t, false, 20, &all);
	cr_expect(all && s.stopped == WAITERS, "threads that cannot be classified are stopped: %d", s.stopped);
	tr_kill(pid);
	free(t);
}

static void vfork_parent(void)
{
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tr->ready = 1;
		for (;;)
			syscall(SYS_pause);
	}
}

/* The child runs in the parent's memory, and no listing shows it. */
Test(asleep, a_vfork_parent_is_not_done_while_its_child_is_there)
{
	bool all;
	const pid_t pid = tr_spawn(vfork_parent);
	struct dp_target *t = target_of(pid);
	cr_assert(tr_await(pid, 'D', -1));
	const struct seen s = visit_all(t, true, 10, &all);
	cr_expect(!all);
	cr_expect_eq(s.asked + s.stopped, 0);
	tr_kill(pid);
	free(t);
}

/* ---- the thread's stack ------------------------------------------------------------------------------------------------- */

static uint8_t *code; /* one of our loops */

static void on_usr1(int sig)
{
	(void)sig;
	tr->handled = 1;
	while (!tr->value[0])
		tr_sleep_us(100000000);
}

static void on_usr2(int sig)
{
	(void)sig;
	tr->value[0] = 1;
}

static void handler_above_code(void)
{
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_usr1}, NULL);
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_usr2}, NULL);
	tr->ready = 1;
	((void (*)(void))(uintptr_t)code)();
	tr->value[1] = 1;
	for (;;)
		pause();
}

static bool clear_asleep(struct dp_target *t, const struct dp_installation *in, pid_t pid)
{
	struct dp_asleep a;
	cr_assert(dp_asleep_take(pid, pid, &a));
	const struct dp_held h = {.tid = pid, .regs = {.rip = a.pc, .rsp = a.sp}};
	const bool clear = dp_quiesce_asleep(t, in, &h);
	cr_assert(dp_asleep_still(pid, pid, &a));
	return clear;
}

/* The return address counts too, not only the pc. */
Test(asleep, in_a_handler_that_will_return_to_our_code)
{
	static const uint8_t loop[] = {0xc6, 0x05, 0xfa, 0x0f, 0x00, 0x00, 0x01, /* movb $1, 4097(start) */
	                               0x80, 0x3d, 0xf2, 0x0f, 0x00, 0x00, 0x00, /* cmpb $0, 4096(start) */
	                               0x74, 0xf0,                               /* je start */
	                               0xc3};
	code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memcpy(code, loop, sizeof(loop));
	struct dp_region region = {.addr = (uint64_t)(uintptr_t)code, .size = 4096, .prot = PROT_EXEC, .mapped = true};
	const struct dp_installation in = {.region = &region, .nregions = 1};
	const pid_t pid = tr_spawn(handler_above_code);
	struct dp_target *t = target_of(pid);
	cr_assert(until(((volatile uint8_t *)code)[4097]), "it is not in the loop");
	kill(pid, SIGUSR1);
	cr_assert(tr_await_value(&tr->handled, 1));
	cr_assert(tr_await(pid, 'S', SYS_clock_nanosleep));
	cr_expect(!clear_asleep(t, &in, pid), "it will return there");
	kill(pid, SIGUSR2);
	code[4096] = 1;
	cr_assert(tr_await_value(&tr->value[1], 1));
	cr_assert(tr_await(pid, 'S', SYS_pause));
	cr_expect(clear_asleep(t, &in, pid), "it has left our code for good");
	region.addr = (uint64_t)(uintptr_t)pause & ~UINT64_C(4095);
	region.size = 8192;
	cr_expect(!clear_asleep(t, &in, pid), "it is there");
	tr_kill(pid);
	free(t);
}
