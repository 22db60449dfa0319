/* SPDX-License-Identifier: MIT */
/* Probes at sites that have probes: refused, or installed over them; and the state after they are removed. */
#include "helper_probe.h"

#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/syscall.h>

static const struct pr_ask foo = {PR_FOO, false}, bar = {PR_BAR, false}, baz = {PR_BAZ, false}, own_bar = {PR_BAR, true};

static void keep(pid_t pid, const struct pr_ask *ask, unsigned n, const char *manifest)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	pr_placed(t, ask, n);
	tr_ok(dp_target_keep(t, manifest));
	dp_target_close(t);
}

static void take_out(pid_t pid, const char *manifest)
{
	struct dp_remove_report report;
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_remove(pr_named(t, manifest), NULL, &report));
	cr_assert_eq(report.left_bytes + report.left_sites, 0, "%s", report.why);
	dp_target_close(t);
	pr_goes_on();
}

static void read_site(pid_t pid, unsigned which, uint8_t bytes[8])
{
	struct dp_process p = {.pid = pid, .alive = pid};
	cr_assert_eq(dp_mem_read(&p, dp_addr_of(pr_addr(which)), bytes, 8), 8);
}

static void refused(struct dp_target *t, const struct pr_ask *ask, enum dp_tag tag)
{
	struct dp_install_result result = {NULL};
	tr_ok(pr_install(t, ask, 1, &result));
	tr_tag(result.refused, tag);
}

Test(supersede, probe_that_was_not_announced_is_refused)
{
	pid_t pid = tr_spawn(pr_calling);
	uint8_t before[8], after[8];
	keep(pid, &foo, 1, "old");
	read_site(pid, PR_FOO, before);
	struct dp_target *t = pr_open(pid, PR_GATES);
	refused(t, &foo, DP_TAG_STANDING);
	read_site(pid, PR_FOO, after);
	cr_assert_arr_eq(before, after, 8);
	dp_target_close(t);
	pr_goes_on();
	t = pr_open(pid, PR_GATES);
	cr_assert(pr_is_hit(pr_named(t, "old"), 0));
	tr_tag(dp_resident_supersede(pr_named(t, "old"), 1), DP_TAG_NO_PROBE);
	dp_target_close(t);
	tr_kill(pid);
}

/* The new probe's bytes would overlap the old one's, or the other way round. */
Test(supersede, probe_in_the_way_is_refused_even_if_announced)
{
	pid_t pid = tr_spawn(pr_calling);
	keep(pid, &foo, 1, "old");
	for (int offset = -4; offset <= 4; offset++) {
		struct dp_target *t = pr_open(pid, PR_GATES);
		struct dp_space *space = NULL;
		struct dp_runtime runtime;
		struct dp_install_result result = {NULL};
		struct dp_install_stats stats;
		struct dp_plan plan = {.site = pr_addr(PR_FOO) + (uint64_t)(int64_t)offset, .len = 5};
		uint64_t lost;
		/* At offset 0: the same place, but other expected bytes (0), as from another file. */
		memset(plan.new_bytes, 0xe9, 5);
		tr_ok(dp_resident_supersede(pr_named(t, "old"), 0));
		tr_ok(dp_space_from_image(dp_target_image(t), &space));
		tr_ok(dp_target_prepare(t, space, 1, &runtime, &lost));
		tr_ok(dp_target_install(t, NULL, 0, &plan, 1, NULL, 0, &result, &stats));
		tr_tag(result.refused, DP_TAG_STANDING);
		dp_space_destroy(space);
		dp_target_close(t);
	}
	pr_goes_on();
	tr_kill(pid);
}

/* Until the new probe is kept, the old one is only covered. */
Test(supersede, old_probe_comes_back_when_the_new_one_is_not_kept)
{
	pid_t pid = tr_spawn(pr_calling_threads);
	uint8_t before[8], over[8], after[8];
	keep(pid, &foo, 1, "old");
	read_site(pid, PR_FOO, before);
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_supersede(pr_named(t, "old"), 0));
	pr_placed(t, &foo, 1);
	read_site(pid, PR_FOO, over);
	cr_assert_arr_neq(before, over, 8);
	cr_assert_eq(dp_resident_site(pr_named(t, "old"), 0), 0);
	pr_goes_on();
	dp_target_close(t);
	read_site(pid, PR_FOO, after);
	cr_assert_arr_eq(before, after, 8);
	t = pr_open(pid, PR_GATES);
	cr_assert(pr_is_hit(pr_named(t, "old"), 0));
	dp_target_close(t);
	take_out(pid, "old");
	cr_assert(pr_original(pid, PR_FOO));
	cr_assert_eq(pr_mappings(pid), 0);
	tr_kill(pid);
}

Test(supersede, new_probe_that_is_kept_takes_the_place)
{
	pid_t pid = tr_spawn(pr_calling_threads);
	keep(pid, (const struct pr_ask[]){foo, baz}, 2, "old");
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_supersede(pr_named(t, "old"), 0));
	pr_placed(t, &foo, 1);
	tr_ok(dp_target_keep(t, "new"));
	cr_assert_eq(dp_resident_site(pr_named(t, "old"), 0), 0);
	cr_assert_eq(dp_resident_site(pr_named(t, "old"), 1), pr_addr(PR_BAZ));
	dp_target_close(t);
	pr_goes_on();
	t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_resident_site(pr_named(t, "old"), 0), 0);
	cr_assert_not(dp_resident_retired(pr_named(t, "old"), 0));
	cr_assert_eq(dp_resident_site(pr_named(t, "new"), 0), pr_addr(PR_FOO));
	cr_assert(pr_is_hit(pr_named(t, "new"), 0));
	dp_target_close(t);
	take_out(pid, "old"); /* the superseded site is not restored by its old group */
	cr_assert(!pr_original(pid, PR_FOO) && pr_original(pid, PR_BAZ));
	take_out(pid, "new");
	cr_assert(pr_original(pid, PR_FOO));
	cr_assert_eq(pr_mappings(pid), 0);
	tr_kill(pid);
}

/* An old group whose last probe is superseded is removed by the next tool. */
Test(supersede, group_without_probes_is_taken_out)
{
	pid_t pid = tr_spawn(pr_calling_threads);
	keep(pid, &foo, 1, "old");
	struct dp_target *t = pr_open(pid, PR_GATES);
	const size_t mappings = pr_mappings(pid);
	tr_ok(dp_resident_supersede(pr_named(t, "old"), 0));
	pr_placed(t, &foo, 1);
	tr_ok(dp_target_keep(t, "new"));
	dp_target_close(t);
	t = pr_open(pid, PR_GATES);
	cr_assert_null(pr_named(t, "old"));
	cr_assert_not_null(pr_named(t, "new"));
	cr_assert_eq(pr_mappings(pid), mappings);
	dp_target_close(t);
	pr_goes_on();
	tr_kill(pid);
}

/* Every group has a hook at thread start; whichever group goes first, the remaining ones keep theirs. */
static void hooks(bool upper_first)
{
	pid_t pid = tr_spawn(pr_calling_threads);
	uint8_t lower[8], upper[8], now[8];
	keep(pid, (const struct pr_ask[]){foo, own_bar}, 2, "lower");
	read_site(pid, PR_BAR, lower);
	keep(pid, (const struct pr_ask[]){baz, own_bar}, 2, "upper");
	read_site(pid, PR_BAR, upper);
	cr_assert_arr_neq(lower, upper, 8);
	pr_goes_on();
	take_out(pid, upper_first ? "upper" : "lower");
	read_site(pid, PR_BAR, now);
	cr_assert_arr_eq(now, upper_first ? lower : upper, 8);
	take_out(pid, upper_first ? "lower" : "upper");
	cr_assert(pr_original(pid, PR_FOO) && pr_original(pid, PR_BAR) && pr_original(pid, PR_BAZ));
	cr_assert_eq(pr_mappings(pid), 0);
	tr_kill(pid);
}

Test(supersede, hooks_of_groups_rest_under_each_other_upper_first)
{
	hooks(true);
}

Test(supersede, hooks_of_groups_rest_under_each_other_lower_first)
{
	hooks(false);
}

Test(supersede, hook_does_not_cover_a_probe_nor_a_probe_a_hook)
{
	pid_t pid = tr_spawn(pr_calling);
	keep(pid, &bar, 1, "probe");
	struct dp_target *t = pr_open(pid, PR_GATES);
	refused(t, &own_bar, DP_TAG_STANDING);
	dp_target_close(t);
	take_out(pid, "probe");
	keep(pid, (const struct pr_ask[]){foo, own_bar}, 2, "hook");
	t = pr_open(pid, PR_GATES);
	refused(t, &bar, DP_TAG_STANDING);
	dp_target_close(t);
	tr_kill(pid);
}

/* ---- code that a stub called ----------------------------------------------------------------------------------------- */

Test(supersede, stub_with_a_thread_far_away_in_its_hook_is_not_unmapped)
{
	pid_t pid = tr_spawn(pr_calling);
	struct dp_remove_report report;
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr->value[PR_HOLD] = 1;
	pr_placed(t, (const struct pr_ask[]){foo, own_bar}, 2);
	cr_assert(tr_await_value(&tr->value[PR_HELD], 1));
	tr_ok(dp_target_remove(t, &report));
	cr_assert_gt(report.left_bytes, 0);
	cr_assert(pr_original(pid, PR_BAR));
	dp_target_close(t);
	tr->value[PR_HOLD] = 0;
	pr_goes_on();
	dp_target_close(pr_open(pid, PR_GATES));
	cr_assert_eq(pr_mappings(pid), 0, "now it is");
	pr_goes_on();
	tr_kill(pid);
}

__attribute__((noinline, no_sanitize("address"))) static void rest_on_old_words(void)
{
	volatile char large[16384]; /* uninitialized: the remains of earlier calls stay */
	tr->value[1] = (long)(uintptr_t)large;
	while (tr->ready) /* true until killed; sanitizers clean up before calls that do not return */
		pause();
}

static void stale(void)
{
	int (*volatile function)(int) = pr_bar;
	tr->ready = 1;
	while (!tr->value[0]) {
		function(3);
		tr->calls++;
	}
	rest_on_old_words();
}

Test(supersede, words_of_calls_long_since_over_do_not_keep_it)
{
	pid_t pid = tr_spawn(stale);
	struct dp_remove_report report;
	struct dp_target *t = pr_open(pid, PR_GATES);
	pr_placed(t, (const struct pr_ask[]){foo, own_bar}, 2);
	cr_assert(tr_await_value(&tr->calls, tr->calls + 1000));
	tr->value[0] = 1;
	cr_assert(tr_await_value(&tr->value[1], 1) && tr_await(pid, 'S', SYS_pause));
	static uint64_t words[2048];
	bool stale_word = false;
	dp_mem_read(&t->process, dp_addr_of((uint64_t)tr->value[1]), words, sizeof(words));
	for (size_t i = 0; i < 2048; i++)
		stale_word |= dp_installation_holds(&t->in, words[i]);
	cr_assert(stale_word, "the test tests nothing");
	tr_ok(dp_target_remove(t, &report));
	cr_assert_eq(report.left_bytes, 0, "%s", report.why);
	dp_target_close(t);
	tr_kill(pid);
}
