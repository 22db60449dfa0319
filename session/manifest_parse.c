/* SPDX-License-Identifier: MIT */
/* Reads a manifest back. The target may have written the text: everything is checked. */
#include "session/names.h"
#include "session/trace_spec.h"
#include "session/manifest.h"
#include "injector/injector.h"
#include "probes/expr/scope/scope.h"
#include "probes/expr/syntax/printf_form.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, CONTEXTS_MAX = 256, TEXT_MAX = 4096 };

static struct dp_error *damaged(const char *what)
{
	return dp_error(DP_TAG_MANIFEST, "the description of the resident probes in the process is damaged: %s", what);
}

static struct dp_error *refused(struct dp_error *why, const char *what)
{
	struct dp_error *err = damaged(what);
	err->cause = why;
	return err;
}

/* A copy of a member's text; *ret stays NULL if an optional one is missing. */
static struct dp_error *read_text(const json_t *object, const char *key, bool optional, char **ret)
{
	const json_t *value = json_object_get(object, key);
	if (!value && optional)
		return NULL;
	if (!json_is_string(value) || json_string_length(value) == 0 || json_string_length(value) > TEXT_MAX)
		return damaged(key);
	*ret = strdup(json_string_value(value));
	return *ret ? NULL : dp_error_nomem();
}

static struct dp_error *read_contexts(const json_t *array, struct dp_manifest_probe *p)
{
	const size_t n = json_array_size(array);
	if (!json_is_array(array) || n > CONTEXTS_MAX)
		return damaged("contexts");
	p->typed.context = calloc(n + 1, sizeof(*p->typed.context));
	if (!p->typed.context)
		return dp_error_nomem();
	for (size_t i = 0; i < n; i++) {
		const json_t *value = json_array_get(array, i);
		if (!json_is_string(value) || json_string_length(value) > TEXT_MAX)
			return damaged("contexts");
		if (!(p->typed.context[i] = strdup(json_string_value(value))))
			return dp_error_nomem();
		p->typed.ncontexts++;
		struct dp_error *err = dp_context_check(p->typed.context[i]);
		if (err)
			return refused(err, "contexts");
	}
	return NULL;
}

static struct dp_error *read_address(const json_t *object, const char *key, uint64_t *ret)
{
	dp_auto_free char *text = NULL;
	char *end;
	DP_TRY(read_text(object, key, true, &text));
	if (!text)
		return NULL;
	errno = 0;
	*ret = strtoull(text, &end, 16);
	return errno || *end || strncmp(text, "0x", 2) ? damaged(key) : NULL;
}

/* The command line would have refused such texts, so dynprobe did not write them. */
static struct dp_error *check_probe(const struct dp_manifest_probe *p)
{
	struct dp_spec spec = {0};
	if (!dp_name_valid(p->name))
		return damaged("name");
	struct dp_error *err = dp_spec_parse(p->spec, &spec);
	if (err)
		return refused(err, "spec");
	dp_spec_fini(&spec);
	err = p->typed.when ? dp_scope_check(p->typed.when) : NULL;
	return err ? refused(err, "when") : NULL;
}

/* A format's arguments are the first contexts. */
static struct dp_error *read_format(const json_t *object, struct dp_manifest_probe *p)
{
	dp_auto_free char *text = NULL;
	DP_TRY(read_text(object, "format", true, &text));
	struct dp_error *err = text ? dp_printf_parse(text, &p->typed.form) : NULL;
	if (err)
		return refused(err, "format");
	for (size_t i = 0; text && i < p->typed.form->n; i++)
		if (i >= p->typed.ncontexts || strcmp(p->typed.form->arg[i], p->typed.context[i]))
			return damaged("format");
	return NULL;
}

static struct dp_error *read_probe(const json_t *object, struct dp_manifest_probe *p)
{
	const json_t *entry = json_object_get(object, "entry");
	if (!json_is_object(object) || !json_is_boolean(entry))
		return damaged("entry");
	p->entry = json_is_true(entry);
	p->leaves = json_is_true(json_object_get(object, "return"));
	DP_TRY(read_text(object, "name", false, &p->name));
	DP_TRY(read_text(object, "spec", false, &p->spec));
	DP_TRY(read_text(object, "when", true, &p->typed.when));
	DP_TRY(read_text(object, "inlined", true, &p->typed.inlined));
	DP_TRY(read_contexts(json_object_get(object, "contexts"), p));
	DP_TRY(read_format(object, p));
	DP_TRY(read_address(object, "event", &p->event));
	DP_TRY(read_address(object, "site", &p->site));
	return check_probe(p);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Two events with one name would make a trace unreadable. */
static struct dp_error *check_unique(const struct dp_manifest *m)
{
	dp_auto_free char **names = calloc(m->n + 1, sizeof(*names));
	if (!names)
		return dp_error_nomem();
	for (size_t i = 0; i < m->n; i++)
		names[i] = m->probe[i].name;
	qsort(names, m->n, sizeof(*names), by_name);
	for (size_t i = 1; i < m->n; i++)
		if (!strcmp(names[i - 1], names[i]))
			return damaged("two probes have the same name");
	return NULL;
}

static struct dp_error *read_sink(const json_t *root, struct dp_manifest *m)
{
	dp_auto_free char *sink = NULL;
	DP_TRY(read_text(root, "sink", false, &sink));
	m->lttng = !strcmp(sink, "lttng");
	if (!m->lttng && strcmp(sink, "ring"))
		return damaged("sink");
	DP_TRY(read_text(root, "session", true, &m->session));
	return read_text(root, "filter", true, &m->filter);
}

static struct dp_error *read_all(const json_t *root, struct dp_manifest *m)
{
	const json_t *version = json_object_get(root, "dynprobe"), *probes = json_object_get(root, "probes");
	const size_t n = json_array_size(probes);
	if (!json_is_integer(version))
		return damaged("it has no version");
	if (json_integer_value(version) != VERSION)
		return dp_error(DP_TAG_MANIFEST, "another version of dynprobe left these probes: use that version");
	DP_TRY(read_sink(root, m));
	if (!json_is_array(probes) || !n || n > DP_MANIFEST_PROBES)
		return damaged("probes");
	m->probe = calloc(n, sizeof(*m->probe));
	if (!m->probe)
		return dp_error_nomem();
	while (m->n < n) {
		m->n++;
		DP_TRY(read_probe(json_array_get(probes, m->n - 1), &m->probe[m->n - 1]));
	}
	return check_unique(m);
}

struct dp_error *dp_manifest_parse(const char *text, struct dp_manifest *ret)
{
	struct dp_manifest m = {0};
	const size_t len = strnlen(text, DP_MANIFEST_MAX);
	if (len == DP_MANIFEST_MAX)
		return damaged("it has no end");
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	if (!root)
		return damaged("it is not JSON");
	struct dp_error *err = read_all(root, &m);
	json_decref(root);
	if (err)
		dp_manifest_fini(&m);
	else
		*ret = m;
	return err;
}
