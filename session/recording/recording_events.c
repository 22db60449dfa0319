/* SPDX-License-Identifier: MIT */
/*
 * Sorts the hits of several groups by time; those of one group are in order. A round drains one group after the other, so a hit
 * of the last group may be newer than one that the first group delivers in the next round. So hits that are newer than the begin
 * of the round wait.
 */
#include "session/recording/recording.h"

#include "injector/tracee/tracee.h"

#include <stdlib.h>

struct kept { /* a waiting hit */
	struct dp_hit hit;
	size_t group, at; /* `at`: the offset of its payload */
};

struct round {
	struct dp_recording *r;
	size_t group;
};

bool dp_recording_has_all(const struct dp_recording *r)
{
	return (r->most && r->total >= r->most) || r->full(r->data);
}

static const struct dp_residents *left_of(const struct dp_recording *r, const struct dp_recording_group *g)
{
	return r->process[g->process].left;
}

/* Of a core file only the program's name is known. */
static const char *thread_name(struct dp_recording *r, const struct dp_residents *left, pid_t tid, uint64_t ns)
{
	const char *comm = dp_residents_comm(left);
	return left->core ? comm : dp_thread_name(&r->threads, dp_residents_pid(left), tid, ns, comm);
}

static void write_event(struct dp_recording *r, size_t group, const struct dp_hit *hit)
{
	struct dp_recording_group *g = &r->group[group];
	const struct dp_residents *left = left_of(r, g);
	if (dp_recording_has_all(r))
		return;
	const struct dp_event event = {
	        .ns = hit->ns,
	        .pid = dp_residents_pid(left),
	        .tid = hit->tid,
	        .inner_pid = hit->inner_pid,
	        .inner_tid = hit->inner_tid,
	        .lane = hit->lane,
	        .comm = thread_name(r, left, hit->tid, hit->ns),
	        .process = dp_residents_comm(left),
	        .probe = (unsigned)g->class[hit->probe],
	        .payload = hit->payload,
	        .len = hit->len,
	        .image = dp_residents_image(left),
	};
	r->event(&event, r->data);
	g->recorded[hit->probe]++;
	r->total++;
}

static void keep(struct dp_recording *r, size_t group, const struct dp_hit *hit)
{
	const struct kept k = {*hit, group, r->payloads.len};
	dp_buf_put(&r->payloads, hit->payload, hit->len);
	dp_buf_put(&r->hits, &k, sizeof(k));
}

static void on_hit(const struct dp_hit *hit, void *data)
{
	const struct round *round = data;
	struct dp_recording *r = round->r;
	struct dp_recording_group *g = &r->group[round->group];
	if (hit->probe >= g->left->manifest.n)
		return;
	/* The target can overwrite the rings: a record that does not decode is counted, not shown. */
	if (dp_fields_payload_length(&r->classes.probe[g->class[hit->probe]].fields, hit->payload, hit->len) == SIZE_MAX) {
		g->damaged[hit->probe]++;
		return;
	}
	r->found_old |= hit->ns < r->start_ns;
	if (r->ngroups == 1)
		write_event(r, round->group, hit);
	else
		keep(r, round->group, hit);
}

/* The caller has marked the damaged ones. */
static void count_batch(struct dp_recording *r, struct dp_recording_group *g, const struct dp_hits *hits)
{
	for (size_t i = 0; i < hits->n; i++) {
		const struct dp_hits_item *item = &hits->item[i];
		g->damaged[item->probe] += item->damaged;
		g->recorded[item->probe] += !item->damaged;
		r->total += !item->damaged;
		r->found_old |= item->ns < r->start_ns;
	}
}

static void write_batch(struct dp_recording *r, struct dp_recording_group *g, const struct dp_hits *hits)
{
	const struct dp_residents *left = left_of(r, g);
	if (dp_recording_has_all(r))
		return;
	const uint64_t ns = hits->item[0].ns; /* on_batch() passes no empty ones */
	const struct dp_event_batch batch = {.hits = hits,
	                                     .pid = dp_residents_pid(left),
	                                     .comm = thread_name(r, left, hits->tid, ns),
	                                     .class = g->class,
	                                     .image = dp_residents_image(left)};
	r->batch(&batch, r->data);
	count_batch(r, g, hits);
}

/* Leaves out the hits of probes that the manifest does not have: the target can write any number. */
static void on_batch(const struct dp_hits *hits, void *data)
{
	const struct round *round = data;
	struct dp_recording_group *g = &round->r->group[round->group];
	struct dp_hits known = *hits;
	known.n = 0;
	for (size_t i = 0; i < hits->n; i++)
		if (hits->item[i].probe < g->left->manifest.n)
			known.item[known.n++] = hits->item[i];
	if (known.n)
		write_batch(round->r, g, &known);
}

static struct dp_error *drain_dumped(struct dp_recording *r, struct dp_dumped *dumped, struct round *round)
{
	if (!r->batch || r->most)
		return dp_dumped_drain(dumped, on_hit, round);
	dp_dumped_drain_lanes(dumped, on_batch, round);
	return NULL;
}

static struct dp_error *drain_group(struct dp_recording *r, size_t group, bool last)
{
	struct dp_resident *resident = r->group[group].left->resident;
	struct round round = {r, group};
	if (!resident)
		return drain_dumped(r, r->group[group].left->dumped, &round);
	if (r->batch && !r->most)
		return dp_resident_drain_lanes(resident, last, on_batch, &round);
	return dp_resident_drain(resident, last, on_hit, &round);
}

static int by_time(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	if (x->hit.ns != y->hit.ns)
		return x->hit.ns < y->hit.ns ? -1 : 1;
	return x->at < y->at ? -1 : 1; /* in the order of arrival */
}

/* Passes on the hits from before `limit`; the others move to new buffers. */
static struct dp_error *write_kept(struct dp_recording *r, uint64_t limit)
{
	struct dp_buf hits = dp_take(r->hits, (struct dp_buf){0}), payloads = dp_take(r->payloads, (struct dp_buf){0});
	struct kept *k = (struct kept *)(void *)hits.data;
	const size_t n = hits.len / sizeof(*k);
	const bool failed = hits.failed || payloads.failed;
	if (n && !failed)
		qsort(k, n, sizeof(*k), by_time);
	for (size_t i = 0; i < n && !failed; i++) {
		k[i].hit.payload = payloads.data + k[i].at;
		if (k[i].hit.ns < limit)
			write_event(r, k[i].group, &k[i].hit);
		else
			keep(r, k[i].group, &k[i].hit);
	}
	dp_buf_fini(&hits);
	dp_buf_fini(&payloads);
	return failed ? dp_error_nomem() : NULL;
}

void dp_recording_end(struct dp_recording_process *p, struct dp_error *err)
{
	const bool core = p->left->core, gone = err && err->tag == DP_TAG_GONE;
	const bool ended = !err || (!core && dp_residents_have_ended(p->left));
	p->ended_by = !ended && !gone ? "error" : core ? "core file" : ended ? "target exited" : "target called exec";
	if (ended || gone)
		dp_error_destroy(err);
	else
		p->failed = err;
}

/* After exec a process has no rings any more; one that is ending cannot be read. */
static void drain_process(struct dp_recording *r, size_t process, size_t *group)
{
	struct dp_recording_process *p = &r->process[process];
	const bool last = !p->ended_by && dp_residents_have_ended(p->left);
	struct dp_error *err = NULL;
	for (; *group < r->ngroups && r->group[*group].process == process; ++*group) {
		if (!p->ended_by && !err)
			err = drain_group(r, *group, last);
	}
	if (last || err)
		dp_recording_end(p, err);
}

static struct dp_error *drain(struct dp_recording *r)
{
	const uint64_t limit = dp_now_ns();
	size_t group = 0;
	r->found_old = false;
	for (size_t i = 0; i < r->nprocesses; i++)
		drain_process(r, i, &group);
	return write_kept(r, limit);
}

struct dp_error *dp_recording_round(struct dp_recording *r)
{
	struct dp_error **failed = NULL;
	const char *why = NULL;
	DP_TRY(drain(r));
	for (size_t i = 0; i < r->nprocesses; i++) {
		struct dp_recording_process *p = &r->process[i];
		if (!p->ended_by)
			return NULL;
		if (p->failed)
			failed = &p->failed;
		else
			why = p->ended_by;
	}
	if (!why && failed)
		return dp_take(*failed, NULL);
	r->ended_by = why;
	return NULL;
}

struct dp_error *dp_recording_finish(struct dp_recording *r)
{
	return write_kept(r, UINT64_MAX);
}
