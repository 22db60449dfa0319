/* SPDX-License-Identifier: MIT */
/*
 * How large the rings are and how many: as asked, or as large as the limits of the process allow. Addresses and memory are the
 * program's own: what it is about to need is left to it.
 */
#include "injector/target.h"
#include "injector/trap.h"

#define RING_DEFAULT  (UINT64_C(1) << 20)
#define RING_GOOD     (UINT64_C(64) << 10) /* below that, fewer rings are better than smaller ones */
#define SLOTS_DEFAULT 1024u
#define AGENT_ROOM    (UINT64_C(256) << 10) /* of addresses: code, and unmapped pages between */
#define FIXED_MAPS    8u                    /* regions besides stubs, and what is split on the way */

struct choice {
	uint64_t ring;
	unsigned slots;
};

static struct choice first_choice(const struct dp_target *t)
{
	return (struct choice){t->asked_ring ? t->asked_ring : RING_DEFAULT, t->asked_slots ? t->asked_slots : SLOTS_DEFAULT};
}

/* Threads come and go: more slots than there are threads now. */
static unsigned slots_least(const struct dp_target *t)
{
	const unsigned want = 2 * t->limits.threads + 16;
	return t->asked_slots ? t->asked_slots : want < SLOTS_DEFAULT ? want : SLOTS_DEFAULT;
}

/* The next smaller one; false if there is none that was not asked for otherwise. */
static bool smaller(const struct dp_target *t, struct choice *c)
{
	const unsigned least = slots_least(t);
	if (!t->asked_ring && c->ring > RING_GOOD)
		c->ring /= 2;
	else if (c->slots > least)
		c->slots = c->slots / 2 > least ? c->slots / 2 : least;
	else if (!t->asked_ring && c->ring > DP_RING_LEAST)
		c->ring /= 2;
	else
		return false;
	return true;
}

static void need_of(const struct dp_target *t, struct choice c, struct dp_need *ret)
{
	struct dp_target as_if = *t;
	as_if.options.ring_size = c.ring;
	as_if.options.nslots = c.slots;
	const uint64_t private = dp_page_up(sizeof(struct dp_agent)) + dp_trap_region_size(t);
	*ret = (struct dp_need){
	        .share = t->asked_ring ? 2 : 4,
	        .address = dp_data_layout(&as_if).size + private + AGENT_ROOM,
	        .private = private,
	        .mappings = FIXED_MAPS,
	};
}

static bool fits(const struct dp_target *t, const struct dp_need *need)
{
	const uint64_t locked = t->limits.locks ? dp_limit_left(t->limits.locked) : UINT64_MAX;
	return need->address <= dp_limit_left(t->limits.address) / need->share && need->address <= locked &&
	       need->address <= dp_file_most();
}

/* The largest ring that would fit, if one was asked for that does not. */
static size_t fitting_ring(const struct dp_target *t, struct choice c)
{
	struct dp_need need;
	for (c.ring /= 2; c.ring >= DP_RING_LEAST; c.ring /= 2) {
		need_of(t, c, &need);
		if (fits(t, &need))
			return c.ring;
	}
	return 0;
}

struct dp_error *dp_target_fit(struct dp_target *t)
{
	struct choice c = first_choice(t);
	bool fit;
	dp_limits_read(&t->process, t->maps, &t->limits);
	do
		need_of(t, c, &t->need);
	while (!(fit = fits(t, &t->need)) && smaller(t, &c));
	if (!fit && t->need.address > dp_file_most())
		return dp_file_too_large(t->need.address);
	t->need.ring_size = fit ? 0 : fitting_ring(t, c);
	t->options.ring_size = c.ring;
	t->options.nslots = c.slots;
	return dp_limits_check(&t->process, &t->limits, &t->need);
}
