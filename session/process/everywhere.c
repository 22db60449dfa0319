/* SPDX-License-Identifier: MIT */
#include "session/process/everywhere.h"

#include "injector/tracee/proc/mappers.h"
#include "injector/tracee/proc/proc.h"
#include "injector/tracee/tracee.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LOOK_NS  UINT64_C(1000000000) /* between two looks */
#define HURRY_NS UINT64_C(200000000)
#define FILES    256u

struct seen {
	pid_t pid;
	uint64_t start_time, memory; /* a process that maps another file has more memory */
	uint64_t digest;             /* of the files that it maps */
	bool found, denied;
};

struct dp_everywhere {
	struct dp_mapper_search search;
	const char **module;
	bool any;
	struct seen *seen, *next; /* as of the last look, in the order of /proc; of the look that is being made */
	size_t nseen, nnext, capacity, at;
	pid_t *pid;
	size_t npids;
	bool fresh, failed;
	char **file;
	size_t nfiles;
	uint64_t looked_ns, hurry_ns;
};

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static bool has_file(const struct dp_everywhere *e, const struct stat *st)
{
	struct stat own;
	for (size_t i = 0; i < e->nfiles; i++)
		if (!stat(e->file[i], &own) && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
			return true;
	return false;
}

/* Without memory, or beyond FILES, a file is not watched: who maps it is found by looking. */
static void add_file(const char *path, void *data)
{
	struct dp_everywhere *e = data;
	struct stat st;
	if (e->nfiles == FILES || stat(path, &st) || !S_ISREG(st.st_mode) || has_file(e, &st))
		return;
	if (!e->file)
		e->file = calloc(FILES, sizeof(*e->file));
	char *own = e->file ? strdup(path) : NULL;
	if (own)
		e->file[e->nfiles++] = own;
}

static void add_matches(struct dp_everywhere *e, const char *folder, size_t length, const char *name, const char *more)
{
	char pattern[1024];
	glob_t g = {0};
	if ((size_t)snprintf(pattern, sizeof(pattern), "%.*s/%s%s", (int)length, folder, name, more) >= sizeof(pattern) ||
	    glob(pattern, 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		add_file(g.gl_pathv[i], e);
	globfree(&g);
}

/* A name is looked up where loaders do, also as the beginning of a soname (libssl.so). */
static void add_usual(struct dp_everywhere *e, const char *name, const char *folders)
{
	for (; *folders; folders += *folders == ':') {
		const size_t n = strcspn(folders, ":");
		if (n)
			add_matches(e, folders, n, name, "");
		if (n && strstr(name, ".so"))
			add_matches(e, folders, n, name, ".*");
		folders += n;
	}
}

static void find_files(struct dp_everywhere *e)
{
	const char *own = getenv("LD_LIBRARY_PATH");
	for (size_t i = 0; i < e->search.n; i++) {
		const char *module = e->module[i];
		if (strchr(module, '/')) {
			add_usual(e, module + (*module == '/'), "/:");
			continue;
		}
		add_usual(e, module, own ? own : "");
		add_usual(e, module,
		          "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/usr/local/lib/x86_64-linux-gnu:/lib64:/usr/lib64:"
		          "/usr/local/lib64:/lib:/usr/lib:/usr/local/lib");
	}
}

/* ---- processes ------------------------------------------------------------------------------------------------------------- */

/* a.out is any executable. */
static void take_module(struct dp_everywhere *e, const struct dp_probe *p)
{
	const char *module = p->spec.module;
	if (!module || !strcmp(module, "a.out") || !strcmp(module, "*"))
		e->any = true;
	for (size_t i = 0; module && i < e->search.n; i++)
		if (!strcmp(e->module[i], module))
			return;
	if (module)
		e->module[e->search.n++] = module;
}

struct dp_error *dp_everywhere_create(const struct dp_trace_spec *trace, struct dp_everywhere **ret)
{
	struct dp_everywhere *e = calloc(1, sizeof(*e));
	if (!e || !(e->module = calloc(trace->nprobes + 1, sizeof(*e->module)))) {
		free(e);
		return dp_error_nomem();
	}
	for (size_t i = 0; i < trace->nprobes; i++)
		take_module(e, &trace->probe[i]);
	e->search.module = e->module;
	e->search.file = add_file;
	e->search.data = e;
	if (e->any)
		e->search.n = 0;
	find_files(e);
	*ret = e;
	return NULL;
}

struct dp_everywhere *dp_everywhere_destroy(struct dp_everywhere *e)
{
	if (!e)
		return NULL;
	for (size_t i = 0; i < e->nfiles; i++)
		free(e->file[i]);
	free(e->file);
	free(e->module);
	free(e->seen);
	free(e->next);
	free(e->pid);
	free(e);
	return NULL;
}

bool dp_everywhere_is_any(const struct dp_everywhere *e)
{
	return e->any;
}

static struct seen *add_next(struct dp_everywhere *e)
{
	if (e->nnext == e->capacity) {
		const size_t capacity = e->capacity ? 2 * e->capacity : 256;
		struct seen *grown = realloc(e->next, capacity * sizeof(*grown));
		if (!grown)
			return NULL;
		e->next = grown;
		e->capacity = capacity;
	}
	return &e->next[e->nnext++];
}

/* /proc lists the processes in ascending order, so the search goes on where the last one ended. */
static const struct seen *known(struct dp_everywhere *e, pid_t pid)
{
	while (e->at < e->nseen && e->seen[e->at].pid < pid)
		e->at++;
	return e->at < e->nseen && e->seen[e->at].pid == pid ? &e->seen[e->at] : NULL;
}

static bool has_found(struct dp_everywhere *e, pid_t pid)
{
	pid_t *grown = realloc(e->pid, (e->npids + 1) * sizeof(*grown));
	if (!grown)
		return false;
	e->pid = grown;
	e->pid[e->npids++] = pid;
	return true;
}

/* A process that maps the module is found for good. If any may have the place, it is found again when it maps other files. */
static void judge(struct dp_everywhere *e, struct seen *s, const struct seen *before)
{
	e->search.digest = e->any ? &s->digest : NULL;
	const enum dp_mapper is = dp_mapper_of(s->pid, &e->search);
	s->denied = is == DP_MAPPER_DENIED;
	if (is == DP_MAPPER_DATA) /* its code comes without more memory: the loader maps it over what is there */
		s->memory = 0;
	if (is != DP_MAPPER_YES || (e->any && before && before->digest == s->digest))
		return;
	s->found = dp_mapper_is_tool(s->pid) || (e->fresh && dp_mapper_has_ours(s->pid));
	if (s->found)
		return;
	e->failed |= !has_found(e, s->pid);
	s->found = !e->any;
}

static bool on_process(pid_t pid, void *data)
{
	struct dp_everywhere *e = data;
	struct dp_task_stat stat;
	if (!dp_proc_stat(pid, 0, &stat) || stat.flags & DP_PF_KTHREAD)
		return true;
	const struct seen *before = known(e, pid);
	struct seen *s = add_next(e);
	if (!s)
		return !(e->failed = true);
	*s = (struct seen){.pid = pid, .start_time = stat.start_time, .memory = stat.memory};
	const bool same = before && before->start_time == s->start_time;
	if (same)
		s->found = before->found;
	if (same && (before->found || before->memory == s->memory)) {
		s->denied = before->denied;
		s->digest = before->digest;
	} else {
		judge(e, s, same ? before : NULL);
	}
	return !e->failed;
}

struct dp_error *dp_everywhere_look(struct dp_everywhere *e, bool fresh, const pid_t **pid, size_t *n)
{
	e->nnext = e->npids = e->at = 0;
	e->fresh = fresh;
	e->failed = false;
	if (!dp_proc_each(on_process, e))
		return dp_error_sys(DP_TAG_SYS, "opening /proc");
	free(e->seen);
	e->seen = dp_take(e->next, NULL);
	e->nseen = e->nnext;
	e->capacity = 0;
	e->looked_ns = dp_now_ns();
	*pid = e->pid;
	*n = e->npids;
	return e->failed ? dp_error_nomem() : NULL;
}

bool dp_everywhere_is_due(const struct dp_everywhere *e)
{
	const uint64_t now = dp_now_ns();
	return now < e->hurry_ns || now - e->looked_ns >= LOOK_NS;
}

void dp_everywhere_hurry(struct dp_everywhere *e)
{
	e->hurry_ns = dp_now_ns() + HURRY_NS;
}

/* Where the process is, or would be. */
static size_t place_of(const struct dp_everywhere *e, pid_t pid)
{
	size_t i = 0;
	while (i < e->nseen && e->seen[i].pid < pid)
		i++;
	return i;
}

void dp_everywhere_know(struct dp_everywhere *e, pid_t pid)
{
	struct dp_task_stat stat;
	const size_t i = place_of(e, pid);
	if (!dp_proc_stat(pid, 0, &stat))
		return;
	if (i == e->nseen || e->seen[i].pid != pid) {
		struct seen *grown = realloc(e->seen, (e->nseen + 1) * sizeof(*grown));
		if (!grown)
			return; /* then it is found once more */
		e->seen = grown;
		memmove(&grown[i + 1], &grown[i], (e->nseen++ - i) * sizeof(*grown));
	}
	e->seen[i] = (struct seen){.pid = pid, .start_time = stat.start_time, .found = true};
}

void dp_everywhere_forget(struct dp_everywhere *e, pid_t pid)
{
	const size_t i = place_of(e, pid);
	if (i < e->nseen && e->seen[i].pid == pid)
		e->seen[i] = (struct seen){.pid = pid};
}

const char *const *dp_everywhere_files(const struct dp_everywhere *e, size_t *n)
{
	*n = e->nfiles;
	return (const char *const *)e->file;
}

unsigned dp_everywhere_denied(const struct dp_everywhere *e)
{
	unsigned n = 0;
	for (size_t i = 0; i < e->nseen; i++)
		n += e->seen[i].denied;
	return n;
}
