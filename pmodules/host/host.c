/* SPDX-License-Identifier: MIT */
/* The host of pmodules: creation, options, queries, log. */
#include "pmodules/host/host_state.h"

#include "base/sanitize.h"

#include <stdlib.h>
#include <string.h>

static const char *const level_name[] = {"debug", "info", "warning", "error", "print"};

struct dp_error *dp_host_create(const struct dp_host_options *options, struct dp_host **ret)
{
	struct dp_host *h = calloc(1, sizeof(*h));
	if (!h)
		return dp_error_nomem();
	h->options = *options;
	*ret = h;
	return NULL;
}

static void unload(struct pmodule *m)
{
	if (!m->is_broken) {
		const struct dp_entry entry = dp_module_enter(m);
		m->language->unload(m);
		dp_module_leave(m, &entry);
	}
	m->language->close(m);
	free(m->id);
	free((char *)m->path);
	free(m);
}

struct dp_host *dp_host_destroy(struct dp_host *h)
{
	struct pmodule *m, *next;
	struct dp_module_option *o, *later;
	if (!h)
		return NULL;
	dp_host_end(h);
	DL_FOREACH_SAFE(h->modules, m, next)
	unload(m);
	dp_guard_off();
	DL_FOREACH_SAFE(h->module_options, o, later)
	{
		free(o->id);
		free(o->key);
		free(o->value);
		free(o);
	}
	for (size_t e = 0; e < DP_EVENTS; e++) {
		for (size_t i = 0; i < h->callbacks[e].n; i++)
			pmodule_match_destroy(h->callbacks[e].at[i].match);
		free(h->callbacks[e].at);
	}
	dp_arena_fini(&h->scratch);
	free(h);
	return NULL;
}

/* ---- options of modules ------------------------------------------------------------------------------------------------- */

static struct dp_error *keep_option(struct dp_host *h, const char *id, const char *key, const char *value)
{
	struct dp_module_option *o = calloc(1, sizeof(*o));
	if (!o)
		return dp_error_nomem();
	o->id = strdup(id);
	o->key = strdup(key);
	o->value = strdup(value);
	DL_PREPEND(h->module_options, o); /* so that the last value of a key is found first */
	return o->id && o->key && o->value ? NULL : dp_error_nomem();
}

struct dp_error *dp_host_option(struct dp_host *h, const char *text)
{
	const char *colon = strchr(text, ':');
	if (!colon || colon == text || !colon[1])
		return dp_error(DP_TAG_USAGE, "--module=%s: expected ID:KEY,VALUE or ID:KEY,VALUE,KEY,VALUE...", text);
	char *words = strdup(text), *rest = words ? words + (colon - text) : NULL;
	struct dp_error *err = words ? NULL : dp_error_nomem();
	if (rest)
		*rest++ = '\0';
	while (!err && rest) {
		const char *key = strsep(&rest, ","), *value = rest ? strsep(&rest, ",") : "";
		err = *key ? keep_option(h, words, key, value) : dp_error(DP_TAG_USAGE, "--module=%s: a key is empty", text);
	}
	free(words);
	return err;
}

const char *dp_module_option(const struct pmodule *m, const char *key)
{
	struct dp_module_option *o;
	if (!m || !m->id || !key)
		return NULL;
	DL_FOREACH(m->host->module_options, o)
	if (!strcmp(o->id, m->id) && !strcmp(o->key, key))
		return o->value;
	return NULL;
}

/* ---- queries -------------------------------------------------------------------------------------------------------------- */

static const struct pmodule *module_at(const struct dp_host *h, size_t i)
{
	const struct pmodule *m = h->modules;
	while (m && i--)
		m = m->next;
	return m;
}

size_t dp_host_nmodules(const struct dp_host *h)
{
	return h->nmodules;
}

const char *dp_host_module_id(const struct dp_host *h, size_t i)
{
	const struct pmodule *m = module_at(h, i);
	return m ? m->id : NULL;
}

const char *dp_host_module_path(const struct dp_host *h, size_t i)
{
	const struct pmodule *m = module_at(h, i);
	return m ? m->path : NULL;
}

size_t dp_host_callbacks(const struct dp_host *h, size_t module, enum dp_module_event event)
{
	const struct pmodule *m = module_at(h, module);
	return m && event < DP_EVENTS ? m->callbacks[event] : 0;
}

bool dp_host_wants_held(const struct dp_host *h)
{
	const struct pmodule *m;
	DL_FOREACH(h->modules, m)
	{
		const unsigned seen =
		        m->callbacks[DP_EVENT_VARIABLE] + m->callbacks[DP_EVENT_FRAME] + m->callbacks[DP_EVENT_THREAD];
		if (!m->is_broken && (m->callbacks[DP_EVENT_ATTACH] || (seen && !m->is_deferred)))
			return true;
	}
	return false;
}

uint64_t dp_module_memory(const struct pmodule *m)
{
	return m->host->options.memory ? m->host->options.memory : DP_MODULE_MEMORY;
}

const char *const *dp_host_lua_allow(const struct dp_host *h)
{
	return h->options.lua_allow;
}

uint64_t dp_host_generation(const struct dp_host *h)
{
	return h->generation;
}

struct dp_snapshot *dp_host_snapshot(const struct dp_host *h)
{
	return h->snapshot;
}

struct dp_debug_ctx *dp_host_debug_ctx(const struct dp_host *h)
{
	return h->world;
}

enum dp_phase dp_host_phase(const struct dp_host *h)
{
	return h->phase;
}

/* ---- the log ------------------------------------------------------------------------------------------------------------ */

void dp_host_log(struct dp_host *h, enum dp_log_level level, const struct pmodule *m, const char *fmt, ...)
{
	const char *id = m && m->id ? m->id : "dynprobe";
	char *text = NULL;
	va_list args;
	va_start(args, fmt);
	const int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	dp_sanitize(text); /* modules print bytes of the program's memory */
	if (h->options.log)
		h->options.log(level, id, text, h->options.data);
	else if (level >= DP_LOG_WARNING)
		fprintf(stderr, "dynprobe: pmodule %s: %s: %s\n", id, level_name[level], text);
	free(text);
}
