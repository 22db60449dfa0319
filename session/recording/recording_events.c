/* SPDX-License-Identifier: MIT */
/*
 * Sorts the hits of several groups by time; those of one group are in order. A round drains one group after the other, so a hit
 * of the last group may be newer than one that the first group delivers in the next round. So hits that are newer than the begin
 * of the round wait.
 */
#include "session/recording/recording.h"

#include "injector/tracee/tracee.h"

#include <poll.h>
#include <stdlib.h>

struct kept { /* a waiting hit */
	struct dp_hit hit;
	size_t class, at; /* `at`: the offset of its payload */
};

struct round {
	struct dp_recording *r;
	const struct dp_recording_group *group;
};

bool dp_recording_has_all(const struct dp_recording *r)
{
	return r->most && r->total >= r->most;
}

static void write_event(struct dp_recording *r, size_t class, const struct dp_hit *hit)
{
	if (dp_recording_has_all(r))
		return;
	const struct dp_event event = {
	        .ns = hit->ns,
	        .pid = dp_target_pid(r->left->target),
	        .tid = hit->tid,
	        .inner_pid = hit->inner_pid,
	        .inner_tid = hit->inner_tid,
	        .comm = dp_target_comm(r->left->target),
	        .probe = (unsigned)class,
	        .payload = hit->payload,
	        .len = hit->len,
	        .image = dp_target_image(r->left->target),
	};
	r->event(&event, r->data);
	r->recorded[class]++;
	r->total++;
}

static void keep(struct dp_recording *r, size_t class, const struct dp_hit *hit)
{
	const struct kept k = {*hit, class, r->payloads.len};
	dp_buf_put(&r->payloads, hit->payload, hit->len);
	dp_buf_put(&r->hits, &k, sizeof(k));
}

static void on_hit(const struct dp_hit *hit, void *data)
{
	const struct round *round = data;
	struct dp_recording *r = round->r;
	if (hit->probe >= round->group->left->manifest.n)
		return;
	const size_t class = round->group->first + hit->probe;
	/* The target can overwrite the rings: a record that does not decode is counted, not shown. */
	if (dp_fields_payload_length(&r->classes.probe[class].fields, hit->payload, hit->len) == SIZE_MAX) {
		r->damaged[class]++;
		return;
	}
	r->found_old |= hit->ns < r->start_ns;
	if (r->ngroups == 1)
		write_event(r, class, hit);
	else
		keep(r, class, hit);
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
			write_event(r, k[i].class, &k[i].hit);
		else
			keep(r, k[i].class, &k[i].hit);
	}
	dp_buf_fini(&hits);
	dp_buf_fini(&payloads);
	return failed ? dp_error_nomem() : NULL;
}

static struct dp_error *drain(struct dp_recording *r, bool last)
{
	const uint64_t limit = dp_now_ns();
	struct dp_error *err = NULL;
	r->found_old = false;
	for (size_t i = 0; !err && i < r->ngroups; i++) {
		struct round round = {r, &r->group[i]};
		err = dp_resident_drain(round.group->left->resident, last, on_hit, &round);
	}
	struct dp_error *written = write_kept(r, limit);
	if (!err)
		return written;
	dp_error_destroy(written);
	return err;
}

bool dp_recording_gone(const struct dp_recording *r)
{
	struct pollfd p = {.fd = dp_target_exit_fd(r->left->target), .events = POLLIN};
	return poll(&p, 1, 0) == 1;
}

/* After exec the process has no rings any more; a process that is ending cannot be read. */
struct dp_error *dp_recording_round(struct dp_recording *r)
{
	const bool last = dp_recording_gone(r);
	struct dp_error *err = drain(r, last);
	if (last || (err && dp_recording_gone(r)))
		r->ended_by = "target exited";
	else if (err && err->tag == DP_TAG_GONE)
		r->ended_by = "target called exec";
	if (err && !r->ended_by)
		return err;
	dp_error_destroy(err);
	return NULL;
}

struct dp_error *dp_recording_finish(struct dp_recording *r)
{
	return write_kept(r, UINT64_MAX);
}
