/* SPDX-License-Identifier: MIT */
/* Opening, launching and closing a target. */
#include "base/descriptors.h"
#include "injector/loads.h"
#include "injector/open/adopt.h"
#include "injector/open/recover.h"
#include "injector/resident/resident.h"
#include "injector/ring/clock.h"
#include "injector/target/events/outer.h"
#include "injector/target/shared.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/inspect.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/holds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct dp_error *create(const struct dp_target_options *options, struct dp_target **ret)
{
	struct dp_target *t = calloc(1, sizeof(*t));
	if (!t)
		return dp_error_nomem();
	dp_clock_prime();
	t->options = *options;
	t->memfd = t->exit_fd = t->lock_fd = -1;
	t->remote_fd = -1;
	t->asked_ring = options->ring_size;
	t->asked_slots = options->nslots;
	t->patience.max_pause_ns = options->max_pause_ns ? options->max_pause_ns : DP_MAX_PAUSE_NS;
	*ret = t;
	DP_TRY(dp_descriptors_check());
	if (t->asked_ring && (t->asked_ring < DP_RING_LEAST || (t->asked_ring & (t->asked_ring - 1))))
		return dp_error(DP_TAG_USAGE, "the buffer size must be a power of two of at least 16 KiB");
	return NULL;
}

static int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static struct dp_error *open_steps(struct dp_target *t, pid_t pid)
{
	const bool allowed = t->options.allow_seccomp || dp_filter_readable();
	DP_TRY(t->options.look ? dp_process_check_to_read(pid, allowed, &t->process) : dp_process_check(pid, allowed, &t->process));
	t->exit_fd = pidfd_of(t->process.pid);
	DP_TRY(dp_refuse_shadow_stack(t));
	DP_TRY(dp_lock(t));
	DP_TRY(dp_mem_open(&t->process));
	DP_TRY(dp_target_refresh(t));
	DP_TRY(dp_filters_check(t));
	return dp_recover(t);
}

struct dp_error *dp_target_open(pid_t pid, const struct dp_target_options *options, struct dp_target **ret)
{
	struct dp_target *t = NULL;
	struct dp_error *err = create(options, &t);
	if (!err)
		err = open_steps(t, pid);
	if (err)
		dp_target_close(t);
	else
		*ret = t;
	return err;
}

struct dp_error *dp_target_open_beside(struct dp_target *first, struct dp_target **ret)
{
	struct dp_target *t = NULL;
	struct dp_error *err = create(&first->options, &t);
	if (!err) {
		t->first = first;
		t->process = first->process; /* `first` has locked it and handled leftovers */
		t->process.known_maps = NULL;
		t->process.mem = 0; /* that descriptor belongs to `first` */
		t->exit_fd = pidfd_of(t->process.pid);
		err = dp_mem_open(&t->process);
	}
	if (!err)
		err = dp_target_refresh(t);
	if (err)
		dp_target_close(t);
	else
		*ret = t;
	return err;
}

/* Of a process that is held at its start, or in an exec. */
static struct dp_error *check_held(struct dp_target *t, pid_t pid)
{
	DP_TRY(dp_mem_open(&t->process));
	DP_TRY(dp_check_thread(&t->process, pid));
	/* a dynamic program's loader has turned it on by now; a static program does so later */
	DP_TRY(dp_refuse_shadow_stack(t));
	if (!dp_filter_readable())
		DP_TRY(dp_check_seccomp(&t->process, t->options.allow_seccomp));
	DP_TRY(dp_filters_check(t));
	return dp_target_refresh(t);
}

/*
 * The checks of dp_process_check() that matter for a command we start: it may have a seccomp filter from birth, inherited or from
 * a preloaded library.
 */
static struct dp_error *adopt(struct dp_target *t, pid_t pid)
{
	t->process = (struct dp_process){.pid = pid, .alive = pid, .ns_pid = pid, .start_time = dp_process_start_time(pid)};
	dp_proc_comm(pid, t->process.comm, sizeof(t->process.comm));
	t->exit_fd = pidfd_of(pid);
	return check_held(t, pid);
}

struct dp_error *dp_target_launch(char *const argv[], const struct dp_target_options *options, struct dp_target **ret)
{
	struct dp_target *t = NULL;
	pid_t pid = 0;
	struct dp_error *err = create(options, &t);
	if (!err)
		err = dp_launch_start(argv, &t->launch, &pid);
	if (!err)
		err = adopt(t, pid);
	if (err)
		dp_target_close(t);
	else
		*ret = t;
	return err;
}

static struct dp_error *adopt_held(struct dp_target *t, pid_t pid)
{
	DP_TRY(dp_process_inspect(pid, &t->process));
	t->exit_fd = pidfd_of(pid);
	DP_TRY(dp_lock(t));
	return check_held(t, pid);
}

struct dp_error *dp_target_adopt(struct dp_launch *launch, pid_t pid, const struct dp_target_options *options,
                                 struct dp_target **ret)
{
	struct dp_target *t = NULL;
	struct dp_error *err = create(options, &t);
	if (t)
		t->launch = launch;
	else
		dp_launch_destroy(launch);
	if (!err)
		err = adopt_held(t, pid);
	if (err)
		dp_target_close(t);
	else
		*ret = t;
	return err;
}

void dp_target_yield(struct dp_target *t)
{
	if (t->lock_fd >= 0)
		close(t->lock_fd);
	t->lock_fd = -1;
}

struct dp_error *dp_target_release(struct dp_target *t)
{
	if (!t->launch)
		return NULL;
	dp_thaw_all(dp_launch_freeze(t->launch));
	dp_holds_take(); /* the program had not begun yet */
	dp_launch_destroy(t->launch);
	t->launch = NULL;
	return NULL;
}

/*
 * While none of the command's own code has run, killing it has no effect on anything. If its thread is not held any more, it has
 * ended, or has left a call of ours by itself and begun: then it goes on.
 */
static void abandon_launch(struct dp_target *t)
{
	const struct dp_freeze *f = dp_launch_freeze(t->launch);
	const bool left = f->n && f->thread[0].exited;
	siginfo_t ignored;
	if (!left)
		kill(t->process.pid, SIGKILL);
	dp_launch_destroy(t->launch);
	if (left)
		dp_stop_reap(t->process.pid, &ignored);
	else
		dp_stop_await_end(t->process.pid);
	t->launch = NULL;
	t->gone = true;
}

struct dp_target *dp_target_close(struct dp_target *t)
{
	struct dp_remove_report ignored;
	if (!t)
		return NULL;
	if (t->launch && dp_launch_is_adopted(t->launch))
		dp_error_destroy(dp_target_release(t));
	if (t->launch)
		abandon_launch(t);
	dp_error_destroy(dp_target_remove(t, &ignored));
	dp_late_stop_reap();
	if (t->data) /* lets the next tool remove what remains, even if this process lives on */
		__atomic_store_n(&((struct dp_control *)(void *)t->data)->tool_pid, 0, __ATOMIC_RELEASE);
	dp_shared_close(t);
	for (size_t i = 0; i < t->nstanding; i++)
		dp_resident_destroy(t->resident[i]);
	free(t->resident);
	free(t->found);
	free(t->leftover);
	dp_image_destroy(t->image);
	dp_installation_fini(&t->in);
	free(t->trap.hook);
	dp_seen_fini(&t->primed);
	dp_outer_fini(t);
	if (t->exit_fd >= 0)
		close(t->exit_fd);
	if (t->lock_fd >= 0)
		close(t->lock_fd);
	dp_mem_close(&t->process);
	free(t->maps);
	free(t);
	return NULL;
}
