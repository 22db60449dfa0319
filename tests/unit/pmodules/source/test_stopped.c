/* SPDX-License-Identifier: MIT */
/* A child with known registers and memory, stopped in each mode. */
#include "pmodules/source/stopped.h"

#include "tests/unit/until.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define MARK UINT64_C(0x1122334455660000)

struct shared { /* shared by the child and the test */
	atomic_uint ready;
	pid_t waiter;
};
struct private_words { /* in a page of its own, private to the child */
	uint64_t before, after;
} __attribute__((aligned(4096)));

static struct shared *shared;
static struct private_words words;
static int never[2];

static void *wait_marked(void *arg)
{
	static const double lane[2] = {1.5, 2.5};
	char c;
	long rc;
	(void)arg;
	shared->waiter = (pid_t)syscall(SYS_gettid);
	atomic_fetch_add(&shared->ready, 1);
	__asm__ volatile("movupd %[lane], %%xmm9\n\t"
	                 "mov %[mark], %%r13\n\t"
	                 "syscall"
	                 : "=a"(rc)
	                 : "0"(SYS_read), "D"(never[0]), "S"(&c), "d"(1), [lane] "m"(lane), [mark] "r"(MARK)
	                 : "rcx", "r11", "r13", "xmm9", "memory");
	return (void *)rc;
}

static void *count(void *arg)
{
	atomic_fetch_add(&shared->ready, 1);
	for (;;) {
		((volatile struct private_words *)&words)->before++;
		__asm__ volatile("" ::: "memory");
		((volatile struct private_words *)&words)->after++;
		if (arg)
			nanosleep(&(struct timespec){0, 1000}, NULL);
	}
	return NULL;
}

static pid_t child(void)
{
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(shared != MAP_FAILED && !pipe(never));
	const pid_t pid = fork();
	if (!pid) {
		pthread_t t;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pthread_create(&t, NULL, wait_marked, NULL) || pthread_create(&t, NULL, count, NULL))
			_exit(1);
		for (;;)
			if (waitpid(-1, NULL, 0) == -1)
				pause();
	}
	cr_assert(until(atomic_load(&shared->ready) >= 2));
	for (char text[64] = ""; strncmp(text, "0 ", 2);) { /* until it waits in read */
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, shared->waiter);
		FILE *f = fopen(path, "re");
		if (!f || !fgets(text, sizeof(text), f))
			*text = '\0';
		if (f)
			fclose(f);
	}
	return pid;
}

static struct dp_stopped *held(pid_t pid, enum dp_stopped_mode mode)
{
	struct dp_stopped *s = NULL;
	const struct dp_stopped_options options = {.mode = mode};
	struct dp_error *err = dp_stopped_open(pid, &options, &s);
	cr_assert_null(err, "%s", err ? err->message : "");
	err = dp_stopped_hold(s);
	cr_assert_null(err, "%s", err ? err->message : "");
	return s;
}

static uint64_t word_at(struct dp_stopped *s, const uint64_t *at, bool *late)
{
	uint64_t value = UINT64_MAX;
	cr_assert_eq(dp_stopped_read(s, (uint64_t)(uintptr_t)at, &value, sizeof(value), late), sizeof(value));
	return value;
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(text, sizeof(text), f) && strncmp(text, "TracerPid:", 10))
		;
	if (f)
		fclose(f);
	return text[11];
}

static void expect_truth(struct dp_stopped *s)
{
	bool found = false;
	cr_expect_eq(dp_stopped_nthreads(s), 3);
	for (size_t i = 0; i < dp_stopped_nthreads(s); i++) {
		const struct dp_stopped_thread *t = dp_stopped_thread(s, i);
		cr_expect(!i || dp_stopped_thread(s, i - 1)->tid < t->tid);
		if (t->tid != shared->waiter)
			continue;
		const double lane[2] = {1.5, 2.5};
		found = true;
		cr_expect_eq(t->regs.r13, MARK);
		cr_expect(t->has_vector && !memcmp(t->xmm[9], lane, sizeof(lane)));
		cr_expect(t->syscall == SYS_read && t->args[0] == (uint64_t)never[0] && t->args[2] == 1);
		cr_expect_eq(t->state, 'S');
		cr_expect_eq(t->siginfo.si_signo, 0);
		cr_expect(!t->is_fault);
	}
	cr_expect(found);
}

Test(stopped, stop_shows_registers_and_memory_of_one_moment)
{
	const pid_t pid = child();
	struct dp_stopped *s = held(pid, DP_STOPPED_STOP);
	bool late = true;
	expect_truth(s);
	const uint64_t before = word_at(s, &words.before, &late);
	cr_expect(!late && dp_stopped_is_held(s));
	dp_stopped_release(s);
	const uint64_t after = word_at(s, &words.after, &late); /* on the same page, which is cached */
	cr_expect(!late);
	cr_expect(before - after <= 1, "%llu %llu", (unsigned long long)before, (unsigned long long)after);
	struct dp_stopped_times times;
	dp_stopped_times(s, &times);
	cr_expect(times.pause_ns > 0 && times.pause_ns >= times.stop_ns && times.holds == 1);
	dp_stopped_close(s);
	cr_expect_eq(state_of(pid), '0');
	kill_child(pid);
}

Test(stopped, quick_marks_what_was_read_after_the_release)
{
	const pid_t pid = child();
	struct dp_stopped *s = held(pid, DP_STOPPED_QUICK);
	bool late = false;
	dp_stopped_release(s);
	word_at(s, &words.before, &late);
	cr_expect(late);
	cr_expect_eq(dp_stopped_nlate(s), 1);
	const struct dp_stopped_thread *t = dp_stopped_thread(s, 0);
	uint64_t top;
	late = true;
	cr_expect_eq(dp_stopped_read(s, t->regs.rsp, &top, sizeof(top), &late), sizeof(top));
	cr_expect(!late, "stacks were prefetched");
	dp_stopped_close(s);
	kill_child(pid);
}

Test(stopped, a_second_hold_reads_at_once_what_the_first_missed)
{
	const pid_t pid = child();
	struct dp_stopped *s = held(pid, DP_STOPPED_STOP);
	bool late = false;
	dp_stopped_release(s);
	const uint64_t first = word_at(s, &words.before, &late);
	cr_expect(late && dp_stopped_nlate(s) == 1);
	struct dp_error *err = dp_stopped_hold(s);
	cr_assert_null(err);
	dp_stopped_release(s);
	const uint64_t second = word_at(s, &words.before, &late), after = word_at(s, &words.after, NULL);
	cr_expect(!late && dp_stopped_nlate(s) == 0);
	cr_expect(second >= first && second - after <= 1);
	dp_stopped_close(s);
	kill_child(pid);
}

/* The copy exists while the program continues; the program's wait() does not see it, and no zombie is left. */
Test(stopped, fork_is_a_moment_that_lasts_and_leaves_no_child)
{
	const pid_t pid = child();
	struct dp_stopped *s = held(pid, DP_STOPPED_FORK);
	bool late = true;
	cr_assert_eq(dp_stopped_mode(s), DP_STOPPED_FORK, "%s", dp_stopped_why_not_fork(s));
	cr_expect(!dp_stopped_is_held(s));
	expect_truth(s);
	nanosleep(&(struct timespec){0, 20000000}, NULL); /* the program counts meanwhile */
	const uint64_t before = word_at(s, &words.before, &late), after = word_at(s, &words.after, &late);
	cr_expect(!late && before - after <= 1, "%llu %llu", (unsigned long long)before, (unsigned long long)after);
	uint64_t ready = 0;
	cr_expect_eq(dp_stopped_read(s, (uint64_t)(uintptr_t)shared, &ready, sizeof(ready), &late), sizeof(ready));
	cr_expect(late, "shared memory keeps changing");
	dp_stopped_close(s);
	char path[64], text[64] = "";
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	FILE *f = fopen(path, "re");
	cr_expect(!f || !fgets(text, sizeof(text), f), "a child is left: %s", text);
	if (f)
		fclose(f);
	cr_expect_eq(state_of(pid), '0');
	kill_child(pid);
}

/* In such a short pause a busy machine may not give every thread a processor to stop on. */
static void hold_in_time(struct dp_stopped *s)
{
	struct dp_error *err = dp_stopped_hold(s);
	for (int i = 0; i < 1000 && err && err->tag == DP_TAG_UNSTOPPABLE; i++) {
		dp_error_destroy(err);
		err = dp_stopped_hold(s);
	}
	cr_assert_null(err);
}

Test(stopped, the_longest_pause_is_kept)
{
	const pid_t pid = child();
	struct dp_stopped *s = NULL;
	const struct dp_stopped_options options = {.mode = DP_STOPPED_STOP, .max_pause_ns = 1};
	cr_assert_null(dp_stopped_open(pid, &options, &s));
	hold_in_time(s);
	bool late = false;
	word_at(s, &words.before, &late);
	cr_expect(!dp_stopped_is_held(s) && late);
	dp_stopped_close(s);
	kill_child(pid);
}

Test(stopped, what_is_not_mapped_is_not_read)
{
	const pid_t pid = child();
	struct dp_stopped *s = held(pid, DP_STOPPED_STOP);
	char buf[64];
	cr_expect_eq(dp_stopped_read(s, 0, buf, sizeof(buf), NULL), 0);
	cr_expect_eq(dp_stopped_read(s, 8, buf, sizeof(buf), NULL), 0);
	cr_expect_eq(dp_stopped_read(s, UINT64_MAX - 8, buf, sizeof(buf), NULL), 0);
	cr_expect_eq(dp_stopped_read(s, UINT64_C(0x800000000000) - 8, buf, sizeof(buf), NULL), 0);
	cr_expect_eq(dp_stopped_read(s, 0x10000, buf, sizeof(buf), NULL), 0);
	dp_stopped_close(s);
	kill_child(pid);
}

static void count_each(const struct dp_stopped_thread *t, void *data)
{
	unsigned *n = data;
	*n += t->regs.rip != 0;
}

Test(stopped, a_glimpse_meets_every_thread_and_leaves_all_running)
{
	const pid_t pid = child();
	struct dp_stopped *s = NULL;
	unsigned n = 0;
	const struct dp_stopped_options options = {.mode = DP_STOPPED_STOP};
	cr_assert_null(dp_stopped_open(pid, &options, &s));
	cr_assert_null(dp_stopped_sample(s, count_each, &n));
	cr_expect_eq(n, 3);
	cr_expect_eq(state_of(pid), '0');
	dp_stopped_close(s);
	kill_child(pid);
}

static struct {
	unsigned taken, asked, gone;
	bool waits;
} hit_seen;

static bool take(void *data)
{
	(void)data;
	hit_seen.taken++;
	return true;
}

static bool waits(void *data)
{
	(void)data;
	hit_seen.asked++;
	return hit_seen.waits;
}

static void let_go(void *data)
{
	(void)data;
	hit_seen.gone++;
}

/* The other threads may run while dynprobe interprets the data: the hit's thread does not move in between. */
Test(stopped, the_thread_of_a_hit_is_there_for_several_holds)
{
	const pid_t pid = child();
	struct dp_stopped *s = NULL;
	const struct dp_stopped_hit hit = {
	        .ns_tid = shared->waiter, .regs = {.rip = 0x1234}, .take = take, .waits = waits, .let_go = let_go};
	const struct dp_stopped_options options = {.hit = &hit};
	cr_assert_null(dp_stopped_open(pid, &options, &s));
	for (unsigned i = 1; i <= 2; i++) {
		cr_assert_null(dp_stopped_hold(s));
		dp_stopped_release(s);
		cr_expect_eq(hit_seen.taken, i);
		cr_expect_eq(hit_seen.gone, 0);
		hit_seen.waits = true;
		cr_expect(dp_stopped_may_hold_again(s));
		hit_seen.waits = false;
		cr_expect_not(dp_stopped_may_hold_again(s), "the thread is about to resume");
	}
	dp_stopped_let_go(s);
	dp_stopped_let_go(s);
	cr_expect_eq(hit_seen.gone, 1);
	cr_expect_eq(hit_seen.asked, 4);
	dp_stopped_close(s);
	kill_child(pid);
}
