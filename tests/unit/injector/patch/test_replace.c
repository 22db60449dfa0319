/* SPDX-License-Identifier: MIT */
/* Page replacement under running threads: no thread sees half of a change, and bytes that others wrote nearby stay. */
#include "helper_replace.h"

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

Test(swap, threads_see_the_old_or_the_new_across_a_page_boundary)
{
	pid_t pid = tr_spawn(sw_crossing);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	size_t lines = 0;
	for (int i = 0; i < 300; i++) {
		tr_ok(sw_write_one(t, in, sw_at_cross(), sw_other));
		cr_assert(sw_holds(pid, sw_at_cross(), sw_other, 5));
		tr_ok(sw_write_one(t, in, sw_at_cross(), sw_one));
		cr_assert(sw_holds(pid, sw_at_cross(), sw_one, 5));
		if (!i)
			lines = pr_lines(pid);
		cr_assert_eq(tr->failed, 0);
	}
	cr_assert_leq(pr_lines(pid), lines, "mappings grow: %zu from %zu", pr_lines(pid), lines);
	cr_assert_not(sw_is_copy(t, sw_at_cross()), "the page is mapped from the file again");
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* Bytes in the pages that are neither the file's nor ours stay. */
static void carry(unsigned pages)
{
	static const uint8_t theirs[] = {0x90, 0x0f, 0x0b};
	const uint64_t text = (uint64_t)(uintptr_t)sw_text, at = text + (SW_PAGES - 1) * DP_PAGE + 0x100;
	pid_t pid = tr_spawn(sw_crossing);
	const struct dp_installation *in;
	struct dp_freeze f;
	struct dp_replace *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	tr_ok(dp_freeze_all(&t->process, TR_LIMIT, &f));
	tr_ok(dp_mem_write_text(&t->process, f.thread[0].tid, dp_addr_of(at), theirs, sizeof(theirs), NULL));
	tr_ok(dp_mem_write_text(&t->process, f.thread[0].tid, dp_addr_of(text + DP_PAGE + 0x100), theirs, sizeof(theirs), NULL));
	dp_thaw_all(&f);
	const size_t descriptors = pr_descriptors(pid);
	tr_ok(dp_replace_create(t, in, &s));
	for (unsigned i = 0; i < pages; i++)
		cr_assert(dp_replace_write(s, &(struct dp_replace_edit){text + 2 * i * DP_PAGE, 5, 0, 5, sw_other}));
	cr_assert(dp_replace_write(s, &(struct dp_replace_edit){sw_at_cross(), 5, 2, 3, sw_other + 2}));
	cr_assert(dp_replace_write(s, &(struct dp_replace_edit){sw_at_cross(), 5, 0, 2, sw_other}));
	uint64_t held = 0;
	tr_ok(dp_replace_commit(s, NULL, &held));
	cr_assert_gt(held, 0);
	dp_replace_destroy(s);
	for (unsigned i = 0; i < pages; i++)
		cr_assert(sw_holds(pid, text + 2 * i * DP_PAGE, sw_other, 5) &&
		          !sw_holds(pid, text + (2 * i + 1) * DP_PAGE, sw_other, 5));
	cr_assert(sw_holds(pid, sw_at_cross(), sw_other, 5));
	cr_assert(sw_holds(pid, at, theirs, sizeof(theirs)) && sw_holds(pid, text + DP_PAGE + 0x100, theirs, sizeof(theirs)));
	cr_assert_not(pr_original(pid, PR_FOO), "the group's own probe is installed");
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
	pid_t pid = tr_spawn(sw_crossing);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	const size_t lines = pr_lines(pid);
	struct dp_target *t = sw_open_group(pid, &in);
	for (unsigned round = 0; round < 20; round++)
		for (unsigned i = 0; i < SW_PAGES; i += 2)
			tr_ok(sw_write_one(t, in, (uint64_t)(uintptr_t)sw_text + i * DP_PAGE, round % 2 ? sw_one : sw_other));
	cr_assert_leq(pr_lines(pid), lines + 2 * SW_PAGES);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* ---- what cannot be replaced -------------------------------------------------------------------------------------------- */

static void locked(void)
{
	/* by system call: sanitizers make mlock() do nothing */
	if (syscall(SYS_mlock, sw_at_cross() & ~UINT64_C(4095), UINT64_C(8192)))
		_exit(1);
	sw_crossing();
}

Test(swap, locked_text_is_left_alone)
{
	pid_t pid = tr_spawn(locked);
	const struct dp_installation *in;
	struct dp_replace *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	tr_ok(dp_replace_create(t, in, &s));
	cr_assert_not(dp_replace_write(s, &(struct dp_replace_edit){sw_at_cross(), 5, 0, 5, sw_other}));
	cr_assert_not_null(strstr(dp_replace_why(s), "locks"));
	dp_replace_destroy(s);
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
	sw_crossing();
}

Test(swap, generated_code_is_left_alone)
{
	pid_t pid = tr_spawn(generated);
	const struct dp_installation *in;
	struct dp_replace *s = NULL;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	tr_ok(dp_replace_create(t, in, &s));
	cr_assert_not(dp_replace_write(s, &(struct dp_replace_edit){(uint64_t)tr->value[0], 5, 0, 5, sw_other}));
	dp_replace_destroy(s);
	dp_target_close(t);
	tr_kill(pid);
}

/* Another tool writes between our read and our replacement: its bytes stay, ours are refused. */
Test(swap, text_that_changes_meanwhile_is_not_replaced)
{
	static const uint8_t theirs[] = {0xf4};
	pid_t pid = tr_spawn(sw_crossing);
	const struct dp_installation *in;
	struct dp_replace *s = NULL;
	struct dp_freeze f;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	const uint64_t at = (uint64_t)(uintptr_t)sw_text;
	tr_ok(dp_replace_create(t, in, &s));
	cr_assert(dp_replace_write(s, &(struct dp_replace_edit){at, 5, 0, 5, sw_other}));
	tr_ok(dp_freeze_all(&t->process, TR_LIMIT, &f));
	tr_ok(dp_mem_write_text(&t->process, f.thread[0].tid, dp_addr_of(at + 64), theirs, 1, NULL));
	dp_thaw_all(&f);
	const size_t lines = pr_lines(pid);
	tr_tag(dp_replace_commit(s, NULL, NULL), DP_TAG_CHANGED);
	cr_assert(sw_holds(pid, at, (const uint8_t[]){0xb8, 1, 0, 0, 0}, 5) && sw_holds(pid, at + 64, theirs, 1));
	cr_assert_eq(pr_lines(pid), lines);
	dp_replace_destroy(s);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* ---- modules that may be unloaded --------------------------------------------------------------------------------------- */

static void loading(void)
{
	void *module = dlopen("gconv/UTF-16.so", RTLD_NOW);
	if (!module)
		module = dlopen("/usr/lib/x86_64-linux-gnu/gconv/UTF-16.so", RTLD_NOW);
	tr->value[0] = module ? (long)(uintptr_t)dlsym(module, "gconv") : 0;
	tr->value[1] = (long)(uintptr_t)memfrob;
	void *copy = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
	tr->value[2] = copy ? (long)(uintptr_t)dlsym(copy, "memfrob") : 0;
	sw_crossing();
}

static bool stays(struct dp_target *t, const struct dp_installation *in, uint64_t at)
{
	struct dp_replace *s = NULL;
	struct dp_replace_span span;
	char why[192];
	tr_ok(dp_replace_create(t, in, &s));
	cr_assert(dp_replace_span_at(s, at, &span, why), "%s", why);
	const bool is = dp_replace_stays(s, &span);
	dp_replace_destroy(s);
	return is;
}

/* Writes while all threads run. Returns how often they were stopped for it. */
static unsigned write_live(struct dp_target *t, const struct dp_installation *in, uint64_t at, const uint8_t *bytes)
{
	struct dp_replace *s = NULL;
	tr_ok(dp_replace_create(t, in, &s));
	cr_assert(dp_replace_write(s, &(struct dp_replace_edit){at, 5, 0, 5, bytes}), "%s", dp_replace_why(s));
	tr_ok(dp_replace_commit(s, NULL, NULL));
	cr_assert(dp_replace_stands(s, at));
	const unsigned holds = s->holds;
	dp_replace_destroy(s);
	return holds;
}

/* Another thread may unload such a module, and load something else in its place, between our read and the replacement. */
Test(swap, what_the_program_needs_from_the_start_stays)
{
	pid_t pid = tr_spawn(loading);
	const struct dp_installation *in;
	pr_attach_one(pid, PR_FOO, "group");
	struct dp_target *t = sw_open_group(pid, &in);
	cr_assert(stays(t, in, sw_at_cross()));
	cr_assert(stays(t, in, (uint64_t)tr->value[1]), "libc");
	cr_assert(tr->value[2] && tr->value[2] != tr->value[1], "no second libc");
	cr_assert_not(stays(t, in, (uint64_t)tr->value[2]), "a second libc of the program's own");
	const uint64_t loaded = (uint64_t)tr->value[0];
	cr_assert(loaded, "no module to load");
	cr_assert_not(stays(t, in, loaded));
	cr_assert_eq(write_live(t, in, loaded, sw_other), 1, "no thread was held");
	cr_assert(sw_holds(pid, loaded, sw_other, 5));
	cr_assert_eq(write_live(t, in, sw_at_cross(), sw_one), 0);
	dp_target_close(t);
	tr_kill(pid);
}

/* ---- sites that depend on each other ------------------------------------------------------------------------------------ */

/* Probe 0 is at the sixth byte. Probe 1's jump before it relies on the byte that probe 0 wrote. This text never runs. */
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

static struct dp_resident *two(struct dp_target *t)
{
	for (size_t i = 0; i < dp_target_nresidents(t); i++)
		if (!strcmp(dp_resident_manifest(dp_target_resident(t, i)), "two"))
			return dp_target_resident(t, i);
	return NULL;
}

static void take_one(pid_t pid, unsigned probe, struct dp_remove_report *report)
{
	const bool chosen[2] = {probe == 0, probe == 1};
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_remove(two(t), chosen, report));
	cr_assert_eq(dp_resident_site(two(t), probe), 0);
	dp_target_close(t);
}

static void rely(unsigned first)
{
	static const uint8_t original[] = {0xb8, 1, 0, 0, 0, 0xc3};
	const uint64_t at = (uint64_t)(uintptr_t)sw_text;
	struct dp_remove_report report;
	pid_t pid = tr_spawn(sw_crossing);
	pr_attach_one(pid, PR_FOO, "group");
	const size_t ours = pr_mappings(pid);
	keep_two(pid, at);
	take_one(pid, first, &report);
	cr_assert(report.live, "%s", report.why_frozen);
	cr_assert_eq(report.waiting, first == 0);
	cr_assert(sw_holds(pid, at + 5, (const uint8_t[]){0xf4}, 1), "a byte that another jump relies on");
	cr_assert_eq(sw_holds(pid, at, original, 5), first == 1);
	take_one(pid, 1 - first, &report);
	cr_assert(sw_holds(pid, at, original, 6));
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
