/* SPDX-License-Identifier: MIT */
/*
 * A thread is held from its stop, which we see a little later than it happens, until it is let go. What is counted begins when it
 * was asked to stop, or when it was last known to run: rather too much than too little. On a busy machine that contains the time
 * for which it waited for a processor in order to stop.
 *
 * On a busy machine a thread may be stopped again before it has had a processor: to the program that is one pause. It is seen from
 * its registers: one that was not waiting in a call and has the very registers that it was let go with has not run.
 *
 * One tool has one of these: whoever holds threads is the only one who does.
 */
#include "injector/tracee/stop/holds.h"

#include <string.h>

#define LAST 256u /* threads of which it is known how they were let go; others are one pause each time */

static struct dp_holds sum;
static uint64_t begin_ns, end_ns; /* of the hold that is going on */
static struct last {
	pid_t tid;
	struct user_regs_struct regs; /* as it went on */
	uint64_t paused_ns;           /* until then, since it ran */
} last[LAST];

static struct last *last_of(pid_t tid)
{
	return &last[(unsigned)tid % LAST];
}

/* -ERESTART...: it waited, and went on waiting. */
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

/* For how long the thread has been kept from running, in one. */
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
	if (end_ns && h->held_at_ns > end_ns) /* it began when the last one was over, of which nobody said so */
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
