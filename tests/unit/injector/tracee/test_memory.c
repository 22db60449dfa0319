/* SPDX-License-Identifier: MIT */
#include "helper_tracee.h"

#include "injector/loads.h"
#include "injector/target/target.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static uint8_t *pages;

/* Two pages of a stack, and after them a page such as a library might have there. */
static void with_a_library_behind(void)
{
	uint8_t *at = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(at + 2 * 4096, 2 * 4096, PROT_READ);
	tr->value[0] = (long)at;
	tr->ready = 1;
	for (;;)
		pause();
}

/* PROCMAP_QUERY came with Linux 6.11. */
static bool kernel_says_what_is_mapped(void)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	cr_assert(!uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2);
	return major > 6 || (major == 6 && minor >= 11);
}

/* The readable page after the stack must not be searched while the thread is stopped. The reported end is never too low. */
Test(memory, a_stack_ends_where_nothing_can_be_written)
{
	pid_t pid = tr_spawn(with_a_library_behind);
	const struct dp_process p = tr_process(pid);
	const uint64_t at = (uint64_t)tr->value[0], most = at + 4 * 4096, end = dp_writable_end(&p, at + 100, most);
	cr_assert_eq(end, kernel_says_what_is_mapped() ? at + 2 * 4096 : most, "%lx", end - at);
	cr_assert_eq(dp_writable_end(&p, at + 100, at + 4096), at + 4096, "the result is beyond the requested range");
	cr_assert_eq(dp_writable_end(&p, at + 2 * 4096, most), most, "an invalid stack pointer does not limit the range");
	tr_kill(pid);
}

static void holder(void)
{
	pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(pages, 0x5a, 2 * 4096);
	mprotect(pages + 4096, 4096, PROT_EXEC);
	munmap(pages + 2 * 4096, 4096);
	tr->value[0] = (long)pages;
	tr->ready = 1;
	for (;;)
		pause();
}

/* Since Linux 6.12 a kernel may give execute-only pages to a tracer alone (proc_mem.force_override=ptrace). */
static bool kernel_shows_execute_only(pid_t pid, uint64_t at)
{
	char path[64], byte;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool shows = pread(fd, &byte, 1, (off_t)at) == 1;
	close(fd);
	return shows;
}

Test(memory, reads_from_the_front_up_to_the_hole)
{
	pid_t pid = tr_spawn(holder);
	struct dp_process p = tr_process(pid);
	static uint8_t buf[3 * 4096];
	dp_addr at = dp_addr_of((uint64_t)tr->value[0]);
	const size_t n = kernel_shows_execute_only(pid, at.v + 4096) ? 2 * 4096 : 4096; /* the second page is execute-only */
	cr_assert_eq(dp_mem_read(&p, at, buf, sizeof(buf)), n);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(buf[i], 0x5a);
	cr_assert_eq(dp_mem_read(&p, dp_addr_add(at, 2 * 4096), buf, 1), 0);
	tr_kill(pid);
}

Test(memory, text_is_written_where_the_target_cannot_write)
{
	pid_t pid = tr_spawn(holder);
	struct dp_process p = tr_process(pid);
	uint8_t want[13] = "thirteen byt", got[15];
	struct dp_freeze f;
	bool poke = true;
	dp_addr at = dp_addr_of((uint64_t)tr->value[0] + 4096 + 3);
	tr_tag(dp_mem_write(&p, at, want, sizeof(want)), DP_TAG_SYS);
	tr_ok(dp_freeze_all(&p, TR_LIMIT, &f));
	tr_ok(dp_mem_write_text(&p, pid, at, want, sizeof(want), &poke));
	cr_assert_not(poke);
	tr_tag(dp_mem_write_text(&p, pid, dp_addr_of((uint64_t)tr->value[0] + 2 * 4096), want, 4, NULL), DP_TAG_SYS);
	cr_assert_eq(dp_mem_read(&p, dp_addr_add(at, -1), got, sizeof(got)), sizeof(got));
	dp_thaw_all(&f);
	cr_assert_eq(memcmp(got + 1, want, sizeof(want)), 0);
	cr_assert(got[0] == 0x5a && got[14] == 0x5a, "neighbours changed");
	tr_kill(pid);
}

Test(memory, data_is_written_without_a_stop)
{
	pid_t pid = tr_spawn(holder);
	struct dp_process p = tr_process(pid);
	char got[6];
	tr_ok(dp_mem_write(&p, dp_addr_of((uint64_t)tr->value[0]), "hello", 6));
	cr_assert_eq(dp_mem_read(&p, dp_addr_of((uint64_t)tr->value[0]), got, 6), 6);
	cr_assert_str_eq(got, "hello");
	tr_kill(pid);
	tr_tag(dp_mem_write(&p, dp_addr_of((uint64_t)tr->value[0]), "hello", 6), DP_TAG_GONE);
}

/* ---- a number that belonged to a thread of the target ------------------------------------------------------------------- */

static char word[8];

static void *brief(void *arg)
{
	tr->value[0] = syscall(SYS_gettid);
	tr->ready = 1;
	tr_await_value(&tr->value[1], 1);
	return arg;
}

static void with_a_brief_thread(void)
{
	pthread_t t;
	pthread_create(&t, NULL, brief, NULL);
	pthread_join(t, NULL);
	tr->value[2] = 1;
	for (;;)
		pause();
}

/* Another program, with other contents at the same address. */
static pid_t stranger(pid_t number)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
	const pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static bool holds(pid_t pid, const char *want)
{
	char now[sizeof(word)] = {0};
	const struct dp_process p = {.pid = pid, .alive = pid};
	return dp_mem_read(&p, dp_addr_of((uint64_t)(uintptr_t)word), now, sizeof(now)) == sizeof(now) && !strcmp(now, want);
}

Test(memory, nothing_is_written_to_a_stranger_that_has_got_the_threads_number)
{
	strcpy(word, "before");
	const pid_t pid = tr_spawn(with_a_brief_thread);
	struct dp_process p = tr_process(pid);
	p.alive = (pid_t)tr->value[0];
	tr_ok(dp_mem_open(&p));
	tr->value[1] = 1;
	cr_assert(tr_await_value(&tr->value[2], 1));
	pid_t other = -1;
	until((other = stranger(p.alive)) >= 0 || errno != EEXIST); /* the kernel frees the number a moment after the join */
	if (other < 0)
		cr_skip_test("cannot create a process with a given pid: %s", strerror(errno));
	cr_assert_eq(other, p.alive);
	tr_ok(dp_mem_write(&p, dp_addr_of((uint64_t)(uintptr_t)word), "after", 6));
	cr_expect(holds(pid, "after"));
	cr_expect(holds(other, "before"), "the stranger's memory was written to");
	tr_kill(pid);
	tr_tag(dp_mem_write(&p, dp_addr_of((uint64_t)(uintptr_t)word), "late", 5), DP_TAG_GONE);
	cr_expect(holds(other, "before"), "the stranger's memory was written to");
	dp_mem_close(&p);
	tr_kill(other);
}

static void execs(void)
{
	tr->ready = 1;
	tr_await_value(&tr->value[0], 1);
	execl("/bin/sleep", "sleep", "1000", NULL);
}

Test(memory, nothing_is_written_to_a_program_that_the_target_has_become)
{
	const pid_t pid = tr_spawn(execs);
	struct dp_process p = tr_process(pid);
	tr_ok(dp_mem_open(&p));
	tr_ok(dp_mem_write(&p, dp_addr_of((uint64_t)(uintptr_t)word), "after", 6));
	tr->value[0] = 1;
	struct dp_error *err;
	until((err = dp_mem_write(&p, dp_addr_of((uint64_t)(uintptr_t)word), "late", 5)) != NULL);
	tr_tag(err, DP_TAG_GONE);
	dp_mem_close(&p);
	tr_kill(pid);
}

Test(memory, of_a_process_that_is_another_by_now_is_not_opened)
{
	const pid_t pid = tr_spawn(holder);
	struct dp_process p = tr_process(pid);
	p.start_time--;
	tr_tag(dp_mem_open(&p), DP_TAG_GONE);
	cr_expect_eq(p.mem, 0);
	tr_kill(pid);
}

Test(memory, of_every_target_is_opened_with_it)
{
	const struct dp_target_options options = {0};
	struct dp_target *t, *beside, *launched;
	const pid_t pid = tr_spawn(holder);
	tr_ok(dp_target_open(pid, &options, &t));
	tr_ok(dp_target_open_beside(t, &beside));
	tr_ok(dp_target_launch((char *[]){"/bin/true", NULL}, &options, &launched));
	cr_expect_gt(t->process.mem, 0);
	cr_expect_gt(beside->process.mem, 0);
	cr_expect_neq(beside->process.mem, t->process.mem);
	cr_expect_gt(launched->process.mem, 0);
	dp_target_close(launched);
	dp_target_close(beside);
	dp_target_close(t);
	tr_kill(pid);
}
