/* SPDX-License-Identifier: MIT */
/* A borrowed thread is restored exactly: registers, vectors, red zone, signals, job control, and the page of the boot code. */
#include "helper_tracee.h"

#include "injector/target/target.h"
#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/borrow/borrow_xstate.h"
#include "injector/tracee/stop/freeze.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Spins with known values in every register that a system call uses or destroys, in xmm0/xmm15 and in the red zone. */
static void spinner(void)
{
	tr->ready = 1;
	__asm__ volatile("mov $0x1111111111111111, %%rax\n mov $0x2222, %%rcx\n mov $0x3333, %%rdx\n mov $0x4444, %%rsi\n"
	                 "mov $0x5555, %%r8\n mov $0x6666, %%r9\n mov $0x7777, %%r10\n mov $0x8888, %%r11\n"
	                 "movq %%rax, %%xmm0\n movq %%rcx, %%xmm15\n mov %%rax, -8(%%rsp)\n mov %%rax, -128(%%rsp)\n"
	                 "1: incq %[calls]\n"
	                 "cmp %%rax, -8(%%rsp)\n jne 2f\n cmp %%rax, -128(%%rsp)\n jne 2f\n"
	                 "cmp $0x2222, %%rcx\n jne 2f\n cmp $0x3333, %%rdx\n jne 2f\n cmp $0x4444, %%rsi\n jne 2f\n"
	                 "cmp $0x5555, %%r8\n jne 2f\n cmp $0x6666, %%r9\n jne 2f\n cmp $0x7777, %%r10\n jne 2f\n"
	                 "cmp $0x8888, %%r11\n jne 2f\n movq %%xmm0, %%rdi\n cmp %%rax, %%rdi\n jne 2f\n"
	                 "movq %%xmm15, %%rdi\n cmp %%rcx, %%rdi\n jne 2f\n"
	                 "stc\n jnc 2f\n jc 1b\n"
	                 "2: cld\n incq %[failed]\n jmp 2b\n"
	                 : [calls] "+m"(tr->calls), [failed] "+m"(tr->failed)
	                 :
	                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm15", "cc", "memory");
}

Test(borrow, registers_flags_vectors_and_red_zone_of_a_running_thread)
{
	pid_t pid = tr_spawn(spinner);
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < 300; i++) {
		struct dp_borrow *b = tr_lend(&p);
		cr_assert_eq(tr_plain(b, SYS_getpid), pid);
		cr_assert_eq(tr_plain(b, SYS_gettid), dp_borrow_ns_tid(b));
		tr_ok(dp_borrow_end(b, NULL));
	}
	long before = tr->calls;
	cr_assert(tr_await_value(&tr->calls, before + 1));
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}

static void state_of(pid_t tid, struct user_regs_struct *regs, struct iovec *x)
{
	cr_assert_eq(ptrace(PTRACE_GETREGS, tid, NULL, regs), 0);
	/* Without XSAVE, only what FXSAVE stores exists. */
	cr_assert(!ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, x) ||
	          !ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRFPREG, x));
}

/* ---- several calls at once ---------------------------------------------------------------------------------------------- */

static uint8_t room[DP_SCRIPT_ROOM]; /* the targets are forks: it is at the same address there */
#define ROOM ((uint64_t)(uintptr_t)room)

static void fill(struct dp_step *step, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		step[i] = (struct dp_step){.nr = SYS_getpid, .want = pid};
}

static void frozen_borrow(void (*fn)(void))
{
	pid_t pid = tr_spawn(fn);
	struct dp_process p = tr_process(pid);
	struct user_regs_struct r[2];
	struct iovec x[2];
	struct dp_freeze f;
	struct dp_borrow *b;
	for (int i = 0; i < 2; i++)
		x[i] = (struct iovec){calloc(1, dp_xstate_size()), dp_xstate_size()};
	tr_sleep_us(5000);
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	state_of(pid, &r[0], &x[0]);
	for (int i = 0; i < 3; i++) {
		struct dp_step step[50];
		size_t done;
		fill(step, 50, pid);
		tr_ok(dp_borrow_begin(&p, &f, TR_LIMIT, false, &b));
		cr_assert_eq(tr_plain(b, SYS_getpid), pid);
		if (i)
			tr_ok(dp_remote_script(b, ROOM, step, 50, UINT64_MAX, &done));
		cr_assert(!i || done == 50);
		tr_ok(dp_borrow_end(b, NULL));
	}
	state_of(pid, &r[1], &x[1]);
	cr_assert_eq(memcmp(&r[0], &r[1], sizeof(r[0])), 0);
	cr_assert_eq(x[0].iov_len, x[1].iov_len);
	cr_assert_eq(memcmp(x[0].iov_base, x[1].iov_base, x[0].iov_len), 0);
	dp_thaw_all(&f);
	for (int i = 0; i < 2; i++)
		free(x[i].iov_base);
	tr_kill(pid);
}

/* One byte for each that the target writes; the pipe is older than the fork. */
static int bytes[2];

static size_t written(void)
{
	char got[512];
	const ssize_t n = read(bytes[0], got, sizeof(got));
	return n > 0 ? (size_t)n : 0;
}

static void fill_writes(struct dp_step *step, size_t n)
{
	for (size_t i = 0; i < n; i++)
		step[i] = (struct dp_step){.nr = SYS_write, .args = {(uint64_t)bytes[1], ROOM, 1}, .want = 1};
}

static void by_script(uint64_t at)
{
	struct dp_step step[100];
	size_t done, rounds = 0;
	cr_assert_eq(pipe2(bytes, O_NONBLOCK), 0);
	pid_t pid = tr_spawn(spinner);
	struct dp_process p = tr_process(pid);
	struct dp_borrow *b = tr_lend(&p);

	fill_writes(step, 100);
	tr_ok(dp_remote_script(b, at, step, 100, UINT64_MAX, &done));
	cr_assert_eq(done, 100);
	cr_assert_eq(written(), 100);

	/* A call that fails is the last: the ones after it are not made. */
	fill_writes(step, 100);
	step[57].args[0] = 1000;
	tr_ok(dp_remote_script(b, at, step, 100, UINT64_MAX, &done));
	cr_assert_eq(done, 57);
	cr_assert(step[57].made);
	cr_assert_eq(step[57].got, -EBADF);
	cr_assert_not(step[58].made);
	cr_assert_eq(written(), 57);

	/* The time limit has always expired: each call is still made exactly once. */
	fill_writes(step, 100);
	for (size_t from = 0; from < 100; from += done, rounds++) {
		tr_ok(dp_remote_script(b, at, step + from, 100 - from, 0, &done));
		cr_assert(from + done == 100 || !step[from + done].made);
		cr_assert_lt(rounds, 10000);
	}
	cr_assert_eq(written(), 100);
	cr_assert_gt(rounds, 1);

	tr_ok(dp_borrow_end(b, NULL));
	const long before = tr->calls;
	cr_assert(tr_await_value(&tr->calls, before + 1000));
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}

Test(borrow, calls_of_a_script_are_made_once_up_to_the_first_that_fails)
{
	by_script(ROOM);
}

Test(borrow, calls_without_room_for_a_script_are_made_one_by_one)
{
	by_script(0);
}

static char sleep_path[] = "/bin/sleep", sleep_for[] = "3000";
static char *sleep_args[] = {sleep_path, sleep_for, NULL};

/* A thread that has restored itself may do that as well: the new program runs, and has its own registers. */
static void executes_meanwhile(uint64_t at, size_t n)
{
	struct dp_step step[2] = {{.nr = SYS_getppid, .want = getpid()},
	                          {.nr = SYS_execve, .args = {(uint64_t)sleep_path, (uint64_t)sleep_args}}};
	size_t done;
	pid_t pid = tr_spawn(spinner);
	struct dp_process p = tr_process(pid);
	struct dp_borrow *b = tr_lend(&p);
	tr_tag(dp_remote_script(b, at, step + 2 - n, n, UINT64_MAX, &done), DP_TAG_GONE);
	tr_ok(dp_borrow_end(b, NULL));
	cr_assert(tr_await(pid, 'S', SYS_clock_nanosleep));
	tr_kill(pid);
}

Test(borrow, program_that_executes_another_while_calls_are_made)
{
	executes_meanwhile(ROOM, 2);
	executes_meanwhile(0, 1);
}

/* The target is a fork, so its text equals ours, except what was written there. Returns the number of pages that differ. */
static size_t changed_pages(pid_t pid)
{
	static uint8_t theirs[4096];
	struct dp_process p = tr_process(pid);
	unsigned long start, end;
	char line[512], perms[5];
	size_t n = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, perms) == 3 && !strcmp(perms, "r-xp") && strchr(line, '/'))
			for (unsigned long at = start; at < end; at += sizeof(theirs))
				n += dp_mem_read(&p, dp_addr_of(at), theirs, sizeof(theirs)) == sizeof(theirs) &&
				     memcmp(theirs, (const void *)at, sizeof(theirs));
	fclose(maps);
	return n;
}

static struct timespec longer_than_a_call_may_last = {4, 0};

/* Its thread runs through it once the call has returned. */
Test(borrow, code_that_had_to_stay_is_removed_by_the_same_tool)
{
	const struct dp_target_options options = {0};
	const uint64_t args[6] = {(uint64_t)(uintptr_t)&longer_than_a_call_may_last};
	pid_t pid = tr_spawn(spinner);
	struct dp_target *t;
	struct dp_borrow *b;
	int64_t result;
	tr_ok(dp_target_open(pid, &options, &t));
	cr_assert_not(dp_borrow_has_left_code(pid));
	tr_ok(dp_borrow_begin(&t->process, NULL, TR_LIMIT, false, &b));
	tr_tag(dp_remote_syscall(b, SYS_nanosleep, args, &result), DP_TAG_REMOTE);
	tr_ok(dp_borrow_end(b, NULL));
	cr_assert(dp_borrow_has_left_code(pid));
	cr_assert_eq(changed_pages(pid), 1);
	dp_late_stop_settle(DP_SETTLE_NS);
	cr_assert(tr_await_value(&tr->calls, tr->calls + 1000));
	dp_boot_sweep_own(t);
	cr_assert_eq(changed_pages(pid), 0);
	dp_target_close(t);
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}

/* A tool that is stopped for longer than the thread waits: the thread restores itself, and is not taken from there. */
static void come_too_late(void (*target)(void), int sig)
{
	pid_t pid = tr_spawn(target), tool = fork();
	if (!tool) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct dp_process p = tr_process(pid);
		for (;;) {
			struct dp_step step[20];
			struct dp_borrow *b;
			size_t done = 20;
			fill(step, 20, pid);
			if (dp_borrow_begin(&p, NULL, TR_LIMIT, false, &b))
				_exit(1);
			struct dp_error *err = dp_remote_script(b, ROOM, step, 20, UINT64_MAX, &done);
			tr->value[0] += dp_borrow_lost(b);
			if (err || done != 20 || dp_borrow_end(b, NULL))
				_exit(2);
			tr->value[1]++;
			dp_late_stop_settle(DP_SETTLE_NS);
		}
	}
	/* More often than there are places for the boot code: it is removed each time. */
	for (int i = 0, sent = 0; i < 4000 && tr->value[0] < 12; i++) {
		tr_sleep_us(200 + i % 300);
		kill(tool, SIGSTOP);
		/*
		 * Not before the last signal is handled: a thread that goes from one handler into the next makes no progress,
		 * traced or not.
		 */
		if (sig && tr->handled == sent && !kill(pid, sig))
			sent++;
		tr_sleep_us(40000);
		kill(tool, SIGCONT);
	}
	const long rounds = tr->value[1], before = tr->calls;
	cr_assert_geq(tr->value[0], 12, "the tool was late only %ld times", tr->value[0]);
	cr_assert(tr_await_value(&tr->value[1], rounds + 10), "the tool continues");
	cr_assert_eq(waitpid(tool, NULL, WNOHANG), 0, "the tool ended");
	kill(tool, SIGKILL);
	waitpid(tool, NULL, 0);
	/* The last round may have been interrupted anywhere. */
	cr_expect_leq(changed_pages(pid), 1, "%zu pages of text differ", changed_pages(pid));
	cr_assert(tr_await_value(&tr->calls, before + 1000));
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}

Test(borrow, a_tool_that_comes_too_late_finds_its_thread_gone_home)
{
	come_too_late(spinner, 0);
}

/* Long enough to be found in it: longer than the tool is stopped. */
static void dawdle(int sig)
{
	(void)sig;
	const uint64_t end = dp_now_ns() + UINT64_C(60000000);
	while (dp_now_ns() < end)
		;
	tr->handled++;
}

static void dawdler(void)
{
	signal(SIGALRM, dawdle);
	spinner();
}

/* A signal that waited for the end of the calls is delivered when the thread resumes: its handler returns into the boot code. */
Test(borrow, a_thread_in_a_handler_on_its_way_home_is_seen_out)
{
	come_too_late(dawdler, SIGALRM);
	cr_expect_gt(tr->handled, 0);
}

Test(borrow, whole_state_of_a_frozen_running_thread)
{
	frozen_borrow(spinner);
}

Test(borrow, whole_state_of_a_frozen_blocked_thread)
{
	frozen_borrow(tr_idle);
}

Test(borrow, mapping_made_remotely_and_text_restored)
{
	pid_t pid = tr_spawn(tr_idle);
	struct dp_process p = tr_process(pid);
	char *maps;
	dp_addr place;
	uint8_t before[DP_BOOT_SIZE], after[DP_BOOT_SIZE];
	tr_ok(dp_process_maps(&p, &maps));
	cr_assert(dp_boot_find(&p, maps, sizeof(before), 0, &place));
	cr_assert_eq(dp_mem_read(&p, place, before, sizeof(before)), sizeof(before));
	struct dp_borrow *b = tr_lend(&p);
	int64_t at = tr_remote(b, SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0);
	cr_assert(at > 0, "%ld", (long)at);
	tr_ok(dp_mem_write(&p, dp_addr_of((uint64_t)at), "hello", 6));
	cr_assert_eq(tr_remote(b, SYS_close, 9999, 0, 0, 0, 0, 0), -EBADF);
	cr_assert_eq(tr_remote(b, SYS_munmap, (uint64_t)at, 8192, 0, 0, 0, 0), 0);
	tr_ok(dp_borrow_end(b, NULL));
	cr_assert_eq(dp_mem_read(&p, place, after, sizeof(after)), sizeof(after));
	cr_assert_eq(memcmp(before, after, sizeof(after)), 0);
	free(maps);
	tr_kill(pid);
}

static void on_info(int sig, siginfo_t *si, void *context)
{
	(void)context;
	(void)sig;
	tr->value[tr->handled & 63] = si->si_value.sival_int;
	tr->value[63] = si->si_pid;
	tr->handled++;
}

static void queue_target(void)
{
	struct sigaction sa = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO};
	sigaction(SIGRTMIN, &sa, NULL);
	tr->ready = 1;
	for (;;) {
		long rc = pause();
		if (rc < 0)
			tr->eintr++;
	}
}

Test(borrow, queued_signals_arrive_once_each_with_their_values)
{
	pid_t pid = tr_spawn(queue_target);
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < 50; i++) {
		cr_assert(tr_await(pid, 'S', SYS_pause));
		struct dp_borrow *b = tr_lend(&p);
		tr_plain(b, SYS_getpid);
		sigqueue(pid, SIGRTMIN, (union sigval){.sival_int = 1000 + i});
		tr_plain(b, SYS_getpid);
		tr_ok(dp_borrow_end(b, NULL));
		cr_assert(tr_await_value(&tr->handled, i + 1));
		cr_assert_eq(tr->value[i & 63], 1000 + i);
		cr_assert(tr_await_value(&tr->eintr, i + 1), "pause() did not return");
	}
	tr_sleep_us(2000);
	cr_assert_eq(tr->handled, 50);
	cr_assert_eq(tr->eintr, 50);
	cr_assert_eq(tr->value[63], getpid());
	tr_kill(pid);
}

static void all_blocked(void)
{
	sigset_t set;
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	tr->ready = 1;
	for (;;) {
		sigprocmask(SIG_SETMASK, NULL, &set);
		for (int sig = 1; sig < 32; sig++)
			if (sig != SIGKILL && sig != SIGSTOP && !sigismember(&set, sig))
				tr->failed++;
		tr->calls++;
	}
}

Test(borrow, all_signals_blocked_before_and_after)
{
	pid_t pid = tr_spawn(all_blocked);
	struct dp_process p = tr_process(pid);
	for (int i = 0; i < 100; i++) {
		struct dp_borrow *b = tr_lend(&p);
		cr_assert_eq(tr_plain(b, SYS_getpid), pid);
		tr_ok(dp_borrow_end(b, NULL));
	}
	cr_assert(tr_await_value(&tr->calls, tr->calls + 10));
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}

Test(borrow, job_stopped_target_stays_stopped)
{
	pid_t pid = tr_spawn(queue_target);
	struct dp_process p = tr_process(pid);
	kill(pid, SIGSTOP);
	cr_assert(tr_await(pid, 'T', -1));
	for (int i = 0; i < 20; i++) {
		struct dp_borrow *b = tr_lend(&p);
		cr_assert_eq(tr_plain(b, SYS_getpid), pid);
		tr_ok(dp_borrow_end(b, NULL));
		cr_assert(tr_await(pid, 'T', -1));
	}
	kill(pid, SIGCONT);
	cr_assert(tr_await(pid, 'S', SYS_pause));
	cr_assert_eq(tr->eintr, 0);
	tr_kill(pid);
}

Test(borrow, stop_signal_that_comes_during_it)
{
	pid_t pid = tr_spawn(queue_target);
	struct dp_process p = tr_process(pid);
	struct dp_borrow *b = tr_lend(&p);
	tr_plain(b, SYS_getpid);
	kill(pid, SIGSTOP);
	cr_assert_eq(tr_plain(b, SYS_getpid), pid);
	tr_ok(dp_borrow_end(b, NULL));
	cr_assert(tr_await(pid, 'T', -1));
	kill(pid, SIGCONT);
	cr_assert(tr_await(pid, 'S', SYS_pause));
	tr_kill(pid);
}
