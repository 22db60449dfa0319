/* SPDX-License-Identifier: MIT */
#include "session/recording/recording.h"

#include "injector/tracee/tracee.h"

#include <stdlib.h>

static struct dp_error *nothing(const struct dp_residents *left)
{
	const pid_t pid = dp_residents_pid(left);
	for (size_t k = 0; k < left->n; k++)
		if (left->group[k].damaged)
			return dp_error(DP_TAG_MANIFEST, "nothing to record in %d: %s", pid, left->group[k].damaged->message);
	if (left->n)
		return dp_error(DP_TAG_NO_PROBE,
		                "the probes in %d emit through LTTng: its sessions have the events, see lttng list", pid);
	return dp_error(DP_TAG_NO_PROBE, "no resident probes in %d (%s)", pid, dp_residents_comm(left));
}

static void group_fini(struct dp_recording_group *g)
{
	free(g->class);
	free(g->recorded);
	free(g->damaged);
}

static struct dp_error *fill_group(struct dp_recording *r, struct dp_recording_group *g)
{
	const size_t n = g->left->manifest.n;
	g->class = calloc(n, sizeof(*g->class));
	g->recorded = calloc(n, sizeof(*g->recorded));
	g->damaged = calloc(n, sizeof(*g->damaged));
	if (!g->class || !g->recorded || !g->damaged)
		return dp_error_nomem();
	for (size_t i = 0; i < n; i++)
		DP_TRY(dp_recording_classify(r, g, i));
	return NULL;
}

static struct dp_error *add_groups(struct dp_recording *r, struct dp_residents *left)
{
	const size_t before = r->ngroups;
	for (size_t k = 0; k < left->n; k++) {
		struct dp_residents_group *from = &left->group[k];
		if (from->manifest.lttng || !from->manifest.n)
			continue;
		struct dp_recording_group *grown = realloc(r->group, (r->ngroups + 1) * sizeof(*grown));
		if (!grown)
			return dp_error_nomem();
		r->group = grown;
		grown[r->ngroups] = (struct dp_recording_group){.left = from, .process = r->nprocesses - 1};
		DP_TRY(fill_group(r, &grown[r->ngroups++]));
	}
	return r->ngroups > before ? NULL : nothing(left);
}

struct dp_error *dp_recording_add(struct dp_recording *r, struct dp_residents *left)
{
	const size_t groups = r->ngroups, classes = r->classes.nprobes;
	struct dp_recording_process *grown = realloc(r->process, (r->nprocesses + 1) * sizeof(*grown));
	if (!grown)
		return dp_error_nomem();
	r->process = grown;
	r->process[r->nprocesses++] = (struct dp_recording_process){.left = left};
	struct dp_error *err = add_groups(r, left);
	if (!err)
		return NULL;
	while (r->ngroups > groups)
		group_fini(&r->group[--r->ngroups]);
	dp_recording_declassify(r, classes, --r->nprocesses);
	return err;
}

void dp_recording_fini(struct dp_recording *r)
{
	for (size_t i = 0; i < r->ngroups; i++)
		group_fini(&r->group[i]);
	for (size_t i = 0; i < r->nprocesses; i++)
		dp_error_destroy(r->process[i].failed);
	dp_recording_declassify(r, 0, 0);
	free(r->classes.probe);
	free(r->classes.typed);
	free(r->class);
	free(r->process);
	free(r->group);
	dp_buf_fini(&r->hits);
	dp_buf_fini(&r->payloads);
	dp_thread_names_fini(&r->threads);
	*r = (struct dp_recording){0};
}

/* The first error of a process that still lives. */
struct dp_error *dp_recording_release(struct dp_recording *r)
{
	struct dp_error *first = NULL;
	for (size_t k = 0; k < r->ngroups; k++) {
		struct dp_recording_group *g = &r->group[k];
		struct dp_error *err = g->served ? dp_resident_release(g->left->resident) : NULL;
		g->served = false;
		if (first || dp_residents_have_ended(r->process[g->process].left))
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
		struct dp_recording_process *p = &r->process[r->group[k].process];
		struct dp_resident *resident = p->ended_by ? NULL : r->group[k].left->resident;
		struct dp_error *err = resident ? dp_resident_serve(resident) : NULL;
		if (err && r->nprocesses == 1)
			return err;
		r->group[k].served = !err && resident;
		if (err)
			dp_recording_end(p, err);
	}
	return NULL;
}
