/* SPDX-License-Identifier: MIT */
/* Computes the size of the layout of layout.c before anything is laid out. */
#include "injector/target/target.h"

struct dp_error *dp_target_footprint(const struct dp_target *t, unsigned nprobes, struct dp_footprint *ret)
{
	struct dp_target as_if = *t;
	struct dp_agent_image agent;
	DP_TRY(dp_agent_image_load(&agent));
	as_if.nprobes = nprobes;
	DP_TRY(dp_target_fit(&as_if));
	const struct dp_data_layout data = dp_data_layout(&as_if);
	const uint64_t rings = (uint64_t)as_if.options.nslots * as_if.options.ring_size;
	*ret = (struct dp_footprint){
	        .mappings = t->options.need_unwind ? 4 : 3, /* agent, data, private, tables */
	        .bytes = dp_page_up(agent.size) + data.size - rings + dp_page_up(sizeof(struct dp_agent)),
	        .rings = rings,
	        .ring_memory = as_if.budget.most < rings ? as_if.budget.most : rings,
	};
	return NULL;
}
