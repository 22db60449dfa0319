/* SPDX-License-Identifier: MIT */
#include "injector/target/target.h"

bool dp_placed_stands(const struct dp_placed *p)
{
	return p->written && !p->changed && (p->state == DP_SITE_PLANNED || p->state == DP_SITE_WAITING);
}

void dp_placed_mark(struct dp_target *t, struct dp_placed *p, enum dp_site_state state)
{
	const uint8_t byte = (uint8_t)state;
	p->state = state;
	if (p->entry)
		p->entry->state = byte;
	else if (p->entry_at)
		dp_error_destroy(
		        dp_mem_write(&t->process, dp_addr_of(p->entry_at + offsetof(struct dp_site_entry, state)), &byte, 1));
}
