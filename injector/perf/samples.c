/* SPDX-License-Identifier: MIT */
/*
 * Opens one event per thread and processor; all events of a processor use one ring. New threads inherit their creator's events. A
 * thread created while events are being opened may also have events of its own: of each thread only the samples of the event that
 * its first sample came from count.
 */
#include "injector/perf/samples_internal.h"

#include "injector/tracee/proc/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES  (32u << 10)
#define SWITCH_BYTES (8u << 10)
#define RING_PAGES   256u /* maximum; a power of two */
#define SMALL_PAGES  64u  /* of switches alone: a record has 40 bytes */
#define RING_LEAST   16u
#define WAKE_BYTES   (256u << 10)
#define ROUNDS       16
#define REGS         UINT64_C(0x00ff03ff) /* from asm/perf_regs.h: the general registers, rip and the flags */
#define CPUS_MAX     4096

/* ---- opening ------------------------------------------------------------------------------------------------------- */

/* Of every record: whose it is, when, of which event. */
#define IDENTITY (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CPU)

static struct perf_event_attr attributes(const struct dp_samples_asked *asked)
{
	const bool samples = asked->of != DP_SAMPLES_NONE, time = asked->of == DP_SAMPLES_OF_TIME;
	return (struct perf_event_attr){
	        .type = PERF_TYPE_SOFTWARE,
	        .size = sizeof(struct perf_event_attr),
	        .config = time      ? PERF_COUNT_SW_TASK_CLOCK
	                  : samples ? PERF_COUNT_SW_CONTEXT_SWITCHES
	                            : PERF_COUNT_SW_DUMMY,
	        .sample_period = time ? UINT64_C(1000000000) / asked->hz : samples,
	        .sample_type = IDENTITY | (samples ? PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER : 0),
	        .disabled = 1,
	        .inherit = 1,
	        .inherit_thread = 1,
	        .enable_on_exec = asked->on_exec,
	        .mmap = samples,
	        .mmap2 = samples,
	        .comm = samples,
	        .comm_exec = samples,
	        .task = 1,
	        .context_switch = !samples,
	        .sample_id_all = 1,
	        .read_format = PERF_FORMAT_LOST,
	        .exclude_hv = 1,
	        .use_clockid = 1,
	        .clockid = CLOCK_MONOTONIC,
	        .watermark = !time,
	        .wakeup_watermark = time ? 0 : WAKE_BYTES,
	        .sample_regs_user = samples ? REGS : 0,
	        .sample_stack_user = time      ? STACK_BYTES
	                             : samples ? SWITCH_BYTES
	                                       : 0,
	};
}

static int open_event(const struct perf_event_attr *attr, pid_t tid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static long paranoid(void)
{
	struct dp_buf b;
	dp_buf_init(&b);
	const long level = dp_proc_slurp(&b, "/proc/sys/kernel/perf_event_paranoid") ? strtol(dp_buf_str(&b), NULL, 10) : -100;
	dp_buf_fini(&b);
	return level;
}

static struct dp_error *refused_switches(long level)
{
	return dp_error(
	        DP_TAG_PERF,
	        "the time off the processor is seen only by events of the kernel, which kernel.perf_event_paranoid = %ld "
	        "allows to root only: run dynprobe as root or with CAP_PERFMON, or as root run sysctl "
	        "kernel.perf_event_paranoid=1; --syscall '*' --sum duration --by backtrace needs no such right and shows the "
	        "time in system calls",
	        level);
}

static struct dp_error *refused(const struct dp_samples *s)
{
	const int why = errno;
	const long level = paranoid();
	const pid_t pid = s->pid;
	if ((why == EACCES || why == EPERM) && s->of != DP_SAMPLES_OF_TIME && level > 1)
		return refused_switches(level);
	if (why == EMFILE || why == ENFILE)
		return dp_error(DP_TAG_PERF,
		                "sampling process %d needs one open file per thread and processor, more than the limit allows: "
		                "raise it (ulimit -n)",
		                pid);
	if (why == ENOSYS || level == -100)
		return dp_error(DP_TAG_PERF, "this kernel has no perf events (perf_event_open: %s)", strerror(why));
	if ((why == EACCES || why == EPERM) && level > 2)
		return dp_error(DP_TAG_PERF,
		                "kernel.perf_event_paranoid is %ld, which allows perf events to root only: as root, run sysctl "
		                "kernel.perf_event_paranoid=2",
		                level);
	if (why == EACCES || why == EPERM)
		return dp_error(DP_TAG_PERF,
		                "perf events of process %d are not allowed (%s; kernel.perf_event_paranoid is %ld): the process "
		                "belongs to another user, or a container's seccomp filter forbids them",
		                pid, strerror(why), level);
	errno = why;
	return dp_error_sys(DP_TAG_PERF, "cannot open perf events for process %d", pid);
}

/* Opens an event for any thread: the process's first one may have ended before the others. */
static int open_any(const struct dp_samples *s)
{
	struct dp_tids tids;
	int fd = open_event(&s->attr, s->pid, 0);
	if (fd >= 0 || errno != ESRCH || !dp_proc_tids(s->pid, &tids))
		return fd;
	errno = ESRCH;
	for (size_t i = 0; fd < 0 && errno == ESRCH && i < tids.n; i++)
		fd = open_event(&s->attr, tids.tid[i], 0);
	const int why = errno;
	free(tids.tid);
	errno = why;
	return fd;
}

/*
 * Drops what this kernel or user does not allow: the kernel's own time, the count of lost samples (the last losses are then
 * unknown), and excluding children of fork() (their samples are then dropped).
 */
static struct dp_error *settle(struct dp_samples *s)
{
	for (;;) {
		const int fd = open_any(s);
		if (fd >= 0)
			return close(fd), NULL;
		/* Switches happen in the kernel: without it there would be none. */
		if ((errno == EACCES || errno == EPERM) && !s->attr.exclude_kernel && s->of == DP_SAMPLES_OF_TIME)
			s->attr.exclude_kernel = s->stats.user_only = true;
		else if (errno == EINVAL && s->attr.read_format)
			s->attr.read_format = 0;
		else if (errno == EINVAL && s->attr.inherit_thread)
			s->attr.inherit_thread = 0;
		else
			return refused(s);
	}
}

static struct dp_error *map_ring(struct dp_samples *s, int cpu, int fd)
{
	struct dp_perf_ring *ring = &s->ring[cpu];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	for (size_t pages = s->of == DP_SAMPLES_NONE ? SMALL_PAGES : RING_PAGES; pages >= RING_LEAST; pages /= 2) {
		void *base = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (base == MAP_FAILED)
			continue; /* ordinary users have a limit (kernel.perf_event_mlock_kb) */
		*ring = (struct dp_perf_ring){.base = base, .size = pages * page, .fd = fd};
		if (s->wake >= 0) /* without it, the rings are read every some milliseconds only */
			epoll_ctl(s->wake, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.fd = fd});
		return NULL;
	}
	return dp_error_sys(DP_TAG_PERF, "cannot map memory for samples (limited by kernel.perf_event_mlock_kb and ulimit -l)");
}

static struct event *new_event(struct dp_samples *s)
{
	if (s->nevents == s->capacity) {
		const size_t capacity = s->capacity ? 2 * s->capacity : 64;
		struct event *grown = realloc(s->event, capacity * sizeof(*grown));
		if (!grown)
			return NULL;
		s->event = grown;
		s->capacity = capacity;
	}
	return &s->event[s->nevents];
}

static struct dp_error *add_event(struct dp_samples *s, pid_t tid, int cpu)
{
	struct event *e = new_event(s);
	if (!e)
		return dp_error_nomem();
	const int fd = open_event(&s->attr, tid, cpu);
	if (fd < 0 && (errno == ESRCH || errno == ENODEV || errno == ENXIO)) /* the thread is gone, or the processor is off */
		return NULL;
	if (fd < 0)
		return refused(s);
	*e = (struct event){.fd = fd, .tid = tid};
	s->nevents++;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &e->id))
		return dp_error_sys(DP_TAG_PERF, "cannot get the id of a perf event");
	if (!s->ring[cpu].base)
		return map_ring(s, cpu, fd);
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, s->ring[cpu].fd))
		return dp_error_sys(DP_TAG_PERF, "cannot set up a ring for the samples of thread %d", tid);
	return NULL;
}

static bool is_known(const struct dp_samples *s, pid_t tid)
{
	for (size_t i = 0; i < s->nevents; i += 1)
		if (s->event[i].tid == tid)
			return true;
	return false;
}

/* Call it until a listing has no new thread: from then on all new ones are created by threads that have events. */
static struct dp_error *add_threads(struct dp_samples *s, bool *fresh)
{
	struct dp_tids tids;
	struct dp_error *err = NULL;
	*fresh = false;
	if (!dp_proc_tids(s->pid, &tids))
		return dp_error_nomem();
	const size_t known = s->nevents;
	for (size_t i = 0; !err && i < tids.n; i++) {
		if (is_known(s, tids.tid[i]))
			continue;
		for (int cpu = 0; !err && cpu < s->ncpus; cpu++)
			err = add_event(s, tids.tid[i], cpu);
	}
	*fresh = s->nevents != known;
	free(tids.tid);
	return err;
}

int dp_samples_by_id(const void *x, const void *y)
{
	const struct event *a = x, *b = y;
	return (a->id > b->id) - (a->id < b->id);
}

static struct dp_error *open_all(struct dp_samples *s)
{
	bool fresh = true;
	DP_TRY(settle(s));
	for (int round = 0; fresh && round < ROUNDS; round++)
		DP_TRY(add_threads(s, &fresh));
	if (s->nevents)
		qsort(s->event, s->nevents, sizeof(*s->event), dp_samples_by_id);
	return s->nevents ? NULL : dp_error(DP_TAG_NO_PROCESS, "process %d has ended", s->pid);
}

struct dp_error *dp_samples_open(pid_t pid, const struct dp_samples_asked *asked, struct dp_samples **ret)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct dp_samples *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	s->pid = pid;
	s->of = asked->of;
	s->attr = attributes(asked);
	s->wake = s->of == DP_SAMPLES_OF_SWITCHES ? epoll_create1(EPOLL_CLOEXEC) : -1;
	s->ncpus = cpus < 1 ? 1 : cpus > CPUS_MAX ? CPUS_MAX : (int)cpus;
	s->ring = calloc((size_t)s->ncpus, sizeof(*s->ring));
	struct dp_error *err = s->ring ? open_all(s) : dp_error_nomem();
	if (err)
		dp_samples_destroy(s);
	else
		*ret = s;
	return err;
}

struct dp_samples *dp_samples_destroy(struct dp_samples *s)
{
	if (!s)
		return NULL;
	for (int i = 0; s->ring && i < s->ncpus; i++)
		if (s->ring[i].base)
			munmap(s->ring[i].base, s->ring[i].size + (size_t)sysconf(_SC_PAGESIZE));
	for (size_t i = 0; i < s->nevents; i++)
		close(s->event[i].fd);
	if (s->wake >= 0)
		close(s->wake);
	free(s->ring);
	free(s->event);
	free(s->owner);
	free(s);
	return NULL;
}

int dp_samples_wake_fd(const struct dp_samples *s)
{
	return s->wake;
}

struct dp_error *dp_samples_start(struct dp_samples *s)
{
	for (size_t i = 0; i < s->nevents; i++)
		if (ioctl(s->event[i].fd, PERF_EVENT_IOC_ENABLE, 0))
			return dp_error_sys(DP_TAG_PERF, "cannot start sampling process %d", s->pid);
	return NULL;
}

void dp_samples_stop(struct dp_samples *s)
{
	for (size_t i = 0; i < s->nevents; i++)
		ioctl(s->event[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}
