/* SPDX-License-Identifier: MIT */
/*
 * Leaves probes in place. Until `kept` is written this is an ordinary installation, which the next tool would remove if we were
 * killed; afterwards the probes are resident. Only then are the probes below it given up.
 */
#include "base/boot_id.h"
#include "injector/ring/clock.h"
#include "injector/target/shared.h"

#include <string.h>
#include <time.h>

static void give_up_below(struct dp_target *t, struct dp_placed *p)
{
	if (p->probe == DP_NO_PROBE)
		return; /* one of our own sites comes back when this one is removed */
	for (struct dp_placed *below; (below = dp_resident_below(t, &t->in, p));)
		dp_placed_mark(t, below, DP_SITE_RESTORED);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* So that a core file tells the times of its records on any machine. */
static struct dp_error *note_clocks(const struct dp_target *t, struct dp_clocks *c)
{
	if (!t->options.dump_ring)
		return NULL;
	DP_TRY(dp_aggs_tick(&c->tick));
	const struct dp_clock_pair now = dp_clock_read();
	c->tsc = now.tsc;
	c->ns = now.ns;
	c->offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	dp_boot_id(c->boot);
	return NULL;
}

/* For this tool, nothing is installed any more. */
static void forget(struct dp_target *t)
{
	t->installed = false;
	dp_shared_close(t);
	dp_installation_fini(&t->in);
}

struct dp_error *dp_target_keep(struct dp_target *t, const char *manifest)
{
	const size_t n = strlen(manifest) + 1;
	struct dp_control *c = (void *)t->data;
	if (!t->installed || !c || !t->options.gates)
		return dp_error(DP_TAG_INTERNAL, "process %d has no probes that could be left in place", t->process.pid);
	if (n > DP_MANIFEST_MAX)
		return dp_error(DP_TAG_USAGE, "the manifest of the probes has %zu bytes; the limit is %u", n, DP_MANIFEST_MAX);
	if (t->gone)
		return dp_error(DP_TAG_GONE, "process %d (%s) is gone", t->process.pid, t->process.comm);
	DP_TRY(note_clocks(t, &c->clocks));
	memcpy(t->data + dp_data_layout(t).manifest, manifest, n);
	__atomic_store_n(&c->tool_pid, 0, __ATOMIC_RELEASE);
	/* Overwriting takes system calls, which a seccomp filter may forbid. */
	__atomic_store_n(&c->overwrite, !dp_target_filtered(t), __ATOMIC_RELEASE);
	__atomic_store_n(&c->kept, 1, __ATOMIC_RELEASE);
	for (size_t i = 0; i < t->in.nplaced; i++)
		if (t->in.placed[i].written)
			give_up_below(t, &t->in.placed[i]);
	forget(t);
	return NULL;
}
