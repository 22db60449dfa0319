/* SPDX-License-Identifier: MIT */
/*
 * What the copy of a process must not do to it: keep its descriptors open, survive it when memory is short, become the first
 * child of its namespace, or take data that a device writes to it.
 */
#include "pmodules/source/stopped.h"

#include "tests/unit/until.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

struct shared {
	atomic_uint ready, go;
	int result;
};
static struct shared *shared;
static int end_of_it[2]; /* only the child has it open for writing */

static pid_t child(void (*run)(void))
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(shared != MAP_FAILED && !pipe(end_of_it));
	const pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run();
		for (;;)
			pause();
	}
	close(end_of_it[1]);
	cr_assert(until(atomic_load(&shared->ready)));
	return pid;
}

static void is_ready(void)
{
	atomic_store(&shared->ready, 1);
}

static struct dp_stopped *held_for(pid_t pid, uint64_t most_ns)
{
	struct dp_stopped *s = NULL;
	const struct dp_stopped_options options = {.mode = DP_STOPPED_FORK, .max_pause_ns = most_ns};
	struct dp_error *err = dp_stopped_open(pid, &options, &s);
	cr_assert_null(err, "%s", err ? err->message : "");
	err = dp_stopped_hold(s);
	cr_assert_null(err, "%s", err ? err->message : "");
	return s;
}

static struct dp_stopped *held(pid_t pid)
{
	return held_for(pid, 0);
}

static long number_in(const char *format, pid_t pid)
{
	char path[96], text[64] = "";
	snprintf(path, sizeof(path), format, pid, pid);
	FILE *f = fopen(path, "re");
	if (!f || !fgets(text, sizeof(text), f))
		*text = '\0';
	if (f)
		fclose(f);
	return strtol(text, NULL, 10);
}

/* When a server ends, its port and its lock must be free, although its copy is still being read. */
Test(stopped_copy, a_process_that_ends_leaves_no_descriptor_open_in_its_copy)
{
	const pid_t pid = child(is_ready);
	struct dp_stopped *s = held(pid);
	cr_assert_eq(dp_stopped_mode(s), DP_STOPPED_FORK, "%s", dp_stopped_why_not_fork(s));
	kill_child(pid);
	struct pollfd p = {.fd = end_of_it[0]};
	cr_expect_eq(poll(&p, 1, 10000), 1);
	cr_expect(p.revents & POLLHUP);
	bool late = true;
	int word[2] = {0};
	cr_expect_eq(dp_stopped_read(s, (uint64_t)(uintptr_t)end_of_it, word, sizeof(word), &late), sizeof(word));
	cr_expect(!late && word[1] == end_of_it[1], "the copy exists nevertheless");
	dp_stopped_close(s);
}

Test(stopped_copy, where_memory_is_short_the_copy_goes_first)
{
	const pid_t pid = child(is_ready);
	struct dp_stopped *s = held(pid);
	const pid_t copy = (pid_t)number_in("/proc/%d/task/%d/children", pid);
	cr_assert(copy > 0);
	cr_expect_eq(number_in("/proc/%d/oom_score_adj", copy), 1000);
	cr_expect_neq(number_in("/proc/%d/oom_score_adj", pid), 1000);
	dp_stopped_close(s);
	kill_child(pid);
}

static void fork_into_a_namespace(void)
{
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		_exit(1);
	is_ready();
	until(atomic_load(&shared->go));
	const pid_t pid = fork();
	if (!pid)
		_exit(7);
	int status = -1;
	waitpid(pid, &status, 0);
	shared->result = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	atomic_store(&shared->go, 2);
}

Test(stopped_copy, the_first_child_of_a_namespace_is_the_programs)
{
	const pid_t pid = child(fork_into_a_namespace);
	struct dp_stopped *s = held(pid);
	cr_expect_eq(dp_stopped_mode(s), DP_STOPPED_STOP);
	cr_expect(dp_stopped_why_not_fork(s) && strstr(dp_stopped_why_not_fork(s), "namespace"));
	dp_stopped_close(s);
	atomic_store(&shared->go, 1);
	cr_assert(until(atomic_load(&shared->go) == 2));
	cr_expect_eq(shared->result, 7, "the program can still fork");
	kill_child(pid);
}

static void read_by_device(void)
{
	unsigned long context = 0;
	if (syscall(SYS_io_setup, 4, &context))
		_exit(1);
	is_ready();
}

Test(stopped_copy, nobody_is_forked_whom_devices_write_to)
{
	const pid_t pid = child(read_by_device);
	struct dp_stopped *s = held(pid);
	cr_expect_eq(dp_stopped_mode(s), DP_STOPPED_STOP);
	cr_expect(dp_stopped_why_not_fork(s) && strstr(dp_stopped_why_not_fork(s), "devices"));
	dp_stopped_close(s);
	kill_child(pid);
}

#define MUCH ((size_t)128 << 20)

static void have_much_memory(void)
{
	char *much = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (much == MAP_FAILED)
		_exit(1);
	madvise(much, MUCH, MADV_NOHUGEPAGE);
	memset(much, 1, MUCH);
	is_ready();
}

/* A fork cannot be aborted; but the process is not held beyond its limit, and a partial copy is not used. */
Test(stopped_copy, a_fork_that_takes_longer_than_the_pause_gives_no_copy)
{
	const pid_t pid = child(have_much_memory);
	struct dp_stopped *s = held_for(pid, 1);
	bool late = false;
	char byte;
	cr_expect_eq(dp_stopped_mode(s), DP_STOPPED_STOP);
	cr_expect(dp_stopped_why_not_fork(s) && strstr(dp_stopped_why_not_fork(s), "--max-pause"), "%s",
	          dp_stopped_why_not_fork(s));
	cr_expect(!dp_stopped_is_held(s));
	cr_expect_eq(dp_stopped_nthreads(s), 1);
	cr_expect_eq(dp_stopped_read(s, (uint64_t)(uintptr_t)&shared, &byte, 1, &late), 1);
	cr_expect(late);
	cr_expect_eq(number_in("/proc/%d/task/%d/children", pid), 0, "none is left");
	dp_stopped_close(s);
	kill_child(pid);
}

/* ---- a tool that is killed while the copy exists ------------------------------------------------------------------------ */

static pid_t tool_with_a_copy(pid_t pid)
{
	const pid_t tool = fork();
	if (!tool) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		struct dp_stopped *s = held(pid);
		atomic_store(&shared->go, dp_stopped_mode(s) == DP_STOPPED_FORK ? 1 : 2);
		for (;;)
			pause();
	}
	cr_assert(until(atomic_load(&shared->go)));
	cr_assert_eq(atomic_load(&shared->go), 1);
	cr_assert_gt(number_in("/proc/%d/task/%d/children", pid), 0);
	return tool;
}

static char state_of(pid_t pid)
{
	char path[64], text[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	const size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	const char *end = n ? strrchr(text, ')') : NULL;
	return end ? end[2] : '-';
}

Test(stopped_copy, a_tool_that_is_killed_leaves_no_entry_in_the_list_of_children, .timeout = 60)
{
	const pid_t pid = child(is_ready);
	kill_child(tool_with_a_copy(pid));
	cr_assert(until(!number_in("/proc/%d/task/%d/children", pid)));
	kill_child(pid);
}

Test(stopped_copy, what_a_tool_killed_with_its_heir_has_left_the_next_one_clears, .timeout = 60)
{
	const pid_t pid = child(is_ready), tool = tool_with_a_copy(pid);
	const pid_t copy = (pid_t)number_in("/proc/%d/task/%d/children", pid);
	pid_t heir;
	cr_assert(until((heir = (pid_t)number_in("/proc/%d/task/%d/children", tool)) != 0));
	kill(heir, SIGKILL);
	kill_child(tool);
	cr_assert(until(state_of(copy) == 'Z'));
	dp_stopped_close(held(pid));
	cr_expect_eq(number_in("/proc/%d/task/%d/children", pid), 0);
	kill_child(pid);
}
