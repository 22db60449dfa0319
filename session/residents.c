/* SPDX-License-Identifier: MIT */
#include "session/residents.h"

#include "base/buf.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void log_line(const char *line, void *data)
{
	const struct dp_residents *left = data;
	dp_trace_log(left->trace, DP_LOG_DEBUG, "%s", line);
}

/* The injector counts pages of text of one group; the caller is told the same share of all probes. */
static bool on_progress(bool removing, size_t done, size_t of, void *data)
{
	const struct dp_residents *left = data;
	size_t all = 0;
	for (size_t k = 0; k < left->n; k++)
		all += left->group[k].manifest.n;
	if (removing && of)
		dp_trace_progress(left->trace, true, (size_t)((double)all * (double)done / (double)of), all);
	return true;
}

void dp_residents_describe(struct dp_residents_group *g, const char *manifest, unsigned nprobes)
{
	g->damaged = dp_manifest_parse(manifest, &g->manifest);
	if (g->damaged || g->manifest.n == nprobes)
		return;
	g->damaged = dp_error(DP_TAG_MANIFEST, "the process has %u resident probes, but the description of them lists %zu",
	                      nprobes, g->manifest.n);
	dp_manifest_fini(&g->manifest);
}

static struct dp_error *read_groups(struct dp_residents *left)
{
	const size_t n = dp_target_nresidents(left->target);
	left->group = calloc(n + 1, sizeof(*left->group));
	if (!left->group)
		return dp_error_nomem();
	for (left->n = 0; left->n < n; left->n++) {
		struct dp_residents_group *g = &left->group[left->n];
		g->resident = dp_target_resident(left->target, left->n);
		dp_residents_describe(g, dp_resident_manifest(g->resident), dp_resident_nprobes(g->resident));
		g->chosen = calloc(g->manifest.n + 1, sizeof(*g->chosen));
		if (!g->chosen)
			return dp_error_nomem();
	}
	return NULL;
}

struct dp_error *dp_residents_open(const struct dp_trace_spec *trace, pid_t pid, bool inspect_only, struct dp_residents *ret)
{
	const struct dp_target_options to = {
	        /* A filter does not matter to a tool that only reads and writes memory. */
	        .allow_seccomp = trace->allow_seccomp || (inspect_only && !geteuid()),
	        .look = inspect_only,
	        .max_pause_ns = trace->snapshots.take.still.max_pause_ns,
	        .verbose = dp_trace_logs(trace, DP_LOG_DEBUG) ? log_line : NULL,
	        .verbose_data = ret,
	        .progress = on_progress,
	        .progress_data = ret,
	};
	*ret = (struct dp_residents){.trace = trace};
	struct dp_error *err = dp_target_open(pid, &to, &ret->target);
	if (!err)
		err = read_groups(ret);
	if (err)
		dp_residents_close(ret);
	return err;
}

void dp_residents_close(struct dp_residents *left)
{
	for (size_t i = 0; i < left->n; i++) {
		dp_manifest_fini(&left->group[i].manifest);
		dp_error_destroy(left->group[i].damaged);
		free(left->group[i].chosen);
	}
	free(left->group);
	dp_target_close(left->target);
	dp_residents_close_core(left);
	*left = (struct dp_residents){0};
}

bool dp_residents_stands(const struct dp_residents_group *g, size_t i)
{
	return dp_resident_site(g->resident, (unsigned)i) || dp_resident_retired(g->resident, (unsigned)i);
}

static size_t choose(struct dp_residents *left, const char *pattern)
{
	size_t found = 0;
	for (size_t k = 0; k < left->n; k++)
		for (size_t i = 0; i < left->group[k].manifest.n; i++) {
			struct dp_residents_group *g = &left->group[k];
			if (!dp_residents_stands(g, i) || fnmatch(pattern, g->manifest.probe[i].name, 0))
				continue;
			g->chosen[i] = true;
			found++;
		}
	return found;
}

static char *list(const struct dp_residents *left, bool all)
{
	struct dp_buf b = {0};
	for (size_t k = 0; k < left->n; k++)
		for (size_t i = 0; i < left->group[k].manifest.n; i++)
			if (dp_residents_stands(&left->group[k], i) && (all || left->group[k].chosen[i]))
				dp_buf_printf(&b, "%s%s", b.len ? ", " : "", left->group[k].manifest.probe[i].name);
	char *text = strdup(dp_buf_str(&b));
	dp_buf_fini(&b);
	return text;
}

char *dp_residents_chosen(const struct dp_residents *left)
{
	return list(left, false);
}

/* The first group whose manifest is damaged: its probes are not known. */
static struct dp_error *first_damage(struct dp_residents *left)
{
	for (size_t k = 0; k < left->n; k++)
		if (left->group[k].damaged)
			return dp_take(left->group[k].damaged, NULL);
	return NULL;
}

static struct dp_error *no_probe(struct dp_residents *left, const char *pattern)
{
	dp_auto_free char *there = list(left, true);
	struct dp_error *err = first_damage(left);
	const pid_t pid = dp_target_pid(left->target);
	const char *comm = dp_target_comm(left->target);
	if (err)
		return err;
	size_t n;
	const struct dp_leftover *leftover = dp_target_leftovers(left->target, &n);
	if ((!there || !*there) && n && leftover->forked)
		return dp_error(DP_TAG_NO_PROBE,
		                "no probes were left in %d (%s), which is a fork of a probed process; what it inherited %s", pid,
		                comm, leftover->removed ? "has been removed" : "records nothing, and dynprobe detach removes it");
	if (!there || !*there)
		return dp_error(DP_TAG_NO_PROBE, "no probes were left in %d (%s)", pid, comm);
	return dp_error(DP_TAG_NO_PROBE, "no probe '%s' was left in %d (%s); there are: %s", pattern, pid, comm, there);
}

struct dp_error *dp_residents_choose(struct dp_residents *left, char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!choose(left, names[i]))
			return no_probe(left, names[i]);
	return NULL;
}
