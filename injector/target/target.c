/* SPDX-License-Identifier: MIT */
/* Opening, launching, refreshing and closing a target, and simple queries. */
#include "injector/target/target.h"

#include "injector/resident/resident.h"
#include "injector/ring/clock.h"
#include "injector/ring/drain.h"
#include "injector/ring/loads.h"
#include "injector/target/shared.h"
#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/holds.h"
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGETLBFS_SUPER 0x958458f6

void dp_target_log(const struct dp_target *t, const char *fmt, ...)
{
	char line[512];
	va_list args;
	if (!t->options.verbose)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	t->options.verbose(line, t->options.verbose_data);
}

static struct dp_error *create(const struct dp_target_options *options, struct dp_target **ret)
{
	struct dp_target *t = calloc(1, sizeof(*t));
	if (!t)
		return dp_error(DP_TAG_NOMEM, "out of memory for a target");
	dp_clock_prime();
	t->options = *options;
	t->memfd = t->exit_fd = t->lock_fd = -1;
	t->remote_fd = -1;
	t->asked_ring = options->ring_size;
	t->asked_slots = options->nslots;
	t->patience.max_pause_ns = options->max_pause_ns ? options->max_pause_ns : DP_MAX_PAUSE_NS;
	*ret = t;
	if (t->asked_ring && (t->asked_ring < DP_RING_LEAST || (t->asked_ring & (t->asked_ring - 1))))
		return dp_error(DP_TAG_USAGE, "the buffer size must be a power of two of at least 16 KiB");
	return NULL;
}

void dp_target_no_rings(struct dp_target *t)
{
	t->asked_ring = DP_RING_LEAST;
	t->asked_slots = 1;
}

static int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* The vdso is in no file: takes its bytes from the target. */
static struct dp_error *add_vdso(struct dp_target *t)
{
	for (size_t i = 0; i < dp_image_nmaps(t->image); i++) {
		const struct dp_map *m = dp_image_map(t->image, i);
		if (strcmp(m->path, "[vdso]"))
			continue;
		const size_t size = m->end.v - m->start.v;
		uint8_t *bytes = malloc(size);
		struct dp_error *err = NULL;
		if (bytes && dp_mem_read(&t->process, m->start, bytes, size) == size)
			err = dp_image_set_vdso(t->image, bytes, size);
		free(bytes);
		return err;
	}
	return NULL;
}

struct dp_error *dp_target_refresh(struct dp_target *t)
{
	char *maps = NULL, root[32];
	DP_TRY(dp_process_maps(&t->process, &maps));
	free(t->maps);
	t->process.known_maps = t->maps = maps;
	t->image = dp_image_destroy(t->image);
	snprintf(root, sizeof(root), "/proc/%d/root", t->process.alive);
	struct dp_error *err = dp_image_create(maps, root, t->process.alive, &t->image);
	return err ? err : add_vdso(t);
}

static struct dp_error *open_steps(struct dp_target *t, pid_t pid)
{
	DP_TRY(dp_process_check(pid, t->options.allow_seccomp, &t->process));
	t->exit_fd = pidfd_of(t->process.pid);
	DP_TRY(dp_refuse_shadow_stack(t));
	DP_TRY(dp_lock(t));
	DP_TRY(dp_mem_open(&t->process));
	DP_TRY(dp_target_refresh(t));
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
		t->process.mem = 0;     /* that descriptor belongs to `first` */
		t->options.live = true; /* one of our groups is installed there */
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

/*
 * The checks of dp_process_check() that matter for a command we start: it may have a seccomp filter from birth, inherited or from
 * a preloaded library.
 */
static struct dp_error *adopt(struct dp_target *t, pid_t pid)
{
	t->process = (struct dp_process){.pid = pid, .alive = pid, .ns_pid = pid, .start_time = dp_process_start_time(pid)};
	dp_proc_comm(pid, t->process.comm, sizeof(t->process.comm));
	t->exit_fd = pidfd_of(pid);
	DP_TRY(dp_mem_open(&t->process));
	DP_TRY(dp_check_thread(&t->process, pid));
	/* a dynamic program's loader has turned it on by now; a static program does so later */
	DP_TRY(dp_refuse_shadow_stack(t));
	DP_TRY(dp_check_seccomp(&t->process, t->options.allow_seccomp));
	return dp_target_refresh(t);
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

/* None of the command's own code has run, so killing it has no effect on anything. */
static void abandon_launch(struct dp_target *t)
{
	kill(t->process.pid, SIGKILL);
	dp_launch_destroy(t->launch);
	dp_stop_await_end(t->process.pid);
	t->launch = NULL;
	t->gone = true;
}

struct dp_target *dp_target_close(struct dp_target *t)
{
	struct dp_remove_report ignored;
	if (!t)
		return NULL;
	if (t->launch)
		abandon_launch(t);
	dp_error_destroy(dp_target_remove(t, &ignored));
	dp_stray_reap();
	if (t->data) /* lets the next tool remove what remains, even if this process lives on */
		__atomic_store_n(&((struct dp_control *)(void *)t->data)->tool_pid, 0, __ATOMIC_RELEASE);
	dp_shared_close(t);
	for (size_t i = 0; i < t->nstanding; i++)
		dp_resident_destroy(t->standing[i]);
	free(t->standing);
	dp_image_destroy(t->image);
	dp_installation_fini(&t->in);
	free(t->trap.hook);
	dp_seen_fini(&t->primed);
	if (t->exit_fd >= 0)
		close(t->exit_fd);
	if (t->lock_fd >= 0)
		close(t->lock_fd);
	dp_mem_close(&t->process);
	free(t->maps);
	free(t);
	return NULL;
}

struct dp_error *dp_target_check_site(struct dp_target *t, const struct dp_site *site)
{
	struct statfs fs;
	const struct dp_map *map = dp_image_map_at(t->image, site->addr);
	if (!map || !map->exec)
		return dp_error(DP_TAG_NOT_CODE, "0x%llx is not in executable memory", (unsigned long long)site->addr.v);
	if (!strcmp(map->path, "[vdso]") || !strcmp(map->path, "[vsyscall]"))
		return dp_error(DP_TAG_VDSO, "0x%llx is in %s; probe the libc function that calls it",
		                (unsigned long long)site->addr.v, map->path);
	const struct dp_module *m = dp_image_module_at(t->image, site->addr);
	if (m && dp_module_moved(m, map, site->addr))
		return dp_error(DP_TAG_MOVED_TEXT,
		                "0x%llx is text of %s that the program has moved from the file to %s, as is done for huge pages",
		                (unsigned long long)site->addr.v, dp_module_name(m), *map->path ? map->path : "anonymous memory");
	if (!map->inode)
		return dp_error(DP_TAG_NOT_CODE, "0x%llx is in generated code without a file", (unsigned long long)site->addr.v);
	char path[96];
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", t->process.alive, (unsigned long long)map->start.v,
	         (unsigned long long)map->end.v);
	if ((!statfs(path, &fs) || !statfs(map->path, &fs)) && fs.f_type == HUGETLBFS_SUPER)
		return dp_error(DP_TAG_HUGETLB, "%s is on hugetlbfs; run the program from an ordinary file system", map->path);
	return NULL;
}

bool dp_target_filtered(const struct dp_target *t)
{
	return t->process.seccomp;
}

pid_t dp_target_pid(const struct dp_target *t)
{
	return t->process.pid;
}

const char *dp_target_comm(const struct dp_target *t)
{
	return t->process.comm;
}

struct dp_image *dp_target_image(struct dp_target *t)
{
	return t->image;
}

size_t dp_target_read(struct dp_target *t, dp_addr addr, void *buf, size_t n)
{
	return dp_mem_read(&t->process, addr, buf, n);
}

int dp_target_exit_fd(const struct dp_target *t)
{
	return t->exit_fd;
}

bool dp_target_exit_status(struct dp_target *t, int *status)
{
	siginfo_t info;
	dp_stray_reap(); /* a thread of it that stopped late would wait for us, and we for it */
	if (!t->launch_ended && dp_stop_reap(t->process.pid, &info)) {
		t->launch_status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status & 0xff, 0)
		                                              : info.si_status | (info.si_code == CLD_DUMPED ? WCOREFLAG : 0);
		t->launch_ended = true;
	}
	if (t->launch_ended)
		*status = t->launch_status;
	return t->launch_ended;
}
