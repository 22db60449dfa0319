/* SPDX-License-Identifier: MIT */
#include "session/run/snapshots.h"
#include "session/code/code_view.h"
#include "session/run/processes.h"

#include "base/cleanup.h"
#include "injector/park.h"
#include "pmodules/pmodules.h"
#include "probes/debug/debug_cache.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS   1
#define WAIT_NS   UINT64_C(1000000000)
#define ID_DIGITS 12 /* the last digits of a snapshot's id, which its event records */
#define READY     8  /* captures with their own prefetched data, which stays in memory */

struct ready {
	struct dp_snap_capture *take;
	pid_t pid; /* of the process that it was last used for */
	uint64_t used_ns;
};

struct dp_snapshots {
	struct ready ready[READY];
	size_t nready;
	struct dp_snap_capture *take; /* that of `target` */
	struct dp_snap_capture_options wanted;
	struct dp_stopped_hit hit; /* the waiting hit; dp_snap_capture_process() reads it */
	struct dp_park_hit parked;
	struct dp_target *target; /* the process of `parked` */
	bool promised;            /* the hit's event has the id of a snapshot */
	bool said_filtered, said_child;
	bool left; /* hits do not wait any more */
	uint64_t taken, failed, last_ns;
	struct dp_park_counts counts; /* of targets that have gone */
};

static void log_line(enum dp_log_level level, const char *module, const char *text, void *data)
{
	struct dp_run *run = data;
	char line[1024];
	if (level < DP_LOG_WARNING && !dp_trace_logs(run->trace, DP_LOG_DEBUG))
		return;
	snprintf(line, sizeof(line), "pmodule %s: %s", module, text);
	dp_run_note(run, line);
}

static bool claim_hit(void *data)
{
	struct dp_snapshots *s = data;
	s->promised = dp_park_take(s->target, &s->parked);
	return s->promised;
}

static bool hit_waits(void *data)
{
	const struct dp_snapshots *s = data;
	return dp_park_waits(s->target, &s->parked);
}

static void let_hit_go(void *data)
{
	const struct dp_snapshots *s = data;
	dp_park_done(s->target);
}

/* Does now what it can, because threads wait during the capture. The capture reports errors. */
static void prefetch(struct dp_snap_capture *take, pid_t pid)
{
	dp_error_destroy(dp_snap_capture_prefetch(take, pid));
}

/* The capture of a process: its own, a new one, or the one that was not used for the longest time. */
static struct dp_error *find_take(struct dp_snapshots *s, pid_t pid, struct dp_snap_capture **ret)
{
	struct ready *r = NULL;
	for (size_t i = 0; i < s->nready && (!r || r->pid != pid); i++)
		if (!r || s->ready[i].pid == pid || s->ready[i].used_ns < r->used_ns)
			r = &s->ready[i];
	if ((!r || r->pid != pid) && s->nready < READY) {
		r = &s->ready[s->nready];
		DP_TRY(dp_snap_capture_create(&s->wanted, &r->take));
		s->nready++;
	}
	r->pid = pid;
	r->used_ns = dp_now_ns();
	*ret = r->take;
	return NULL;
}

/* The limits are those of the run. Each process keeps them alone until it is told of the snapshots of the others. */
static void limits_of(const struct dp_run *run, const struct dp_snapshots *s, struct dp_park_limits *ret)
{
	const struct dp_snapshots_asked *a = &run->trace->snapshots;
	const uint64_t pause = a->take.still.max_pause_ns, gone = dp_now_ns() - s->last_ns;
	*ret = (struct dp_park_limits){.on = true,
	                               .hits = s->taken < a->most ? a->most - (uint32_t)s->taken : 0,
	                               .interval_ns = a->interval_ns,
	                               .rest_ns = s->last_ns && gone < a->interval_ns ? a->interval_ns - gone : 0,
	                               .wait_ns = pause ? pause : WAIT_NS};
}

static void want(const struct dp_run *run, const struct dp_snapshots *s, struct dp_target *t)
{
	struct dp_park_limits limits;
	limits_of(run, s, &limits);
	dp_park_want(t, &limits);
}

/* A command that has not begun has nothing to prefetch. */
static struct dp_error *prepare(const struct dp_run *run, struct dp_snapshots *s)
{
	for (size_t i = 0; i < run->nsessions; i++) {
		struct dp_target *t = run->session[i]->target;
		want(run, s, t);
		if (i >= READY)
			continue;
		DP_TRY(find_take(s, dp_target_pid(t), &s->take));
		if (!run->trace->command)
			prefetch(s->take, dp_target_pid(t));
	}
	return NULL;
}

static struct dp_error *check_park(struct dp_run *run, struct dp_session *s)
{
	(void)run;
	return dp_park_check(s->target);
}

struct dp_error *dp_snapshots_begin(struct dp_run *run)
{
	if (!run->trace->snapshots.on)
		return NULL;
	DP_TRY(dp_snapshot_check_place(NULL));
	DP_TRY(dp_run_each(run, check_park));
	struct dp_snapshots *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	run->snapshots = s;
	s->hit = (struct dp_stopped_hit){.take = claim_hit, .waits = hit_waits, .let_go = let_hit_go, .data = s};
	s->wanted = run->trace->snapshots.take;
	s->wanted.still.hit = &s->hit;
	s->wanted.log = log_line;
	s->wanted.data = run;
	s->wanted.version = "dynprobe " DP_VERSION;
	dp_auto_free char *cache = dp_cache_dir();
	dp_debug_cache_dir(cache);
	return prepare(run, s);
}

struct dp_error *dp_snapshots_admit(const struct dp_run *run, struct dp_session *session)
{
	if (!run->snapshots)
		return NULL;
	DP_TRY(dp_park_check(session->target));
	want(run, run->snapshots, session->target);
	return NULL;
}

/* ---- one hit --------------------------------------------------------------------------------------------------------------- */

static uint64_t id_of(const struct dp_snapshots *s)
{
	return s->parked.id & ((UINT64_C(1) << (4 * ID_DIGITS)) - 1);
}

/* The event in the trace and the file's name have the last digits of the id. */
static void identify(const struct dp_run *run, const struct dp_snapshots *s, struct dp_snapshot *shot)
{
	char digits[ID_DIGITS + 1];
	snprintf(digits, sizeof(digits), "%0*" PRIx64, ID_DIGITS, id_of(s));
	memcpy(shot->id + strlen(shot->id) - ID_DIGITS, digits, ID_DIGITS);
	shot->hit = s->parked.id;
	if (s->parked.probe < run->trace->nprobes) {
		shot->probe = dp_snapshot_text(shot, run->trace->probe[s->parked.probe].name);
		const char *when = run->trace->typed[s->parked.probe].when;
		shot->condition = when ? dp_snapshot_text(shot, when) : NULL;
	}
}

static struct dp_error *write_one(struct dp_run *run, struct dp_snapshot *shot)
{
	char path[4096], line[4400];
	dp_snap_capture_name(shot, path, sizeof(path));
	char *end = strrchr(path, '.');
	const size_t n = end ? (size_t)(end - path) : strlen(path);
	snprintf(path + n, sizeof(path) - n, ".%s.dps", shot->id + strlen(shot->id) - ID_DIGITS);
	DP_TRY(dp_snapshot_write_beside(shot, path));
	snprintf(line, sizeof(line), "snapshot %s: %zu thread%s of %d, stopped for %.2f ms", path, shot->nthreads,
	         shot->nthreads == 1 ? "" : "s", shot->pid, (double)shot->pause_ns / 1e6);
	if (shot->held_ns > shot->pause_ns)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), " (%.2f ms in all)", (double)shot->held_ns / 1e6);
	dp_run_note(run, line);
	return NULL;
}

static struct dp_error *capture_one(struct dp_run *run, struct dp_snapshots *s)
{
	struct dp_snapshot *shot = NULL;
	s->hit.ns_tid = s->parked.ns_tid;
	s->hit.regs = s->parked.regs;
	struct dp_error *err = find_take(s, s->parked.pid, &s->take);
	if (!err)
		err = dp_snap_capture_process(s->take, s->parked.pid, &shot);
	if (dp_park_release(s->target)) /* the hit still waits: it has no event yet */
		s->promised = false;
	if (!err) {
		identify(run, s, shot);
		err = write_one(run, shot);
		dp_snapshot_destroy(shot);
	}
	/* Also after a failure: the next hit should not wait in vain for the same reading. */
	struct dp_park_counts counts;
	dp_park_counts(s->target, &counts);
	if (counts.left && s->take)
		prefetch(s->take, s->parked.pid);
	return err;
}

static void note_filter(struct dp_run *run, struct dp_snapshots *s)
{
	char line[256];
	const bool all = dp_target_is_caged(s->target);
	const pid_t child = dp_target_caged_child(s->target);
	if (all && !s->said_filtered) {
		snprintf(line, sizeof(line),
		         "process %d is now under a seccomp filter: its hits do not wait for snapshots any more (dynprobe "
		         "snapshot %d takes one from outside)",
		         dp_target_pid(s->target), dp_target_pid(s->target));
		dp_run_note(run, line);
	} else if (child && !all && !s->said_child) {
		snprintf(line, sizeof(line),
		         "process %d, a fork child of %d, is now under a seccomp filter: hits of fork children do not wait for "
		         "snapshots any more",
		         child, dp_target_pid(s->target));
		dp_run_note(run, line);
	}
	s->said_filtered |= all;
	s->said_child |= child != 0;
}

static bool is_due(const struct dp_run *run, const struct dp_snapshots *s)
{
	const struct dp_snapshots_asked *a = &run->trace->snapshots;
	return !s->taken || (s->taken < a->most && dp_now_ns() - s->last_ns >= a->interval_ns);
}

/* Tells the process the rest of the limits. */
static void tell_limits(const struct dp_run *run, const struct dp_snapshots *s, struct dp_target *t)
{
	struct dp_park_limits limits;
	limits_of(run, s, &limits);
	dp_park_bound(t, limits.hits, limits.rest_ns);
}

static void tell_the_others(const struct dp_run *run, const struct dp_snapshots *s)
{
	for (size_t i = 0; i < run->nsessions; i++)
		if (run->session[i]->target != s->target)
			tell_limits(run, s, run->session[i]->target);
}

static void serve(struct dp_run *run, size_t nth)
{
	struct dp_snapshots *s = run->snapshots;
	const struct dp_session *session = run->session[nth];
	s->target = session->target;
	if (session->ended)
		return;
	const bool waits = dp_park_inspect(s->target, &s->parked);
	note_filter(run, s);
	if (!waits)
		return;
	if ((run->nsessions > 1 || run->starts) && !is_due(run, s)) {
		dp_park_release(s->target);
		tell_limits(run, s, s->target);
		return;
	}
	s->promised = false;
	struct dp_error *err = capture_one(run, s);
	s->last_ns = dp_now_ns();
	s->taken += !err;
	if (!err) {
		tell_the_others(run, s);
		return;
	}
	char line[1024], event[64] = "";
	if (s->promised)
		snprintf(event, sizeof(event), "; an event has the id %0*" PRIx64 ", but there is no such file", ID_DIGITS,
		         id_of(s));
	snprintf(line, sizeof(line), "no snapshot of %d: %s%s", s->parked.pid, err->message, event);
	dp_run_note(run, line);
	dp_error_destroy(err);
	s->failed += s->promised; /* otherwise the target has counted the hit */
}

void dp_snapshots_round(struct dp_run *run)
{
	for (size_t i = 0; run->snapshots && !run->snapshots->left && i < run->nsessions; i++)
		serve(run, i);
}

/* ---- the end ---------------------------------------------------------------------------------------------------------- */

static void add_counts(struct dp_park_counts *all, const struct dp_session *session)
{
	struct dp_park_counts one;
	dp_park_counts(session->target, &one);
	all->late += one.late;
	all->missed += one.missed;
	all->over += one.over;
}

void dp_snapshots_part(const struct dp_run *run, const struct dp_session *session)
{
	if (run->snapshots)
		add_counts(&run->snapshots->counts, session);
}

void dp_snapshots_leave(struct dp_run *run)
{
	for (size_t i = 0; run->snapshots && i < run->nsessions; i++)
		dp_park_leave(run->session[i]->target);
	if (run->snapshots)
		run->snapshots->left = true;
}

bool dp_snapshots_counts(const struct dp_run *run, struct dp_summary_snapshots *ret)
{
	const struct dp_snapshots *s = run->snapshots;
	if (!s)
		return false;
	struct dp_park_counts all = s->counts;
	for (size_t i = 0; i < run->nsessions; i++)
		add_counts(&all, run->session[i]);
	*ret = (struct dp_summary_snapshots){
	        .taken = s->taken, .failed = s->failed, .over = all.over, .missed = all.missed, .late = all.late};
	return true;
}

void dp_snapshots_fini(struct dp_run *run)
{
	for (size_t i = 0; run->snapshots && i < run->snapshots->nready; i++)
		dp_snap_capture_destroy(run->snapshots->ready[i].take);
	free(run->snapshots);
	run->snapshots = NULL;
}

int dp_snapshots_rest(const struct dp_run *run, int ms)
{
	return run->snapshots && ms > POLL_MS ? POLL_MS : ms;
}
