/* SPDX-License-Identifier: MIT */
/* Processes by number, name and control group: --pid 12,14, --pid nginx, --cgroup PATH. */
#include "base/cleanup.h"
#include "cli/options/numbers.h"
#include "cli/options/options_table.h"
#include "cli/processes/containers.h"
#include "injector/tracee/proc/named.h"
#include "injector/tracee/proc/proc.h"
#include "probes/point/suggest.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_pid(const struct dp_trace_spec *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->npids; i++)
		if (trace->pid[i] == pid)
			return true;
	return false;
}

static struct dp_error *append(pid_t **list, size_t *n, pid_t pid)
{
	pid_t *grown = realloc(*list, (*n + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	*list = grown;
	grown[(*n)++] = pid;
	return NULL;
}

static struct dp_error *add(struct dp_trace_spec *trace, pid_t pid)
{
	return has_pid(trace, pid) ? NULL : append(&trace->pid, &trace->npids, pid);
}

/* A vfork child is its parent until it executes a program. */
static struct dp_error *add_found(struct dp_trace_spec *trace, pid_t pid)
{
	if (has_pid(trace, pid) || dp_proc_is_vfork_child(pid))
		return NULL;
	DP_TRY(append(&trace->found, &trace->nfound, pid));
	return add(trace, pid);
}

struct names { /* of the processes, for suggestions */
	struct dp_suggest suggest;
	char name[4096][32];
	size_t n;
};

struct search {
	struct dp_trace_spec *trace;
	const char *name;
	bool found;
	struct dp_error *err;
};

static bool add_if_named(pid_t pid, void *data)
{
	struct search *s = data;
	if (pid == getpid() || !dp_proc_is_named(pid, s->name) || dp_proc_is_vfork_child(pid))
		return true;
	s->found = true;
	s->err = add_found(s->trace, pid);
	return !s->err;
}

static bool offer(pid_t pid, void *data)
{
	struct names *n = data;
	if (pid == getpid() || n->n == sizeof(n->name) / sizeof(*n->name))
		return pid == getpid();
	dp_proc_comm(pid, n->name[n->n], sizeof(n->name[0]));
	dp_suggest_offer(&n->suggest, n->name[n->n], strlen(n->name[n->n]));
	n->n++;
	return true;
}

static struct dp_error *no_such_name(const char *name)
{
	dp_auto_free struct names *n = calloc(1, sizeof(*n));
	struct dp_buf help = {0};
	if (!n)
		return dp_error_nomem();
	dp_suggest_init(&n->suggest, name, strlen(name));
	dp_proc_each(offer, n);
	dp_suggest_print(&n->suggest, &help);
	struct dp_error *err = dp_error(DP_TAG_NO_PROCESS, "no process is named '%s'%s", name, dp_buf_str(&help));
	dp_buf_fini(&help);
	return err;
}

static struct dp_error *add_named(struct dp_trace_spec *trace, const char *name)
{
	struct search s = {.trace = trace, .name = name};
	if (!dp_proc_each(add_if_named, &s))
		return dp_error_sys(DP_TAG_SYS, "opening /proc");
	return s.err || s.found ? s.err : no_such_name(name);
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

struct dp_error *dp_pids_add(struct dp_trace_spec *trace, const char *list)
{
	dp_auto_free char *copy = strdup(list);
	char *rest = copy;
	if (!copy)
		return dp_error_nomem();
	for (const char *word; (word = strsep(&rest, ","));)
		DP_TRY(add_word(trace, word));
	return NULL;
}

struct dp_error *dp_option_pid(struct dp_parser *p, const char *arg)
{
	return dp_pids_add(&p->o.trace, arg);
}

/* ---- control groups ---- */

enum { DEPTH_MAX = 32, PATH_LENGTH = 4096 };

/* The file was opened, but its text cannot be read. A threaded group's processes are those of the group above it. */
static struct dp_error *unreadable(const char *folder, unsigned depth)
{
	if (depth && (errno == EOPNOTSUPP || errno == ENODEV)) /* ENODEV: the group is being removed */
		return NULL;
	if (errno == EOPNOTSUPP)
		return dp_error(DP_TAG_NO_PROCESS,
		                "the control group '%s' is threaded: name the group above it, which has its processes", folder);
	return dp_error_sys(DP_TAG_SYS, "reading %s/cgroup.procs", folder);
}

static struct dp_error *add_members(struct dp_trace_spec *trace, const char *folder, FILE *procs, unsigned depth)
{
	int pid;
	while (fscanf(procs, "%d", &pid) == 1)
		if (pid > 0 && pid != getpid()) /* 0: not in our pid namespace */
			DP_TRY(add_found(trace, pid));
	return ferror(procs) ? unreadable(folder, depth) : NULL;
}

/* Adds the processes of a group and of those below it. *found: the folder is a group. */
static struct dp_error *add_group(struct dp_trace_spec *trace, const char *folder, unsigned depth, bool *found)
{
	char path[PATH_LENGTH];
	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	dp_auto_fclose FILE *procs = fopen(path, "re");
	if (!procs)
		return errno == ENOENT || errno == ENOTDIR ? NULL : dp_error_sys(DP_TAG_SYS, "opening %s", path);
	*found = true;
	DP_TRY(add_members(trace, folder, procs, depth));
	dp_auto_closedir DIR *inner = opendir(folder);
	if (!inner)
		return errno == ENOENT ? NULL : dp_error_sys(DP_TAG_SYS, "opening %s", folder);
	for (const struct dirent *e; depth < DEPTH_MAX && (e = readdir(inner));)
		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
		    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < sizeof(path))
			DP_TRY(add_group(trace, path, depth + 1, found));
	return NULL;
}

struct dp_error *dp_option_cgroup(struct dp_parser *p, const char *arg)
{
	bool found = false;
	char path[PATH_LENGTH];
	const size_t before = p->o.trace.npids;
	snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", arg);
	DP_TRY(add_group(&p->o.trace, arg, 0, &found));
	if (!found)
		DP_TRY(add_group(&p->o.trace, path, 0, &found));
	if (!found)
		return dp_error(DP_TAG_NO_PROCESS, "'%s' is not a control group: neither it nor '%s' has a file cgroup.procs",
		                arg, path);
	if (p->o.trace.npids == before)
		return dp_error(DP_TAG_NO_PROCESS, "the control group '%s' has no processes, or only ones that are already named",
		                arg);
	return NULL;
}

/* ---- containers and users (cli/processes) ---- */

static struct dp_error *add_list(struct dp_trace_spec *trace, struct dp_pid_list *list)
{
	struct dp_error *err = NULL;
	for (size_t i = 0; i < list->n && !err; i++)
		err = add_found(trace, list->item[i]);
	free(list->item);
	return err;
}

struct dp_error *dp_option_container(struct dp_parser *p, const char *arg)
{
	struct dp_pid_list list;
	struct dp_error *err = dp_container_find(arg, &list), *added = add_list(&p->o.trace, &list);
	if (err)
		dp_error_destroy(added);
	return err ? err : added;
}

struct dp_error *dp_option_user(struct dp_parser *p, const char *arg)
{
	struct dp_pid_list list;
	struct dp_error *err = dp_user_find(arg, &list), *added = add_list(&p->o.trace, &list);
	if (err)
		dp_error_destroy(added);
	return err ? err : added;
}
