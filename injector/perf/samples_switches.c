/* SPDX-License-Identifier: MIT */
/*
 * Reads the rings of switches. They are apart from those of the samples, because a sample is two hundred times as large: if many
 * are lost, the times are still complete.
 */
#include "injector/perf/samples_internal.h"

#include "injector/perf/waits.h"
#include "injector/tracee/tracee.h"

#include <string.h>

struct trailer { /* of each record */
	uint32_t pid, tid;
	uint64_t ns, id;
};

static bool take_trailer(const struct dp_perf_record *r, struct trailer *ret)
{
	if (r->n < DP_TRAILER)
		return false;
	memcpy(ret, r->bytes + r->n - DP_TRAILER, sizeof(*ret));
	return true;
}

static void on_switch(struct dp_samples *s, const struct dp_perf_record *r, const struct trailer *t)
{
	if ((pid_t)t->pid != s->pid || !dp_samples_is_first(s, (pid_t)t->tid, t->id, t->ns))
		return;
	const struct dp_switch sw = {.kind = !(r->misc & PERF_RECORD_MISC_SWITCH_OUT)        ? DP_SWITCH_IN
	                                     : r->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? DP_SWITCH_PREEMPTED
	                                                                                     : DP_SWITCH_OUT,
	                             .tid = (pid_t)t->tid,
	                             .ns = t->ns};
	dp_waits_add(s->waits, &sw);
}

static void on_task(struct dp_samples *s, const struct dp_perf_record *r)
{
	struct dp_perf_task t;
	memcpy(&t, r->bytes, sizeof(t));
	if ((pid_t)t.pid != s->pid)
		return;
	const bool born = r->type == PERF_RECORD_FORK;
	if (!born)
		dp_samples_thread_ended(s, (pid_t)t.tid, t.time);
	dp_waits_add(s->waits,
	             &(struct dp_switch){.kind = born ? DP_SWITCH_BORN : DP_SWITCH_ENDED, .tid = (pid_t)t.tid, .ns = t.time});
}

struct reading {
	struct dp_samples *s;
	struct dp_perf_ring *ring;
};

static void on_record(const struct dp_perf_record *r, void *data)
{
	const struct reading *reading = data;
	struct dp_samples *s = reading->s;
	struct trailer t;
	uint64_t lost[2];
	if (!take_trailer(r, &t))
		return;
	if (r->type == PERF_RECORD_SWITCH)
		on_switch(s, r, &t);
	else if ((r->type == PERF_RECORD_FORK || r->type == PERF_RECORD_EXIT) && r->n >= sizeof(struct dp_perf_task))
		on_task(s, r);
	else if (r->type == PERF_RECORD_LOST && r->n >= sizeof(lost)) {
		memcpy(lost, r->bytes, sizeof(lost));
		s->stats.lost += lost[1];
		dp_waits_add(s->waits,
		             &(struct dp_switch){.kind = DP_SWITCH_LOST, .ns = t.ns, .from_ns = reading->ring->last_ns});
	}
	reading->ring->last_ns = t.ns;
}

void dp_samples_switches(struct dp_samples *s, struct dp_waits *to)
{
	s->waits = to;
	for (int i = 0; i < s->ncpus; i++) {
		struct dp_perf_ring *ring = &s->ring[i];
		struct reading reading = {s, ring};
		dp_perf_ring_news(ring, s->scratch, on_record, &reading);
		ring->marked = ring->scanned;
		const bool full = dp_perf_ring_is_full(ring);
		dp_perf_ring_samples(ring, s->scratch, on_record, &reading); /* there are none */
		if (full)
			dp_waits_add(to,
			             &(struct dp_switch){.kind = DP_SWITCH_LOST, .ns = dp_now_ns(), .from_ns = ring->last_ns});
	}
}

/* Each thread has an event for each processor that is on. */
size_t dp_samples_unseen(const struct dp_samples *s, const struct dp_waits *waits)
{
	size_t events = 0, rings = 0;
	for (size_t i = 0; i < s->nevents; i++)
		events += !dp_waits_knows(waits, s->event[i].tid);
	for (int i = 0; i < s->ncpus; i++)
		rings += s->ring[i].base != NULL;
	return rings ? events / rings : 0;
}
