/* SPDX-License-Identifier: MIT */
/*
 * Stubs to which a thread may still return. If a thread's frames cannot be followed, a word on its stack that looks like the
 * address of a small stub proves nothing, and would keep hooks installed. Evicted instructions call nothing, and are removed.
 */
#include "helper_probe.h"

#include "injector/patch/quiesce/quiesce.h"
#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* lea rax, [rsp - 4096]; and rax, -4096; push rax; mov qword [rdi], 1; 1: mov eax, 34 (pause); syscall; jmp 1b */
static const uint8_t waiting[] = {0x48, 0x8d, 0x84, 0x24, 0, 0xf0, 0xff, 0xff, 0x48, 0x25, 0, 0xf0, 0xff, 0xff, 0x50, 0x48,
                                  0xc7, 7,    1,    0,    0, 0,    0xb8, 34,   0,    0,    0, 0x0f, 0x05, 0xeb, 0xf7};

/* Waits in generated code, without tables. */
static void *wait_unknown(void *code)
{
	((void (*)(volatile long *))code)(&tr->ready);
	return NULL;
}

static void target(void)
{
	pthread_t t;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, waiting, sizeof(waiting));
	pthread_create(&t, NULL, wait_unknown, code);
	tr_await_value(&tr->ready, 1);
	pr_calling();
}

/* The first instruction of baz has three bytes: its jump evicts the next instruction. */
static struct dp_error *plan(struct dp_planner *planner, uint64_t lost)
{
	static const uint8_t code[] = {0x8d, 0x47, 0x01, 0x8d, 0x80, 0, 1, 0, 0, 0xc3};
	const struct dp_segment segment = {pr_addr(PR_BAZ), code, sizeof(code), true};
	const struct dp_text text = {.segment = &segment, .nsegments = 1, .function = segment.addr, .size = segment.n};
	struct dp_fields fields = {0};
	struct dp_plan ignored;
	const struct dp_request request = {
	        .site = segment.addr, .lost = lost, .text = &text, .fields = &fields, .tactics = 1u << DP_TACTIC_EVICT};
	return dp_planner_add(planner, &request, &ignored);
}

static void place_evicting(struct dp_target *t)
{
	struct dp_install_result results[2] = {{NULL}};
	struct dp_install_stats stats;
	struct dp_planner *planner;
	struct dp_space *space;
	struct dp_runtime runtime;
	const struct dp_extent *extents;
	const struct dp_plan *plans;
	uint64_t lost;
	tr_ok(dp_space_from_image(dp_target_image(t), &space));
	tr_ok(dp_target_prepare(t, space, 1, &runtime, &lost));
	tr_ok(dp_planner_create(space, &runtime, &planner));
	tr_ok(plan(planner, lost));
	cr_assert_eq(dp_planner_plans(planner, &plans), 2);
	cr_assert(plans[0].probe == DP_NO_PROBE || plans[1].probe == DP_NO_PROBE);
	const size_t nextents = dp_planner_extents(planner, &extents);
	tr_ok(dp_target_install(t, extents, nextents, plans, 2, NULL, 0, results, &stats));
	tr_ok(results[0].refused);
	tr_ok(results[1].refused);
	dp_planner_destroy(planner);
	dp_space_destroy(space);
}

/*
 * With stubs that call LTTng, would that thread block the removal? Other threads may be in a probe, so it tries again after they
 * have run.
 */
static bool is_doubted(struct dp_target *t)
{
	char why[128] = "";
	t->in.calls_out = true;
	t->in.sink = 1;
	for (int i = 0; i < 200 && !strstr(why, "may return into a probe"); i++) {
		struct dp_freeze f = {0};
		tr_ok(dp_freeze_with_retry(t, &f));
		dp_quiesce(t, &t->in, &f, why);
		dp_thaw_all(&f);
		tr_sleep_us(5000);
	}
	t->in.calls_out = false;
	t->in.sink = 0;
	return strstr(why, "may return into a probe");
}

Test(calls_out, a_neighbour_that_gave_way_leaves_nothing)
{
	struct dp_remove_report report;
	pid_t pid = tr_spawn(target);
	struct dp_target *t = pr_open(pid, PR_GATES);
	place_evicting(t);
	pr_goes_on();
	cr_assert_not(t->in.calls_out);
	cr_assert(is_doubted(t), "the test's own thread does not block the removal");
	tr_ok(dp_target_remove(t, &report));
	cr_assert_eq(report.left_bytes, 0, "%s", report.why);
	dp_target_close(t);
	cr_assert_eq(pr_mappings(pid), 0);
	cr_assert(pr_original(pid, PR_BAZ));
	pr_goes_on();
	tr_kill(pid);
}

/* The hook's own return address is no longer on a stack; the address of a page, which LTTng's blocks have, proves nothing here. */
Test(calls_out, a_hook_goes_without_lttng_although_a_stack_has_a_page_address)
{
	struct dp_remove_report report;
	pid_t pid = tr_spawn(target);
	struct dp_target *t = pr_open(pid, PR_GATES);
	pr_placed(t, (const struct pr_ask[]){{PR_FOO, true}}, 1);
	pr_goes_on();
	cr_assert(t->in.calls_out);
	tr_ok(dp_target_remove(t, &report));
	cr_assert_eq(report.left_bytes, 0, "%s", report.why);
	dp_target_close(t);
	cr_assert_eq(pr_mappings(pid), 0);
	tr_kill(pid);
}

/* What a later tool finds. `older`: left by a version whose entries do not mark hooks. */
static bool found(pid_t pid, bool hook, bool older)
{
	struct dp_target *t = pr_open(pid, PR_GATES);
	if (hook)
		pr_placed(t, (const struct pr_ask[]){{PR_FOO, true}, {PR_BAR, false}}, 2);
	else
		place_evicting(t);
	for (size_t k = 0; older && k < t->in.nplaced; k++)
		t->in.placed[k].entry->flags = 0;
	tr_ok(dp_target_keep(t, "{}"));
	dp_target_close(t);
	t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_target_nresidents(t), 1);
	const bool calls_out = dp_target_resident(t, 0)->in.calls_out;
	dp_target_close(t);
	return calls_out;
}

Test(calls_out, a_later_tool_knows_and_doubts_what_an_older_one_left)
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = tr_spawn(target);
		const bool hook = i & 1, older = i & 2;
		cr_assert_eq(found(pid, hook, older), hook || older, "hook %d, older %d", hook, older);
		tr_kill(pid);
	}
}

Test(calls_out, what_was_kept_goes_as_well)
{
	struct dp_remove_report report;
	pid_t pid = tr_spawn(target);
	cr_assert_not(found(pid, false, false));
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_remove(dp_target_resident(t, 0), NULL, &report));
	cr_assert_eq(report.left_bytes, 0, "%s", report.why);
	dp_target_close(t);
	cr_assert_eq(pr_mappings(pid), 0);
	tr_kill(pid);
}
