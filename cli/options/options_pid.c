/* SPDX-License-Identifier: MIT */
/* Processes by number, name and control group: --pid 12,14, --pid nginx, --cgroup PATH. */
#include "base/cleanup.h"
#include "base/path.h"
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"
#include "injector/tracee/proc/proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_number(const char *word)
{
	return word[strspn(word, "0123456789")] == '\0';
}

static bool has_pid(const struct dp_trace_spec *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->npids; i++)
		if (trace->pid[i] == pid)
			return true;
	return false;
}

static struct dp_error *add(struct dp_trace_spec *trace, pid_t pid)
{
	if (has_pid(trace, pid))
		return NULL;
	pid_t *grown = realloc(trace->pid, (trace->npids + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	trace->pid = grown;
	trace->pid[trace->npids++] = pid;
	return NULL;
}

/* By its name in /proc, as pgrep -x, or by its executable's: names in /proc are cut after 15 bytes. */
static bool is_named(pid_t pid, const char *name)
{
	char link[32], exe[4096], comm[64];
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	const ssize_t n = readlink(link, exe, sizeof(exe) - 1);
	const bool is_program = n > 0 || errno == EACCES || errno == EPERM; /* not a thread of the kernel, not a zombie */
	exe[n > 0 ? n : 0] = '\0';
	dp_proc_comm(pid, comm, sizeof(comm));
	return is_program && (!strcmp(comm, name) || !strcmp(dp_path_last(exe), name));
}

static struct dp_error *add_named(struct dp_trace_spec *trace, const char *name)
{
	bool found = false;
	dp_auto_closedir DIR *proc = opendir("/proc");
	if (!proc)
		return dp_error_sys(DP_TAG_SYS, "opening /proc");
	for (const struct dirent *e; (e = readdir(proc));) {
		const pid_t pid = is_number(e->d_name) ? (pid_t)atoi(e->d_name) : 0;
		if (pid <= 0 || pid == getpid() || !is_named(pid, name))
			continue;
		found = true;
		DP_TRY(add(trace, pid));
	}
	return found ? NULL : dp_error(DP_TAG_NO_PROCESS, "no process is named '%s'", name);
}

static struct dp_error *add_word(struct dp_trace_spec *trace, const char *word)
{
	uint64_t pid;
	if (*word && !strchr("0123456789+-", *word))
		return add_named(trace, word);
	DP_TRY(dp_number_parse("--pid", word, &pid));
	if (pid > INT32_MAX)
		return dp_error(DP_TAG_NO_PROCESS, "there is no process %s", word);
	return add(trace, (pid_t)pid);
}

struct dp_error *dp_option_pid(struct dp_parser *p, const char *arg)
{
	dp_auto_free char *list = strdup(arg);
	char *rest = list;
	if (!list)
		return dp_error_nomem();
	for (const char *word; (word = strsep(&rest, ","));)
		DP_TRY(add_word(&p->o.trace, word));
	return NULL;
}

/* ---- control groups ---- */

enum { DEPTH_MAX = 32, PATH_LENGTH = 4096 };

/* Adds the processes of a group and of those below it. False: the folder is not a group. */
static bool add_group(struct dp_trace_spec *trace, const char *folder, unsigned depth, struct dp_error **err)
{
	char path[PATH_LENGTH];
	int pid;
	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	dp_auto_fclose FILE *procs = fopen(path, "re");
	dp_auto_closedir DIR *inner = procs ? opendir(folder) : NULL;
	if (!inner)
		return false;
	while (!*err && fscanf(procs, "%d", &pid) == 1)
		*err = pid > 0 && pid != getpid() ? add(trace, pid) : NULL; /* 0: not in our pid namespace */
	for (const struct dirent *e; !*err && depth < DEPTH_MAX && (e = readdir(inner));)
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < sizeof(path))
			add_group(trace, path, depth + 1, err);
	return true;
}

struct dp_error *dp_option_cgroup(struct dp_parser *p, const char *arg)
{
	struct dp_error *err = NULL;
	char path[PATH_LENGTH];
	const size_t before = p->o.trace.npids;
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", arg);
	if (!add_group(&p->o.trace, arg, 0, &err) && !add_group(&p->o.trace, path, 0, &err))
		return dp_error(DP_TAG_NO_PROCESS, "'%s' is not a control group: neither it nor '%s' has a file cgroup.procs",
		                arg, path);
	if (!err && p->o.trace.npids == before)
		return dp_error(DP_TAG_NO_PROCESS, "the control group '%s' has no processes that are not named already", arg);
	return err;
}
