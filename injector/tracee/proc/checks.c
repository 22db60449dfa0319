/* SPDX-License-Identifier: MIT */
/*
 * Checks a process without a stop and without a change, and refuses what cannot be probed. The kernel's answer decides: opening
 * /proc/PID/task/TID/mem makes the same check as PTRACE_SEIZE. Everything else that is read only serves to name the rule and the
 * fix.
 */
#include "injector/tracee/proc/checks.h"
#include "injector/tracee/proc/filter.h"
#include "injector/tracee/proc/inspect.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/proc/tracer.h"
#include "injector/tracee/tracee.h"

#include "base/cleanup.h"
#include "base/descriptors.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAPS_TRIES 200

uint64_t dp_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t dp_process_start_time(pid_t pid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, 0, &stat) ? stat.start_time : 0;
}

/*
 * The kernel writes the text in pieces, while mappings come and go: a mapping that grew meanwhile appears twice, and a read may
 * end within a line. True if the lines are whole and ascend.
 */
static bool is_consistent(const struct dp_buf *b)
{
	const char *line = (const char *)b->data, *const end = line + b->len;
	uint64_t below = 0;
	if (!b->len || end[-1] != '\n')
		return false;
	for (; line < end; line = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1) {
		char *after;
		const uint64_t from = strtoull(line, &after, 16), to = *after == '-' ? strtoull(after + 1, &after, 16) : 0;
		if (*after != ' ' || from < below || to <= from)
			return false;
		below = to;
	}
	return true;
}

static struct dp_error *read_maps(const struct dp_process *p, struct dp_buf *b)
{
	if (!dp_proc_slurp(b, "/proc/%d/task/%d/maps", p->pid, p->alive))
		return b->failed ? dp_error_nomem()
		                 : dp_error_sys(errno == EACCES || errno == EPERM ? DP_TAG_PERMISSION : DP_TAG_GONE,
		                                "cannot read the memory map of process %d", p->pid);
	if (!b->len) /* an exiting process has no memory left */
		return dp_error(DP_TAG_GONE, "process %d is exiting: it has no memory left", p->pid);
	dp_buf_str(b);
	return b->failed ? dp_error_nomem() : NULL;
}

struct dp_error *dp_process_maps(const struct dp_process *p, char **ret)
{
	for (int tried = 0; tried < MAPS_TRIES; tried++) {
		struct dp_buf b;
		dp_buf_init(&b);
		struct dp_error *err = read_maps(p, &b);
		if (!err && is_consistent(&b)) {
			*ret = (char *)b.data;
			return NULL;
		}
		dp_buf_fini(&b);
		if (err)
			return err;
		nanosleep(&(struct timespec){0, tried < MAPS_TRIES / 2 ? 20000 : 1000000}, NULL);
	}
	return dp_error(DP_TAG_CHANGED, "cannot read the memory map of process %d: it changes too fast", p->pid);
}

/* What cannot be read for another reason than its end counts as memory. */
static bool thread_has_memory(pid_t pid, pid_t tid)
{
	struct dp_buf b;
	dp_buf_init(&b);
	errno = 0;
	const bool read = dp_proc_slurp(&b, "/proc/%d/task/%d/maps", pid, tid);
	const bool has = read ? b.len > 0 : errno != ENOENT && errno != ESRCH;
	dp_buf_fini(&b);
	return has;
}

bool dp_process_has_no_memory(const struct dp_process *p)
{
	struct dp_tids tids;
	bool has = false;
	if (!dp_proc_tids(p->pid, &tids))
		return false;
	for (size_t i = 0; i < tids.n && !has; i++)
		has = thread_has_memory(p->pid, tids.tid[i]);
	free(tids.tid);
	return !has;
}

static struct dp_error *no_process(pid_t pid)
{
	DP_TRY(dp_descriptors_check_any());
	if (pid <= 0 || (kill(pid, 0) && errno != EPERM))
		return dp_error(DP_TAG_NO_PROCESS, "there is no process %d", pid);
	return dp_error_advise(dp_error(DP_TAG_PERMISSION, "process %d exists, but /proc does not show it to this user", pid),
	                       "run dynprobe as root, or as a user that the mount options hidepid and gid of /proc let see it");
}

/* Finds the thread group's leader and its ids, from any of its threads' ids. */
static struct dp_error *find_group(pid_t pid, struct dp_process *ret)
{
	struct dp_buf status;
	dp_buf_init(&status);
	if (pid <= 0 || !dp_proc_slurp(&status, "/proc/%d/status", pid)) {
		dp_buf_fini(&status);
		return no_process(pid);
	}
	pid_t leader = (pid_t)dp_status_long(dp_buf_str(&status), "Tgid", pid);
	if (leader != pid) { /* a thread's id: ask its leader for the rest */
		dp_buf_fini(&status);
		return find_group(leader, ret);
	}
	ret->pid = ret->alive = pid;
	ret->ns_pid = dp_status_ns_pid(dp_buf_str(&status), &ret->nested);
	ret->start_time = dp_process_start_time(pid);
	dp_proc_comm(pid, ret->comm, sizeof(ret->comm));
	dp_buf_fini(&status);
	return NULL;
}

/* Finds a live thread; refuses zombies and kernel threads. */
static struct dp_error *find_alive(struct dp_process *p)
{
	struct dp_task_stat stat;
	struct dp_tids tids;
	if (!dp_proc_stat(p->pid, 0, &stat))
		return no_process(p->pid);
	if (stat.flags & DP_PF_KTHREAD)
		return dp_error(DP_TAG_KERNEL_THREAD, "%d (%s) is a kernel thread", p->pid, p->comm);
	p->leader_zombie = stat.state == 'Z' || stat.state == 'X';
	if (!p->leader_zombie)
		return NULL;
	if (!dp_proc_tids(p->pid, &tids))
		return dp_error_nomem();
	p->alive = 0;
	for (size_t i = 0; i < tids.n && !p->alive; i++)
		if (dp_proc_stat(p->pid, tids.tid[i], &stat) && stat.state != 'Z' && stat.state != 'X' &&
		    !dp_task_is_worker(&stat))
			p->alive = tids.tid[i];
	free(tids.tid);
	if (!p->alive)
		return dp_error(DP_TAG_ZOMBIE, "process %d (%s) is a zombie: it has exited, but its parent has not reaped it",
		                p->pid, p->comm);
	return NULL;
}

/* This line lists enabled features; a similar one lists the locked features. */
static bool has_shadow_stack(const char *status)
{
	const char *on = dp_status_find(status, "x86_Thread_features");
	return on && memmem(on, strcspn(on, "\n"), "shstk", strlen("shstk"));
}

struct dp_error *dp_check_thread(struct dp_process *p, pid_t tid)
{
	struct dp_error *err = NULL;
	struct dp_buf b;
	dp_buf_init(&b);
	if (dp_proc_slurp(&b, "/proc/%d/task/%d/status", p->pid, tid)) {
		pid_t tracer = (pid_t)dp_status_long(dp_buf_str(&b), "TracerPid", 0);
		long seccomp = dp_status_long(dp_buf_str(&b), "Seccomp", 0);
		p->seccomp |= seccomp != 0;
		p->filtered = p->seccomp;
		p->seccomp_strict |= seccomp == 1;
		p->shadow_stack |= has_shadow_stack(dp_buf_str(&b));
		if (tracer && !dp_is_own_task(tracer))
			err = dp_tracer_refuse(p, tid, tracer);
	}
	dp_buf_fini(&b);
	return err;
}

static struct dp_error *check_threads(struct dp_process *p, bool traced)
{
	struct dp_error *err = NULL;
	struct dp_tids tids;
	if (!dp_proc_tids(p->pid, &tids))
		return dp_error_nomem();
	for (size_t i = 0; i < tids.n && !err; i++) {
		err = dp_check_thread(p, tids.tid[i]);
		if (err && traced && err->tag == DP_TAG_TRACED)
			err = (dp_error_destroy(err), NULL);
	}
	free(tids.tid);
	return err;
}

/* 64 or 32, from the auxiliary vector: the size of a program header is the one entry that both classes have and that differs. */
static int class_from_auxv(const struct dp_process *p)
{
	struct dp_buf b;
	int bits = 64;
	dp_buf_init(&b);
	if (dp_proc_slurp(&b, "/proc/%d/task/%d/auxv", p->pid, p->alive)) {
		const uint32_t *w = (const uint32_t *)(const void *)b.data;
		for (size_t i = 0; i + 1 < b.len / 4; i += 2)
			if (w[i] == AT_PHENT && w[i + 1] == sizeof(Elf32_Phdr))
				bits = 32;
	}
	dp_buf_fini(&b);
	return bits;
}

static struct dp_error *check_arch(const struct dp_process *p)
{
	char path[64];
	unsigned char head[20] = {0};
	snprintf(path, sizeof(path), "/proc/%d/task/%d/exe", p->pid, p->alive);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool read_all = fd >= 0 && pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) && !memcmp(head, ELFMAG, SELFMAG);
	if (!read_all && class_from_auxv(p) == 64)
		return NULL;
	if (read_all && head[EI_CLASS] == ELFCLASS64 && head[18] == EM_X86_64 && head[19] == 0)
		return NULL;
	return dp_error(DP_TAG_WRONG_ARCH, "process %d (%s) is not a 64-bit x86 process", p->pid, p->comm);
}

static bool is_filtered_ourselves(void)
{
	struct dp_buf b;
	dp_buf_init(&b);
	const bool own = dp_proc_slurp(&b, "/proc/self/status") && dp_status_long(dp_buf_str(&b), "Seccomp", 0) != 0;
	dp_buf_fini(&b);
	return own;
}

/* What the filter forbids, or why that is not known. */
static const char *what_is_forbidden(const struct dp_process *p)
{
	if (p->seccomp_strict)
		return "it allows read, write, exit and sigreturn only";
	if (p->judged)
		return dp_filter_forbids(p, DP_CALLS_ATTACH);
	if (p->filter.unreadable == EAGAIN)
		return "a thread could not be stopped to read it";
	if (p->filter.unreadable && p->filter.unreadable != EACCES && p->filter.unreadable != EPERM)
		return "the kernel does not let it be read (CONFIG_CHECKPOINT_RESTORE, CONFIG_SECCOMP_FILTER)";
	if (is_filtered_ourselves())
		return "dynprobe cannot read it, because dynprobe itself runs under one (docker: --security-opt "
		       "seccomp=unconfined)";
	return "to read it, dynprobe needs CAP_SYS_ADMIN (root on the host, or a privileged container without a user namespace)";
}

struct dp_error *dp_check_seccomp(const struct dp_process *p, bool allowed)
{
	if (!p->seccomp)
		return NULL;
	const char *mode = p->seccomp_strict ? "in strict seccomp mode" : "under a seccomp filter";
	if (!allowed)
		return dp_error(DP_TAG_SECCOMP,
		                "process %d (%s) runs %s, which could reject dynprobe's system calls or kill the process: %s",
		                p->pid, p->comm, mode, what_is_forbidden(p));
	if (is_filtered_ourselves())
		return dp_error(DP_TAG_SECCOMP,
		                "process %d (%s) runs %s; dynprobe cannot suspend it, because dynprobe itself runs under seccomp",
		                p->pid, p->comm, mode);
	if (!dp_filter_readable())
		return dp_error(DP_TAG_SECCOMP, "process %d (%s) runs %s; only root may suspend it: run dynprobe as root", p->pid,
		                p->comm, mode);
	return NULL;
}

struct dp_error *dp_process_inspect(pid_t pid, struct dp_process *ret)
{
	struct dp_process p = {0};
	DP_TRY(find_group(pid, &p));
	DP_TRY(find_alive(&p));
	DP_TRY(check_arch(&p));
	*ret = p;
	return NULL;
}

static struct dp_error *check(pid_t pid, bool allow_seccomp, bool traced, struct dp_process *ret)
{
	struct dp_process p = {0};
	DP_TRY(find_group(pid, &p));
	if (p.pid == getpid())
		return dp_error(DP_TAG_USAGE, "process %d is this dynprobe itself: name another process", p.pid);
	DP_TRY(find_alive(&p));
	DP_TRY(check_threads(&p, traced));
	DP_TRY(dp_check_permission(&p));
	DP_TRY(check_arch(&p));
	DP_TRY(dp_check_seccomp(&p, allow_seccomp));
	*ret = p;
	return NULL;
}

struct dp_error *dp_process_check(pid_t pid, bool allow_seccomp, struct dp_process *ret)
{
	return check(pid, allow_seccomp, false, ret);
}

struct dp_error *dp_process_check_to_read(pid_t pid, bool allow_seccomp, struct dp_process *ret)
{
	return check(pid, allow_seccomp, true, ret);
}
