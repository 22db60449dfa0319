/* SPDX-License-Identifier: MIT */
#include "session/recording/recording.h"

#include "injector/tracee/tracee.h"
#include "session/process/session_scope.h"

#include <stdlib.h>
#include <string.h>

static bool taken(const struct dp_trace_spec *classes, const char *name)
{
	for (size_t i = 0; i < classes->nprobes; i++)
		if (!strcmp(classes->probe[i].name, name))
			return true;
	return false;
}

/* A replaced probe has the name of its successor, and may still have records. */
static char *unique_name(const struct dp_trace_spec *classes, const char *base)
{
	char *name = strdup(base);
	for (unsigned k = 2; name && taken(classes, name); k++) {
		free(name);
		if (asprintf(&name, "%s_%u", base, k) < 0)
			return NULL;
	}
	return name;
}

static struct dp_error *add_class(struct dp_trace_spec *classes, struct dp_image *image, const struct dp_manifest_probe *from)
{
	struct dp_probe *p = &classes->probe[classes->nprobes];
	classes->typed[classes->nprobes].form = from->typed.form; /* the manifest's */
	p->name = unique_name(classes, from->name);
	classes->nprobes++;
	if (!p->name)
		return dp_error_nomem();
	DP_TRY(dp_scope_typed(image, from->site,
	                      from->leaves  ? DP_POINT_RETURN
	                      : from->entry ? DP_POINT_ENTRY
	                                    : DP_POINT_PLACE,
	                      &from->typed, &p->fields));
	return dp_spec_parse(from->spec, &p->spec);
}

static struct dp_error *add_group(struct dp_recording *r, struct dp_residents_group *g)
{
	r->group[r->ngroups++] = (struct dp_recording_group){.left = g, .first = r->classes.nprobes};
	for (size_t i = 0; i < g->manifest.n; i++)
		DP_TRY(add_class(&r->classes, dp_target_image(r->left->target), &g->manifest.probe[i]));
	return NULL;
}

static struct dp_error *nothing(const struct dp_residents *left)
{
	const pid_t pid = dp_target_pid(left->target);
	for (size_t k = 0; k < left->n; k++)
		if (left->group[k].damaged)
			return dp_error(DP_TAG_MANIFEST, "nothing to record in %d: %s", pid, left->group[k].damaged->message);
	if (left->n)
		return dp_error(DP_TAG_NO_PROBE,
		                "the probes in %d emit through LTTng: its sessions have the events, see lttng list", pid);
	return dp_error(DP_TAG_NO_PROBE, "no resident probes in %d (%s)", pid, dp_target_comm(left->target));
}

static struct dp_error *open_groups(struct dp_recording *r)
{
	size_t nprobes = 0;
	for (size_t k = 0; k < r->left->n; k++)
		nprobes += r->left->group[k].manifest.n;
	r->group = calloc(r->left->n + 1, sizeof(*r->group));
	r->classes.probe = calloc(nprobes + 1, sizeof(*r->classes.probe));
	r->classes.typed = calloc(nprobes + 1, sizeof(*r->classes.typed));
	r->recorded = calloc(nprobes + 1, sizeof(*r->recorded));
	r->damaged = calloc(nprobes + 1, sizeof(*r->damaged));
	if (!r->group || !r->classes.probe || !r->classes.typed || !r->recorded || !r->damaged)
		return dp_error_nomem();
	for (size_t k = 0; k < r->left->n; k++)
		if (!r->left->group[k].manifest.lttng && r->left->group[k].manifest.n)
			DP_TRY(add_group(r, &r->left->group[k]));
	return r->ngroups ? NULL : nothing(r->left);
}

struct dp_error *dp_recording_open(struct dp_residents *left, struct dp_recording *ret)
{
	*ret = (struct dp_recording){.left = left};
	struct dp_error *err = open_groups(ret);
	if (err)
		dp_recording_fini(ret);
	return err;
}

void dp_recording_fini(struct dp_recording *r)
{
	for (size_t i = 0; i < r->classes.nprobes; i++)
		dp_probe_fini(&r->classes.probe[i]);
	free(r->classes.probe);
	free(r->classes.typed);
	free(r->group);
	free(r->recorded);
	free(r->damaged);
	dp_buf_fini(&r->hits);
	dp_buf_fini(&r->payloads);
	*r = (struct dp_recording){0};
}

struct dp_error *dp_recording_release(struct dp_recording *r)
{
	struct dp_error *first = NULL;
	for (size_t k = 0; k < r->ngroups; k++) {
		struct dp_error *err = r->group[k].served ? dp_resident_release(r->group[k].left->resident) : NULL;
		r->group[k].served = false;
		if (first)
			dp_error_destroy(err);
		else
			first = err;
	}
	return first;
}

struct dp_error *dp_recording_serve(struct dp_recording *r)
{
	r->start_ns = dp_now_ns();
	for (size_t k = 0; k < r->ngroups; k++) {
		DP_TRY(dp_resident_serve(r->group[k].left->resident));
		r->group[k].served = true;
	}
	return NULL;
}
