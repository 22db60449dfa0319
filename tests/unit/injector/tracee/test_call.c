/* SPDX-License-Identifier: MIT */
/*
 * A thread borrowed for a C function is restored exactly: registers, vectors, errno, signals; also if the tool dies during the
 * call.
 */
#include "helper_tracee.h"

#include "agent/call.h"
#include "injector/lttng/safe/safe.h"
#include "injector/target/target.h"
#include "injector/tracee/borrow/call.h"
#include "injector/tracee/stop/freeze.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

TestSuite(call, .init = tr_map_call);

static struct dp_held take(const struct dp_process *p)
{
	struct dp_held h = {0};
	enum dp_safe_outcome outcome = DP_SAFE_GONE;
	char why[128] = "";
	for (int i = 0; i < 1000 && outcome != DP_SAFE_HELD; i++)
		tr_ok(dp_safe_take(NULL, p, p->pid, &h, &outcome, why));
	cr_assert(outcome == DP_SAFE_HELD, "%s", why);
	return h;
}

static struct dp_error *try_call(const struct dp_process *p, uint64_t (*fn)(uint64_t, uint64_t), uint64_t a, uint64_t b,
                                 uint64_t limit, uint64_t *result)
{
	struct dp_held h = take(p);
	const uint64_t args[4] = {a, b};
	struct dp_error *err = dp_call(p, &h, &tr_call_site, (uint64_t)(uintptr_t)fn, args, limit, result);
	dp_held_release(&h);
	return err;
}

static uint64_t call(const struct dp_process *p, uint64_t (*fn)(uint64_t, uint64_t), uint64_t a, uint64_t b)
{
	uint64_t result = 0;
	tr_ok(try_call(p, fn, a, b, TR_LIMIT, &result));
	return result;
}

/* ---- functions ---------------------------------------------------------------------------------------------------------- */

/* Destroys all that a C function may destroy: vectors, x87, flags, errno, and the red zone of the stack that it is on. */
static uint64_t ravage(uint64_t a, uint64_t b)
{
	__asm__ volatile(
	        "pcmpeqb %%xmm0, %%xmm0\n movdqa %%xmm0, %%xmm7\n movdqa %%xmm0, %%xmm15\n fldpi\n fldpi\n faddp\n fstp %%st(0)\n"
	        "movq $-1, -8(%%rsp)\n movq $-1, -128(%%rsp)\n cmp %%rax, %%rax\n"
	        :
	        :
	        : "xmm0", "xmm7", "xmm15", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory");
	errno = ERANGE;
	tr->value[0]++;
	return a * 1000 + b;
}

static uint64_t slow(uint64_t us, uint64_t b)
{
	const uint64_t end = dp_now_ns() + us * 1000;
	errno = EDOM;
	while (dp_now_ns() < end)
		;
	tr->value[1]++;
	return b;
}

static uint64_t sleepy(uint64_t us, uint64_t b)
{
	tr_sleep_us((long)us);
	tr->value[1]++;
	return b;
}

static uint64_t fault(uint64_t a, uint64_t b)
{
	*(volatile char *)(uintptr_t)a = 1;
	return b;
}

/* ---- targets ------------------------------------------------------------------------------------------------------------ */

/* Known values in every register that the ABI lets a function destroy, in flags, vectors, x87 control word, and the red zone. */
static void spinner(void)
{
	tr->ready = 1;
	__asm__ volatile("mov $0x1111111111111111, %%rax\n mov $0x2222, %%rcx\n mov $0x3333, %%rdx\n mov $0x4444, %%rsi\n"
	                 "mov $0x5555, %%r8\n mov $0x6666, %%r9\n mov $0x7777, %%r10\n mov $0x8888, %%r11\n"
	                 "movq %%rax, %%xmm0\n movq %%rcx, %%xmm7\n movq %%rdx, %%xmm15\n"
	                 "mov %%rax, -8(%%rsp)\n mov %%rax, -128(%%rsp)\n"
	                 "1: incq %[calls]\n"
	                 "cmp %%rax, -8(%%rsp)\n jne 2f\n cmp %%rax, -128(%%rsp)\n jne 2f\n"
	                 "cmp $0x2222, %%rcx\n jne 2f\n cmp $0x3333, %%rdx\n jne 2f\n cmp $0x4444, %%rsi\n jne 2f\n"
	                 "cmp $0x5555, %%r8\n jne 2f\n cmp $0x6666, %%r9\n jne 2f\n cmp $0x7777, %%r10\n jne 2f\n"
	                 "cmp $0x8888, %%r11\n jne 2f\n movq %%xmm0, %%rdi\n cmp %%rax, %%rdi\n jne 2f\n"
	                 "movq %%xmm7, %%rdi\n cmp %%rcx, %%rdi\n jne 2f\n movq %%xmm15, %%rdi\n cmp %%rdx, %%rdi\n jne 2f\n"
	                 "stc\n jnc 2f\n jc 1b\n"
	                 "2: cld\n incq %[failed]\n jmp 2b\n"
	                 : [calls] "+m"(tr->calls), [failed] "+m"(tr->failed)
	                 :
	                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm7", "xmm15", "cc", "memory");
}

static void errno_keeper(void)
{
	tr->ready = 1;
	errno = EXDEV;
	for (;; tr->calls++)
		tr->failed += errno != EXDEV;
}

static void on_signal(int sig)
{
	(void)sig;
	tr->handled++;
}

static void pauser(void)
{
	signal(SIGUSR1, on_signal);
	tr->ready = 1;
	for (;; tr->calls++)
		if (pause() != -1 || errno != EINTR)
			tr->failed++;
}

/* An interrupted timed sleep continues for the rest of its time, by the kernel's restart block. */
static void napper(void)
{
	tr->ready = 1;
	for (;; tr->calls++) {
		struct timespec left = {9, 9}, nap = {0, 300000000};
		const uint64_t begin = dp_now_ns();
		if (nanosleep(&nap, &left) != 0 || dp_now_ns() - begin < 300000000)
			tr->failed++;
	}
}

static void assert_going_on(void)
{
	cr_assert(tr_await_value(&tr->calls, tr->calls + 2), "the target hangs");
	cr_assert_eq(tr->failed, 0);
}

/* ---- with a living tool ------------------------------------------------------------------------------------------------- */

Test(call, registers_flags_vectors_and_red_zone_of_a_running_thread)
{
	const pid_t pid = tr_spawn(spinner);
	const struct dp_process p = tr_process(pid);
	for (uint64_t i = 0; i < 200; i++)
		cr_assert_eq(call(&p, ravage, i, 7), i * 1000 + 7);
	cr_assert_eq(tr->value[0], 200);
	assert_going_on();
	tr_kill(pid);
}

Test(call, errno_of_the_thread)
{
	const pid_t pid = tr_spawn(errno_keeper);
	const struct dp_process p = tr_process(pid);
	for (int i = 0; i < 100; i++)
		call(&p, ravage, 1, 2);
	assert_going_on();
	tr_kill(pid);
}

Test(call, signal_during_the_call_interrupts_the_call_that_was_interrupted)
{
	const pid_t pid = tr_spawn(pauser);
	const struct dp_process p = tr_process(pid);
	cr_assert(tr_await(pid, 'S', SYS_pause));
	const pid_t killer = fork();
	if (killer == 0) {
		tr_sleep_us(20000);
		kill(pid, SIGUSR1);
		_exit(0);
	}
	call(&p, slow, 100000, 1);
	waitpid(killer, NULL, 0);
	cr_assert(tr_await_value(&tr->calls, 1), "pause() did not return");
	cr_assert_eq(tr->handled, 1);
	cr_assert_eq(tr->failed, 0);
	tr_kill(pid);
}

Test(call, restart_block_of_a_timed_sleep)
{
	const pid_t pid = tr_spawn(napper);
	const struct dp_process p = tr_process(pid);
	for (int i = 0; i < 20; i++) {
		tr_sleep_us(37000);
		call(&p, ravage, 1, 1);
	}
	assert_going_on();
	tr_kill(pid);
}

Test(call, function_that_does_not_return_in_time_is_left_to_finish)
{
	uint64_t result;
	pid_t tid;
	const pid_t pid = tr_spawn(spinner);
	const struct dp_process p = tr_process(pid);
	tr_tag(try_call(&p, sleepy, 4000000, 1, 50000000, &result), DP_TAG_SINK);
	cr_assert_not(dp_call_over(&p, &tr_call_site, &tid));
	cr_assert_eq(tid, pid);
	/* A second call would overwrite the frame by which the thread returns. */
	tr_tag(try_call(&p, sleepy, 0, 1, TR_LIMIT, &result), DP_TAG_SINK);
	cr_assert(tr_await_value(&tr->value[1], 1));
	assert_going_on();
	tr_kill(pid);
}

Test(call, fault_in_the_function_is_an_error_and_no_death)
{
	uint64_t result;
	const pid_t pid = tr_spawn(spinner);
	const struct dp_process p = tr_process(pid);
	struct dp_error *err = try_call(&p, fault, 8, 1, TR_LIMIT, &result);
	cr_assert_not_null(err);
	cr_expect(strstr(dp_error_remedy(err), "--sink ring"), "%s", dp_error_remedy(err));
	tr_tag(err, DP_TAG_REMOTE);
	assert_going_on();
	tr_kill(pid);
}

static uint64_t executes(uint64_t a, uint64_t b)
{
	execl("/bin/sleep", "sleep", "3000", NULL);
	return a + b;
}

/* A thread that has restored itself may do that as well: the new program runs, and has its own registers. */
Test(call, program_that_executes_another_meanwhile)
{
	uint64_t result;
	const pid_t pid = tr_spawn(errno_keeper);
	const struct dp_process p = tr_process(pid);
	tr_tag(try_call(&p, executes, 1, 1, TR_LIMIT, &result), DP_TAG_GONE);
	cr_assert(tr_await(pid, 'S', SYS_clock_nanosleep));
	tr_kill(pid);
}

/* ---- with a dead tool --------------------------------------------------------------------------------------------------- */

static void kill_tool_after(const struct dp_process *p, long us, uint64_t work_us)
{
	const pid_t tool = fork();
	if (tool == 0) {
		struct dp_held h = {0};
		enum dp_safe_outcome outcome;
		uint64_t result;
		char why[128];
		const uint64_t args[4] = {work_us, 1};
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!dp_safe_take(NULL, p, p->pid, &h, &outcome, why) && outcome == DP_SAFE_HELD) {
			dp_error_destroy(dp_call(p, &h, &tr_call_site, (uint64_t)(uintptr_t)slow, args, TR_LIMIT, &result));
			dp_held_release(&h);
		}
		_exit(0);
	}
	tr_sleep_us(us);
	kill(tool, SIGKILL);
	waitpid(tool, NULL, 0);
}

/* The next call needs a thread that has returned, and the dead tool cannot say so. */
static void is_home(void)
{
	*(volatile uint32_t *)(uintptr_t)(tr_call_site.frame + DP_CALL_STATE) = DP_CALL_IDLE;
}

static uint64_t stops_the_tool(uint64_t tool, uint64_t b)
{
	kill((pid_t)tool, SIGSTOP);
	return b;
}

static pid_t tool_that_stops(const struct dp_process *p, uint32_t waits)
{
	const pid_t tool = fork();
	if (tool)
		return tool;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct dp_held h = take(p);
	struct dp_call_site site = tr_call_site;
	uint64_t result;
	const uint64_t args[4] = {(uint64_t)getpid(), 1};
	site.waits = waits;
	struct dp_error *err = dp_call(p, &h, &site, (uint64_t)(uintptr_t)stops_the_tool, args, TR_LIMIT, &result);
	const bool held = !err && !h.exited;
	dp_error_destroy(err);
	dp_held_release(&h);
	_exit(held);
}

/* The tool gets no processor for a while: only a thread that waits for so long can be taken back. */
Test(call, thread_waits_as_long_as_it_is_told_for_a_tool_that_comes_late)
{
	static const uint32_t waits[] = {0, 30000};
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		int status;
		siginfo_t si;
		const pid_t pid = tr_spawn(errno_keeper);
		const struct dp_process p = tr_process(pid);
		const pid_t tool = tool_that_stops(&p, waits[i]);
		cr_assert_eq(waitid(P_PID, (id_t)tool, &si, WSTOPPED), 0);
		const long calls = tr->calls;
		if (waits[i])
			tr_sleep_us(200000);
		else
			cr_assert(tr_await_value(&tr->calls, calls + 2));
		cr_assert_eq(tr->calls == calls, waits[i] != 0);
		kill(tool, SIGCONT);
		cr_assert_eq(waitpid(tool, &status, 0), tool);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == (waits[i] != 0), "%x", status);
		assert_going_on();
		is_home();
		tr_kill(pid);
	}
}

Test(call, tool_killed_at_any_moment_running_thread)
{
	const pid_t pid = tr_spawn(spinner);
	const struct dp_process p = tr_process(pid);
	for (long i = 0; i < 60; i++) {
		kill_tool_after(&p, 100 + i * 137 % 4000, 1000);
		assert_going_on();
		is_home();
	}
	tr_kill(pid);
}

Test(call, tool_killed_at_any_moment_blocked_thread)
{
	const pid_t pid = tr_spawn(napper);
	const struct dp_process p = tr_process(pid);
	for (long i = 0; i < 30; i++) {
		kill_tool_after(&p, 100 + i * 137 % 4000, 1000);
		cr_assert(tr_await(pid, 'S', SYS_clock_nanosleep));
		is_home();
	}
	assert_going_on();
	tr_kill(pid);
}
