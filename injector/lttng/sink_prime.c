/* SPDX-License-Identifier: MIT */
/*
 * Primes the existing threads: each runs the sink's prime() once at a safe point, one thread at a time. Most are at a safe point
 * at the first attempt; the others are retried until the deadline.
 */
#include "injector/lttng/sink.h"

#include "injector/tracee/proc/proc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REST_NS   2000000L
#define REST_MOST 5000000L

struct priming {
	struct dp_sink_view *v;
	size_t ready, open; /* of the last round; open: not primed yet */
	char why[128];
	pid_t last;
};

/* Hits in LTTng's listener threads and in our own threads are not counted. */
static bool is_guest(pid_t pid, pid_t tid)
{
	struct dp_buf comm;
	dp_buf_init(&comm);
	bool guest = false;
	if (dp_proc_slurp(&comm, "/proc/%d/task/%d/comm", pid, tid)) {
		const char *name = dp_buf_str(&comm);
		const size_t n = strcspn(name, "\n");
		guest = (n > 4 && !strncmp(name + n - 4, "-ust", 4)) || !strncmp(name, "dynprobe-", 9);
	}
	dp_buf_fini(&comm);
	return guest;
}

static bool runs_no_code(const struct dp_task_stat *stat)
{
	return stat->state == 'Z' || stat->state == 'X' || dp_task_is_worker(stat);
}

static struct dp_error *prime_one(struct priming *m, pid_t tid, const struct dp_task_stat *stat)
{
	enum dp_safe_outcome outcome = DP_SAFE_UNSAFE;
	m->last = tid;
	DP_TRY(dp_sink_call_one(m->v, tid, m->v->head.prime, &outcome, m->why));
	if (outcome == DP_SAFE_UNSAFE || outcome == DP_SAFE_STOPPED_JOB) {
		m->open++;
		return NULL;
	}
	m->ready += outcome == DP_SAFE_HELD;
	return dp_seen_add(&m->v->t->primed, tid, stat->start_time);
}

/* A thread keeps its LTTng state for life. */
static struct dp_error *look_at(struct priming *m, pid_t tid)
{
	const pid_t pid = m->v->process.pid;
	struct dp_task_stat stat;
	if (!dp_proc_stat(pid, tid, &stat) || runs_no_code(&stat) || is_guest(pid, tid))
		return NULL;
	if (!dp_seen_has(m->v->t->primed, tid, stat.start_time))
		return prime_one(m, tid, &stat);
	m->ready++;
	return NULL;
}

static struct dp_error *one_round(struct priming *m)
{
	struct dp_tids tids;
	struct dp_error *err = NULL;
	const pid_t pid = m->v->process.pid;
	m->ready = m->open = 0;
	if (!dp_proc_tids(pid, &tids))
		return dp_error_nomem();
	if (!tids.n)
		err = dp_error(DP_TAG_GONE, "process %d (%s) ended", pid, m->v->process.comm);
	for (size_t i = 0; !err && i < tids.n; i++)
		err = look_at(m, tids.tid[i]);
	free(tids.tid);
	return err;
}

static struct dp_error *prime(struct priming *m, uint64_t deadline)
{
	long rest = REST_NS;
	DP_TRY(dp_sink_call_begin(m->v));
	for (;;) {
		DP_TRY(one_round(m));
		if (!m->open || dp_now_ns() >= deadline)
			return NULL;
		nanosleep(&(struct timespec){0, rest}, NULL);
		rest = rest < REST_MOST ? 2 * rest : REST_MOST; /* a thread that does not move need not be checked often */
	}
}

struct dp_error *dp_target_sink_prime(struct dp_target *t, uint64_t limit_ns, struct dp_sink_stats *stats)
{
	dp_auto_view struct dp_sink_view v = {0};
	DP_TRY(dp_sink_view_ready(t, &v));
	DP_TRY(dp_sink_refuse_stopped(&v));
	struct priming m = {.v = &v};
	struct dp_error *err = prime(&m, dp_now_ns() + limit_ns);
	if (v.pause_ns > stats->pause_ns)
		stats->pause_ns = v.pause_ns;
	stats->threads = m.ready + m.open;
	stats->primed = m.ready;
	stats->unprimed = m.open;
	if (!err && m.open)
		dp_target_log(t, "%zu of %zu threads could not be primed; of thread %d: %s", m.open, stats->threads, m.last,
		              m.why);
	return err;
}
