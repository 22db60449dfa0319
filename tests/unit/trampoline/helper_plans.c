/* SPDX-License-Identifier: MIT */
#include "helper_plans.h"

#include "trampoline/arch/x86_64/decode/decode.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct copy {
	struct world *w;
	const struct helper_module *m;
	uint8_t *code;
	bool *may_change;
	const struct dp_plan *plan;
	size_t n;
};

static uint8_t *at(const struct copy *c, uint64_t addr)
{
	cr_assert(addr >= c->m->code && addr < c->m->code_end, "0x%lx is outside of the code", addr);
	return c->code + (addr - c->m->code);
}

static const uint8_t *original(const struct copy *c)
{
	for (size_t i = 0; i < c->m->text.nsegments; i++)
		if (c->m->segment[i].exec && c->m->segment[i].addr == c->m->code)
			return c->m->segment[i].bytes;
	return NULL;
}

/* Plans come after the plans that they depend on. */
static void check_supports(const struct copy *c, size_t i)
{
	for (uint8_t k = 0; k < c->plan[i].nsupports; k++) {
		size_t found = 0;
		for (size_t j = 0; j < i; j++)
			found += c->plan[j].site == c->plan[i].support[k];
		cr_assert(found, "0x%lx needs 0x%lx, which does not come before it", c->plan[i].site, c->plan[i].support[k]);
	}
}

/* libunwind reads 16 bytes at a pc without a table: these must be in our pages, wherever a thread is. */
static void check_readable(const struct dp_plan *p)
{
	const uint64_t page = 4096, at = p->springboard, end = p->stub_end;
	cr_assert(!at || at % page <= page - 16, "springboard at 0x%lx", at);
	cr_assert(end % page && end % page <= page - 16, "stub ends at 0x%lx", end);
}

static void write_all(struct copy *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct dp_plan *p = &c->plan[i];
		check_readable(p);
		cr_assert(p->len && p->len <= 16 && p->changed <= p->len);
		cr_assert_eq(memcmp(at(c, p->site), p->old_bytes, p->len), 0, "%s at 0x%lx: the expected bytes are not there",
		             dp_tactic_name(p->tactic), p->site);
		cr_assert_eq(memcmp(p->old_bytes + p->changed, p->new_bytes + p->changed, sizeof(p->old_bytes) - p->changed), 0);
		memcpy(at(c, p->site), p->new_bytes, p->changed);
		memset(c->may_change + (p->site - c->m->code), true, p->changed);
		check_supports(c, i);
	}
}

/* No later plan has overwritten a plan's bytes or its tail. */
static void check_written(const struct copy *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct dp_plan *p = &c->plan[i];
		bool covered = false;
		for (size_t j = i + 1; j < c->n; j++)
			covered |= c->plan[j].site == p->site;
		cr_assert(covered || !memcmp(at(c, p->site), p->new_bytes, p->len), "%s at 0x%lx: overwritten",
		          dp_tactic_name(p->tactic), p->site);
	}
	const uint8_t *old = original(c);
	for (size_t x = 0; x < c->m->code_end - c->m->code; x++)
		cr_assert(c->may_change[x] || c->code[x] == old[x], "0x%lx changed", c->m->code + x);
}

/* The changed bytes belong to the plan's own instruction, or to those that a window covers. */
static void check_extent(const struct copy *c, const struct dp_plan *p)
{
	struct dp_insn insn;
	const uint8_t *old = original(c) + (p->site - c->m->code);
	cr_assert(dp_decode_zydis(old, 16, p->site, &insn));
	cr_assert(p->changed <= (p->tactic == DP_TACTIC_WINDOW ? 5 : insn.len), "0x%lx changes its neighbour", p->site);
	cr_assert(p->displaced >= insn.len && p->npairs >= 2);
	cr_assert(p->ninterior == 0 || p->tactic == DP_TACTIC_WINDOW);
	cr_assert_eq(p->pair[0].stub, p->entry);
	cr_assert_eq(p->pair[0].original, p->site);
	cr_assert(p->entry >= p->stub && p->entry < p->stub_end && p->entry % 16 == 0);
	cr_assert(p->probe == DP_NO_PROBE || p->tactic != DP_TACTIC_TRAP || p->new_bytes[0] == 0xcc);
}

/* Follows the head's jumps, short and near, the springboard last. */
static uint64_t follow(const struct copy *c, uint64_t addr)
{
	unsigned hops = 0;
	while (addr >= c->m->code && addr < c->m->code_end) {
		addr = world_follow(at(c, addr), 16, addr);
		cr_assert_lt(hops++, 3, "endless jumps");
	}
	return addr;
}

static void check_way(const struct copy *c, size_t i)
{
	const struct dp_plan *p = &c->plan[i];
	size_t n;
	cr_assert(world_placed(c->w, p->stub, &n) && world_placed(c->w, p->stub_end - 1, &n));
	uint64_t entry = p->entry;
	for (size_t j = i + 1; j < c->n; j++)
		if (c->plan[j].site == p->site)
			entry = c->plan[j].entry;
	if (p->tactic == DP_TACTIC_TRAP)
		return;
	uint64_t to = follow(c, p->site);
	if (to != entry)
		to = world_follow_placed(c->w, to);
	cr_assert_eq(to, entry, "%s at 0x%lx leads to 0x%lx, not to 0x%lx", dp_tactic_name(p->tactic), p->site, to, entry);
}

struct piece {
	uint64_t start, end;
};

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* No stub overlaps another, or a springboard. Stubs of one site may share the springboard. */
static void check_room(const struct copy *c)
{
	struct piece *piece = malloc(2 * c->n * sizeof(*piece) + 1);
	size_t n = 0, size;
	for (size_t i = 0; i < c->n; i++) {
		const struct dp_plan *p = &c->plan[i];
		piece[n++] = (struct piece){p->stub, p->stub_end};
		bool shared = false;
		for (uint8_t k = 0; k < p->nsupports; k++)
			shared |= p->support[k] == p->site;
		if (!p->springboard || shared)
			continue;
		const uint8_t *bytes = world_placed(c->w, p->springboard, &size);
		cr_assert(bytes && size >= 5);
		piece[n++] = (struct piece){p->springboard, p->springboard + (bytes[0] == 0xe9 ? 5 : 14)};
	}
	qsort(piece, n, sizeof(*piece), by_start);
	for (size_t i = 1; i < n; i++)
		cr_assert(piece[i].start >= piece[i - 1].end, "0x%lx overlaps 0x%lx", piece[i].start, piece[i - 1].start);
	free(piece);
}

static void take_out(struct copy *c)
{
	for (size_t i = c->n; i-- > 0;)
		memcpy(at(c, c->plan[i].site), c->plan[i].old_bytes, c->plan[i].changed);
	cr_assert_eq(memcmp(c->code, original(c), c->m->code_end - c->m->code), 0);
}

size_t helper_check_plans(struct world *w, const struct helper_module *m)
{
	struct copy c = {.w = w, .m = m};
	const size_t size = m->code_end - m->code;
	size_t asked = 0;
	c.n = dp_planner_plans(w->planner, &c.plan);
	c.code = malloc(size);
	c.may_change = calloc(1, size);
	memcpy(c.code, original(&c), size);
	world_freeze(w);
	write_all(&c);
	check_written(&c);
	for (size_t i = 0; i < c.n; i++) {
		check_extent(&c, &c.plan[i]);
		check_way(&c, i);
		asked += c.plan[i].probe != DP_NO_PROBE || w->request.hook;
	}
	check_room(&c);
	take_out(&c);
	free(c.code);
	free(c.may_change);
	return asked;
}
