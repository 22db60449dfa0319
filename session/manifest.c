/* SPDX-License-Identifier: MIT */
#include "session/manifest.h"

#include "session/trace_spec.h"
#include "injector/injector.h"
#include "probes/expr/syntax/printf_form.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

/* ---- from a trace_spec ------------------------------------------------------------------------------------------------ */

static struct dp_error *copy_probe(const struct dp_trace_spec *trace, size_t i, struct dp_manifest_probe *ret)
{
	ret->name = strdup(trace->probe[i].name);
	ret->spec = strdup(trace->probe[i].spec.text);
	ret->entry = trace->probe[i].entry;
	ret->leaves = trace->probe[i].leaves;
	if (!ret->name || !ret->spec || !dp_typed_copy(&trace->typed[i], &ret->typed))
		return dp_error_nomem();
	return NULL;
}

struct dp_error *dp_manifest_of(const struct dp_trace_spec *trace, bool lttng, const char *session, struct dp_manifest *ret)
{
	struct dp_manifest m = {.lttng = lttng, .session = session ? strdup(session) : NULL};
	struct dp_error *err = NULL;
	m.probe = calloc(trace->nprobes + 1, sizeof(*m.probe));
	if (trace->filter)
		m.filter = strdup(trace->filter);
	if (!m.probe || (session && !m.session) || (trace->filter && !m.filter))
		err = dp_error_nomem();
	for (; !err && m.n < trace->nprobes; m.n++)
		err = copy_probe(trace, m.n, &m.probe[m.n]);
	if (err)
		dp_manifest_fini(&m);
	else
		*ret = m;
	return err;
}

void dp_manifest_fini(struct dp_manifest *m)
{
	for (size_t i = 0; i < m->n; i++) {
		struct dp_manifest_probe *p = &m->probe[i];
		free(p->name);
		free(p->spec);
		dp_typed_fini(&p->typed);
	}
	free(m->probe);
	free(m->session);
	free(m->filter);
	*m = (struct dp_manifest){0};
}

/* ---- to text ------------------------------------------------------------------------------------------------------- */

static json_t *typed_json(const struct dp_typed *t)
{
	json_t *contexts = json_array();
	for (size_t i = 0; i < t->ncontexts; i++)
		if (json_array_append_new(contexts, json_string(t->context[i]))) {
			json_decref(contexts);
			return NULL;
		}
	return contexts;
}

/* 64-bit numbers are written as strings: a JSON reader may use doubles. */
static json_t *probe_json(const struct dp_manifest_probe *p)
{
	char event[24], site[24];
	snprintf(event, sizeof(event), "0x%" PRIx64, p->event);
	snprintf(site, sizeof(site), "0x%" PRIx64, p->site);
	return json_pack("{s:s, s:s, s:b, s:b, s:s*, s:o, s:s*, s:s*, s:s*, s:s*}", "name", p->name, "spec", p->spec, "entry",
	                 p->entry, "return", p->leaves, "site", p->site ? site : NULL, "contexts", typed_json(&p->typed), "when",
	                 p->typed.when, "event", p->event ? event : NULL, "inlined", p->typed.inlined, "format",
	                 p->typed.form ? p->typed.form->text : NULL);
}

static json_t *manifest_json(const struct dp_manifest *m)
{
	json_t *probes = json_array();
	for (size_t i = 0; i < m->n; i++)
		if (json_array_append_new(probes, probe_json(&m->probe[i]))) {
			json_decref(probes);
			return NULL;
		}
	return json_pack("{s:i, s:s, s:s*, s:s*, s:o}", "dynprobe", VERSION, "sink", m->lttng ? "lttng" : "ring", "session",
	                 m->session, "filter", m->filter, "probes", probes);
}

struct dp_error *dp_manifest_write(const struct dp_manifest *m, char **ret)
{
	if (m->n > DP_MANIFEST_PROBES)
		return dp_error(DP_TAG_USAGE,
		                "%zu probes are too many for one attach, which takes at most %u: use several commands", m->n,
		                DP_MANIFEST_PROBES);
	json_t *json = manifest_json(m);
	dp_auto_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	if (!text)
		return dp_error(DP_TAG_USAGE, "cannot describe the resident probes: their text is not UTF-8");
	if (strlen(text) >= DP_MANIFEST_MAX)
		return dp_error(DP_TAG_USAGE,
		                "%zu probes are too many for one attach: their description has %zu bytes, and at most %u fit; "
		                "use several "
		                "commands",
		                m->n, strlen(text) + 1, DP_MANIFEST_MAX);
	*ret = dp_take(text, NULL);
	return NULL;
}
