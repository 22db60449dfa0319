/* SPDX-License-Identifier: MIT */
/*
 * Chooses the size and number of the rings: as requested, or as large as the limits of the process allow. Addresses and memory
 * belong to the program: enough is left for what it may need soon.
 */
#include "injector/target/room/headroom.h"
#include "injector/target/target.h"

#define RING_DEFAULT  (UINT64_C(1) << 20)
#define RING_DUMPED   (UINT64_C(256) << 10)
#define RING_GOOD     (UINT64_C(64) << 10) /* below that, fewer rings are better than smaller ones */
#define SLOTS_DEFAULT 1024u
#define AGENT_ROOM    (UINT64_C(256) << 10) /* address space for code and the unmapped pages between regions */
#define FIXED_MAPS    8u                    /* regions other than stubs, and mappings split in between */

struct choice {
	uint64_t ring;
	unsigned slots;
};

/* May each ring be used whole? Then their addresses are bounded, not only their memory. A core file has every page of them. */
static bool is_whole(const struct dp_target *t)
{
	return t->ahead || t->options.dump_ring;
}

/* More slots than there are threads now, because threads come and go. */
static unsigned slots_least(const struct dp_target *t)
{
	const unsigned want = 2 * t->limits.threads + 16;
	return t->asked_slots ? t->asked_slots : want < SLOTS_DEFAULT ? want : SLOTS_DEFAULT;
}

static struct choice first_choice(const struct dp_target *t)
{
	const unsigned slots = t->asked_slots ? t->asked_slots : is_whole(t) ? slots_least(t) : SLOTS_DEFAULT;
	const uint64_t usual = t->options.dump_ring ? RING_DUMPED : RING_DEFAULT;
	return (struct choice){.ring = t->asked_ring ? t->asked_ring : usual, .slots = slots};
}

/* The next smaller choice; false if none is left that the user's options allow. */
static bool smaller(const struct dp_target *t, struct choice *c)
{
	const unsigned least = slots_least(t);
	if (!t->asked_ring && c->ring > RING_GOOD)
		c->ring /= 2;
	else if (c->slots > least)
		c->slots = c->slots / 2 > least ? c->slots / 2 : least;
	else if (!t->asked_ring && c->ring > DP_RING_LEAST)
		c->ring /= 2;
	else if (!t->asked_slots && is_whole(t) && c->slots > 1)
		c->slots /= 2;
	else
		return false;
	return true;
}

static void need_of(const struct dp_target *t, struct choice c, struct dp_need *ret)
{
	struct dp_target as_if = *t;
	as_if.options.ring_size = c.ring;
	as_if.options.nslots = c.slots;
	const uint64_t private = dp_private_size(&as_if) + dp_trap_region_size(t);
	*ret = (struct dp_need){
	        .share = t->asked_ring ? 2 : 4,
	        .address = dp_data_layout(&as_if).size + private + AGENT_ROOM,
	        .committed = t->ahead ? dp_data_layout(&as_if).size + private + AGENT_ROOM : 0,
	        .private = private,
	        .mappings = FIXED_MAPS,
	};
}

static bool fits(const struct dp_target *t, struct choice c, const struct dp_need *need)
{
	if (is_whole(t) && c.ring * c.slots > t->budget.most)
		return false;
	const uint64_t locked = t->limits.locks ? dp_limit_left(t->limits.locked) : UINT64_MAX;
	return need->address <= dp_limit_left(t->limits.address) / need->share && need->address <= locked &&
	       need->address <= dp_file_most();
}

/* The largest ring that would fit, if the requested one does not. */
static size_t fitting_ring(const struct dp_target *t, struct choice c)
{
	struct dp_need need;
	for (c.ring /= 2; c.ring >= DP_RING_LEAST; c.ring /= 2) {
		need_of(t, c, &need);
		if (fits(t, c, &need))
			return c.ring;
	}
	return 0;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------- */

static struct dp_error *too_little(const struct dp_target *t, const struct dp_headroom *h)
{
	return dp_error(DP_TAG_LIMIT,
	                "%llu KiB of memory are left for process %d (%s), limited by %s (%llu KiB); the rings may use half of "
	                "that and need %llu KiB: raise the limit, or set --max-memory",
	                (unsigned long long)(h->left >> 10), t->process.pid, t->process.comm, h->by,
	                (unsigned long long)(h->most >> 10), (unsigned long long)(DP_BUDGET_LEAST >> 10));
}

/* Later groups of a process use what the first group has left. */
static uint64_t of_the_first(const struct dp_target *t, uint64_t most)
{
	const struct dp_control *c = t->first ? (const void *)t->first->data : NULL;
	const uint64_t left = c ? __atomic_load_n(&c->pool, __ATOMIC_RELAXED) / 2 : most;
	return left < most ? left > DP_BUDGET_LEAST ? left : DP_BUDGET_LEAST : most;
}

/*
 * With vm.overcommit_memory=2, a page that cannot be allocated is a SIGBUS in the middle of a hit. A process that has locked its
 * memory wants all pages allocated in advance.
 */
static struct dp_error *choose_memory(struct dp_target *t)
{
	struct dp_headroom h;
	t->ahead = t->limits.committed.most != UINT64_MAX || t->limits.locks;
	dp_headroom_read("", t->process.alive, &h);
	uint64_t most = t->options.max_memory;
	if (!most) {
		most = of_the_first(t, dp_budget_share(h.left, t->asked_ring));
		if (most > dp_limit_left(t->limits.committed) / 4)
			most = dp_limit_left(t->limits.committed) / 4;
		if (most < DP_BUDGET_LEAST && h.left / 2 < DP_BUDGET_LEAST)
			return too_little(t, &h);
	}
	t->budget.most = most > DP_ROOM_STEP ? most : DP_ROOM_STEP;
	return NULL;
}

/* Stubs reach a block and its calls by displacements of 32 bits. */
static struct dp_error *check_cells(const struct dp_target *t)
{
	uint64_t size;
	const struct dp_aggs a = dp_aggs_layout(t, &size);
	if (size <= (uint64_t)INT32_MAX - (1u << 20))
		return NULL;
	return dp_error(
	        DP_TAG_LIMIT,
	        "the tables of %u places need %llu MiB for each of %u blocks of threads, %llu MiB in all, and at most "
	        "2047 MiB are possible: ask for fewer places, for less at once, or for linear histograms with a greater STEP",
	        t->nprobes, (unsigned long long)(a.size >> 20), a.nblocks, (unsigned long long)(size >> 20));
}

struct dp_error *dp_target_fit(struct dp_target *t)
{
	DP_TRY(check_cells(t));
	dp_limits_read(&t->process, t->maps, &t->limits);
	DP_TRY(choose_memory(t));
	struct choice c = first_choice(t);
	bool fit;
	do
		need_of(t, c, &t->need);
	while (!(fit = fits(t, c, &t->need)) && smaller(t, &c));
	if (!fit && t->need.address > dp_file_most())
		return dp_file_too_large(t->need.address);
	t->need.ring_size = fit ? 0 : fitting_ring(t, c);
	t->budget = dp_budget_split(t->budget.most, t->limits.threads, c.slots);
	t->options.ring_size = c.ring;
	t->options.nslots = t->asked_slots ? t->asked_slots : t->budget.slots;
	return dp_limits_check(&t->process, &t->limits, &t->need);
}
