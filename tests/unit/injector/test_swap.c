/* SPDX-License-Identifier: MIT */
/* Text replaced under running threads: no thread may ever see half of a change, nor lose what others wrote nearby. */
#include "helper_probe.h"

#include "injector/standing.h"
#include "injector/swap.h"

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

#define PAGES 12 /* each with a function of its own, one of which lies across the end of its page */

__asm__(".pushsection .text\n"
        ".balign 4096\n"
        ".globl sw_text, sw_cross\n"
        "sw_text:\n"
        ".rept 11\n"
        "	movl $1, %eax\n"
        "	ret\n"
        "	.balign 4096, 0xcc\n"
        ".endr\n"
        "	movl $1, %eax\n"
        "	ret\n"
        "	.fill 4094 - 6, 1, 0xcc\n"
        "sw_cross:\n"
        "	movl $0x01010101, %eax\n"
        "	ret\n"
        "	.balign 4096, 0xcc\n"
        ".popsection\n");

extern uint8_t sw_text[];
extern int sw_cross(void);

static const uint8_t one[] = {0xb8, 1, 1, 1, 1}, other[] = {0xb8, 2, 2, 2, 2};

static uint64_t cross(void)
{
	return (uint64_t)(uintptr_t)sw_cross;
}

static void *call(void *none)
{
	int (*volatile f)(void) = sw_cross;
	(void)none;
	for (;;) {
		const int got = f();
		if (got != 0x01010101 && got != 0x02020202)
			tr->failed++;
		tr->calls++;
	}
	return NULL;
}

static void crossing(void)
{
	for (int i = 1; i < 3; i++) {
		pthread_t t;
		pthread_create(&t, NULL, call, NULL);
	}
	tr->ready = 1;
	call(NULL);
}

static int (*const on_first_page)(void) = (int (*)(void))sw_text;

/* One thread. */
static void alone(void)
{
	int (*volatile f)(void) = on_first_page;
	tr->ready = 1;
	for (;;) {
		const int got = f();
		if (got != 1 && got != 0x02020202 && got != 0x01010101)
			tr->failed++;
		tr->calls++;
	}
}

static struct dp_target *open_group(pid_t pid, const struct dp_installation **in)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_target_nstanding(t), 1);
	*in = &dp_target_standing(t, 0)->in;
	return t;
}

static struct dp_error *write_one(struct dp_target *t, const struct dp_installation *in, uint64_t at, const uint8_t *bytes)
{
	struct dp_swap *s = NULL;
	struct dp_error *err = dp_swap_create(t, in, &s);
	if (!err && !dp_swap_write(s, &(struct dp_swap_edit){at, 5, 0, 5, bytes}))
		err = dp_error(DP_TAG_INTERNAL, "%s", dp_swap_why(s));
	if (!err)
		err = dp_swap_commit(s, NULL, NULL);
	if (!err && !dp_swap_stands(s, at))
		err = dp_error(DP_TAG_INTERNAL, "it does not stand");
	dp_swap_destroy(s);
	return err;
}

static bool holds(pid_t pid, uint64_t at, const uint8_t *bytes, size_t n)
{
	uint8_t now[16];
	const struct dp_process p = {.pid = pid, .alive = pid};
	return dp_mem_read(&p, dp_addr_of(at), now, n) == n && !memcmp(now, bytes, n);
}

static bool is_copy(struct dp_target *t, uint64_t at)
{
	uint8_t *copy = NULL;
	tr_ok(dp_swap_copies(t, dp_page_down(at), dp_page_down(at) + DP_PAGE, &copy));
	const bool is = copy[0];
	free(copy);
	return is;
}

Test(swap, threads_see_the_old_or_the_new_across_a_page_boundary)
{
	pid_t pid = tr_spawn(crossing);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	size_t lines = 0;
	for (int i = 0; i < 300; i++) {
		tr_ok(write_one(t, in, cross(), other));
		cr_assert(holds(pid, cross(), other, 5));
		tr_ok(write_one(t, in, cross(), one));
		cr_assert(holds(pid, cross(), one, 5));
		if (!i)
			lines = pr_lines(pid);
		cr_assert_eq(tr->failed, 0);
	}
	cr_assert_leq(pr_lines(pid), lines, "mappings grow: %zu from %zu", pr_lines(pid), lines);
	cr_assert_not(is_copy(t, cross()), "the page is the file's again");
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* Whatever else stands in the pages stays, though it is neither the file's nor ours. */
static void carry(unsigned pages)
{
	static const uint8_t theirs[] = {0x90, 0x0f, 0x0b};
	const uint64_t text = (uint64_t)(uintptr_t)sw_text, at = text + (PAGES - 1) * DP_PAGE + 0x100;
	pid_t pid = tr_spawn(crossing);
	const struct dp_installation *in;
	struct dp_freeze f;
	struct dp_swap *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	tr_ok(dp_freeze_all(&t->process, TR_LIMIT, &f));
	tr_ok(dp_mem_write_text(&t->process, f.thread[0].tid, dp_addr_of(at), theirs, sizeof(theirs), NULL));
	tr_ok(dp_mem_write_text(&t->process, f.thread[0].tid, dp_addr_of(text + DP_PAGE + 0x100), theirs, sizeof(theirs), NULL));
	dp_thaw_all(&f);
	const size_t descriptors = pr_descriptors(pid);
	tr_ok(dp_swap_create(t, in, &s));
	for (unsigned i = 0; i < pages; i++)
		cr_assert(dp_swap_write(s, &(struct dp_swap_edit){text + 2 * i * DP_PAGE, 5, 0, 5, other}));
	cr_assert(dp_swap_write(s, &(struct dp_swap_edit){cross(), 5, 2, 3, other + 2}));
	cr_assert(dp_swap_write(s, &(struct dp_swap_edit){cross(), 5, 0, 2, other}));
	uint64_t held = 0;
	tr_ok(dp_swap_commit(s, NULL, &held));
	cr_assert_gt(held, 0);
	dp_swap_destroy(s);
	for (unsigned i = 0; i < pages; i++)
		cr_assert(holds(pid, text + 2 * i * DP_PAGE, other, 5) && !holds(pid, text + (2 * i + 1) * DP_PAGE, other, 5));
	cr_assert(holds(pid, cross(), other, 5));
	cr_assert(holds(pid, at, theirs, sizeof(theirs)) && holds(pid, text + DP_PAGE + 0x100, theirs, sizeof(theirs)));
	cr_assert_not(pr_original(pid, PR_FOO), "the group's own probe stands");
	cr_assert_eq(pr_descriptors(pid), descriptors);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

Test(swap, bytes_of_others_are_carried_over_page_by_page)
{
	carry(1);
}

Test(swap, bytes_of_others_are_carried_over_with_the_whole_text)
{
	carry(5);
}

Test(swap, many_pages_one_by_one_do_not_make_many_mappings)
{
	pid_t pid = tr_spawn(crossing);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	const size_t lines = pr_lines(pid);
	struct dp_target *t = open_group(pid, &in);
	for (unsigned round = 0; round < 20; round++)
		for (unsigned i = 0; i < PAGES; i += 2)
			tr_ok(write_one(t, in, (uint64_t)(uintptr_t)sw_text + i * DP_PAGE, round % 2 ? one : other));
	cr_assert_leq(pr_lines(pid), lines + 2 * PAGES);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* ---- what cannot be replaced -------------------------------------------------------------------------------------------- */

static void locked(void)
{
	/* By the call itself: sanitizers make the C function do nothing. */
	if (syscall(SYS_mlock, cross() & ~UINT64_C(4095), UINT64_C(8192)))
		_exit(1);
	crossing();
}

Test(swap, locked_text_is_left_alone)
{
	pid_t pid = tr_spawn(locked);
	const struct dp_installation *in;
	struct dp_swap *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	tr_ok(dp_swap_create(t, in, &s));
	cr_assert_not(dp_swap_write(s, &(struct dp_swap_edit){cross(), 5, 0, 5, other}));
	cr_assert_not_null(strstr(dp_swap_why(s), "locks"));
	dp_swap_destroy(s);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

static void generated(void)
{
	static const uint8_t code[] = {0xb8, 1, 1, 1, 1, 0xc3};
	uint8_t *at = mmap(NULL, DP_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(at, code, sizeof(code));
	mprotect(at, DP_PAGE, PROT_READ | PROT_EXEC);
	tr->value[0] = (long)(uintptr_t)at;
	crossing();
}

Test(swap, generated_code_is_left_alone)
{
	pid_t pid = tr_spawn(generated);
	const struct dp_installation *in;
	struct dp_swap *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	tr_ok(dp_swap_create(t, in, &s));
	cr_assert_not(dp_swap_write(s, &(struct dp_swap_edit){(uint64_t)tr->value[0], 5, 0, 5, other}));
	dp_swap_destroy(s);
	dp_target_close(t);
	tr_kill(pid);
}

/* Somebody else writes between our look and our move: his bytes win, ours are refused. */
Test(swap, text_that_changes_meanwhile_is_not_replaced)
{
	static const uint8_t theirs[] = {0xf4};
	pid_t pid = tr_spawn(crossing);
	const struct dp_installation *in;
	struct dp_swap *s = NULL;
	struct dp_freeze f;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	const uint64_t at = (uint64_t)(uintptr_t)sw_text;
	tr_ok(dp_swap_create(t, in, &s));
	cr_assert(dp_swap_write(s, &(struct dp_swap_edit){at, 5, 0, 5, other}));
	tr_ok(dp_freeze_all(&t->process, TR_LIMIT, &f));
	tr_ok(dp_mem_write_text(&t->process, f.thread[0].tid, dp_addr_of(at + 64), theirs, 1, NULL));
	dp_thaw_all(&f);
	const size_t lines = pr_lines(pid);
	tr_tag(dp_swap_commit(s, NULL, NULL), DP_TAG_CHANGED);
	cr_assert(holds(pid, at, (const uint8_t[]){0xb8, 1, 0, 0, 0}, 5) && holds(pid, at + 64, theirs, 1));
	cr_assert_eq(pr_lines(pid), lines);
	dp_swap_destroy(s);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* ---- again and again ------------------------------------------------------------------------------------------------------- */

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
	struct dp_swap *s = NULL;
	tr_ok(dp_swap_create(t, in, &s));
	dp_swap_stay_hot(s);
	for (int i = 0; i < times; i++) {
		const uint8_t *bytes = i % 2 ? (const uint8_t *)(uintptr_t)at : other; /* ours is as the file has it */
		cr_assert(dp_swap_write(s, &(struct dp_swap_edit){at, 5, 0, 5, bytes}));
		tr_ok(dp_swap_commit(s, NULL, NULL));
		cr_assert(dp_swap_stands(s, at));
		dp_swap_again(s);
		cr_assert(holds(t->process.pid, at, bytes, 5));
	}
	dp_swap_destroy(s);
}

static void toggles(void (*fn)(void), uint64_t at, bool copy)
{
	pid_t pid = tr_spawn(fn);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	toggle(t, in, at, 2);
	const size_t lines = pr_lines(pid);
	toggle(t, in, at, 400);
	cr_assert_eq(tr->failed, 0);
	cr_assert_leq(pr_lines(pid), lines, "mappings grow: %zu from %zu", pr_lines(pid), lines);
	cr_assert_eq(is_copy(t, at), copy);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

Test(swap, toggles_of_one_thread_are_written_in_place)
{
	toggles(alone, (uint64_t)(uintptr_t)sw_text, true);
}

Test(swap, toggles_of_several_threads_are_new_pages)
{
	toggles(crossing, (uint64_t)(uintptr_t)sw_text, false);
}

Test(swap, toggles_of_a_site_in_two_pages_are_new_pages)
{
	toggles(alone, cross(), false);
}

/* In place or not: what another tool wrote into the page since it was read is not written over. */
Test(swap, toggles_refuse_a_page_that_somebody_else_changed)
{
	const uint64_t at = (uint64_t)(uintptr_t)sw_text;
	pid_t pid = tr_spawn(alone);
	const struct dp_installation *in;
	struct dp_swap *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	tr_ok(dp_swap_create(t, in, &s));
	dp_swap_stay_hot(s);
	for (int i = 0; i < 3; i++) {
		cr_assert(dp_swap_write(s, &(struct dp_swap_edit){at, 5, 0, 5, i % 2 ? one : other}));
		if (i == 2)
			put(pid, at + 100, 0xcd);
		struct dp_error *err = dp_swap_commit(s, NULL, NULL);
		if (i < 2)
			tr_ok(err);
		else
			tr_tag(err, DP_TAG_CHANGED);
		dp_swap_again(s);
	}
	cr_assert(holds(pid, at, one, 5));
	cr_assert(holds(pid, at + 100, (const uint8_t[]){0xcd}, 1));
	dp_swap_destroy(s);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* ---- the tool dies --------------------------------------------------------------------------------------------------------- */

enum what { PAGE, WHOLE, HOT };

static void commit_again(struct dp_swap *s, const uint8_t *bytes)
{
	dp_swap_again(s);
	dp_swap_write(s, &(struct dp_swap_edit){(uint64_t)(uintptr_t)sw_text, 5, 0, 5, bytes});
}

static void be_killed_in_a_swap(pid_t target, enum what what)
{
	struct dp_target *t = NULL;
	struct dp_swap *s = NULL;
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dp_target_open(target, PR_GATES, &t) || dp_target_nstanding(t) != 1 ||
	    dp_swap_create(t, &dp_target_standing(t, 0)->in, &s))
		_exit(3);
	const uint8_t *bytes = holds(target, cross(), one, 5) ? other : one;
	dp_swap_write(s, &(struct dp_swap_edit){cross(), 5, 0, 5, bytes});
	if (what == HOT) {
		dp_swap_stay_hot(s);
		if (dp_swap_commit(s, NULL, NULL))
			_exit(4);
		for (int i = 0; i < 2; i++) {
			commit_again(s, i ? one : other);
			if (i == 0 && dp_swap_commit(s, NULL, NULL))
				_exit(4);
		}
	}
	for (unsigned i = 0; what == WHOLE && i < 5; i++)
		dp_swap_write(s, &(struct dp_swap_edit){(uint64_t)(uintptr_t)sw_text + 2 * i * DP_PAGE, 5, 0, 5, bytes});
	raise(SIGSTOP); /* from here on system calls are counted */
	_exit(dp_swap_commit(s, NULL, NULL) ? 4 : 0);
}

/* True if it got there, and was killed; false if it had ended before. */
static bool killed_at(pid_t target, enum what what, long wanted)
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
		/* 4: on a busy machine, with its tool traced, no thread could be borrowed in time. */
		cr_assert(WIFEXITED(status) && (WEXITSTATUS(status) & ~4) == 0, "the tool failed: %x", status);
		return WEXITSTATUS(status) == 4;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return true;
}

static void deaths(enum what what)
{
	pid_t pid = tr_spawn(what == HOT ? alone : crossing);
	pr_attach_one(pid, PR_FOO, "group");
	killed_at(pid, what, 1000000);
	killed_at(pid, what, 1000000);
	const size_t descriptors = pr_descriptors(pid), ours = pr_mappings(pid);
	size_t lines = pr_lines(pid);
	long n = 1;
	for (;; n += 1 + n / 50) { /* most of the later ones only wait for a thread to stand */
		const bool died = killed_at(pid, what, n);
		pr_goes_on();
		const struct dp_installation *in;
		dp_target_close(open_group(pid, &in)); /* a later tool tidies up */
		cr_assert(holds(pid, cross(), one, 5) || holds(pid, cross(), other, 5));
		cr_assert_eq(pr_descriptors(pid), descriptors, "a descriptor stays, death %ld", n);
		cr_assert_eq(pr_mappings(pid), ours, "death %ld", n);
		cr_assert_leq(pr_lines(pid), lines + 4, "mappings stay, death %ld: %zu of %zu", n, pr_lines(pid), lines);
		if (!died)
			break;
	}
	cr_assert_gt(n, what == HOT ? 20 : 50, "the test tests nothing");
	pr_goes_on();
	tr_kill(pid);
}

Test(swap, tool_killed_at_every_system_call_of_a_page)
{
	deaths(PAGE);
}

Test(swap, tool_killed_at_every_system_call_of_a_whole_text)
{
	deaths(WHOLE);
}

Test(swap, tool_killed_at_every_system_call_of_a_write_in_place)
{
	deaths(HOT);
}

/* As of a call that we gave up waiting for: what it made in the end is found by the note, which the next transaction looks at. */
Test(swap, what_a_call_made_too_late_is_tidied_up_by_the_next_transaction)
{
	pid_t pid = tr_spawn(crossing);
	const struct dp_installation *in;
	struct dp_borrow *b;
	struct dp_swap *s = NULL;
	struct dp_swap_span span;
	char why[192];
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	tr_ok(dp_swap_create(t, in, &s));
	cr_assert(dp_swap_span_at(s, cross(), &span, why), "%s", why);
	const size_t descriptors = pr_descriptors(pid);
	const struct dp_swap_note note = {DP_SWAP_MAGIC, 0x3fff00000000,  span.start,          span.end,
	                                  span.offset,   span.map->inode, span.map->dev_major, span.map->dev_minor};
	const uint64_t at = dp_swap_note_at(in), path = at + sizeof(note);
	tr_ok(dp_mem_write(&t->process, dp_addr_of(at), &note, sizeof(note)));
	tr_ok(dp_mem_write(&t->process, dp_addr_of(path), span.map->path, strlen(span.map->path) + 1));
	tr_ok(dp_borrow_one(t, TR_LIMIT, &b));
	const int64_t fd = tr_remote(b, SYS_openat, (uint64_t)AT_FDCWD, path, DP_SWAP_OPEN, 0, 0, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(tr_remote(b, SYS_mmap, note.base, DP_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
	                       (uint64_t)fd, span.offset),
	             (int64_t)note.base);
	tr_ok(dp_borrow_end(b, NULL));
	dp_swap_destroy(s);
	cr_assert_eq(pr_descriptors(pid), descriptors + 1);
	tr_ok(write_one(t, in, cross(), other));
	cr_assert_eq(pr_descriptors(pid), descriptors);
	cr_assert_not(dp_swap_mapped(t, note.base));
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* ---- what may be unloaded ------------------------------------------------------------------------------------------------ */

static void loading(void)
{
	void *module = dlopen("gconv/UTF-16.so", RTLD_NOW);
	if (!module)
		module = dlopen("/usr/lib/x86_64-linux-gnu/gconv/UTF-16.so", RTLD_NOW);
	tr->value[0] = module ? (long)(uintptr_t)dlsym(module, "gconv") : 0;
	tr->value[1] = (long)(uintptr_t)memfrob;
	void *copy = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	tr->value[2] = copy ? (long)(uintptr_t)dlsym(copy, "memfrob") : 0;
	crossing();
}

static bool stays(struct dp_target *t, const struct dp_installation *in, uint64_t at)
{
	struct dp_swap *s = NULL;
	struct dp_swap_span span;
	char why[192];
	tr_ok(dp_swap_create(t, in, &s));
	cr_assert(dp_swap_span_at(s, at, &span, why), "%s", why);
	const bool is = dp_swap_stays(s, &span);
	dp_swap_destroy(s);
	return is;
}

/* Another thread may unload it, and load something else in its place, between our look and the move. */
Test(swap, what_the_program_needs_from_the_start_stays)
{
	pid_t pid = tr_spawn(loading);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = open_group(pid, &in);
	cr_assert(stays(t, in, cross()));
	cr_assert(stays(t, in, (uint64_t)tr->value[1]), "libc");
	cr_assert(tr->value[2] && tr->value[2] != tr->value[1], "no second libc");
	cr_assert_not(stays(t, in, (uint64_t)tr->value[2]), "a second libc of the program's own");
	const uint64_t loaded = (uint64_t)tr->value[0];
	uint8_t now[5];
	cr_assert(loaded, "no module to load");
	cr_assert_not(stays(t, in, loaded));
	cr_assert_eq(dp_mem_read(&t->process, dp_addr_of(loaded), now, 5), 5);
	tr_tag(write_one(t, in, loaded, other), DP_TAG_CHANGED);
	cr_assert(holds(pid, loaded, now, 5));
	dp_target_close(t);
	tr_kill(pid);
}

/* ---- sites that rely upon each other ------------------------------------------------------------------------------------- */

/* Probe 0 on the sixth byte; probe 1, whose jump before it keeps what probe 0 has written there. Nobody runs this text. */
static void keep_two(pid_t pid, uint64_t at)
{
	const struct dp_plan plans[] = {
	        {.site = at + 5, .probe = 0, .len = 1, .changed = 1, .old_bytes = {0xc3}, .new_bytes = {0xf4}},
	        {.site = at,
	         .probe = 1,
	         .len = 6,
	         .changed = 5,
	         .old_bytes = {0xb8, 1, 0, 0, 0, 0xf4},
	         .new_bytes = {0xe9, 9, 9, 9, 9, 0xf4}},
	};
	struct dp_install_result results[2] = {{NULL}};
	struct dp_install_stats stats;
	struct dp_space *space = NULL;
	struct dp_runtime runtime;
	uint64_t lost;
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_space_from_image(dp_target_image(t), &space));
	tr_ok(dp_target_prepare(t, space, 2, &runtime, &lost));
	tr_ok(dp_target_install(t, NULL, 0, plans, 2, NULL, 0, results, &stats));
	cr_assert(!results[0].refused && !results[1].refused);
	cr_assert(stats.live, "%s", stats.why_frozen);
	tr_ok(dp_target_keep(t, "two"));
	dp_target_close(t);
	dp_space_destroy(space);
}

static struct dp_standing *two(struct dp_target *t)
{
	for (size_t i = 0; i < dp_target_nstanding(t); i++)
		if (!strcmp(dp_standing_manifest(dp_target_standing(t, i)), "two"))
			return dp_target_standing(t, i);
	return NULL;
}

static void take_one(pid_t pid, unsigned probe, struct dp_remove_report *report)
{
	const bool chosen[2] = {probe == 0, probe == 1};
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_standing_remove(two(t), chosen, report));
	cr_assert_eq(dp_standing_site(two(t), probe), 0);
	dp_target_close(t);
}

static void rely(unsigned first)
{
	static const uint8_t original[] = {0xb8, 1, 0, 0, 0, 0xc3};
	const uint64_t at = (uint64_t)(uintptr_t)sw_text;
	struct dp_remove_report report;
	pid_t pid = tr_spawn(crossing);
	pr_attach_one(pid, PR_FOO, "group");
	const size_t ours = pr_mappings(pid);
	keep_two(pid, at);
	take_one(pid, first, &report);
	cr_assert(report.live, "%s", report.why_frozen);
	cr_assert_eq(report.waiting, first == 0);
	cr_assert(holds(pid, at + 5, (const uint8_t[]){0xf4}, 1), "a byte that another jump relies upon");
	cr_assert_eq(holds(pid, at, original, 5), first == 1);
	take_one(pid, 1 - first, &report);
	cr_assert(holds(pid, at, original, 6));
	cr_assert_eq(pr_mappings(pid), ours);
	tr_kill(pid);
}

Test(swap, byte_that_another_jump_relies_upon_waits_for_it)
{
	rely(0);
}

Test(swap, jump_goes_before_what_it_relies_upon)
{
	rely(1);
}
