/* SPDX-License-Identifier: MIT */
#include "session/run/run_keep.h"

#include "session/run/lttng_run.h"
#include "session/run/processes.h"
#include "session/manifest.h"
#include "output/lttng/lttng.h"

#include <stdlib.h>
#include <string.h>

/* Reads the manifests of earlier commands. One that the process damaged is taken as empty; `detach` removes its probes. */
static struct dp_error *read_manifests(struct dp_target *t, struct dp_manifest **ret)
{
	const size_t n = dp_target_nresidents(t);
	struct dp_manifest *m = calloc(n + 1, sizeof(*m));
	if (!m)
		return dp_error_nomem();
	for (size_t i = 0; i < n; i++)
		dp_error_destroy(dp_manifest_parse(dp_resident_manifest(dp_target_resident(t, i)), &m[i]));
	*ret = m;
	return NULL;
}

static struct dp_found find(struct dp_target *t, const struct dp_manifest *m, const char *name)
{
	for (size_t k = 0; k < dp_target_nresidents(t); k++) {
		struct dp_resident *resident = dp_target_resident(t, k);
		for (unsigned i = 0; i < m[k].n && i < dp_resident_nprobes(resident); i++)
			if (!strcmp(m[k].probe[i].name, name) && dp_resident_site(resident, i))
				return (struct dp_found){resident, i, m[k].probe[i].event};
	}
	return (struct dp_found){0};
}

static struct dp_error *announce_to(const struct dp_run *run, struct dp_session *s, const struct dp_manifest *m)
{
	const struct dp_trace_spec *trace = run->trace;
	for (size_t i = 0; i < trace->nprobes; i++) {
		const struct dp_found f = find(s->target, m, trace->probe[i].name);
		if (run->supersedes && !f.resident)
			return dp_error(DP_TAG_NO_PROBE, "no probe '%s' was left in %d (%s)", run->supersedes,
			                dp_target_pid(s->target), dp_target_comm(s->target));
		if (run->supersedes) {
			DP_TRY(dp_resident_supersede(f.resident, f.probe));
			s->old = f;
		} else if (f.resident) {
			return dp_error(DP_TAG_STANDING,
			                "probe '%s' is already installed in %d (%s); choose another --name, or remove it first",
			                trace->probe[i].name, dp_target_pid(s->target), dp_target_comm(s->target));
		}
	}
	return NULL;
}

static struct dp_error *announce_one(struct dp_run *run, struct dp_session *s)
{
	struct dp_manifest *m = NULL;
	DP_TRY(read_manifests(s->target, &m));
	struct dp_error *err = announce_to(run, s, m);
	for (size_t i = 0; i < dp_target_nresidents(s->target); i++)
		dp_manifest_fini(&m[i]);
	free(m);
	return err;
}

/* Checks that the manifest will fit, with the longest numbers, before any probe is installed. */
static struct dp_error *check_room(const struct dp_run *run)
{
	struct dp_manifest m = {0};
	dp_auto_free char *text = NULL;
	DP_TRY(dp_manifest_of(run->trace, run->use_lttng, run->lttng ? dp_lttng_session(run->lttng) : NULL, &m));
	for (size_t i = 0; i < m.n; i++) {
		m.probe[i].event = run->use_lttng ? UINT64_MAX : 0;
		m.probe[i].site = UINT64_MAX;
	}
	struct dp_error *err = dp_manifest_write(&m, &text);
	dp_manifest_fini(&m);
	return err;
}

struct dp_error *dp_run_keep_announce(struct dp_run *run)
{
	DP_TRY(check_room(run));
	return dp_run_each(run, announce_one);
}

/* The old probe is not installed any more: the sink may reuse its event, and its group goes with its last probe. */
static struct dp_error *clear_superseded(struct dp_session *s)
{
	const struct dp_found *f = &s->old;
	dp_auto_free bool *remove = calloc(dp_resident_nprobes(f->resident) + 1u, sizeof(*remove));
	struct dp_remove_report report = {0};
	if (f->event && s->lttng)
		dp_error_destroy(dp_target_sink_park(s->target, &f->event, 1));
	if (!remove)
		return dp_error_nomem();
	remove[f->probe] = true;
	return dp_resident_remove(f->resident, remove, &report);
}

static struct dp_error *write_manifest(const struct dp_run *run, const struct dp_session *s, char **ret)
{
	struct dp_manifest m = {0};
	DP_TRY(dp_manifest_of(run->trace, s->lttng, run->lttng ? dp_lttng_session(run->lttng) : NULL, &m));
	for (size_t i = 0; i < m.n; i++) {
		m.probe[i].event = s->classes ? s->classes[i].event : 0;
		m.probe[i].site = s->place[i].addr;
	}
	struct dp_error *err = dp_manifest_write(&m, ret);
	dp_manifest_fini(&m);
	return err;
}

static void log_kept(const struct dp_session *s)
{
	const pid_t pid = dp_target_pid(s->target);
	dp_trace_log(s->trace, DP_LOG_WARNING,
	             "%zu probe%s left in %d (%s); see dynprobe status --pid %d, remove with dynprobe detach --pid %d",
	        dp_session_placed(s), dp_session_placed(s) == 1 ? "" : "s", pid, dp_target_comm(s->target), pid, pid);
}

/* Removes everything: a later command should not find an empty group. */
static void leave_none(struct dp_session *s)
{
	dp_error_destroy(dp_session_remove(s));
	const bool left = dp_session_warn_of_left(s);
	dp_trace_log(s->trace, DP_LOG_WARNING, "none of the probes could be placed in %d (%s)%s", dp_target_pid(s->target),
	             dp_target_comm(s->target), left ? "" : ": nothing was left there");
}

static struct dp_error *keep_one(struct dp_run *run, struct dp_session *s)
{
	dp_auto_free char *manifest = NULL;
	if (!dp_session_placed(s)) {
		leave_none(s);
		return NULL;
	}
	DP_TRY(write_manifest(run, s, &manifest));
	DP_TRY(dp_session_keep(s, manifest));
	run->kept = true;
	log_kept(s);
	return s->old.resident ? clear_superseded(s) : NULL;
}

struct dp_error *dp_run_keep(struct dp_run *run)
{
	return dp_run_each(run, keep_one);
}
