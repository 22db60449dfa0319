/* SPDX-License-Identifier: MIT */
#include "helper_lanes.h"

#include <string.h>

struct way {
	dp_hit_fn each;
	void *data;
};

static void pass_on(const struct dp_hits *hits, void *data)
{
	const struct way *way = data;
	uint64_t ns = 0;
	cr_assert_gt(hits->n, 0);
	for (size_t i = 0; i < hits->n; i++) {
		const struct dp_hits_item *item = &hits->item[i];
		uint8_t copy[DP_RECORD_MAX];
		cr_assert_leq(item->len, sizeof(copy));
		memcpy(copy, item->payload, item->len);
		cr_assert_geq(item->ns, ns);
		cr_assert_not(item->damaged);
		ns = item->ns;
		way->each(&(struct dp_hit){.ns = ns,
		                           .pid = hits->pid,
		                           .tid = hits->tid,
		                           .lane = hits->lane,
		                           .probe = item->probe,
		                           .payload = copy,
		                           .len = item->len},
		          way->data);
	}
}

struct dp_error *drain_by(struct dp_drain *d, bool lanes, bool last, dp_hit_fn each, void *data)
{
	struct way way = {each, data};
	if (!lanes)
		return dp_drain_run(d, last, each, data);
	dp_drain_lanes(d, last, pass_on, &way);
	return NULL;
}
