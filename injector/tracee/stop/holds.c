/* SPDX-License-Identifier: MIT */
/*
 * Measures pauses. A thread's pause lasts from its stop to its release. dynprobe sees the stop a little late, so it counts from
 * the moment when the thread was asked to stop, or was last known to run: rather too much than too little. On a busy machine this
 * includes the time the thread waited for a processor in order to stop.
 *
 * On a busy machine a thread may be stopped again before it has run; to the program that is one pause. The registers show it: a
 * thread that was not waiting in a call and still has the registers of its release has not run.
 *
 * The sums are global: no other tool can hold these threads at the same time.
 */
#include "injector/tracee/stop/holds.h"

#include <string.h>

#define LAST 256u /* threads whose last release is remembered; for others each pause counts alone */

static struct dp_holds sum;
static uint64_t begin_ns, end_ns; /* of the current hold */
static struct last {
	pid_t tid;
	struct user_regs_struct regs; /* at its release */
	uint64_t paused_ns;           /* until then, since it last ran */
} last[LAST];

static struct last *last_of(pid_t tid)
{
	return &last[(unsigned)tid % LAST];
}

/* -ERESTART...: it waited, and continued to wait. */
static bool waits(const struct dp_held *h)
{
	return h->in_syscall_stop && (int64_t)h->regs.rax <= -512;
}

void dp_holds_took(struct dp_held *h)
{
	const struct last *l = last_of(h->tid);
	const bool same = l->tid == h->tid && !waits(h) && !memcmp(&l->regs, &h->regs, sizeof(h->regs));
	h->paused_ns = same ? l->paused_ns : 0;
}

/* How long the thread has been kept from running, without a break. */
static uint64_t pause_of(const struct dp_held *h, uint64_t now)
{
	const uint64_t paused = h->paused_ns + now - h->held_at_ns;
	struct last *l = last_of(h->tid);
	*l = (struct last){.tid = h->tid, .regs = h->regs, .paused_ns = paused};
	return paused;
}

void dp_holds_began(struct dp_held *h, uint64_t since_ns)
{
	if (h->held_at_ns && since_ns > h->held_at_ns)
		h->held_at_ns = since_ns;
}

void dp_holds_ended(const struct dp_held *h)
{
	const uint64_t now = dp_now_ns();
	if (!h->held_at_ns || now < h->held_at_ns)
		return;
	const uint64_t paused = pause_of(h, now);
	if (paused > sum.longest_ns)
		sum.longest_ns = paused;
	if (end_ns && h->held_at_ns > end_ns) /* the last hold ended earlier, without dp_holds_over() */
		dp_holds_over();
	if (!end_ns || h->held_at_ns < begin_ns)
		begin_ns = h->held_at_ns;
	end_ns = now;
}

void dp_holds_in_vain(void)
{
	sum.vain += end_ns != 0;
}

void dp_holds_over(void)
{
	if (!end_ns)
		return;
	sum.sum_ns += end_ns - begin_ns;
	sum.stops++;
	end_ns = 0;
}

struct dp_holds dp_holds_take(void)
{
	dp_holds_over();
	const struct dp_holds all = sum;
	sum = (struct dp_holds){0};
	return all;
}
