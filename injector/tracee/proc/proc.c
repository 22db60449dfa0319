/* SPDX-License-Identifier: MIT */
#include "injector/tracee/proc/proc.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

bool dp_proc_slurp(struct dp_buf *b, const char *fmt, ...)
{
	char path[128], chunk[4096];
	va_list args;
	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));
		if (n < 0)
			return false;
		if (n == 0)
			return !b->failed;
		dp_buf_put(b, chunk, (size_t)n);
	}
}

/* Reads a file of at most `n` - 1 bytes without allocation: also used while threads are held. */
static bool read_small(char *buf, size_t n, pid_t pid, pid_t tid, const char *file)
{
	char path[64];
	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, file);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	dp_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, buf, n - 1);
	buf[got > 0 ? got : 0] = '\0';
	return got > 0;
}

bool dp_proc_stat(pid_t pid, pid_t tid, struct dp_task_stat *ret)
{
	char text[1024];
	return read_small(text, sizeof(text), pid, tid, "stat") && dp_stat_parse(text, ret);
}

/* The fields after the name that are used, from 0. */
enum { STATE, PPID, FLAGS = 6, START_TIME = 19, MEMORY, START_STACK = 25, NFIELDS };

/* Threads may be held meanwhile, all of them: sscanf() would take three times as long. */
bool dp_stat_parse(const char *text, struct dp_task_stat *ret)
{
	const char *p = strrchr(text, ')'); /* the name may contain anything, ')' too */
	uint64_t field[NFIELDS] = {0};
	unsigned n = 0;
	if (!p || p[1] != ' ' || !p[2])
		return false;
	ret->state = p[2];
	for (p += 3; n + 1 < NFIELDS && p[0] == ' ' && (isdigit((unsigned char)p[1]) || p[1] == '-');) {
		const bool negative = *++p == '-';
		n++;
		for (p += negative; isdigit((unsigned char)*p); p++)
			field[n] = 10 * field[n] + (uint64_t)(*p - '0');
		field[n] = negative ? -field[n] : field[n];
	}
	ret->ppid = (pid_t)field[PPID];
	ret->flags = field[FLAGS];
	ret->start_time = field[START_TIME];
	ret->memory = field[MEMORY];
	ret->start_stack = field[START_STACK];
	return n >= START_TIME;
}

/* Values from the kernel's include/linux/sched.h, and the kernel since which each means this for threads of processes. */
#define PF_IO_WORKER      0x00000010u
#define PF_IO_WORKER_IN   5012u /* before: workers are kernel threads; in 5.4 the bit marks virtual processors */
#define PF_USER_WORKER    0x00004000u
#define PF_USER_WORKER_IN 6004u /* before (until 5.16): the bit marks tasks that load modules */

bool dp_flags_of_worker(uint64_t flags, unsigned kernel)
{
	return ((flags & PF_IO_WORKER) && kernel >= PF_IO_WORKER_IN) || ((flags & PF_USER_WORKER) && kernel >= PF_USER_WORKER_IN);
}

static unsigned running_kernel(void)
{
	static unsigned known;
	struct utsname u;
	unsigned major = 0, minor = 0;
	if (!known && !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2)
		known = 1000 * major + minor;
	return known;
}

bool dp_task_is_worker(const struct dp_task_stat *stat)
{
	return dp_flags_of_worker(stat->flags, running_kernel());
}

bool dp_proc_is_worker(pid_t pid, pid_t tid)
{
	struct dp_task_stat stat;
	return dp_proc_stat(pid, tid, &stat) && dp_task_is_worker(&stat);
}

const char *dp_status_find(const char *status, const char *name)
{
	size_t n = strlen(name);
	for (const char *line = status; line && *line;) {
		if (!strncmp(line, name, n) && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return NULL;
}

long dp_status_long(const char *status, const char *name, long missing)
{
	const char *at = dp_status_find(status, name);
	return at ? strtol(at, NULL, 10) : missing;
}

pid_t dp_status_ns_pid(const char *status, bool *nested)
{
	const char *at = dp_status_find(status, "NSpid");
	long last = dp_status_long(status, "Pid", 0);
	int n = 0;
	while (at && isdigit((unsigned char)*at)) {
		char *end;
		last = strtol(at, &end, 10);
		at = end + strspn(end, " \t");
		n++;
	}
	*nested = n > 1;
	return (pid_t)last;
}

bool dp_proc_each(bool (*visit)(pid_t pid, void *data), void *data)
{
	dp_auto_closedir DIR *proc = opendir("/proc");
	for (const struct dirent *e; proc && (e = readdir(proc));) {
		const pid_t pid = (pid_t)atoi(e->d_name);
		if (pid > 0 && !visit(pid, data))
			break;
	}
	return proc;
}

bool dp_proc_tids(pid_t pid, struct dp_tids *ret)
{
	char path[64];
	size_t cap = 0;
	*ret = (struct dp_tids){0};
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dp_auto_closedir DIR *dir = opendir(path);
	if (!dir)
		return errno == ENOENT || errno == ESRCH;
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (ret->n == cap) {
			cap = cap ? 2 * cap : 64;
			pid_t *grown = realloc(ret->tid, cap * sizeof(*grown));
			if (!grown) {
				free(ret->tid);
				*ret = (struct dp_tids){0};
				return false;
			}
			ret->tid = grown;
		}
		ret->tid[ret->n++] = (pid_t)strtol(e->d_name, NULL, 10);
	}
	return true;
}

void dp_printable(char *text)
{
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

/* The kernel appends a newline; any earlier one is part of the name. */
void dp_proc_comm(pid_t pid, char *ret, size_t n)
{
	if (!read_small(ret, n, pid, 0, "comm"))
		snprintf(ret, n, "?");
	const size_t len = strlen(ret);
	if (len && ret[len - 1] == '\n')
		ret[len - 1] = '\0';
	dp_printable(ret);
}

bool dp_proc_syscall(pid_t pid, pid_t tid, long *nr, uint64_t args[6])
{
	char text[256];
	if (!read_small(text, sizeof(text), pid, tid, "syscall"))
		return false;
	return sscanf(text, "%ld 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64, nr, &args[0],
	              &args[1], &args[2], &args[3], &args[4], &args[5]) == 7;
}

void dp_proc_call(pid_t pid, pid_t tid, struct dp_proc_call *ret)
{
	char text[256];
	struct dp_proc_call c = {.nr = -1};
	const bool read = read_small(text, sizeof(text), pid, tid, "syscall");
	const int n = read ? sscanf(text,
	                            "%ld 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64
	                            " 0x%" SCNx64 " 0x%" SCNx64,
	                            &c.nr, &c.args[0], &c.args[1], &c.args[2], &c.args[3], &c.args[4], &c.args[5], &c.sp, &c.pc)
	                   : 0;
	*ret = n == 9 ? c : (struct dp_proc_call){.nr = -1};
}

bool dp_proc_has_children(pid_t pid, pid_t tid)
{
	char text[16];
	return read_small(text, sizeof(text), pid, tid, "children") && text[0];
}

struct parent {
	pid_t pid;
	struct stat exe;
	void (*each)(pid_t child, void *data);
	void *data;
};

static bool stat_exe(pid_t pid, struct stat *ret)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return !stat(path, ret);
}

static bool look_for_child(pid_t pid, void *data)
{
	const struct parent *p = data;
	struct dp_task_stat stat;
	struct stat exe;
	if (dp_proc_stat(pid, 0, &stat) && stat.ppid == p->pid && stat_exe(pid, &exe) && exe.st_dev == p->exe.st_dev &&
	    exe.st_ino == p->exe.st_ino)
		p->each(pid, p->data);
	return true;
}

bool dp_proc_children(pid_t pid, void (*each)(pid_t child, void *data), void *data)
{
	struct parent p = {.pid = pid, .each = each, .data = data};
	return stat_exe(pid, &p.exe) && dp_proc_each(look_for_child, &p);
}

bool dp_proc_in_vfork(pid_t pid, pid_t tid)
{
	long nr;
	uint64_t args[6], flags = 0;
	if (!dp_proc_syscall(pid, tid, &nr, args))
		return false;
	if (nr == SYS_clone)
		flags = args[0];
	if (nr == SYS_clone3) { /* flags are the first word of struct clone_args */
		struct iovec here = {&flags, sizeof(flags)}, there = {(void *)(uintptr_t)args[0], sizeof(flags)};
		if (process_vm_readv(tid, &here, 1, &there, 1, 0) != sizeof(flags))
			flags = 0;
	}
	return nr == SYS_vfork || (flags & CLONE_VFORK);
}

void dp_proc_masks(pid_t pid, pid_t tid, const char *const *fields, uint64_t *ret, size_t n)
{
	struct dp_buf status;
	dp_buf_init(&status);
	const bool read = dp_proc_slurp(&status, "/proc/%d/task/%d/status", pid, tid);
	for (size_t i = 0; i < n; i++) {
		const char *text = read ? dp_status_find(dp_buf_str(&status), fields[i]) : NULL;
		ret[i] = text ? strtoull(text, NULL, 16) : 0;
	}
	dp_buf_fini(&status);
}

uint64_t dp_proc_mask(pid_t pid, pid_t tid, const char *field)
{
	uint64_t mask;
	dp_proc_masks(pid, tid, &field, &mask, 1);
	return mask;
}
