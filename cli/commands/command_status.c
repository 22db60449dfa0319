/* SPDX-License-Identifier: MIT */
/* status: lists resident probes, and what forks and killed tools left. Reads the processes; stops and changes nothing. */
#include "cli/commands/command.h"
#include "cli/commands/residents_each.h"
#include "injector/tracee/proc/named.h"
#include "injector/tracee/proc/proc.h"
#include "output/output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHERE_SIZE 512u

static const char *state_of(const struct dp_residents_group *g, size_t i)
{
	if (dp_resident_retired(g->resident, (unsigned)i))
		return "retired";
	if (!dp_resident_site(g->resident, (unsigned)i))
		return "removed";
	return dp_resident_enabled(g->resident, (unsigned)i) ? "enabled" : "disabled";
}

/* JSON has the names of the symbol table. */
static void put_where(const struct dp_residents *left, bool readable, uint64_t addr, char *where)
{
	*where = '\0';
	if (addr && readable)
		dp_image_describe_readable(dp_target_image(left->target), dp_addr_of(addr), where, WHERE_SIZE);
	else if (addr)
		dp_image_describe(dp_target_image(left->target), dp_addr_of(addr), where, WHERE_SIZE);
}

static void fill(struct dp_residents_group *g, size_t i, const char *where, struct dp_listing_probe *ret)
{
	const struct dp_manifest_probe *p = &g->manifest.probe[i];
	const uint64_t addr = dp_resident_site(g->resident, (unsigned)i);
	*ret = (struct dp_listing_probe){
	        .name = p->name,
	        .spec = p->spec,
	        .state = state_of(g, i),
	        .context = p->typed.context,
	        .ncontexts = p->typed.ncontexts,
	        .when = p->typed.when,
	        .where = where,
	        .sink = g->manifest.lttng ? "lttng" : "ring",
	        .session = g->manifest.session,
	        .addr = addr,
	};
	dp_resident_loss(g->resident, (unsigned)i, &ret->loss.lost);
}

static void print(const struct dp_options *options, const struct dp_listing *l)
{
	if (options->format == DP_FORMAT_JSON)
		dp_listing_json(l, stdout);
	else
		dp_listing_text(l, stdout);
}

static struct dp_error *show(const struct dp_options *options, struct dp_residents *left)
{
	struct dp_listing l = {.pid = dp_target_pid(left->target), .comm = dp_target_comm(left->target)};
	size_t n = 0;
	for (size_t k = 0; k < left->n; k++)
		n += left->group[k].manifest.n;
	dp_auto_free struct dp_listing_probe *probe = calloc(n + 1, sizeof(*probe));
	dp_auto_free char(*where)[WHERE_SIZE] = calloc(n + 1, sizeof(*where));
	if (!probe || !where)
		return dp_error_nomem();
	for (size_t k = 0; k < left->n; k++) {
		if (left->group[k].damaged)
			l.trouble = left->group[k].damaged->message;
		for (size_t i = 0; i < left->group[k].manifest.n; i++, l.n++) {
			const uint64_t site = dp_resident_site(left->group[k].resident, (unsigned)i);
			put_where(left, options->format != DP_FORMAT_JSON, site, where[l.n]);
			fill(&left->group[k], i, where[l.n], &probe[l.n]);
		}
	}
	l.probe = probe;
	l.leftover = dp_target_leftovers(left->target, &l.nleftovers);
	print(options, &l);
	return NULL;
}

static bool has_any(const struct dp_residents *left)
{
	size_t n;
	dp_target_leftovers(left->target, &n);
	return left->n || n;
}

/* Does the process map memory of dynprobe, as far as we may read? */
static bool holds_ours(pid_t pid)
{
	char path[64], line[4352];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	dp_auto_fclose FILE *f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, " /memfd:" DP_MEMFD_NAME " (deleted)\n");
	return found;
}

/* Lists a process that cannot be read with the reason; skips one that has ended. */
static void show_if_any(const struct dp_options *options, pid_t pid)
{
	struct dp_residents left = {0};
	char comm[64]; /* sanitized: the process chose it */
	struct dp_error *err = dp_residents_open(&options->trace, pid, true, &left);
	if (!err && has_any(&left))
		err = show(options, &left);
	const bool ended = err && (err->tag == DP_TAG_ZOMBIE || err->tag == DP_TAG_NO_PROCESS || err->tag == DP_TAG_GONE);
	dp_proc_comm(pid, comm, sizeof(comm));
	if (err && !ended) {
		const struct dp_listing l = {.pid = pid, .comm = comm, .trouble = err->message};
		print(options, &l);
	}
	dp_error_destroy(err);
	dp_residents_close(&left);
}

static bool show_one(pid_t pid, void *data)
{
	const struct dp_options *options = data;
	if (holds_ours(pid) && !dp_proc_is_vfork_child(pid)) /* its probes are its parent's, which is listed */
		show_if_any(options, pid);
	return true;
}

static bool is_asked_for(const struct dp_options *options, pid_t pid)
{
	for (size_t i = 0; i < options->trace.npids; i++)
		if (options->trace.pid[i] == pid)
			return true;
	return false;
}

/* The process, and below it the fork children that carry its probes, unless they have a turn of their own. */
static struct dp_error *show_family(const struct dp_options *options, struct dp_residents *left)
{
	size_t n;
	DP_TRY(show(options, left));
	dp_auto_free pid_t *child = dp_target_children(left->target, &n);
	for (size_t i = 0; i < n; i++)
		if (!is_asked_for(options, child[i]))
			show_if_any(options, child[i]);
	return child ? NULL : dp_error_nomem();
}

static struct dp_error *show_all(const struct dp_options *options)
{
	return dp_proc_each(show_one, (void *)(uintptr_t)options) ? NULL : dp_error_sys(DP_TAG_SYS, "opening /proc");
}

int dp_command_status(const struct dp_options *options)
{
	if (options->trace.npids)
		return dp_residents_each(options, true, show_family);
	struct dp_error *err = show_all(options);
	const int status = err ? DP_EXIT_FAILURE : 0;
	dp_error_print(err, stderr);
	dp_error_destroy(err);
	return status;
}
