/* SPDX-License-Identifier: MIT */
/* Resident probes: found again in the target, enabled and disabled, removed, by root and by others. */
#include "helper_probe.h"

#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void remove_all(struct dp_resident *s)
{
	struct dp_remove_report report;
	tr_ok(dp_resident_remove(s, NULL, &report));
	cr_assert_eq(report.left_sites, 0, "%s", report.why);
	cr_assert_eq(report.left_bytes, 0, "%s", report.why);
}

static void life(pid_t pid)
{
	const size_t lines = pr_lines(pid), descriptors = pr_descriptors(pid);
	pr_attach(pid, "{\"version\":1}");
	pr_goes_on();
	cr_assert(!pr_original(pid, PR_FOO) && !pr_original(pid, PR_BAR));
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_only(t);
	cr_expect_str_eq(dp_resident_manifest(s), "{\"version\":1}");
	cr_expect_eq(dp_resident_nprobes(s), 2);
	cr_expect_eq(dp_resident_site(s, 0), pr_addr(PR_FOO));
	cr_expect_eq(dp_resident_site(s, 1), pr_addr(PR_BAR));
	cr_expect_eq(dp_resident_site(s, 2), 0);
	cr_expect_not(dp_resident_retired(s, 0));
	cr_expect(pr_is_hit(s, 0) && pr_is_hit(s, 1));
	remove_all(s);
	cr_expect_eq(dp_resident_site(s, 0), 0);
	dp_target_close(t);
	pr_goes_on();
	cr_expect(pr_original(pid, PR_FOO) && pr_original(pid, PR_BAR));
	cr_expect_eq(pr_mappings(pid), 0);
	cr_expect_eq(pr_lines(pid), lines);
	cr_expect_eq(pr_descriptors(pid), descriptors);
}

Test(keep, probes_are_found_again_and_leave_nothing_when_removed)
{
	pid_t pid = tr_spawn(pr_calling_threads);
	pr_goes_on();
	for (int i = 0; i < 5; i++)
		life(pid);
	tr_kill(pid);
}

/* All of the above, as a user who may open nothing below map_files. */
Test(keep, an_unprivileged_user_does_the_same)
{
	pr_as_nobody(pr_calling_threads, life);
}

Test(keep, gates_open_and_shut_without_a_stop)
{
	pid_t pid = tr_spawn(pr_calling);
	pr_attach(pid, "{}");
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_only(t);
	cr_assert(dp_resident_enabled(s, 0) && dp_resident_enabled(s, 1));
	cr_assert(pr_is_hit(s, 0));
	tr_ok(dp_resident_enable(s, 0, false));
	cr_assert(!dp_resident_enabled(s, 0) && dp_resident_enabled(s, 1));
	pr_goes_on();
	cr_assert(!pr_is_hit(s, 0));
	cr_assert(pr_is_hit(s, 1));
	dp_target_close(t);
	t = pr_open(pid, PR_GATES);
	cr_assert(!dp_resident_enabled(pr_only(t), 0), "the target stores it");
	tr_ok(dp_resident_enable(pr_only(t), 0, true));
	cr_assert(pr_is_hit(pr_only(t), 0));
	tr_tag(dp_resident_enable(pr_only(t), 7, true), DP_TAG_NO_PROBE);
	dp_target_close(t);
	tr_kill(pid);
}

Test(keep, one_probe_goes_the_other_stays)
{
	pid_t pid = tr_spawn(pr_calling_threads);
	struct dp_remove_report report;
	pr_attach(pid, "{}");
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_remove(pr_only(t), (const bool[]){true, false}, &report));
	cr_assert(pr_original(pid, PR_FOO) && !pr_original(pid, PR_BAR));
	cr_assert_eq(dp_resident_site(pr_only(t), 0), 0);
	tr_tag(dp_resident_enable(pr_only(t), 0, true), DP_TAG_NO_PROBE);
	dp_target_close(t);
	pr_goes_on();
	t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_resident_site(pr_only(t), 0), 0);
	cr_assert_eq(dp_resident_site(pr_only(t), 1), pr_addr(PR_BAR));
	tr_ok(dp_resident_remove(pr_only(t), (const bool[]){false, true}, &report));
	cr_assert_eq(pr_mappings(pid), 0, "the last probe's removal removes everything: %s", report.why);
	cr_assert(pr_original(pid, PR_BAR));
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

Test(keep, several_groups_stand_side_by_side)
{
	pid_t pid = tr_spawn(pr_calling);
	pr_attach_one(pid, PR_FOO, "first");
	pr_attach_one(pid, PR_BAR, "second");
	struct dp_target *t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_target_nresidents(t), 2);
	struct dp_resident *a = dp_target_resident(t, 0), *b = dp_target_resident(t, 1);
	struct dp_resident *first = strcmp(dp_resident_manifest(a), "first") ? b : a, *second = first == a ? b : a;
	cr_assert_str_eq(dp_resident_manifest(second), "second");
	cr_assert(pr_is_hit(first, 0) && pr_is_hit(second, 0));
	remove_all(first);
	cr_assert(pr_original(pid, PR_FOO) && !pr_original(pid, PR_BAR));
	pr_goes_on();
	cr_assert(pr_is_hit(second, 0));
	dp_target_close(t);
	t = pr_open(pid, PR_GATES);
	cr_assert_str_eq(dp_resident_manifest(pr_only(t)), "second");
	remove_all(pr_only(t));
	dp_target_close(t);
	cr_assert_eq(pr_mappings(pid), 0);
	tr_kill(pid);
}

Test(keep, manifest_is_replaced_in_one_piece)
{
	static char large[DP_MANIFEST_MAX + 1];
	pid_t pid = tr_spawn(pr_calling);
	memset(large, 'x', DP_MANIFEST_MAX);
	pr_attach(pid, "one");
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_tag(dp_resident_set_manifest(pr_only(t), large), DP_TAG_USAGE);
	cr_assert_str_eq(dp_resident_manifest(pr_only(t)), "one");
	large[DP_MANIFEST_MAX - 1] = 0;
	tr_ok(dp_resident_set_manifest(pr_only(t), large));
	/* If the tool is killed before the last word is written, the earlier text stays. */
	const uint64_t room = pr_only(t)->control.manifest_offset ^ DP_MANIFEST_MAX;
	tr_ok(dp_resident_put(pr_only(t), room, "torn", 4));
	dp_target_close(t);
	t = pr_open(pid, PR_GATES);
	cr_assert_str_eq(dp_resident_manifest(pr_only(t)), large);
	tr_ok(dp_resident_set_manifest(pr_only(t), "three"));
	dp_target_close(t);
	t = pr_open(pid, PR_GATES);
	cr_assert_str_eq(dp_resident_manifest(pr_only(t)), "three");
	dp_target_close(t);
	tr_kill(pid);
}

Test(keep, needs_gates_and_something_installed)
{
	static char large[DP_MANIFEST_MAX + 1];
	pid_t pid = tr_spawn(pr_calling);
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_tag(dp_target_keep(t, "{}"), DP_TAG_INTERNAL);
	pr_placed(t, &(const struct pr_ask){PR_FOO, false}, 1);
	memset(large, 'x', DP_MANIFEST_MAX);
	tr_tag(dp_target_keep(t, large), DP_TAG_USAGE);
	dp_target_close(t);
	cr_assert_eq(pr_mappings(pid), 0, "probes that were not kept are removed");
	cr_assert(pr_original(pid, PR_FOO));
	tr_kill(pid);
}

/*
 * A forked worker has its parent's probes: its hits count as forked, and dynprobe can remove them from it without an effect on
 * the parent.
 */
static void forking(void)
{
	tr->value[0] = 0;
	tr->ready = 1;
	tr_await_value(&tr->value[1], 1);
	pid_t child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tr->value[0] = getpid();
		pr_calling();
	}
	for (;;)
		pause();
}

Test(keep, fork_of_a_probed_process_is_cleaned_and_its_parent_is_not)
{
	pid_t pid = tr_spawn(forking);
	struct dp_loss loss;
	pr_attach(pid, "{}");
	tr->value[1] = 1;
	cr_assert(tr_await_value(&tr->value[0], 1));
	const pid_t child = (pid_t)tr->value[0];
	pr_goes_on();
	cr_assert(!pr_original(child, PR_FOO));
	struct dp_target *t = pr_open(child, PR_GATES);
	cr_assert_eq(dp_target_nresidents(t), 0);
	dp_target_close(t);
	cr_assert(pr_original(child, PR_FOO) && pr_original(child, PR_BAR));
	cr_assert_eq(pr_mappings(child), 0);
	pr_goes_on();
	t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_resident_site(pr_only(t), 0), pr_addr(PR_FOO));
	dp_resident_loss(pr_only(t), 0, &loss);
	cr_assert(loss.forked > 0);
	dp_target_close(t);
	tr_kill(child);
	tr_kill(pid);
}
