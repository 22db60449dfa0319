/* SPDX-License-Identifier: MIT */
/*
 * Takes over rings that have overwritten themselves during the run (options.overwrite). The probes are removed by then, so no
 * thread is in the agent, unless one could not be brought out of it (DP_TAG_BUSY is not worth the other threads' records).
 */
#include "injector/target/target.h"

#include "injector/ring/drain.h"

#include <time.h>

#define TRIES   2000
#define REST_NS 1000000L

static struct dp_slot *slots_of(const struct dp_target *t)
{
	return (void *)(t->data + dp_data_layout(t).slots);
}

static bool reclaiming(const struct dp_target *t)
{
	const struct dp_slot *slot = slots_of(t);
	for (unsigned i = 0; i < t->options.nslots; i++)
		if (__atomic_load_n(&slot[i].reclaiming, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

/* A thread that was killed in the middle never finishes; the others have a few microseconds left. */
static void await_tails(const struct dp_target *t)
{
	for (int tried = 0; tried < TRIES && reclaiming(t) && !dp_target_has_ended(t); tried++)
		nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

struct dp_error *dp_flight_end(struct dp_target *t)
{
	struct dp_drain *drain = NULL;
	t->overwrites = false;
	__atomic_store_n(&((struct dp_control *)(void *)t->data)->overwrite, 0, __ATOMIC_SEQ_CST);
	await_tails(t);
	for (unsigned i = 0; i < t->options.nslots; i++)
		t->skipped += slots_of(t)[i].abandoned;
	/* The old one has the tails of the begin. */
	DP_TRY(dp_drain_create((void *)t->data, t->in.region[DP_REGION_DATA].size, &drain));
	dp_drain_destroy(t->drain);
	t->drain = drain;
	return NULL;
}
