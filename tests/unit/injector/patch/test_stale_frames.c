/* SPDX-License-Identifier: MIT */
/*
 * Signal frames on a waiting thread's stack: dynprobe keeps the code that a handler will return to; remains of an old frame do
 * not count.
 */
#include "helper_tracee.h"

#include "agent/trap/trap.h"
#include "injector/patch/quiesce/quiesce.h"
#include "injector/patch/quiesce/quiesce_frames.h"
#include "injector/target/target.h"
#include "injector/tracee/stop/freeze.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE       UINT64_C(4096)
#define WORDS      64
#define FRAME      8 /* offset of the frame in the words: the kernel's struct rt_sigframe, in words of 8 bytes */
#define FRAME_CODE (FRAME + 22)

/* The code to remove: unmapped pages, in which the frames' saved pc lies. */
#define OUR_CODE     UINT64_C(0x10000000)
#define OUR_RESTORER (OUR_CODE + 64)

static uint64_t forged[WORDS];

static void forge(uint64_t back, uint64_t flags, uint64_t link)
{
	forged[FRAME] = back;
	forged[FRAME + 1] = flags;
	forged[FRAME + 2] = link;
	forged[FRAME_CODE] = OUR_CODE + 16;
	forged[FRAME_CODE + 1] = 0x246;
	forged[FRAME_CODE + 2] = UINT64_C(0x2b000000000033);
}

/* Leaves `distance` bytes of stack between the forged words and the place where the thread waits. */
static __attribute__((noinline)) void wait_below(size_t distance)
{
	volatile char *room = __builtin_alloca(distance);
	room[0] = 1;
	tr->ready = 1;
	for (;;)
		pause();
}

static volatile size_t distance;

static void waits(void)
{
	volatile uint64_t on_stack[WORDS];
	for (size_t i = 0; i < WORDS; i++)
		on_stack[i] = forged[i];
	wait_below(distance);
	tr->value[1] = (long)on_stack[0]; /* keeps them alive */
}

static void in_handler(int sig)
{
	(void)sig;
	wait_below(64);
}

static void waits_in_handler(void)
{
	volatile uint64_t on_stack[WORDS];
	for (size_t i = 0; i < WORDS; i++)
		on_stack[i] = forged[i];
	signal(SIGUSR1, in_handler);
	raise(SIGUSR1);
	tr->value[1] = (long)on_stack[0];
}

static bool with_frames;

/* Does dp_quiesce() report the code as unused by a thread that runs `what`? */
static bool is_clear_of(void (*what)(void))
{
	char why[128] = "";
	const pid_t pid = tr_spawn(what);
	cr_assert(tr_await(pid, 'S', SYS_pause));
	struct dp_region region = {.addr = OUR_CODE, .size = PAGE, .prot = PROT_READ | PROT_EXEC, .mapped = true};
	struct dp_installation in = {.region = &region, .nregions = 1};
	struct dp_target t = {.process = tr_process(pid)};
	struct dp_freeze f;
	if (with_frames)
		dp_frames_need(&t, &in);
	tr_ok(dp_freeze_all(&t.process, TR_LIMIT, &f));
	const bool clear = dp_quiesce(&t, &in, &f, why);
	dp_thaw_all(&f);
	dp_frames_destroy(in.frames);
	tr_kill(pid);
	cr_assert(clear || strstr(why, "signal handler"), "%s", why);
	return clear;
}

/* The same for a thread that waits `bytes` above the forged words. */
static bool is_clear(size_t bytes)
{
	distance = bytes;
	return is_clear_of(waits);
}

/* Begins as glibc's __restore_rt does. */
__asm__(".pushsection .text\nthe_restorer: mov $15, %rax\n syscall\n.popsection\n");
extern const char the_restorer[];

static uint64_t address(const void *of)
{
	return (uint64_t)(uintptr_t)of;
}

Test(stale_frames, a_whole_frame_keeps_the_code)
{
	forge(address(the_restorer), 7, 0);
	cr_assert_not(is_clear(64));
}

Test(stale_frames, so_does_one_whose_context_was_changed_by_its_handler)
{
	forge(address(the_restorer), UINT64_MAX, UINT64_MAX);
	cr_assert_not(is_clear(64));
}

Test(stale_frames, so_does_a_copy_of_a_context)
{
	forge(0, 7, 0);
	cr_assert_not(is_clear(64));
}

/* Distances of more than one of the scan's reads, and every place in a read at which a frame can be cut in two. */
Test(stale_frames, a_frame_of_our_own_handler_does_not_wherever_a_read_ends)
{
	forge(OUR_RESTORER, 7, 0);
	cr_assert(is_clear(64));
	for (size_t words = 0; words < 3 * WORDS; words += 3)
		cr_assert(is_clear(16384 * 8 - 2 * WORDS * 8 + words * 8), "%zu words", words);
}

/* That agent was at other addresses, where other code may be now. */
Test(stale_frames, nor_does_one_of_an_agent_that_is_gone)
{
	forge(UINT64_C(0x20000000), 7, DP_FRAME_OVER);
	cr_assert(is_clear(64));
	forge(address(the_restorer), 7, DP_FRAME_OVER);
	cr_assert(is_clear(64));
}

Test(stale_frames, one_that_is_partly_overwritten_does_not)
{
	static uint64_t data;
	forge(address(&data), address(&data), 0);
	cr_assert(is_clear(64));
	forge(17, 7, address(&data)); /* an address that is not mapped, and a context that is */
	cr_assert(is_clear(64));
}

Test(stale_frames, what_cannot_be_read_may_be_a_restorer)
{
	forge(UINT64_C(0x20000000), 9, 0);
	cr_assert_not(is_clear(64));
}

/* Its handler has returned, and the thread waits with the frame in a part of the stack that it has not overwritten. */
Test(stale_frames, a_whole_frame_that_is_none_of_the_threads_frames_does_not)
{
	forge(address(the_restorer), 7, 0);
	with_frames = true;
	cr_assert(is_clear(64));
	cr_assert(is_clear(100000));
}

Test(stale_frames, it_does_while_the_thread_runs_a_signal_handler)
{
	forge(address(the_restorer), 7, 0);
	with_frames = true;
	cr_assert_not(is_clear_of(waits_in_handler));
}

Test(stale_frames, a_copy_of_a_context_does_whatever_the_frames_say)
{
	forge(0, 7, 0);
	with_frames = true;
	cr_assert_not(is_clear(64));
}
