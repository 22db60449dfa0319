/* SPDX-License-Identifier: MIT */
/* Loads modules: finds the file, opens it by its language, runs load. */
#include "pmodules/load/load.h"
#include "base/buf.h"
#include "pmodules/host/host_state.h"
#include "pmodules/lua/lua.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void forget_callbacks(struct pmodule *m)
{
	for (size_t e = 0; e < DP_EVENTS; e++) {
		struct dp_callbacks *c = &m->host->callbacks[e];
		while (c->n && c->at[c->n - 1].module == m)
			pmodule_match_destroy(c->at[--c->n].match);
	}
}

static struct dp_error *open_and_load(struct pmodule *m)
{
	const size_t n = strlen(m->path);
	const bool is_lua = n > 4 && !strcmp(m->path + n - 4, ".lua");
	DP_TRY(is_lua ? dp_lua_open(m) : dp_c_open(m));
	m->is_loading = true;
	struct dp_error *err = m->language->load(m);
	m->is_loading = false;
	if (!err)
		return NULL;
	forget_callbacks(m);
	m->language->close(m);
	return err;
}

/* The directory of dynprobe's own modules: where it is installed, or where it was built. */
static bool own_directory(char *ret, size_t size)
{
	static const char *const places[] = {"../share/dynprobe/pmodules", "../pmodules/scripts"};
	char exe[PATH_MAX] = "";
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash = n > 0 ? strrchr(exe, '/') : NULL;
	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if ((size_t)snprintf(ret, size, "%s/%s", exe, places[i]) < size && !access(ret, R_OK))
			return true;
	return (size_t)snprintf(ret, size, "%s/%s", exe, places[0]) < size;
}

/* The path as given. For a bare name that does not exist: also dynprobe's own modules, with or without ".lua". */
static char *find(const char *path)
{
	char *found = realpath(path, NULL), own[PATH_MAX], try[PATH_MAX + 16 + NAME_MAX];
	if (found || strchr(path, '/') || strlen(path) > NAME_MAX || !own_directory(own, sizeof(own)))
		return found;
	for (int i = 0; i < 2 && !found; i++) {
		snprintf(try, sizeof(try), "%s/%s%s", own, path, i ? ".lua" : "");
		found = realpath(try, NULL);
	}
	if (!found)
		errno = ENOENT;
	return found;
}

/* "deadlock, heap" */
static void list_one(const char *path, const char *name, void *data)
{
	struct dp_buf *names = data;
	(void)path;
	dp_buf_printf(names, "%s%s", names->len ? ", " : "", name);
}

static struct dp_error *not_found(const char *path)
{
	char own[PATH_MAX];
	struct dp_buf names = {0};
	if (strchr(path, '/') || !own_directory(own, sizeof(own)))
		return dp_error_sys(DP_TAG_PMODULE, "cannot open the module %s", path);
	const int why = errno;
	dp_own_modules_each(list_one, &names);
	errno = why;
	struct dp_error *err = dp_error_sys(DP_TAG_PMODULE, "cannot find the module %s, here or in %s%s%s", path, own,
	                                    names.len ? ", which has " : "", names.len ? dp_buf_str(&names) : "");
	dp_buf_fini(&names);
	return err;
}

struct dp_error *dp_host_load(struct dp_host *h, const char *path)
{
	struct pmodule *m = calloc(1, sizeof(*m));
	if (!m)
		return dp_error_nomem();
	m->host = h;
	m->path = find(path);
	if (!m->path) {
		free(m);
		return not_found(path);
	}
	const struct dp_entry entry = dp_module_enter(m);
	struct dp_error *err = open_and_load(m);
	dp_module_leave(m, &entry);
	dp_guard_off();
	if (err) {
		free(m->id);
		free((char *)m->path);
		free(m);
		return err;
	}
	DL_APPEND(h->modules, m);
	h->nmodules++;
	return NULL;
}

static int is_module(const struct dirent *e)
{
	return e->d_name[0] != '.' && (!fnmatch("*.lua", e->d_name, 0) || !fnmatch("*.so", e->d_name, 0));
}

struct dp_error *dp_host_load_dir(struct dp_host *h, const char *path)
{
	struct dirent **names;
	const int n = scandir(path, &names, is_module, alphasort);
	if (n < 0)
		return dp_error_sys(DP_TAG_PMODULE, "cannot read the module directory %s", path);
	for (int i = 0; i < n; i++) {
		char *whole = NULL;
		struct dp_error *err = NULL;
		if (asprintf(&whole, "%s/%s", path, names[i]->d_name) >= 0)
			err = dp_host_load(h, whole);
		if (err)
			dp_host_log(h, DP_LOG_ERROR, NULL, "%s", err->message);
		dp_error_destroy(err);
		free(whole);
		free(names[i]);
	}
	free(names);
	return NULL;
}

struct dp_error *dp_host_load_own(struct dp_host *h)
{
	char own[PATH_MAX];
	return own_directory(own, sizeof(own)) ? dp_host_load_dir(h, own) : NULL;
}

void dp_own_modules_each(void (*each)(const char *path, const char *name, void *data), void *data)
{
	char own[PATH_MAX], path[PATH_MAX + 2 + NAME_MAX];
	struct dirent **names = NULL;
	const int n = own_directory(own, sizeof(own)) ? scandir(own, &names, is_module, alphasort) : 0;
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", own, names[i]->d_name);
		*strrchr(names[i]->d_name, '.') = '\0';
		each(path, names[i]->d_name, data);
		free(names[i]);
	}
	free(names);
}

struct ready {
	struct dp_host *host;
	const char *name;
};

static void load_if_named(const char *path, const char *name, void *data)
{
	const struct ready *r = data;
	struct dp_error *err = !strcmp(name, r->name) ? dp_host_load(r->host, path) : NULL;
	if (err)
		dp_host_log(r->host, DP_LOG_DEBUG, NULL, "%s", err->message);
	dp_error_destroy(err);
}

void dp_host_load_ready(struct dp_host *h, const char *name)
{
	struct pmodule *m;
	DL_FOREACH(h->modules, m)
	if (m->id && !strcmp(m->id, name))
		return;
	dp_own_modules_each(load_if_named, &(struct ready){h, name});
}
