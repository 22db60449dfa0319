/* SPDX-License-Identifier: MIT */
/*
 * A short jump into the bytes of another site, which contain an embedded jump. The two sites share no byte, but one without
 * the other would lead threads into the middle of an instruction. This text is never executed.
 */
#include "helper_probe.h"

#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

__asm__(".pushsection .text\n"
        ".balign 4096\n"
        ".globl hj_text\n"
        "hj_text:\n"
        "	movl $1, %eax\n"
        "	ret\n"
        "	nop\n"
        "	.balign 4096, 0xcc\n"
        ".popsection\n");

extern uint8_t hj_text[];

static const uint8_t original[] = {0xb8, 1, 0, 0, 0, 0xc3, 0x90};

static uint64_t at(void)
{
	return (uint64_t)(uintptr_t)hj_text;
}

static bool holds(pid_t pid, const void *bytes, size_t from, size_t n)
{
	uint8_t now[16];
	const struct dp_process p = {.pid = pid, .alive = pid};
	return dp_mem_read(&p, dp_addr_of(at() + from), now, n) == n && !memcmp(now, bytes, n);
}

/* Probe 0 has five bytes; probe 1's short jump leads to the third. */
static void install(struct dp_target *t, bool foreign, struct dp_install_result results[2])
{
	struct dp_plan plans[] = {
	        {.site = at(),
	         .probe = 0,
	         .len = 5,
	         .changed = 5,
	         .old_bytes = {0xb8, 1, 0, 0, 0},
	         .new_bytes = {0xe9, 9, 0xe9, 9, 9}},
	        {.site = at() + 5,
	         .probe = 1,
	         .len = 2,
	         .changed = 2,
	         .old_bytes = {0xc3, 0x90},
	         .new_bytes = {0xeb, 0xfb},
	         .nsupports = 1,
	         .support = {at()}},
	};
	struct dp_install_stats stats;
	struct dp_space *space = NULL;
	struct dp_runtime runtime;
	uint64_t lost;
	if (foreign)
		plans[0].old_bytes[1] = 2;
	tr_ok(dp_space_from_image(dp_target_image(t), &space));
	tr_ok(dp_target_prepare(t, space, 2, &runtime, &lost));
	tr_ok(dp_target_install(t, NULL, 0, plans, 2, NULL, 0, results, &stats));
	dp_space_destroy(space);
}

static struct dp_target *installed(pid_t pid)
{
	struct dp_install_result results[2] = {{NULL}};
	struct dp_target *t = pr_open(pid, PR_GATES);
	install(t, false, results);
	tr_ok(results[0].refused);
	tr_ok(results[1].refused);
	return t;
}

static void keep(pid_t pid)
{
	struct dp_target *t = installed(pid);
	tr_ok(dp_target_keep(t, "hidden"));
	dp_target_close(t);
}

static struct dp_resident *hidden(struct dp_target *t)
{
	for (size_t i = 0; i < dp_target_nresidents(t); i++)
		if (!strcmp(dp_resident_manifest(dp_target_resident(t, i)), "hidden"))
			return dp_target_resident(t, i);
	return NULL;
}

static void take_one(pid_t pid, unsigned probe, unsigned waiting)
{
	const bool chosen[2] = {probe == 0, probe == 1};
	struct dp_remove_report report;
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_remove(hidden(t), chosen, &report));
	cr_assert_eq(report.waiting, waiting);
	dp_target_close(t);
}

Test(hidden_jump, stays_as_long_as_one_leads_to_it)
{
	pid_t pid = tr_spawn(pr_calling);
	keep(pid);
	take_one(pid, 0, 1);
	cr_assert(holds(pid, (const uint8_t[]){0xe9, 9, 0xe9, 9, 9, 0xeb, 0xfb}, 0, 7));
	take_one(pid, 1, 0);
	cr_assert(holds(pid, original, 0, sizeof(original)));
	cr_assert_eq(pr_mappings(pid), 0);
	pr_goes_on();
	tr_kill(pid);
}

/* The first group in a process is installed with all threads held, a later one live. */
static void refuse_both(bool live)
{
	struct dp_install_result results[2] = {{NULL}};
	pid_t pid = tr_spawn(pr_calling);
	if (live)
		pr_attach_one(pid, PR_FOO, "other");
	struct dp_target *t = pr_open(pid, PR_GATES);
	install(t, true, results);
	tr_tag(results[0].refused, DP_TAG_FOREIGN);
	tr_tag(results[1].refused, DP_TAG_FOREIGN);
	cr_assert(holds(pid, original, 0, sizeof(original)));
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

Test(hidden_jump, short_jump_is_refused_with_it_held)
{
	refuse_both(false);
}

Test(hidden_jump, short_jump_is_refused_with_it_live)
{
	refuse_both(true);
}

/* The new probe would overwrite the embedded jump, and the short jump still leads there. */
Test(hidden_jump, cannot_be_superseded_alone)
{
	struct dp_plan plan = {
	        .site = at(), .len = 5, .changed = 5, .old_bytes = {0xb8, 1, 0, 0, 0}, .new_bytes = {0xe9, 8, 8, 8, 8}};
	struct dp_install_result result = {NULL};
	struct dp_install_stats stats;
	struct dp_space *space = NULL;
	struct dp_runtime runtime;
	uint64_t lost;
	pid_t pid = tr_spawn(pr_calling);
	keep(pid);
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_supersede(hidden(t), 0));
	tr_ok(dp_space_from_image(dp_target_image(t), &space));
	tr_ok(dp_target_prepare(t, space, 1, &runtime, &lost));
	tr_ok(dp_target_install(t, NULL, 0, &plan, 1, NULL, 0, &result, &stats));
	tr_tag(result.refused, DP_TAG_STANDING);
	cr_assert(holds(pid, (const uint8_t[]){0xe9, 9, 0xe9, 9, 9, 0xeb, 0xfb}, 0, 7));
	dp_space_destroy(space);
	dp_target_close(t);
	tr_kill(pid);
}

static void note(size_t plan, const char *why, void *data)
{
	(void)why;
	((bool *)data)[plan] = true;
}

/* What another tool does to the site that contains it: overwrites all bytes, or only the first. */
static void overwrite(size_t n)
{
	static const uint8_t theirs[] = {0xcc, 0x0f, 0x0b, 0x0f, 0x0b};
	bool retired[2] = {false};
	char path[64];
	pid_t pid = tr_spawn(pr_calling);
	struct dp_target *t = installed(pid);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	const int mem = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_eq(pwrite(mem, theirs, n, (off_t)at()), (ssize_t)n);
	close(mem);
	cr_assert_eq(dp_target_watch(t, note, retired), DP_WATCH_OK);
	cr_assert(retired[0] && retired[1]);
	cr_assert(holds(pid, original + 5, 5, 2), "the short jump leads to a wrong place");
	cr_assert(holds(pid, theirs, 0, n));
	if (n == 1)
		cr_assert(holds(pid, original + 1, 1, 4));
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

Test(hidden_jump, short_jump_goes_when_a_breakpoint_comes)
{
	overwrite(1);
}

Test(hidden_jump, short_jump_goes_when_it_is_overwritten)
{
	overwrite(5);
}
