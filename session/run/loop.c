/* SPDX-License-Identifier: MIT */
/*
 * The loop of a run: drain every ring, check every site, sleep; until a signal, a limit or the end of all targets. It holds no
 * thread of a target. After a round with many events the sleep is short, so that rings of busy threads do not overflow.
 */
#include "injector/tracee/proc/proc.h"
#include "session/process/pending.h"
#include "session/process/session_aggs.h"
#include "session/process/session_code.h"
#include "session/process/session_full.h"
#include "session/process/session_trap.h"
#include "session/run/past.h"
#include "session/run/run.h"
#include "session/run/snapshots.h"
#include "session/run/starts.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MS     10
#define BUSY_MS     1
#define STARTS_MS   2 /* with --pending and --on-full block */
#define FLUSH_NS    UINT64_C(200000000)
#define MANY        256u  /* events in a round, above which the next sleep is short */
#define VERY_MANY   4096u /* events in a round, above which it is a nap: that is a tenth of a ring of small events */
#define NAP_NS      200000L
#define DRAIN_NS    UINT64_C(5000000) /* how long rings are read again and again, before anything else is looked at */
#define BATCH_CHECK 65536u            /* events between two checks for the end */
#define CHECK       1024u /* events between two checks for hits that wait for a snapshot, and for the end; a power of two */

void dp_run_note(const struct dp_run *run, const char *text)
{
	run->trace->calls->note(text, run->trace->calls->run_data);
}

bool dp_run_has_all(const struct dp_run *run)
{
	return run->enough || (run->trace->hits && run->recorded - run->entered >= run->trace->hits);
}

/* The target can overwrite the rings. */
static bool is_damaged(struct dp_run *run, const struct dp_hit *hit)
{
	const struct dp_fields *fields = &run->trace->probe[hit->probe].fields;
	if (!run->decoder && !(run->decoder = calloc(run->trace->nprobes, sizeof(*run->decoder))))
		return dp_fields_payload_length(fields, hit->payload, hit->len) == SIZE_MAX;
	struct dp_decoder *d = &run->decoder[hit->probe];
	if (!d->fields)
		dp_decoder_init(d, fields);
	return dp_decoder_length(d, hit->payload, hit->len) == SIZE_MAX;
}

/*
 * A loss is counted when it happens, and hits are collected before the first of them comes here: what was lost before any of them
 * is in the counters now.
 */
static void look_for_gaps(struct dp_run *run, struct dp_session *s)
{
	uint64_t lost = 0;
	if (run->looked_for_gaps || !run->trace->calls->gap)
		return;
	run->looked_for_gaps = true;
	dp_run_note_losses_of(run, s);
	for (unsigned p = 0; p < run->trace->nprobes; p++)
		lost += dp_loss_sum(&s->loss[p]);
	if (lost != s->lost_before)
		run->trace->calls->gap(run->trace->calls->run_data);
	s->lost_before = lost;
}

static void on_hit(const struct dp_hit *hit, void *data)
{
	struct dp_run *run = data;
	struct dp_session *s = run->session[run->current];
	if (hit->probe >= run->trace->nprobes)
		return;
	if (dp_run_has_all(run))
		return;
	if (run->leaving && run->hurried) {
		s->place[hit->probe].unshown++;
		return;
	}
	if (is_damaged(run, hit)) { /* counted, not shown */
		s->place[hit->probe].damaged++;
		return;
	}
	const pid_t pid = hit->pid ? hit->pid : dp_target_pid(s->target);
	const char *comm = dp_target_comm(s->target);
	const struct dp_event event = {
	        .ns = hit->ns,
	        .pid = pid,
	        .tid = hit->tid,
	        .inner_pid = hit->inner_pid,
	        .inner_tid = hit->inner_tid,
	        .lane = hit->lane,
	        .comm = dp_thread_name(&run->threads, pid, hit->tid, hit->ns, comm),
	        .process = comm,
	        .probe = hit->probe,
	        .payload = hit->payload,
	        .len = hit->len,
	        .image = dp_target_image(dp_pending_draining(s)),
	};
	look_for_gaps(run, s);
	run->trace->calls->event(&event, run->trace->calls->run_data);
	run->enough = run->trace->calls->full(run->trace->calls->run_data);
	s->place[hit->probe].recorded++;
	run->recorded++;
	run->entered += run->trace->typed[hit->probe].enters || run->trace->typed[hit->probe].half;
	if (run->enough)
		dp_target_drain_break(dp_pending_draining(s));
	if (run->recorded & (CHECK - 1))
		return;
	dp_snapshots_round(run);
	if (dp_run_must_leave(run) && !run->leaving)
		dp_target_drain_break(dp_pending_draining(s));
}

/* Counts the hits of a batch as the caller has marked them. */
static void count_batch(struct dp_run *run, struct dp_session *s, const struct dp_hits *hits)
{
	for (size_t i = 0, n; i < hits->n; i += n) {
		const unsigned probe = hits->item[i].probe;
		uint64_t damaged = 0;
		for (n = 0; i + n < hits->n && hits->item[i + n].probe == probe; n++)
			damaged += hits->item[i + n].damaged;
		if (probe >= run->trace->nprobes)
			continue;
		s->place[probe].damaged += damaged;
		s->place[probe].recorded += n - damaged;
		run->recorded += n - damaged;
	}
}

static void drop_batch(struct dp_run *run, struct dp_session *s, const struct dp_hits *hits)
{
	for (size_t i = 0; i < hits->n; i++)
		if (hits->item[i].probe < run->trace->nprobes)
			s->place[hits->item[i].probe].unshown++;
}

static void on_batch(const struct dp_hits *hits, void *data)
{
	struct dp_run *run = data;
	struct dp_session *s = run->session[run->current];
	const uint64_t before = run->recorded;
	if (dp_run_has_all(run))
		return;
	if (run->leaving && run->hurried) {
		drop_batch(run, s, hits);
		return;
	}
	const pid_t pid = hits->pid ? hits->pid : dp_target_pid(s->target);
	const uint64_t ns = hits->n ? hits->item[0].ns : 0;
	const struct dp_event_batch batch = {
	        .hits = hits,
	        .pid = pid,
	        .comm = dp_thread_name(&run->threads, pid, hits->tid, ns, dp_target_comm(s->target)),
	        .image = dp_target_image(dp_pending_draining(s)),
	};
	run->trace->calls->batch(&batch, run->trace->calls->run_data);
	count_batch(run, s, hits);
	run->enough = run->trace->calls->full(run->trace->calls->run_data);
	if (run->enough)
		dp_target_drain_break(dp_pending_draining(s));
	if (before / BATCH_CHECK != run->recorded / BATCH_CHECK && dp_run_must_leave(run) && !run->leaving)
		dp_target_drain_break(dp_pending_draining(s));
}

/* Only a limit on hits, and a hit that waits for its snapshot, need them one by one. */
static bool takes_batches(const struct dp_run *run)
{
	return run->trace->calls->batch && !run->trace->hits && !run->trace->snapshots.on;
}

static void drain_target(struct dp_target *t, bool last, void *data)
{
	struct dp_run *run = data;
	run->looked_for_gaps = false;
	if (takes_batches(run))
		dp_error_destroy(dp_target_drain_lanes(t, last, on_batch, run));
	else
		dp_error_destroy(dp_target_drain(t, last, on_hit, run));
}

/* Returns the number of events. */
static uint64_t drain_all(struct dp_run *run, bool last)
{
	const uint64_t before = run->recorded;
	for (run->current = 0; run->current < run->nsessions; run->current++) {
		struct dp_session *s = run->session[run->current];
		drain_target(s->target, last || s->ended, run);
		dp_pending_drain(s, last || s->ended, drain_target, run);
		dp_session_full_round(s);
	}
	return run->recorded - before;
}

void dp_run_drain(struct dp_run *run, bool last)
{
	const uint64_t until = dp_now_ns() + DRAIN_NS;
	uint64_t n, sum = 0, begin;
	do {
		begin = dp_now_ns();
		sum += n = drain_all(run, last);
	} while (n > VERY_MANY && takes_batches(run) && !last && dp_now_ns() < until);
	run->flooded = sum > MANY;
	run->drowned = sum > VERY_MANY;
	if (!last)
		run->trace->calls->round(begin, run->trace->calls->run_data);
}

void dp_run_note_losses_of(const struct dp_run *run, struct dp_session *s)
{
	for (unsigned p = 0; p < run->trace->nprobes; p++) {
		dp_target_loss(s->target, p, &s->loss[p]);
		dp_pending_loss(s, p, &s->loss[p]);
		if (s->answers)
			dp_session_aggs_loss(s, p);
	}
}

void dp_run_note_losses(struct dp_run *run)
{
	for (size_t i = 0; i < run->nsessions; i++)
		dp_run_note_losses_of(run, run->session[i]);
}

uint64_t dp_run_lost(const struct dp_run *run)
{
	uint64_t sum = dp_past_lost(run);
	for (size_t i = 0; i < run->nsessions; i++)
		for (unsigned p = 0; p < run->trace->nprobes; p++)
			sum += dp_loss_sum(&run->session[i]->loss[p]);
	return sum;
}

static void on_retired(size_t plan, const char *why, void *data)
{
	struct dp_run *run = data;
	struct dp_session *s = run->session[run->current];
	const size_t i = s->planned[plan];
	char text[512];
	if (i == SIZE_MAX)
		return;
	if (dp_pending_lost(s, plan))
		return;
	s->place[i].retired = true;
	s->place[i].retired_why = strdup(why);
	snprintf(text, sizeof(text), "probe %s in %d retired: %s", dp_probe_shown(&run->trace->probe[i]),
	         dp_target_pid(s->target), why);
	dp_run_note(run, text);
}

static void on_note(const char *text, void *data)
{
	struct dp_run *run = data;
	dp_run_note(run, text);
}

void dp_run_fields_known(unsigned probe, void *data)
{
	struct dp_run *run = data;
	if (run->decoder)
		run->decoder[probe] = (struct dp_decoder){0};
	run->trace->calls->fields_known(probe, run->trace->calls->run_data);
}

static void note_end(const struct dp_run *run, const struct dp_session *s, const char *then)
{
	char text[256], name[64] = "";
	if (s->end == DP_WATCH_EXECED)
		dp_proc_comm(dp_target_pid(s->target), name, sizeof(name));
	snprintf(text, sizeof(text), "process %d %s%s%s", dp_target_pid(s->target), *name ? "executes " : "has ended", name,
	         then);
	dp_run_note(run, text);
}

/* Whether children of a program that is gone are followed. */
static bool is_survived(const struct dp_run *run, struct dp_session *s)
{
	if (!dp_target_followed(s->target))
		return false;
	if (!s->survived)
		note_end(run, s, "; its children are still followed, Ctrl-C ends");
	s->survived = true;
	return true;
}

/* With starts.h the next program gets the probes, or is none of those that were asked for. */
static void note_exec(const struct dp_run *run, const struct dp_session *s)
{
	if (s->ended && s->end == DP_WATCH_EXECED && !run->starts)
		note_end(run, s,
		         run->trace->follow ? ", which has no probes"
		                            : ", which has no probes; --follow goes on with it (as root)");
}

static const char *watch_all(struct dp_run *run)
{
	const char *why = "target exited";
	const struct dp_pending_calls calls = {.drain = drain_target, .note = on_note, .known = dp_run_fields_known, .data = run};
	size_t alive = 0;
	for (run->current = 0; run->current < run->nsessions; run->current++) {
		struct dp_session *s = run->session[run->current];
		if (!s->ended) {
			s->end = dp_target_watch(s->target, on_retired, run);
			s->ended = s->end != DP_WATCH_OK && !is_survived(run, s);
			note_exec(run, s);
			dp_pending_round(s, &calls);
			dp_session_faults_round(s);
			dp_session_code_round(s, on_note, run);
		}
		alive += !s->ended;
		if (s->end == DP_WATCH_EXECED)
			why = "target called exec";
	}
	return alive || dp_starts_lives(run) ? NULL : why;
}

/* Before the last round of a flight recorder there is nothing to write but losses, which go with the events. */
static struct dp_error *flush(const struct dp_run *run)
{
	return run->trace->overwrite ? NULL : run->trace->calls->flush(dp_run_lost(run), run->trace->calls->run_data);
}

static bool is_over(const struct dp_run *run)
{
	const uint64_t duration = run->trace->duration_ns;
	return duration && run->armed_ns && dp_now_ns() - run->armed_ns >= duration;
}

static const char *limits(const struct dp_run *run)
{
	if (dp_run_has_all(run))
		return run->enough ? "record size" : "hits";
	if (is_over(run))
		return "duration";
	return NULL;
}

/* Does a hit wait for the next drain? */
static bool is_awaited(const struct dp_run *run)
{
	for (size_t i = 0; run->trace->block_ns && i < run->nsessions; i++)
		if (dp_target_awaited(run->session[i]->target))
			return true;
	return false;
}

static int sleep_ms(const struct dp_run *run)
{
	const struct dp_trace_spec *trace = run->trace;
	if (is_awaited(run))
		return 0;
	int ms = run->drowned ? 0 : run->flooded && !trace->asked.what ? BUSY_MS : IDLE_MS;
	if (trace->duration_ns) {
		const uint64_t end = run->armed_ns + trace->duration_ns, now = dp_now_ns();
		const uint64_t left = end > now ? (end - now) / 1000000 : 0;
		ms = left < (uint64_t)ms ? (int)left : ms;
	}
	return ms;
}

bool dp_run_interrupted(struct dp_run *run)
{
	const struct dp_trace_calls *c = run->trace->calls;
	if (!run->ended_by && c->interrupted(false, c->run_data))
		run->ended_by = "interrupt";
	return run->ended_by;
}

bool dp_run_must_leave(void *data)
{
	struct dp_run *run = data;
	const struct dp_trace_calls *c = run->trace->calls;
	if (!run->leaving)
		return dp_run_interrupted(run) || is_over(run);
	run->hurried |= c->interrupted(true, c->run_data);
	return run->hurried;
}

/* A program that starts waits as a library and a hit do: whoever is asked first must not be waited for alone. */
static int wait_ms(const struct dp_run *run)
{
	const int ms = sleep_ms(run);
	const bool others = run->trace->pending || run->trace->block_ns;
	return others && run->nsessions && dp_starts_fd(run) >= 0 && ms > STARTS_MS ? STARTS_MS : ms;
}

void dp_run_rest(struct dp_run *run)
{
	struct pollfd p[] = {{.fd = run->trace->calls->wake_fd, .events = POLLIN}, {.fd = dp_starts_fd(run), .events = POLLIN}};
	const int ms = dp_snapshots_rest(run, dp_pending_rest(run->session, run->nsessions, wait_ms(run)));
	const int rest = dp_session_full_rest(run->session, run->nsessions, ms);
	const struct timespec t = {.tv_nsec = run->drowned && rest ? NAP_NS : rest * 1000000L};
	if (ppoll(p, 2, &t, NULL) > 0 && p[0].revents)
		dp_run_interrupted(run);
}

struct dp_error *dp_run_loop(struct dp_run *run)
{
	uint64_t flushed = dp_now_ns();
	while (!run->ended_by) {
		dp_starts_round(run);
		const char *gone = watch_all(run);
		dp_snapshots_round(run);
		dp_run_drain(run, false);
		/* Losses since the previous drain come after the events of this one: after the last wanted hit they do not count.
		 */
		if (!dp_run_has_all(run))
			dp_run_note_losses(run);
		if (dp_now_ns() - flushed > FLUSH_NS || !run->flooded || run->enough) {
			DP_TRY(flush(run));
			flushed = dp_now_ns();
		}
		if (!run->ended_by) /* a signal came while events were shown */
			run->ended_by = gone ? gone : limits(run);
		if (!run->ended_by) {
			dp_starts_reap(run);
			dp_run_rest(run);
		}
	}
	return NULL;
}
