/* SPDX-License-Identifier: MIT */
#include "cli/keep.h"

#include "cli/lttng_run.h"
#include "cli/manifest.h"
#include "output/lttng.h"

#include <stdlib.h>
#include <string.h>

/* A group whose manifest was damaged by its own process has no names; it is left to `detach`. */
static void search(struct dp_standing *standing, const char *name, struct dp_found *ret)
{
	struct dp_manifest m = {0};
	struct dp_error *err = dp_manifest_parse(dp_standing_manifest(standing), &m);
	for (unsigned i = 0; !err && i < m.n && i < dp_standing_nprobes(standing); i++)
		if (!strcmp(m.probe[i].name, name) && dp_standing_site(standing, i))
			*ret = (struct dp_found){standing, i, m.probe[i].event};
	dp_manifest_fini(&m);
	dp_error_destroy(err);
}

static struct dp_found find(struct dp_target *t, const char *name)
{
	struct dp_found f = {0};
	for (size_t i = 0; i < dp_target_nstanding(t) && !f.standing; i++)
		search(dp_target_standing(t, i), name, &f);
	return f;
}

static struct dp_error *announce_one(const struct dp_run *run, struct dp_session *s)
{
	const struct dp_options *o = run->options;
	for (size_t i = 0; i < o->nprobes; i++) {
		const struct dp_found f = find(s->target, o->probe[i].name);
		if (run->supersedes && !f.standing)
			return dp_error(DP_TAG_NO_PROBE, "no probe '%s' was left in %d (%s)", run->supersedes,
			                dp_target_pid(s->target), dp_target_comm(s->target));
		if (run->supersedes) {
			DP_TRY(dp_standing_supersede(f.standing, f.probe));
			s->old = f;
		} else if (f.standing) {
			return dp_error(DP_TAG_STANDING,
			                "a probe '%s' stands in %d (%s) already; choose another --name, or remove it first",
			                o->probe[i].name, dp_target_pid(s->target), dp_target_comm(s->target));
		}
	}
	return NULL;
}

struct dp_error *dp_keep_announce(struct dp_run *run)
{
	for (size_t i = 0; i < run->nsessions; i++)
		DP_TRY(announce_one(run, run->session[i]));
	return NULL;
}

/* The old probe stands no longer: its event may be used again, and its group goes when nothing else of it stands. */
static struct dp_error *clear_superseded(struct dp_session *s)
{
	const struct dp_found *f = &s->old;
	dp_auto_free bool *remove = calloc(dp_standing_nprobes(f->standing) + 1u, sizeof(*remove));
	struct dp_remove_report report = {0};
	if (f->event && s->lttng)
		dp_error_destroy(dp_target_sink_park(s->target, &f->event, 1));
	if (!remove)
		return dp_error(DP_TAG_NOMEM, "out of memory for the probe that was replaced");
	remove[f->probe] = true;
	return dp_standing_remove(f->standing, remove, &report);
}

static struct dp_error *write_manifest(const struct dp_run *run, const struct dp_session *s, char **ret)
{
	struct dp_manifest m = {0};
	DP_TRY(dp_manifest_of(run->options, s->lttng, run->lttng ? dp_lttng_session(run->lttng) : NULL, &m));
	for (size_t i = 0; s->classes && i < m.n; i++)
		m.probe[i].event = s->classes[i].event;
	struct dp_error *err = dp_manifest_write(&m, ret);
	dp_manifest_fini(&m);
	return err;
}

static void say_kept(const struct dp_session *s)
{
	const pid_t pid = dp_target_pid(s->target);
	fprintf(stderr,
	        "dynprobe: %zu probe%s left in %d (%s); see dynprobe status --pid %d, remove with dynprobe detach --pid %d\n",
	        dp_session_placed(s), dp_session_placed(s) == 1 ? "" : "s", pid, dp_target_comm(s->target), pid, pid);
}

/* No group is left for a later tool to find empty. */
static void leave_none(struct dp_session *s)
{
	struct dp_error *err = dp_session_remove(s);
	fprintf(stderr, "dynprobe: none of the probes could be placed in %d (%s): none was left there\n",
	        dp_target_pid(s->target), dp_target_comm(s->target));
	dp_error_print(err, stderr);
	dp_error_destroy(err);
}

struct dp_error *dp_keep(struct dp_run *run, struct dp_session *s)
{
	dp_auto_free char *manifest = NULL;
	if (!dp_session_placed(s)) {
		leave_none(s);
		return NULL;
	}
	DP_TRY(write_manifest(run, s, &manifest));
	DP_TRY(dp_session_keep(s, manifest));
	run->kept = true;
	say_kept(s);
	return s->old.standing ? clear_superseded(s) : NULL;
}
