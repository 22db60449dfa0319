/* SPDX-License-Identifier: MIT */
/* The stopped-process source: open, hold, release. */
#include "pmodules/source/stopped.h"
#include "pmodules/source/core.h"
#include "pmodules/source/stopped_internal.h"

#include "base/cleanup.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/inspect.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/watchdog.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACK_DEFAULT (UINT64_C(64) << 10)
#define KEPT_DEFAULT  (UINT64_C(64) << 20)
#define TRIES         60
#define REST_NS       10000000L
#define UNSETTLED     8                    /* holds that are repeated */
#define GRACE_NS      UINT64_C(2000000000) /* for a dynprobe that is too slow for --max-pause, or stopped */

static struct dp_error *create(const struct dp_stopped_options *options, struct dp_stopped **ret)
{
	struct dp_stopped *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	s->options = *options;
	s->target.options.allow_seccomp = options->allow_seccomp;
	s->mode = options->mode;
	s->target.exit_fd = s->target.lock_fd = s->target.memfd = -1;
	s->target.remote_fd = -1;
	if (!s->options.stack_bytes)
		s->options.stack_bytes = STACK_DEFAULT;
	s->options.stack_bytes = dp_page_up(s->options.stack_bytes);
	dp_pages_init(&s->pages, options->max_bytes ? options->max_bytes : KEPT_DEFAULT);
	*ret = s;
	return NULL;
}

/* ---- opening -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *check_once(struct dp_stopped *s, pid_t pid)
{
	struct dp_process *p = &s->target.process;
	struct dp_tids tids;
	struct dp_error *err = NULL;
	DP_TRY(dp_process_inspect(pid, p));
	if (!dp_proc_tids(p->pid, &tids))
		return dp_error(DP_TAG_NOMEM, "listing the threads of process %d", p->pid);
	for (size_t i = 0; i < tids.n && !err; i++)
		err = dp_check_thread(p, tids.tid[i]);
	free(tids.tid);
	return err ? err : dp_check_permission(p);
}

static void rest(void)
{
	nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

/* Another dynprobe holds threads only briefly, a debugger indefinitely. */
static struct dp_error *check(struct dp_stopped *s, pid_t pid)
{
	for (int tried = 0;; tried++) {
		struct dp_error *err = check_once(s, pid);
		if (!err || err->tag != DP_TAG_TRACED || tried + 1 >= TRIES)
			return err;
		dp_error_destroy(err);
		rest();
	}
}

static void refuse_fork(struct dp_stopped *s, struct dp_error *err)
{
	snprintf(s->why_not_fork, sizeof(s->why_not_fork), "%s", err->message);
	dp_error_destroy(err);
	s->mode = DP_STOPPED_STOP;
}

/* Forking is all that runs in the process. A seccomp filter that may kill for it rules out the copy, but not the snapshot. */
static struct dp_error *check_filters(struct dp_stopped *s)
{
	struct dp_process *p = &s->target.process;
	struct dp_error *err = dp_filters_check(&s->target);
	if (!err && !p->seccomp && dp_filter_forbids(p, DP_CALLS_COPY)) {
		p->seccomp = true; /* with allow_seccomp it is suspended for the copy */
		if (!s->options.allow_seccomp)
			err = dp_error(DP_TAG_SECCOMP, "the seccomp filter of process %d (%s) does not let a copy be made: %s",
			               p->pid, p->comm, dp_filter_forbids(p, DP_CALLS_COPY));
	}
	if (!err || err->tag != DP_TAG_SECCOMP)
		return err;
	refuse_fork(s, err);
	return NULL;
}

struct dp_error *dp_stopped_begin(pid_t pid, const struct dp_stopped_options *options, struct dp_stopped **ret)
{
	struct dp_stopped *s = NULL;
	DP_TRY(create(options, &s));
	struct dp_error *err = check(s, pid);
	if (!err && s->mode == DP_STOPPED_FORK)
		err = check_filters(s);
	if (err)
		dp_stopped_close(s);
	else
		*ret = s;
	return err;
}

struct dp_error *dp_stopped_open(pid_t pid, const struct dp_stopped_options *options, struct dp_stopped **ret)
{
	struct dp_stopped *s = NULL;
	DP_TRY(dp_stopped_begin(pid, options, &s));
	struct dp_error *err = dp_target_refresh(&s->target);
	if (err)
		dp_stopped_close(s);
	else
		*ret = s;
	return err;
}

struct dp_error *dp_stopped_open_core(const char *core, const char *exe, const struct dp_stopped_options *options,
                                      struct dp_stopped **ret)
{
	struct dp_stopped *s = NULL;
	DP_TRY(create(options, &s));
	s->mode = DP_STOPPED_CORE;
	struct dp_error *err = dp_core_open(core, exe, &s->core);
	if (!err)
		err = dp_core_image(s->core, &s->target.image);
	if (!err)
		err = dp_core_threads(s->core, &s->thread, &s->nthreads);
	if (err)
		dp_stopped_close(s);
	else
		*ret = s;
	return err;
}

struct dp_stopped *dp_stopped_close(struct dp_stopped *s)
{
	if (!s)
		return NULL;
	dp_stopped_release(s);
	dp_copy_destroy(s->copy);
	dp_stopped_free_threads(s->thread, s->nthreads);
	dp_stub_map_fini(&s->visible);
	dp_pages_fini(&s->pages);
	dp_image_destroy(s->target.image);
	free(s->target.maps);
	dp_core_close(s->core);
	free(s);
	return NULL;
}

/* ---- the hold ----------------------------------------------------------------------------------------------------------- */

static void spend(struct dp_stopped *s, uint64_t ns, uint64_t longest_ns, unsigned tries)
{
	s->spent_ns += ns;
	s->sum_ns += ns;
	s->vain += tries;
	if (longest_ns > s->longest_ns)
		s->longest_ns = longest_ns;
}

/* Leaves half of --max-pause for reading. */
static struct dp_error *freeze_in_time(struct dp_stopped *s)
{
	const uint64_t half = s->options.max_pause_ns / 2;
	struct dp_freeze_retry *p = &s->target.patience;
	*p = (struct dp_freeze_retry){.most_ns = !s->options.max_pause_ns ? 0 : half > s->spent_ns ? half - s->spent_ns : 1};
	struct dp_error *err = dp_freeze_with_retry(&s->target, &s->freeze);
	spend(s, p->vain_ns, p->longest_ns, p->vain);
	return err;
}

/* dp_freeze_with_retry() retries for threads that do not stop. This also waits for threads that another dynprobe traces. */
static struct dp_error *freeze(struct dp_stopped *s)
{
	for (int tried = 0;; tried++) {
		s->begin_ns = dp_now_ns();
		struct dp_error *err = freeze_in_time(s);
		if (!err || err->tag != DP_TAG_TRACED || tried + 1 >= TRIES)
			return err;
		dp_error_destroy(err);
		rest();
	}
}

static struct dp_error *check_devices(const struct dp_stopped *s)
{
	if (!s->has_devices)
		return NULL;
	return dp_error(DP_TAG_REMOTE,
	                "process %d (%s) uses asynchronous device I/O (aio, io_uring, RDMA): after a fork it may "
	                "lose data that the devices write",
	                s->target.process.pid, s->target.process.comm);
}

/* A filter that could not be read is refused here. */
static void make_copy(struct dp_stopped *s)
{
	struct dp_borrow *b = NULL;
	struct dp_error *err = dp_check_seccomp(&s->target.process, s->options.allow_seccomp);
	if (!err)
		err = check_devices(s);
	if (!err)
		err = dp_borrow_held(&s->target, &s->freeze, &b);
	if (!err) {
		err = dp_copy_make(&s->target.process, b, s->until_ns, &s->copy);
		/* The next borrower zeroes what cannot be restored now. */
		dp_error_destroy(dp_borrow_end(b, NULL));
	}
	if (err)
		refuse_fork(s, err);
}

static void begin_hold(struct dp_stopped *s)
{
	const uint64_t most = s->options.max_pause_ns, half = most - most / 2,
	               usual = s->mode == DP_STOPPED_STOP ? s->options.usual_ns : 0;
	const uint64_t left = most > s->spent_ns + half ? most - s->spent_ns : half, bound = most ? left : usual;
	s->held = s->was_held = true;
	s->begin_ns = s->freeze.begin_ns;
	s->stood_ns = dp_now_ns();
	s->until_ns = bound ? s->begin_ns + bound : DP_FOREVER;
	if (most)
		dp_watchdog_limit(left, GRACE_NS);
	else
		dp_watchdog_limit(DP_WATCHDOG_NS, DP_WATCHDOG_GRACE_NS + s->options.work_ns);
}

static struct dp_error *while_held(struct dp_stopped *s)
{
	begin_hold(s);
	DP_TRY(dp_stopped_stubs_leave(s));
	DP_TRY(dp_stopped_take_threads(s));
	DP_TRY(dp_stopped_take_hit(s));
	if (s->mode == DP_STOPPED_FORK)
		make_copy(s);
	if (s->copy) {
		dp_stopped_release(s);
		dp_copy_part(s->copy);
	} else if (!s->freeze.parted) {
		dp_stopped_read_all(s);
		dp_stopped_in_time(s);
	}
	s->read_ns = dp_now_ns();
	return NULL;
}

/* A thread that was moved out of dynprobe's own code got no processor to stop again: treat this as a failed attempt. */
static bool is_worth_another(const struct dp_stopped *s, const struct dp_error *err)
{
	const uint64_t most = s->options.max_pause_ns;
	return err->tag == DP_TAG_UNSTOPPABLE && s->unsettled < UNSETTLED && (!most || s->spent_ns < most / 2);
}

static struct dp_error *hold_anew(struct dp_stopped *s, struct dp_error *err)
{
	const uint64_t held = s->end_ns - s->begin_ns;
	dp_error_destroy(err);
	s->unsettled++;
	s->holds--;
	s->vain++;
	s->spent_ns += held;
	dp_freeze_retry_rest(held);
	return dp_stopped_hold(s);
}

struct dp_error *dp_stopped_hold(struct dp_stopped *s)
{
	if (s->core) {
		s->was_held = true;
		return NULL;
	}
	if (s->was_held) { /* again: what was read then says what to read now */
		dp_stopped_release(s);
		dp_pages_age(&s->pages);
		s->was_held = false;
	}
	s->nlate = 0;
	DP_TRY(dp_stopped_list(s));
	DP_TRY(dp_stopped_stubs_find(s));
	dp_stopped_reserve(s);
	dp_priority_raise(&s->priority);
	struct dp_error *err = freeze(s);
	if (err) {
		dp_priority_restore(&s->priority);
		return err;
	}
	err = while_held(s);
	if (err)
		dp_stopped_release(s);
	if (err && is_worth_another(s, err))
		return hold_anew(s, err);
	/* The fork took too long, and the other threads were released during it: hold again; there is no second fork. */
	return err || !s->freeze.parted ? err : dp_stopped_hold(s);
}

void dp_stopped_in_time(struct dp_stopped *s)
{
	if (!s->held)
		return;
	if (!s->options.max_pause_ns)
		dp_watchdog_alive();
	if (dp_now_ns() >= s->until_ns)
		dp_stopped_release(s);
}

void dp_stopped_release(struct dp_stopped *s)
{
	if (!s->held)
		return;
	s->held = false;
	dp_thaw_all(&s->freeze);
	s->end_ns = s->freeze.end_ns;
	s->sum_ns += s->end_ns - s->begin_ns;
	if (s->end_ns - s->begin_ns > s->longest_ns)
		s->longest_ns = s->end_ns - s->begin_ns;
	s->holds++;
	dp_priority_restore(&s->priority);
	if (s->mode != DP_STOPPED_STOP) /* then there is only one hold */
		dp_stopped_let_go(s);
}

/* ---- queries ------------------------------------------------------------------------------------------------------------ */

pid_t dp_stopped_pid(const struct dp_stopped *s)
{
	return s->core ? dp_core_pid(s->core) : s->target.process.pid;
}

pid_t dp_stopped_inner_pid(const struct dp_stopped *s)
{
	return s->core || !s->target.process.nested ? 0 : s->target.process.ns_pid;
}

const char *dp_stopped_comm(const struct dp_stopped *s)
{
	return s->core ? dp_core_comm(s->core) : s->target.process.comm;
}

enum dp_stopped_mode dp_stopped_mode(const struct dp_stopped *s)
{
	return s->mode;
}

const char *dp_stopped_why_not_fork(const struct dp_stopped *s)
{
	return *s->why_not_fork ? s->why_not_fork : NULL;
}

const char *dp_stopped_doubt(const struct dp_stopped *s, size_t i)
{
	return s->core ? dp_core_doubt_text(s->core, i) : NULL;
}

struct dp_image *dp_stopped_image(struct dp_stopped *s)
{
	return s->target.image;
}

size_t dp_stopped_nthreads(const struct dp_stopped *s)
{
	return s->nthreads;
}

const struct dp_stopped_thread *dp_stopped_thread(const struct dp_stopped *s, size_t i)
{
	return &s->thread[i];
}

size_t dp_stopped_nlate(const struct dp_stopped *s)
{
	return s->nlate;
}

bool dp_stopped_is_held(const struct dp_stopped *s)
{
	return s->held;
}

void dp_stopped_times(const struct dp_stopped *s, struct dp_stopped_times *ret)
{
	const uint64_t now = s->held ? dp_now_ns() - s->begin_ns : 0;
	*ret = (struct dp_stopped_times){0};
	if (!s->was_held || s->core)
		return;
	ret->stop_ns = s->stood_ns - s->begin_ns;
	ret->read_ns = s->read_ns - s->stood_ns;
	ret->pause_ns = now > s->longest_ns ? now : s->longest_ns;
	ret->sum_ns = s->sum_ns + now;
	ret->holds = s->holds + s->held;
	ret->vain = s->vain;
}
