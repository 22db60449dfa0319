/* SPDX-License-Identifier: MIT */
/*
 * A runtime puts each container's processes into a control group of their own, whose path has the container's ID:
 *
 *   docker, nerdctl   /docker/ID   /system.slice/docker-ID.scope
 *   podman            /machine.slice/libpod-ID.scope/container   /libpod_parent/libpod-ID
 *   kubernetes        /kubepods/burstable/podUID/ID   /kubepods.slice/.../cri-containerd-ID.scope .../pod.slice:cri-containerd:ID
 *   LXC, nspawn       /lxc.payload.NAME   /machine.slice/machine-NAME.scope   /machine.slice/systemd-nspawn@NAME.service
 *
 * So /proc/PID/cgroup tells the container of a process, whatever the version of control groups and wherever they are mounted. A
 * container within a container has both IDs in its path, and belongs to both.
 */
#include "cli/processes/containers.h"
#include "cli/processes/names.h"

#include "base/cleanup.h"
#include "injector/tracee/proc/proc.h"

#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTED     8  /* containers that a message names */
#define SHOWN      12 /* digits of an ID in messages, as docker shows it */
#define CONTAINERS 4096

struct search {
	const char *wanted;
	struct dp_container_word *found; /* each container once */
	size_t n;
};

static bool is_hex(const char *text, size_t n)
{
	return strspn(text, "0123456789abcdef") >= n;
}

static bool take_name(const char *text, size_t n, const char *before, const char *after, struct dp_container_word *ret)
{
	const size_t b = strlen(before), a = strlen(after);
	if (n <= a + b || n - a - b >= sizeof(ret->name) || strncmp(text, before, b) != 0 || strncmp(text + n - a, after, a) != 0)
		return false;
	memcpy(ret->name, text + b, n - a - b);
	ret->name[n - a - b] = '\0';
	return true;
}

bool dp_container_parse(const char *text, size_t n, struct dp_container_word *ret)
{
	static const char scope[] = ".scope";
	const size_t suffix = sizeof(scope) - 1;
	const size_t bare = n > suffix && !strncmp(text + n - suffix, scope, suffix) ? n - suffix : n;
	*ret = (struct dp_container_word){0};
	if (bare >= DP_CONTAINER_ID && is_hex(text + bare - DP_CONTAINER_ID, DP_CONTAINER_ID) &&
	    (bare == DP_CONTAINER_ID || strchr("-:", text[bare - DP_CONTAINER_ID - 1]))) {
		memcpy(ret->id, text + bare - DP_CONTAINER_ID, DP_CONTAINER_ID);
		return !memmem(text, bare, "conmon", strlen("conmon")); /* the runtime's monitor, outside of the container */
	}
	return take_name(text, n, "lxc.payload.", "", ret) || take_name(text, n, "machine-", scope, ret) ||
	       take_name(text, n, "systemd-nspawn@", ".service", ret);
}

static bool is_same(const struct dp_container_word *a, const struct dp_container_word *b)
{
	return !strcmp(a->id, b->id) && !strcmp(a->name, b->name);
}

typedef bool (*word_fn)(const struct dp_container_word *word, void *data);

/* Calls `each` for the containers in a cgroup file, which has a line NUMBER:CONTROLLERS:PATH for each hierarchy. */
static bool any_word(const char *text, word_fn each, void *data)
{
	struct dp_container_word word;
	for (const char *at = text; *at;) {
		const size_t n = strcspn(at, "/\n");
		if (dp_container_parse(at, n, &word) && each(&word, data))
			return true;
		at += n + (at[n] != '\0');
	}
	return false;
}

static bool any_word_of(pid_t pid, word_fn each, void *data)
{
	struct dp_buf text;
	dp_buf_init(&text);
	const bool found = dp_proc_slurp(&text, "/proc/%d/cgroup", pid) && any_word(dp_buf_str(&text), each, data);
	dp_buf_fini(&text);
	return found;
}

static bool note_word(const struct dp_container_word *word, void *data)
{
	struct search *s = data;
	for (size_t i = 0; i < s->n; i++)
		if (is_same(&s->found[i], word))
			return false;
	if (s->n < CONTAINERS)
		s->found[s->n++] = *word;
	return false;
}

static bool is_word(const struct dp_container_word *word, void *data)
{
	return is_same(word, data);
}

/* ---- processes ---------------------------------------------------------------------------------------------------------- */

static struct dp_error *add(struct dp_pid_list *list, pid_t pid)
{
	pid_t *grown = realloc(list->item, (list->n + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	list->item = grown;
	list->item[list->n++] = pid;
	return NULL;
}

typedef bool (*process_fn)(pid_t pid, void *data);

/* Adds the processes for which `is` holds. `ret` may be NULL. */
static struct dp_error *each_process(process_fn is, void *data, struct dp_pid_list *ret)
{
	dp_auto_closedir DIR *proc = opendir("/proc");
	if (!proc)
		return dp_error_sys(DP_TAG_SYS, "opening /proc");
	for (const struct dirent *e; (e = readdir(proc));) {
		const pid_t pid = (pid_t)atoi(e->d_name);
		if (pid > 0 && pid != getpid() && is(pid, data) && ret)
			DP_TRY(add(ret, pid));
	}
	return NULL;
}

static bool note_process(pid_t pid, void *data)
{
	return any_word_of(pid, note_word, data);
}

static bool is_inside(pid_t pid, void *data)
{
	struct dp_task_stat stat;
	return any_word_of(pid, is_word, data) && dp_proc_stat(pid, 0, &stat) && stat.state != 'Z' && stat.state != 'X';
}

/* ---- which container ---------------------------------------------------------------------------------------------------- */

static void put_list(const struct search *s, const bool *only, char *ret, size_t size)
{
	size_t n = 0, at = 0;
	ret[0] = '\0';
	for (size_t i = 0; i < s->n && n < LISTED && at < size; i++) {
		const struct dp_container_word *w = &s->found[i];
		if (only && !only[i])
			continue;
		at += (size_t)snprintf(ret + at, size - at, "%s%.*s", n++ ? ", " : "", w->id[0] ? SHOWN : 64,
		                       w->id[0] ? w->id : w->name);
	}
	if (s->n > LISTED && !only && at < size)
		snprintf(ret + at, size - at, " and %zu more", s->n - LISTED);
}

static bool has_name(const struct dp_container_word *w, const char *name)
{
	return w->id[0] ? dp_container_is_named(w->id, name) : !strcmp(w->name, name);
}

/* As docker does: by the whole ID, else by name, else by the beginning of the ID. */
static size_t mark(const struct search *s, unsigned way, bool *is)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct dp_container_word *w = &s->found[i];
		is[i] = way == 0   ? w->id[0] && !strcmp(w->id, s->wanted)
		        : way == 1 ? has_name(w, s->wanted)
		                   : w->id[0] && !strncmp(w->id, s->wanted, strlen(s->wanted));
		n += is[i];
	}
	return n;
}

static struct dp_error *choose(const struct search *s, struct dp_container_word *ret)
{
	char list[512];
	dp_auto_free bool *is = calloc(s->n + 1, sizeof(*is));
	size_t n = 0;
	if (!is)
		return dp_error_nomem();
	for (unsigned way = 0; way < 3 && !n; way++)
		n = mark(s, way, is);
	put_list(s, n ? is : NULL, list, sizeof(list));
	if (!s->n)
		return dp_error(DP_TAG_NO_PROCESS, "no container runs here: no process has one in /proc/PID/cgroup");
	if (!n)
		return dp_error(DP_TAG_NO_PROCESS, "no container has the name '%s' or an ID that begins with it; these run: %s",
		                s->wanted, list);
	if (n > 1)
		return dp_error(DP_TAG_USAGE, "several containers are called '%s': %s; give more of the ID", s->wanted, list);
	for (size_t i = 0; i < s->n; i++)
		if (is[i])
			*ret = s->found[i];
	return NULL;
}

struct dp_error *dp_container_find(const char *wanted, struct dp_pid_list *ret)
{
	struct dp_container_word word;
	struct search s = {.wanted = wanted, .found = calloc(CONTAINERS, sizeof(*s.found))};
	*ret = (struct dp_pid_list){0};
	if (!s.found)
		return dp_error_nomem();
	struct dp_error *err =
	        *wanted ? each_process(note_process, &s, NULL) : dp_error(DP_TAG_USAGE, "--container needs an ID or a name");
	if (!err)
		err = choose(&s, &word);
	if (!err)
		err = each_process(is_inside, &word, ret);
	if (!err && !ret->n)
		err = dp_error(DP_TAG_NO_PROCESS, "the container '%s' has no processes any more", wanted);
	free(s.found);
	return err;
}

/* ---- users -------------------------------------------------------------------------------------------------------------- */

/* The effective user, as with ps -u; threads of the kernel run no program. */
static bool is_of_user(pid_t pid, void *data)
{
	struct dp_buf status;
	struct dp_task_stat stat;
	long real, effective = -1;
	dp_buf_init(&status);
	const char *ids = dp_proc_slurp(&status, "/proc/%d/status", pid) ? dp_status_find(dp_buf_str(&status), "Uid") : NULL;
	const bool known = ids && sscanf(ids, "%ld %ld", &real, &effective) == 2;
	dp_buf_fini(&status);
	return known && effective == *(const long *)data && dp_proc_stat(pid, 0, &stat) && !(stat.flags & DP_PF_KTHREAD) &&
	       stat.state != 'Z' && stat.state != 'X';
}

static struct dp_error *number_of(const char *user, long *ret)
{
	char *end;
	errno = 0;
	const struct passwd *entry = getpwnam(user);
	*ret = entry ? (long)entry->pw_uid : strtol(user, &end, 10);
	if (entry || (*user >= '0' && *user <= '9' && !*end && !errno && *ret <= UINT32_MAX))
		return NULL;
	return dp_error(DP_TAG_USAGE, "there is no user '%s'", user);
}

struct dp_error *dp_user_find(const char *user, struct dp_pid_list *ret)
{
	long uid;
	*ret = (struct dp_pid_list){0};
	DP_TRY(number_of(user, &uid));
	DP_TRY(each_process(is_of_user, &uid, ret));
	return ret->n ? NULL : dp_error(DP_TAG_NO_PROCESS, "no process runs as user '%s'", user);
}
