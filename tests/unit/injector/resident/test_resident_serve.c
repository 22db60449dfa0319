/* SPDX-License-Identifier: MIT */
/* The flight recorder: a tool reads the target's rings without a mapping, and frees their room, while the threads run. */
#include "helper_probe.h"

#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 4096

/* The delivered events, by thread. */
static struct got {
	pid_t tid;
	long next, first, n;
	bool gap, twice;
} got[PR_THREADS + 1];
static uint64_t total, strangers, last_ns;
static bool ns_fell;

static struct got *of(pid_t tid)
{
	for (int i = 0; i <= PR_THREADS; i++) {
		if (!got[i].tid)
			got[i] = (struct got){.tid = tid, .first = -1};
		if (got[i].tid == tid)
			return &got[i];
	}
	strangers++;
	return &got[PR_THREADS];
}

static void see(const struct dp_hit *hit, void *data)
{
	uint64_t value;
	struct got *g = of(hit->tid);
	(void)data;
	cr_assert_eq(hit->len, sizeof(value));
	memcpy(&value, hit->payload, sizeof(value));
	g->gap |= g->first >= 0 && (long)value != g->next;
	g->twice |= g->first >= 0 && (long)value < g->next;
	if (g->first < 0)
		g->first = (long)value;
	g->next = (long)value + 1;
	g->n++;
	total++;
	ns_fell |= hit->ns < last_ns;
	last_ns = hit->ns;
}

static void drain(struct dp_resident *s, bool last)
{
	tr_ok(dp_resident_drain(s, last, see, NULL));
}

static struct dp_control control(struct dp_resident *s)
{
	struct dp_control c;
	tr_ok(dp_resident_get(s, 0, &c, sizeof(c)));
	return c;
}

static void no_gap(void)
{
	for (int i = 0; i < PR_THREADS; i++)
		cr_assert(!got[i].gap, "thread %d", got[i].tid);
	cr_assert_eq(strangers, 0);
	cr_assert(!got[PR_THREADS].tid, "not a thread: %d", got[PR_THREADS].tid);
	cr_assert_not(ns_fell);
}

static void records(pid_t pid)
{
	pr_attach_one(pid, PR_FOO, "{}");
	pr_count_to(100);
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_only(t);
	tr_tag(dp_resident_drain(s, false, see, NULL), DP_TAG_INTERNAL);
	tr_ok(dp_resident_serve(s));
	cr_assert_eq(control(s).tool_pid, (uint64_t)getpid());
	cr_assert_eq(control(s).overwrite, 0);
	drain(s, false);
	cr_assert_eq(total, 100 * PR_THREADS, "earlier records: %lu", total);
	for (long n = 200; n <= 2000; n += 100) {
		pr_count_to(n);
		drain(s, n == 2000);
		cr_assert_eq(total, (uint64_t)n * PR_THREADS, "%lu", total);
	}
	no_gap();
	tr_ok(dp_resident_release(s));
	cr_assert_eq(control(s).tool_pid, 0);
	cr_assert_eq(control(s).overwrite, 1);
	dp_target_close(t);
}

Test(resident_serve, takes_what_was_recorded_before_and_what_comes)
{
	pid_t pid = tr_spawn(pr_counting);
	records(pid);
	tr_kill(pid);
}

Test(resident_serve, an_unprivileged_user_records_too)
{
	pr_as_nobody(pr_counting, records);
}

static struct dp_loss loss_of(struct dp_resident *s)
{
	struct dp_loss loss;
	dp_resident_loss(s, 0, &loss);
	return loss;
}

/* The oldest records were overwritten, among them the announcement of their thread. */
Test(resident_serve, full_rings_hold_the_newest_with_their_thread)
{
	enum { CALLS = 20000 };
	pid_t pid = tr_spawn(pr_counting);
	pr_attach_one(pid, PR_FOO, "{}");
	pr_count_to(CALLS);
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_only(t);
	tr_ok(dp_resident_serve(s));
	drain(s, true);
	no_gap();
	bool main_thread = false;
	for (int i = 0; i < PR_THREADS; i++) {
		cr_assert_eq(got[i].next, CALLS, "the newest");
		cr_assert(got[i].n > 200 && got[i].n < 1000, "%ld", got[i].n);
		main_thread |= got[i].tid == pid;
	}
	cr_assert(main_thread);
	cr_assert_eq(loss_of(s).overwritten + total, CALLS * PR_THREADS);
	cr_assert_eq(loss_of(s).damaged + loss_of(s).abandoned + loss_of(s).full, 0);
	dp_target_close(t);
	tr_kill(pid);
}

/* Both sides move the tail, but never at once: each record is seen once and whole, or is counted as lost. */
Test(resident_serve, served_and_released_again_and_again_under_full_load)
{
	pid_t pid = tr_spawn(pr_counting);
	pr_attach_one(pid, PR_FOO, "{}");
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_only(t);
	tr->value[PR_LIMIT] = 1L << 40;
	for (int round = 0; round < 200; round++) {
		tr_ok(dp_resident_serve(s));
		for (int i = 0; i < round % 7; i++)
			drain(s, false);
		drain(s, true);
		tr_ok(dp_resident_release(s));
		if (round % 3)
			tr_sleep_us(300);
	}
	pr_count_no_more();
	tr_ok(dp_resident_serve(s));
	drain(s, true);
	uint64_t calls = 0;
	for (int k = 0; k < PR_THREADS; k++)
		calls += (uint64_t)tr->value[k];
	const struct dp_loss loss = loss_of(s);
	cr_assert_eq(strangers, 0);
	cr_assert(!got[PR_THREADS].tid);
	for (int k = 0; k < PR_THREADS; k++)
		cr_assert(!got[k].twice, "a hit of thread %d was seen twice", got[k].tid);
	cr_assert_eq(loss.damaged + loss.abandoned, 0, "%lu damaged, %lu abandoned", loss.damaged, loss.abandoned);
	cr_assert_eq(total + loss.overwritten + loss.full, calls, "%lu + %lu + %lu of %lu", total, loss.overwritten, loss.full,
	             calls);
	cr_assert(loss.overwritten && total);
	cr_assert_eq(tr->failed, 0);
	dp_target_close(t);
	tr_kill(pid);
}

/* The server is killed: the next tool finds the rings, and lets them overwrite themselves again. */
Test(resident_serve, death_of_the_server_leaves_a_flight_recorder)
{
	pid_t pid = tr_spawn(pr_counting);
	pr_attach_one(pid, PR_FOO, "{}");
	pr_count_to(100);
	pid_t tool = fork();
	if (!tool) {
		struct dp_target *t = pr_open(pid, PR_GATES);
		if (dp_resident_serve(pr_only(t)))
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	int status;
	waitpid(tool, &status, 0);
	cr_assert(WIFSIGNALED(status));
	pr_count_to(200);
	struct dp_target *t = pr_open(pid, PR_GATES);
	cr_assert_eq(control(pr_only(t)).tool_pid, 0);
	cr_assert_eq(control(pr_only(t)).overwrite, 1);
	tr_ok(dp_resident_serve(pr_only(t)));
	drain(pr_only(t), true);
	cr_assert_eq(total, 200 * PR_THREADS);
	no_gap();
	dp_target_close(t);
	tr_kill(pid);
}

/* A living server takes the place of this process: the lock keeps two tools apart, or the name where the lock does not reach. */
Test(resident_serve, living_server_is_named)
{
	pid_t pid = tr_spawn(pr_counting);
	struct dp_target *t, *none = NULL;
	pr_attach_one(pid, PR_FOO, "{}");
	t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_serve(pr_only(t)));
	close(t->lock_fd); /* as if another mount of /proc had the lock */
	t->lock_fd = -1;
	tr_tag(dp_target_open(pid, PR_GATES, &none), DP_TAG_LOCKED);
	dp_target_close(t);
	t = pr_open(pid, PR_GATES);
	cr_assert_eq(control(pr_only(t)).tool_pid, 0, "closing releases");
	dp_target_close(t);
	tr_kill(pid);
}

/* A head that the target has overwritten is counted, and never used. */
Test(resident_serve, head_that_makes_no_sense_is_left_alone)
{
	pid_t pid = tr_spawn(pr_counting);
	pr_attach_one(pid, PR_FOO, "{}");
	pr_count_to(10);
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_only(t);
	tr_ok(dp_resident_serve(s));
	drain(s, false);
	const uint64_t odd[] = {3, UINT64_MAX & ~UINT64_C(7), UINT64_C(1) << 40};
	for (int i = 0; i < 3; i++)
		tr_ok(dp_resident_put(s, s->control.slots_offset + (uint64_t)i * sizeof(struct dp_slot), &odd[i],
		                      sizeof(odd[i])));
	for (int i = 0; i < 5; i++)
		drain(s, false);
	cr_assert_eq(loss_of(s).damaged, 3);
	dp_target_close(t);
	tr_kill(pid);
}

static void put_slot(struct dp_resident *s, uint32_t i, size_t field, uint64_t value, size_t size)
{
	tr_ok(dp_resident_put(s, s->control.slots_offset + i * sizeof(struct dp_slot) + field, &value, size));
}

static void put_ends(struct dp_resident *s, uint32_t i, uint64_t tail, uint64_t head)
{
	put_slot(s, i, offsetof(struct dp_slot, tail), tail, sizeof(tail));
	put_slot(s, i, offsetof(struct dp_slot, head), head, sizeof(head));
}

/* From such a tail a header reaches past the ring's end, and in the last ring past all of our memory. */
Test(resident_serve, tail_that_makes_no_sense_is_left_alone)
{
	pid_t pid = tr_spawn(pr_counting);
	pr_attach_one(pid, PR_FOO, "{}");
	pr_count_to(10);
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_resident *s = pr_only(t);
	const uint32_t n = s->control.nslots;
	const uint64_t odd = s->control.ring_size - 1;
	for (uint32_t i = PR_THREADS; i < n; i++)
		put_slot(s, i, offsetof(struct dp_slot, state), DP_SLOT_USED, sizeof(uint32_t));
	put_ends(s, 1, odd, odd + 1);
	put_ends(s, n - 2, odd, odd + 64);
	put_ends(s, n - 1, odd, odd + 1);
	tr_ok(dp_resident_serve(s));
	for (int i = 0; i < 5; i++)
		drain(s, i == 4);
	cr_assert_eq(loss_of(s).damaged, 3, "%lu", loss_of(s).damaged);
	cr_assert_eq(total, 10 * (PR_THREADS - 1), "the other threads' hits: %lu", total);
	no_gap();
	struct dp_slot last;
	tr_ok(dp_resident_get(s, s->control.slots_offset + (n - 1) * sizeof(last), &last, sizeof(last)));
	cr_assert_eq(last.tail, odd);
	dp_target_close(t);
	tr_kill(pid);
}

Test(resident_serve, target_that_ends_is_no_error)
{
	pid_t pid = tr_spawn(pr_counting);
	pr_attach_one(pid, PR_FOO, "{}");
	pr_count_to(10);
	struct dp_target *t = pr_open(pid, PR_GATES);
	tr_ok(dp_resident_serve(pr_only(t)));
	drain(pr_only(t), false);
	tr_kill(pid);
	drain(pr_only(t), false);
	drain(pr_only(t), true);
	cr_assert_eq(total, 10 * PR_THREADS);
	dp_target_close(t);
}
