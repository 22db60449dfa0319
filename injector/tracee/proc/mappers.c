/* SPDX-License-Identifier: MIT */
#include "injector/tracee/proc/mappers.h"

#include "agent/abi.h"
#include "base/cleanup.h"
#include "injector/tracee/proc/named.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/proc/tracer.h"
#include "probes/image/module.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ANCESTORS   64u
#define INITIAL_PID "pid:[4026531836]" /* the machine's own pid namespace: PROC_PID_INIT_INO of the kernel */

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

struct mapped {
	char path[PATH_MAX]; /* as maps shows it, without " (deleted)" */
	bool deleted, loaded; /* loaded: a mapping of code, or of data to be changed */
	unsigned major, minor;
	unsigned long inode;
};

/* The line's file; false: none. */
static bool parse(const char *line, size_t n, struct mapped *ret)
{
	static const char gone[] = " (deleted)";
	const char *slash = memchr(line, '/', n);
	char perms[5];
	const size_t length = slash ? (size_t)(line + n - slash) : 0;
	if (!slash || length >= sizeof(ret->path) ||
	    sscanf(line, "%*x-%*x %4s %*x %x:%x %lu", perms, &ret->major, &ret->minor, &ret->inode) != 4)
		return false;
	ret->loaded = strpbrk(perms, "xw");
	memcpy(ret->path, slash, length);
	ret->path[length] = 0;
	ret->deleted = length >= sizeof(gone) && !strcmp(ret->path + length - sizeof(gone) + 1, gone);
	if (ret->deleted)
		ret->path[length - sizeof(gone) + 1] = 0;
	return true;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* What the process finds under the path of one of its mappings. False: nothing, or another file. */
static bool stat_inside(pid_t pid, const struct mapped *m, char *path, size_t size, struct stat *ret)
{
	return !m->deleted && (size_t)snprintf(path, size, "/proc/%d/root%s", pid, m->path) < size && !stat(path, ret);
}

/* Under its path another process may see another file, and a file may have been replaced. Some file systems number their files
 * differently in maps: then what the process sees there counts. */
static bool is_that_file(pid_t pid, const struct mapped *m, const char *typed)
{
	char path[PATH_MAX + 32];
	struct stat wanted, inside;
	if (stat(typed, &wanted))
		return false;
	if (wanted.st_ino == m->inode && wanted.st_dev == makedev(m->major, m->minor))
		return true;
	return stat_inside(pid, m, path, sizeof(path), &inside) && same(&wanted, &inside);
}

static void report(pid_t pid, const struct mapped *m, const struct dp_mapper_search *search)
{
	char path[PATH_MAX + 32];
	struct stat inside, here;
	if (!search->file || !stat_inside(pid, m, path, sizeof(path), &inside) || !S_ISREG(inside.st_mode))
		return;
	search->file(!stat(m->path, &here) && same(&here, &inside) ? m->path : path, search->data);
}

static bool is_wanted(pid_t pid, const struct mapped *m, const struct dp_mapper_search *search)
{
	for (size_t i = 0; i < search->n; i++) {
		const char *typed = search->module[i];
		const bool one_file = strchr(typed, '/') && !strpbrk(typed, "*?[");
		if (dp_module_path_matches(m->path, typed) && (!one_file || is_that_file(pid, m, typed)))
			return true;
	}
	return false;
}

/* ---- a process ------------------------------------------------------------------------------------------------------------- */

static void digest(const struct mapped *m, uint64_t *ret)
{
	for (const char *p = m->path; ret && *p; p++)
		*ret = (*ret ^ (unsigned char)*p) * UINT64_C(0x100000001b3); /* FNV-1a */
	if (ret)
		*ret = (*ret ^ m->inode) * UINT64_C(0x100000001b3);
}

/*
 * The mappings of a file are neighbours. A loader maps the code before the data that it changes. A process that has moved the code
 * to anonymous pages since (huge pages) still maps that data.
 */
static enum dp_mapper look_through(pid_t pid, const char *maps, const struct dp_mapper_search *search)
{
	struct mapped m, last = {.path = ""};
	bool wanted = false, data = false, code = !search->n && *maps;
	for (size_t n; *maps; maps += n + (maps[n] == '\n')) {
		n = strcspn(maps, "\n");
		if (!parse(maps, n, &m))
			continue;
		if (strcmp(m.path, last.path) != 0) {
			last = m;
			digest(&m, search->digest);
			wanted = is_wanted(pid, &m, search);
			if (wanted)
				report(pid, &m, search);
		}
		data |= wanted;
		code |= wanted && m.loaded;
	}
	return code ? DP_MAPPER_YES : data ? DP_MAPPER_DATA : DP_MAPPER_NO;
}

/* An executable is also meant by the name that it was started by. */
static bool is_called(pid_t pid, const struct dp_mapper_search *search)
{
	for (size_t i = 0; i < search->n; i++)
		if (dp_proc_is_named(pid, search->module[i]))
			return true;
	return false;
}

enum dp_mapper dp_mapper_of(pid_t pid, const struct dp_mapper_search *search)
{
	struct dp_buf maps;
	dp_buf_init(&maps);
	const bool read = dp_proc_slurp(&maps, "/proc/%d/maps", pid);
	const bool denied = !read && (errno == EACCES || errno == EPERM);
	if (search->digest)
		*search->digest = 0;
	const enum dp_mapper is = read ? look_through(pid, dp_buf_str(&maps), search) : DP_MAPPER_NO;
	dp_buf_fini(&maps);
	if (denied)
		return DP_MAPPER_DENIED;
	return read && is != DP_MAPPER_YES && is_called(pid, search) ? DP_MAPPER_YES : is;
}

bool dp_mapper_has_ours(pid_t pid)
{
	struct dp_buf maps;
	dp_buf_init(&maps);
	const bool has =
	        dp_proc_slurp(&maps, "/proc/%d/maps", pid) && strstr(dp_buf_str(&maps), "/memfd:" DP_MEMFD_NAME " (deleted)\n");
	dp_buf_fini(&maps);
	return has;
}

/* ---- tools ----------------------------------------------------------------------------------------------------------------- */

/* Also a copy of another version. */
static bool is_dynprobe(pid_t pid)
{
	char exe[32];
	struct stat own, theirs;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	return !stat("/proc/self/exe", &own) && !stat(exe, &theirs) && same(&own, &theirs);
}

static bool is_init(pid_t pid)
{
	char text[64];
	const ssize_t n = pid == 1 ? readlink("/proc/self/ns/pid", text, sizeof(text) - 1) : -1;
	return n > 0 && !strncmp(text, INITIAL_PID, (size_t)n);
}

static bool is_ancestor(pid_t pid)
{
	struct dp_task_stat stat;
	pid_t at = getpid();
	for (unsigned depth = 0; at > 1 && depth < ANCESTORS && dp_proc_stat(at, 0, &stat); depth++)
		if ((at = stat.ppid) == pid)
			return true;
	return false;
}

/* Does it hold the other side of a terminal (sudo, sshd, tmux, xterm)? */
static bool is_behind_terminal(pid_t pid)
{
	char path[64], to[64];
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dp_auto_closedir DIR *fds = opendir(path);
	for (const struct dirent *e; fds && (e = readdir(fds));) {
		const ssize_t n = readlinkat(dirfd(fds), e->d_name, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = 0;
		if (!strcmp(to, "/dev/ptmx") || !strcmp(to, "/dev/pts/ptmx"))
			return true;
	}
	return false;
}

bool dp_mapper_is_tool(pid_t pid)
{
	char comm[64];
	dp_proc_comm(pid, comm, sizeof(comm));
	return pid == getpid() || is_dynprobe(pid) || is_init(pid) || dp_tracer_is_known(comm) ||
	       pid == dp_tracer_of(getpid(), getpid()) || (is_ancestor(pid) && is_behind_terminal(pid));
}
