/* SPDX-License-Identifier: MIT */
/* pmodule.h: annotations. */
#include "pmodules/host/host_state.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NOTE_MAX (1u << 20)

/* Is it one complete object with the key "json"? It is later embedded in other JSON, so it must be well-formed. */
static bool is_json(const char *text, size_t n)
{
	json_error_t at;
	struct pmodule *m = dp_module_current();
	json_t *all = json_loadb(text, n, JSON_REJECT_DUPLICATES, &at);
	const bool ok = json_is_object(all) && json_is_object(json_object_get(all, "json"));
	if (!all)
		dp_host_log(m->host, DP_LOG_WARNING, m, "JSON annotation discarded: line %d, column %d: %s", at.line, at.column,
		            at.text);
	else if (!ok)
		dp_host_log(m->host, DP_LOG_WARNING, m, "JSON annotation discarded: it is not an object {\"json\": {...}}");
	json_decref(all);
	return ok;
}

static void discarded(struct dp_host *h, const struct pmodule *m)
{
	char key[128];
	const struct dp_snap_pair *p;
	int64_t n = 0;
	snprintf(key, sizeof(key), "pmodule.%s.discarded", m->id);
	DL_FOREACH(h->snapshot->attributes, p)
	if (!strcmp(p->key, key))
		n = p->number;
	dp_snapshot_adds(h->snapshot, DP_ADDED_ATTRIBUTE, key, m->id);
	dp_snapshot_set_int(h->snapshot, key, n + 1);
}

static bool add_text(struct dp_snap_note **list, enum pmodule_annotation kind, char *text, size_t n)
{
	const struct pmodule *m = dp_module_current();
	struct dp_host *h = m->host;
	if (kind != PAT_JSON && n > NOTE_MAX) {
		text[n = NOTE_MAX] = '\0';
		dp_snapshot_truncated(h->snapshot, "annotations of more than %u bytes", NOTE_MAX);
	}
	if (kind == PAT_JSON && (n > NOTE_MAX || !is_json(text, n))) {
		discarded(h, m);
		return false;
	}
	if (!dp_host_may_add(h, n))
		return false;
	struct dp_snap_note *note = dp_snapshot_note(h->snapshot, list, (enum dp_note_kind)kind, text);
	if (note)
		note->module = dp_snapshot_text(h->snapshot, m->id);
	return note != NULL;
}

static bool annotate(struct dp_snap_note **list, enum pmodule_annotation kind, const char *fmt, va_list args)
{
	char *text = NULL;
	if (!fmt || (unsigned)kind > PAT_JSON)
		return false;
	const int n = vasprintf(&text, fmt, args);
	const bool ok = n >= 0 && add_text(list, kind, text, (size_t)n);
	if (n >= 0)
		free(text);
	return ok;
}

#define ANNOTATE(what, type)                                                                                                     \
	bool pmodule_##what##_annotate(type *p, enum pmodule_annotation kind, const char *fmt, ...)                              \
	{                                                                                                                        \
		va_list args;                                                                                                    \
		if (!dp_api_##what(p))                                                                                           \
			return false;                                                                                            \
		va_start(args, fmt);                                                                                             \
		const bool ok = annotate(&dp_api_##what(p)->notes, kind, fmt, args);                                             \
		va_end(args);                                                                                                    \
		return ok;                                                                                                       \
	}
ANNOTATE(backtrace, ptrace_backtrace_t)
ANNOTATE(thread, ptrace_thread_t)
ANNOTATE(frame, ptrace_frame_t)
ANNOTATE(variable, ptrace_variable_t)
