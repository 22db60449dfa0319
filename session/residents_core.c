/* SPDX-License-Identifier: MIT */
/* Resident probes in a core file, and what is asked alike of a process and of a core file. */
#include "output/output.h"
#include "pmodules/source/core.h"
#include "session/residents.h"

#include <stdlib.h>

struct dp_residents_core {
	struct dp_core *core;
	struct dp_image *image;
	struct dp_dumps dumps;
};

void dp_residents_close_core(struct dp_residents *left)
{
	struct dp_residents_core *c = left->core;
	if (!c)
		return;
	dp_dumps_fini(&c->dumps);
	dp_image_destroy(c->image);
	dp_core_close(c->core);
	free(c);
	left->core = NULL;
}

static size_t read_core(uint64_t addr, void *buf, size_t n, void *data)
{
	return dp_core_read(data, addr, buf, n);
}

static struct dp_error *nothing(const struct dp_residents_core *c, const char *core)
{
	const pid_t pid = dp_core_pid(c->core);
	const char *comm = dp_core_comm(c->core);
	struct dp_error *err =
	        c->dumps.mappings
	                ? dp_error(DP_TAG_NO_PROBE, "%s does not include the rings of the probes in %d (%s)", core, pid, comm)
	                : dp_error(DP_TAG_NO_PROBE, "no resident probes were in %d (%s) when it dumped %s", pid, comm, core);
	return dp_error_advise(err, "attach probes with dynprobe attach --dump-ring: then the next core file has their events");
}

static void warn(const struct dp_residents *left)
{
	const struct dp_residents_core *c = left->core;
	const char *text;
	int64_t offset;
	for (size_t i = 0; (text = dp_core_doubt_text(c->core, i)); i++)
		dp_trace_log(left->trace, DP_LOG_WARNING, "%s", text);
	if (!c->dumps.n || !dp_dumped_other_boot(c->dumps.group[0], &offset))
		return;
	dp_clock_set_offset(offset);
	dp_trace_log(left->trace, DP_LOG_WARNING,
	             "the core file was made before this machine started, or on another one: times are counted from the attach, "
	             "and may "
	             "be wrong by some ms for each hour since then");
}

static struct dp_error *read_groups(struct dp_residents *left)
{
	const struct dp_dumps *dumps = &left->core->dumps;
	left->group = calloc(dumps->n + 1, sizeof(*left->group));
	if (!left->group)
		return dp_error_nomem();
	for (left->n = 0; left->n < dumps->n; left->n++) {
		struct dp_residents_group *g = &left->group[left->n];
		g->dumped = dumps->group[left->n];
		dp_residents_describe(g, dp_dumped_manifest(g->dumped), dp_dumped_nprobes(g->dumped));
	}
	return NULL;
}

static struct dp_error *open_core(struct dp_residents *left, const char *core, const char *exe)
{
	struct dp_residents_core *c = left->core;
	DP_TRY(dp_core_open(core, exe, &c->core));
	DP_TRY(dp_core_image(c->core, &c->image));
	const struct dp_dumped_memory memory = {read_core, c->core};
	DP_TRY(dp_dumps_find(c->image, &memory, &c->dumps));
	warn(left);
	return c->dumps.n ? read_groups(left) : nothing(c, core);
}

struct dp_error *dp_residents_open_core(const struct dp_trace_spec *trace, const char *core, const char *exe,
                                        struct dp_residents *ret)
{
	*ret = (struct dp_residents){.trace = trace, .core = calloc(1, sizeof(*ret->core))};
	struct dp_error *err = ret->core ? open_core(ret, core, exe) : dp_error_nomem();
	if (err)
		dp_residents_close(ret);
	return err;
}

/* ---- of either ---------------------------------------------------------------------------------------------------------------
 */

pid_t dp_residents_pid(const struct dp_residents *left)
{
	const struct dp_residents_core *c = left->core;
	if (!c)
		return dp_target_pid(left->target);
	const pid_t pid = c->dumps.n ? dp_dumped_pid(c->dumps.group[0]) : 0;
	return pid ? pid : dp_core_pid(c->core);
}

const char *dp_residents_comm(const struct dp_residents *left)
{
	return left->core ? dp_core_comm(left->core->core) : dp_target_comm(left->target);
}

struct dp_image *dp_residents_image(const struct dp_residents *left)
{
	return left->core ? left->core->image : dp_target_image(left->target);
}

bool dp_residents_have_ended(const struct dp_residents *left)
{
	return left->core || dp_target_has_ended(left->target);
}

void dp_residents_loss(const struct dp_residents_group *g, unsigned i, struct dp_loss *ret)
{
	if (g->dumped)
		dp_dumped_loss(g->dumped, i, ret);
	else
		dp_resident_loss(g->resident, i, ret);
}
