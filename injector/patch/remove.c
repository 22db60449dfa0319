/* SPDX-License-Identifier: MIT */
/*
 * Removes an installation, made by install.c or found by recover.c: restores the text (restore.c), waits until no thread can be
 * in our code (quiesce.c), then unmaps everything by system calls on one borrowed thread. All threads run meanwhile, or, if that
 * is impossible, all are held.
 */
#include "injector/patch/remove.h"
#include "injector/patch/quiesce/code_index.h"
#include "injector/patch/quiesce/quiesce.h"
#include "injector/patch/quiesce/quiesce_frames.h"
#include "injector/patch/remove_copies.h"
#include "injector/patch/replace/replace.h"
#include "injector/patch/restore.h"
#include "injector/patch/semaphores.h"
#include "injector/patch/sights.h"
#include "injector/target/group/group.h"
#include "injector/target/group/leftover.h"
#include "injector/tracee/borrow/boot.h"
#include "injector/tracee/proc/sharers.h"
#include "injector/tracee/stop/holds.h"
#include "injector/trap/trap.h"

#include "base/cleanup.h"
#include "base/descriptors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#define TRIES        60
#define UNMAP_TRIES  20
#define LIVE_TRIES   80
#define SWEEPS       5
#define FRAMES_AFTER 4 /* attempts before tables are made; most removals need none */
#define BORROW_NS    UINT64_C(1000000000)
#define REST_NS      5000000L
#define HOLD_NS      UINT64_C(2000000) /* for unmapping; stopping all threads is not included */

void dp_installation_fini(struct dp_installation *in)
{
	dp_code_index_destroy(in->index);
	dp_sights_destroy(in->sights);
	free(in->region);
	free(in->placed);
	*in = (struct dp_installation){0};
}

static void note_pause(struct dp_remove_report *report, const struct dp_freeze *f)
{
	if (f->end_ns - f->begin_ns > report->pause_ns)
		report->pause_ns = f->end_ns - f->begin_ns;
}

static bool may_live(struct dp_target *t, struct dp_remove_report *report)
{
	if (t->launch || t->process.seccomp)
		snprintf(report->why_frozen, sizeof(report->why_frozen), "%s", dp_not_live(t));
	return !report->why_frozen[0];
}

/* True if the rest can be done with all threads held. */
static bool go_on_held(struct dp_target *t, struct dp_remove_report *report, struct dp_error *err)
{
	if (err->tag == DP_TAG_GONE || err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_ZOMBIE || err->tag == DP_TAG_NOMEM)
		return false;
	snprintf(report->why_frozen, sizeof(report->why_frozen), "%s", err->message);
	dp_target_log(t, "all threads are held: %s", err->message);
	report->live = false;
	dp_error_destroy(err);
	return true;
}

/* Processes that share the memory cannot be held or inspected, only waited for. */
static bool is_shared(const struct dp_target *t, struct dp_remove_report *report, uint64_t limit_ns)
{
	const pid_t pid = dp_sharer_stays(&t->process, limit_ns);
	if (pid)
		snprintf(report->why, sizeof(report->why), "process %d shares its memory and may be in a probe", pid);
	return pid != 0;
}

/* One attempt: *quiet if the code may be unmapped. The text is restored, so no thread enters it. */
static struct dp_error *quiesce_held(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report,
                                     bool *quiet)
{
	struct dp_freeze f = {0};
	struct dp_priority priority;
	dp_priority_raise(&priority);
	struct dp_error *err = dp_freeze_with_retry(t, &f);
	if (!err) {
		err = dp_stopped_holds(t, in);
		*quiet = !err && dp_quiesce(t, in, &f, report->why);
		dp_thaw_all(&f);
		note_pause(report, &f);
	}
	dp_priority_restore(&priority);
	/*
	 * After the freeze, because this scans every process of the machine. A process that shared the memory then either still
	 * does, or is out of it.
	 */
	*quiet = *quiet && !is_shared(t, report, 0);
	return err;
}

static size_t mapped_bytes(const struct dp_installation *in)
{
	size_t sum = in->private.mapped ? in->private.size : 0;
	for (size_t i = 0; i < in->nregions; i++)
		sum += in->region[i].mapped ? in->region[i].size : 0;
	return sum;
}

/* A thread whose script was given up still reads its calls from our memory. */
static struct dp_error *nobody_calls(const struct dp_target *t, const struct dp_freeze *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (dp_boot_leftover_at(&t->process, f->thread[i].regs.rip))
			return dp_error(DP_TAG_NO_THREAD, "thread %d of process %d (%s) still makes calls for dynprobe",
			                f->thread[i].tid, t->process.pid, t->process.comm);
	return NULL;
}

/* *more: time ran out before all was done. */
static struct dp_error *unmap_held(struct dp_target *t, struct dp_installation *in, struct dp_freeze *f, bool *more)
{
	struct dp_borrow *b = NULL;
	struct dp_lease lease = {.until_ns = dp_now_ns() + HOLD_NS};
	DP_TRY(dp_stopped_holds(t, in));
	DP_TRY(nobody_calls(t, f));
	DP_TRY(dp_borrow_held(t, f, &b));
	if (!dp_leftover_is_ours(t, t->remote_fd))
		t->remote_fd = -1; /* a thread that a killed tool had borrowed has closed it in the meantime */
	struct dp_error *err = dp_map_close(t, b);
	if (!err)
		err = dp_unmap_all(in, b, &lease);
	*more = lease.more;
	struct dp_error *end = dp_borrow_end(b, NULL);
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

/* Holds all threads, for the reason given in install.c. */
static struct dp_error *unmap_once(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report, bool *more)
{
	struct dp_freeze f = {0};
	DP_TRY(dp_freeze_with_retry(t, &f));
	struct dp_error *err = unmap_held(t, in, &f, more);
	dp_thaw_all(&f);
	note_pause(report, &f);
	return err;
}

static struct dp_error *unmap(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	for (int tried = 0;;) {
		struct dp_priority priority;
		bool more = false;
		dp_priority_raise(&priority);
		struct dp_error *err = unmap_once(t, in, report, &more);
		dp_priority_restore(&priority);
		if (!more && (!err || err->tag != DP_TAG_NO_THREAD || tried++ >= UNMAP_TRIES))
			return err;
		dp_error_destroy(err);
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
	}
}

/* Increasing pauses: on a busy machine, a thread stopped again too soon never gets the time to leave the stub. */
static long rest_ns(int tried)
{
	return tried < 20 ? REST_NS : tried < 40 ? 5 * REST_NS : 20 * REST_NS;
}

static void rest(int tried)
{
	nanosleep(&(struct timespec){.tv_nsec = rest_ns(tried)}, NULL);
}

/* With all threads held, again and again. */
static struct dp_error *await_clear_held(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report,
                                         bool *quiet)
{
	for (int tried = 0; !*quiet && tried < TRIES; tried++) {
		if (tried == FRAMES_AFTER)
			dp_frames_need(t, in);
		if (tried)
			rest(tried);
		DP_TRY(dp_restore(t, in, NULL, report));
		if (report->left_sites)
			break;
		if (!report->occupied)
			DP_TRY(quiesce_held(t, in, report, quiet));
	}
	return NULL;
}

/* ---- while all threads run (docs/live-patching.md) ------------------------------------------------------------------------ */

struct clear {
	struct dp_target *t;
	const struct dp_installation *in;
	struct dp_remove_report *report;
};

static bool is_clear(struct dp_freeze *one, void *data)
{
	const struct clear *c = data;
	return dp_quiesce(c->t, c->in, one, c->report->why);
}

static bool is_clear_asleep(const struct dp_held *h, void *data)
{
	const struct clear *c = data;
	return dp_quiesce_asleep(c->t, c->in, h);
}

/* No thread enters the code any more, so a thread that was seen outside stays outside. */
static struct dp_error *await_clear(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report, bool *quiet)
{
	struct clear c = {t, in, report};
	struct dp_for_each_stopped each = {.asleep = is_clear_asleep};
	struct dp_error *err = NULL;
	bool shared = false;
	for (int tried = 0; !err && !*quiet && tried < LIVE_TRIES; tried++) {
		if (tried == FRAMES_AFTER)
			dp_frames_need(t, in);
		if (tried > 2 && !shared)
			rest(tried);
		report->why[0] = 0;
		err = dp_for_each_stopped_round(t, &each, is_clear, &c, quiet);
		/* Last, because it also sees sharers that a thread started in a probe meanwhile. */
		shared = !err && *quiet && is_shared(t, report, (uint64_t)rest_ns(tried));
		*quiet = *quiet && !shared;
		if (!err)
			err = dp_stopped_holds(t, in);
	}
	if (each.held_ns > report->pause_ns)
		report->pause_ns = each.held_ns;
	dp_for_each_stopped_fini(&each);
	return err;
}

static struct dp_error *restore_and_clear(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report,
                                          bool *quiet)
{
	DP_TRY(dp_restore(t, in, NULL, report));
	if (report->left_sites || report->occupied)
		return NULL;
	DP_TRY(await_clear(t, in, report, quiet));
	return *quiet || report->why[0]
	               ? NULL
	               : dp_error(DP_TAG_UNSTOPPABLE, "the threads of process %d start and end too fast to be checked one by one",
	                          t->process.pid);
}

static struct dp_error *unmap_lent(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report, bool *more)
{
	struct dp_borrow *b = NULL;
	uint64_t held = 0;
	struct dp_error *err = dp_borrow_one(t, BORROW_NS, &b);
	if (err)
		return err;
	struct dp_lease lease = {.until_ns = dp_now_ns() + DP_LEASE_NS};
	err = dp_stopped_holds(t, in);
	if (!err && !dp_leftover_is_ours(t, t->remote_fd))
		t->remote_fd = -1;
	if (!err)
		err = dp_map_close(t, b);
	if (!err)
		err = dp_unmap_all(in, b, &lease);
	*more = lease.more;
	struct dp_error *end = dp_borrow_end(b, &held);
	if (held > report->pause_ns)
		report->pause_ns = held;
	if (!err)
		return end;
	dp_error_destroy(end);
	return err;
}

static struct dp_error *unmap_live(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	bool more = true;
	struct dp_error *err = NULL;
	while (!err && more) {
		struct dp_priority priority;
		dp_priority_raise(&priority);
		err = unmap_lent(t, in, report, &more);
		dp_priority_restore(&priority);
	}
	return err;
}

/*
 * ---- live or held
 * --------------------------------------------------------------------------------------------------------------
 */

static struct dp_error *restore(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report, bool *quiet)
{
	report->live = may_live(t, report);
	struct dp_error *err = in->trap ? NULL : restore_and_clear(t, in, report, quiet);
	if (!in->trap && (!err || !go_on_held(t, report, err)))
		return err;
	return await_clear_held(t, in, report, quiet);
}

static struct dp_error *unmap_either(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	const bool live = !t->launch && !t->process.seccomp && !in->trap;
	struct dp_error *err = live ? unmap_live(t, in, report) : NULL;
	if (err ? !go_on_held(t, report, err) : live)
		return err;
	return unmap(t, in, report);
}

static void note_holds(struct dp_remove_report *report)
{
	const struct dp_holds h = dp_holds_take();
	report->pause_ns = h.longest_ns;
	report->held_ns = h.sum_ns;
	report->stops = h.stops;
	report->vain = h.vain;
}

static size_t standing(const struct dp_installation *in, enum dp_site_state state)
{
	size_t n = 0;
	for (size_t i = 0; i < in->nplaced; i++)
		n += in->placed[i].written && in->placed[i].state == state;
	return n;
}

static void note_left(const struct dp_installation *in, struct dp_remove_report *report)
{
	report->left_bytes = mapped_bytes(in);
	const size_t foreign = standing(in, DP_SITE_PLANNED); /* all of ours were restored, or wait */
	report->left_sites = foreign + standing(in, DP_SITE_WAITING);
	report->foreign = foreign;
}

/* The note is unmapped with our memory: while it leads to something, both stay for the next tool. */
static bool swept(struct dp_target *t, const struct dp_installation *in)
{
	struct dp_replace_note note;
	for (int tried = 0; tried < SWEEPS && dp_replace_note(t, in, &note); tried++)
		dp_error_destroy(dp_replace_sweep(t, in));
	return !dp_replace_note(t, in, &note);
}

static struct dp_error *restore_and_unmap(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	bool quiet = false, untrapped = true;
	if (in->trap)
		snprintf(report->why_frozen, sizeof(report->why_frozen), "traps are removed with all threads held");
	DP_TRY(dp_trap_disarm(t, in, report, &untrapped));
	if (untrapped)
		DP_TRY(restore(t, in, report, &quiet));
	else /* sites that need no handler are removed anyway */
		DP_TRY(dp_restore(t, in, NULL, report));
	if (!quiet) {
		note_left(in, report);
		return NULL;
	}
	report->why[0] = 0;
	dp_remove_copies(t, in, report);
	if (!swept(t, in)) {
		snprintf(report->why, sizeof(report->why), "new text that was not used could not be unmapped in time");
		report->left_bytes = mapped_bytes(in);
		return NULL;
	}
	in->index = dp_code_index_destroy(in->index);
	struct dp_error *err = unmap_either(t, in, report);
	if (!err || err->tag != DP_TAG_SECCOMP)
		return err;
	snprintf(report->why, sizeof(report->why), "the target has installed a seccomp filter in the meantime");
	report->left_bytes = mapped_bytes(in);
	return dp_error_destroy(err);
}

/* A target that is gone is no error: its probes are gone too. */
static struct dp_error *unless_gone(struct dp_target *t, struct dp_error *err)
{
	if (!err || (err->tag != DP_TAG_GONE && err->tag != DP_TAG_NO_PROCESS && err->tag != DP_TAG_ZOMBIE))
		return err;
	dp_error_destroy(err);
	struct dp_error *blind = dp_descriptors_check_any();
	t->gone = !blind;
	if (!blind)
		return NULL;
	blind = dp_error_wrap(blind, "the probes stay in process %d (%s)", t->process.pid, t->process.comm);
	return dp_error_advise(blind, "dynprobe detach --pid PID removes them");
}

/* A process that ends meanwhile takes its probes with it: nothing is left. */
static void forget_what_went(struct dp_target *t, struct dp_remove_report *report)
{
	if ((!report->left_sites && !report->left_bytes) || (!t->gone && !dp_process_has_no_memory(&t->process)))
		return;
	report->left_sites = report->left_bytes = 0;
	report->why[0] = '\0';
}

struct dp_error *dp_installation_remove(struct dp_target *t, struct dp_installation *in, struct dp_remove_report *report)
{
	*report = (struct dp_remove_report){0};
	dp_installation_index(in);
	in->frames = in->calls_out ? dp_frames_create(t, in) : NULL;
	struct dp_semaphores *semaphores = dp_semaphores_before(t, in);
	t->doing = DP_REMOVING;
	t->patience.vain_removing = 0;
	dp_holds_take();
	struct dp_error *err = restore_and_unmap(t, in, report);
	if (!err)
		dp_boot_sweep_own(t);
	note_holds(report);
	t->doing = DP_AT_REST;
	dp_semaphores_after(t, in, semaphores);
	in->index = dp_code_index_destroy(in->index);
	in->frames = dp_frames_destroy(in->frames);
	err = unless_gone(t, err);
	forget_what_went(t, report);
	return err;
}

struct dp_error *dp_installation_restore(struct dp_target *t, struct dp_installation *in, const bool *chosen,
                                         struct dp_remove_report *report)
{
	struct dp_semaphores *semaphores = dp_semaphores_before(t, in);
	dp_installation_index(in);
	*report = (struct dp_remove_report){0};
	report->live = may_live(t, report);
	dp_holds_take();
	struct dp_error *err = dp_restore(t, in, chosen, report);
	note_holds(report);
	dp_semaphores_after(t, in, semaphores);
	in->frames = dp_frames_destroy(in->frames);
	err = unless_gone(t, err);
	forget_what_went(t, report);
	return err;
}

struct dp_error *dp_target_restore(struct dp_target *t, struct dp_remove_report *report)
{
	*report = (struct dp_remove_report){0};
	return !t->installed || t->gone || t->in.trap ? NULL : dp_installation_restore(t, &t->in, NULL, report);
}

struct dp_error *dp_target_remove(struct dp_target *t, struct dp_remove_report *report)
{
	*report = (struct dp_remove_report){0};
	if (!t->installed)
		return NULL;
	t->installed = false;
	dp_full_leave(t);
	return t->gone ? NULL : dp_installation_remove(t, &t->in, report);
}
