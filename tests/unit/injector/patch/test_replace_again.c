/* SPDX-License-Identifier: MIT */
/* Repeated page replacement; and a tool that dies, or times out, during one. */
#include "helper_replace.h"
#include "injector/patch/remove.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- repeated replacement ----------------------------------------------------------------------------------------------- */

static void put(pid_t pid, uint64_t at, uint8_t byte)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	const int fd = open(path, O_RDWR);
	cr_assert_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
	close(fd);
}

static void toggle(struct dp_target *t, const struct dp_installation *in, uint64_t at, int times)
{
	struct dp_replace *s = NULL;
	tr_ok(dp_replace_create(t, in, &s));
	dp_replace_stay_hot(s);
	for (int i = 0; i < times; i++) {
		const uint8_t *bytes = i % 2 ? (const uint8_t *)(uintptr_t)at : sw_other; /* our own text has the file's bytes */
		cr_assert(dp_replace_write(s, &(struct dp_replace_edit){at, 5, 0, 5, bytes}));
		tr_ok(dp_replace_commit(s, NULL, NULL));
		cr_assert(dp_replace_stands(s, at));
		dp_replace_again(s);
		cr_assert(sw_holds(t->process.pid, at, bytes, 5));
	}
	dp_replace_destroy(s);
}

static void toggles(void (*fn)(void), uint64_t at, bool copy)
{
	pid_t pid = tr_spawn(fn);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	toggle(t, in, at, 2);
	const size_t lines = pr_lines(pid);
	toggle(t, in, at, 400);
	cr_assert_eq(tr->failed, 0);
	cr_assert_leq(pr_lines(pid), lines, "mappings grow: %zu from %zu", pr_lines(pid), lines);
	cr_assert_eq(sw_is_copy(t, at), copy);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

Test(swap_again, toggles_of_one_thread_are_written_in_place)
{
	toggles(sw_alone, (uint64_t)(uintptr_t)sw_text, true);
}

Test(swap_again, toggles_of_several_threads_are_new_pages)
{
	toggles(sw_crossing, (uint64_t)(uintptr_t)sw_text, false);
}

Test(swap_again, toggles_of_a_site_in_two_pages_are_new_pages)
{
	toggles(sw_alone, sw_at_cross(), false);
}

/* dynprobe does not overwrite what another tool wrote into the page since it read the page. */
Test(swap_again, toggles_refuse_a_page_that_somebody_else_changed)
{
	const uint64_t at = (uint64_t)(uintptr_t)sw_text;
	pid_t pid = tr_spawn(sw_alone);
	const struct dp_installation *in;
	struct dp_replace *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	tr_ok(dp_replace_create(t, in, &s));
	dp_replace_stay_hot(s);
	for (int i = 0; i < 3; i++) {
		cr_assert(dp_replace_write(s, &(struct dp_replace_edit){at, 5, 0, 5, i % 2 ? sw_one : sw_other}));
		if (i == 2)
			put(pid, at + 100, 0xcd);
		struct dp_error *err = dp_replace_commit(s, NULL, NULL);
		if (i < 2)
			tr_ok(err);
		else
			tr_tag(err, DP_TAG_CHANGED);
		dp_replace_again(s);
	}
	cr_assert(sw_holds(pid, at, sw_one, 5));
	cr_assert(sw_holds(pid, at + 100, (const uint8_t[]){0xcd}, 1));
	dp_replace_destroy(s);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* ---- the tool dies ------------------------------------------------------------------------------------------------------ */

enum what { PAGE, WHOLE, HOT };
enum { KILLED = -1, DONE = 0, GAVE_UP = 4 };

static void commit_again(struct dp_replace *s, const uint8_t *bytes)
{
	dp_replace_again(s);
	dp_replace_write(s, &(struct dp_replace_edit){(uint64_t)(uintptr_t)sw_text, 5, 0, 5, bytes});
}

static void be_killed_in_a_swap(pid_t target, enum what what)
{
	struct dp_target *t = NULL;
	struct dp_replace *s = NULL;
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dp_target_open(target, PR_GATES, &t) || dp_target_nresidents(t) != 1 ||
	    dp_replace_create(t, &dp_target_resident(t, 0)->in, &s))
		_exit(3);
	const uint8_t *bytes = sw_holds(target, sw_at_cross(), sw_one, 5) ? sw_other : sw_one;
	dp_replace_write(s, &(struct dp_replace_edit){sw_at_cross(), 5, 0, 5, bytes});
	if (what == HOT) {
		dp_replace_stay_hot(s);
		if (dp_replace_commit(s, NULL, NULL))
			_exit(GAVE_UP);
		for (int i = 0; i < 2; i++) {
			commit_again(s, i ? sw_one : sw_other);
			if (i == 0 && dp_replace_commit(s, NULL, NULL))
				_exit(GAVE_UP);
		}
	}
	for (unsigned i = 0; what == WHOLE && i < 5; i++)
		dp_replace_write(s, &(struct dp_replace_edit){(uint64_t)(uintptr_t)sw_text + 2 * i * DP_PAGE, 5, 0, 5, bytes});
	raise(SIGSTOP); /* the test counts system calls from here on */
	_exit(dp_replace_commit(s, NULL, NULL) ? GAVE_UP : DONE);
}

/* GAVE_UP: on a busy machine, with its tool traced, no thread could be borrowed in time. */
static int killed_at(pid_t target, enum what what, long wanted)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		be_killed_in_a_swap(target, what);
	do
		waitpid(pid, &status, 0);
	while (WIFSTOPPED(status) && WSTOPSIG(status) != SIGSTOP &&
	       !ptrace(PTRACE_CONT, pid, NULL, (void *)(long)WSTOPSIG(status)));
	for (long stops = 0; WIFSTOPPED(status) && stops < wanted; stops++) {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		waitpid(pid, &status, 0);
	}
	if (!WIFSTOPPED(status)) {
		cr_assert(WIFEXITED(status) && (WEXITSTATUS(status) & ~GAVE_UP) == 0, "the tool failed: %x", status);
		return WEXITSTATUS(status);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return KILLED;
}

static void deaths(enum what what)
{
	pid_t pid = tr_spawn(what == HOT ? sw_alone : sw_crossing);
	const long least = what == HOT ? 20 : 50; /* system calls of a commit */
	pr_attach_one(pid, PR_FOO, "group");
	killed_at(pid, what, 1000000);
	killed_at(pid, what, 1000000);
	const size_t descriptors = pr_descriptors(pid), ours = pr_mappings(pid);
	size_t lines = pr_lines(pid);
	long n = 1;
	for (;; n += 1 + n / 25) { /* most of the later ones only wait for a thread to stand */
		const int end = killed_at(pid, what, n);
		pr_goes_on();
		const struct dp_installation *in;
		dp_target_close(sw_open_group(pid, &in)); /* a later tool cleans up */
		cr_assert(sw_holds(pid, sw_at_cross(), sw_one, 5) || sw_holds(pid, sw_at_cross(), sw_other, 5));
		cr_assert_eq(pr_descriptors(pid), descriptors, "a descriptor is left, death %ld", n);
		cr_assert_eq(pr_mappings(pid), ours, "death %ld", n);
		cr_assert_leq(pr_lines(pid), lines + 4, "mappings are left, death %ld: %zu of %zu", n, pr_lines(pid), lines);
		if (end == DONE || (end == GAVE_UP && n > least))
			break;
	}
	cr_assert_gt(n, least, "the test tests nothing");
	pr_goes_on();
	tr_kill(pid);
}

Test(swap_again, tool_killed_at_every_system_call_of_a_page)
{
	deaths(PAGE);
}

Test(swap_again, tool_killed_at_every_system_call_of_a_whole_text)
{
	deaths(WHOLE);
}

Test(swap_again, tool_killed_at_every_system_call_of_a_write_in_place)
{
	deaths(HOT);
}

/*
 * Makes what a late system call would make after dynprobe gave up waiting for it: a mapping. dynprobe must find it by the note.
 * Returns the mapping's address.
 */
static uint64_t make_too_late(struct dp_target *t, const struct dp_installation *in)
{
	struct dp_borrow *b;
	struct dp_replace *s = NULL;
	struct dp_replace_span span;
	char why[192];
	tr_ok(dp_replace_create(t, in, &s));
	cr_assert(dp_replace_span_at(s, sw_at_cross(), &span, why), "%s", why);
	const struct dp_replace_note note = {DP_REPLACE_MAGIC, 0x3fff00000000,  span.start,          span.end,
	                                     span.offset,      span.map->inode, span.map->dev_major, span.map->dev_minor};
	const uint64_t at = dp_replace_note_at(in), path = at + sizeof(note);
	tr_ok(dp_mem_write(&t->process, dp_addr_of(at), &note, sizeof(note)));
	tr_ok(dp_mem_write(&t->process, dp_addr_of(path), span.map->path, strlen(span.map->path) + 1));
	tr_ok(dp_borrow_one(t, TR_LIMIT, &b));
	const int64_t fd = tr_remote(b, SYS_openat, (uint64_t)AT_FDCWD, path, DP_REPLACE_OPEN, 0, 0, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(tr_remote(b, SYS_mmap, note.base, DP_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
	                       (uint64_t)fd, span.offset),
	             (int64_t)note.base);
	tr_ok(dp_borrow_end(b, NULL));
	dp_replace_destroy(s);
	return note.base;
}

Test(swap_again, what_a_call_made_too_late_is_tidied_up_by_the_next_transaction)
{
	pid_t pid = tr_spawn(sw_crossing);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	const size_t descriptors = pr_descriptors(pid);
	const uint64_t late = make_too_late(t, in);
	cr_assert_eq(pr_descriptors(pid), descriptors + 1);
	tr_ok(sw_write_one(t, in, sw_at_cross(), sw_other));
	cr_assert_eq(pr_descriptors(pid), descriptors);
	cr_assert_not(dp_replace_mapped(t, late));
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* No transaction follows: the note's page is unmapped, and with it the last trace of the mapping. */
Test(swap_again, what_a_call_made_too_late_is_tidied_up_before_all_is_unmapped)
{
	pid_t pid = tr_spawn(sw_crossing);
	const struct dp_installation *in;
	struct dp_remove_report report;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	struct dp_installation *group = (struct dp_installation *)(uintptr_t)in;
	tr_ok(dp_installation_restore(t, group, NULL, &report));
	const size_t descriptors = pr_descriptors(pid);
	const uint64_t late = make_too_late(t, in);
	cr_assert_eq(pr_descriptors(pid), descriptors + 1);
	tr_ok(dp_installation_remove(t, group, &report));
	cr_assert_eq(pr_descriptors(pid), descriptors);
	cr_assert_not(dp_replace_mapped(t, late));
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}
