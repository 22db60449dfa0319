/* SPDX-License-Identifier: MIT */
/*
 * Checks plans without the planner's code. Applies them to a copy of the text, in their order, and checks that
 *   - no plan changes or relies on a byte that a later plan changes, and each finds the old bytes that it expects;
 *   - at each head a processor finds a jump (or the int3 of a trap), and jumps lead from there, through text and mapped extents,
 *     to the plan's stub, at the address that the plan pairs with its site;
 *   - every instruction that is not a head, covered by a window or padding has all its bytes;
 *   - stubs do not overlap, and extents are at addresses that the process does not use.
 */
#include "coverage.h"

#include <stdlib.h>
#include <string.h>

#define HOPS 4

struct check {
	struct code *code;
	const struct layout *layout;
	size_t violations;
};

static void violation(struct check *c, const struct dp_plan *plan, const char *what, uint64_t at)
{
	if (c->violations++ >= 20)
		return;
	fprintf(stderr, "VIOLATION: %s plan at 0x%llx: %s (0x%llx);", dp_tactic_name(plan->tactic),
	        (unsigned long long)plan->site, what, (unsigned long long)at);
	for (int i = 0; i < plan->len && i < 16; i++)
		fprintf(stderr, " %02x>%02x%s", plan->old_bytes[i], plan->new_bytes[i], i + 1 == plan->changed ? " |" : "");
	fprintf(stderr, "\n");
}

static bool inside(const struct code *code, const struct dp_plan *plan)
{
	return code_holds(code, plan->site) && plan->site + plan->len <= code->hi && plan->changed <= plan->len &&
	       plan->len <= 16;
}

static void apply(struct check *c, const struct dp_plan *plan)
{
	if (!inside(c->code, plan)) {
		violation(c, plan, "is outside of the text", plan->site);
		return;
	}
	uint8_t *at = c->code->now + (plan->site - c->code->lo);
	if (memcmp(at, plan->old_bytes, plan->len) != 0)
		violation(c, plan, "the text does not have its old bytes", plan->site);
	if (memcmp(plan->old_bytes + plan->changed, plan->new_bytes + plan->changed, plan->len - plan->changed) != 0)
		violation(c, plan, "changes bytes that it relies on", plan->site);
	memcpy(at, plan->new_bytes, plan->changed);
	*code_mark(c->code, plan->site) |= MARK_HEAD;
	for (int i = 0; i < plan->ninterior && plan->tactic == DP_TACTIC_WINDOW; i++)
		*code_mark(c->code, plan->site + plan->interior[i]) |= MARK_INTERIOR;
}

static void restore(struct check *c, const struct dp_plan *plan)
{
	if (!inside(c->code, plan))
		return;
	size_t at = plan->site - c->code->lo;
	memcpy(c->code->now + at, c->code->old + at, plan->len);
	for (uint64_t k = plan->site; k < plan->site + plan->len; k++)
		*code_mark(c->code, k) &= (uint8_t) ~(MARK_HEAD | MARK_INTERIOR);
}

/* ---- where jumps lead --------------------------------------------------------------------------------------------------- */

static const uint8_t *bytes_at(const struct check *c, uint64_t addr, size_t *n)
{
	size_t lo = 0, hi = c->layout->nextents;
	if (code_holds(c->code, addr)) {
		*n = c->code->hi - addr;
		return c->code->now + (addr - c->code->lo);
	}
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct dp_extent *e = &c->layout->extent[mid];
		if (addr >= e->addr + e->n) {
			lo = mid + 1;
		} else if (addr < e->addr) {
			hi = mid;
		} else {
			*n = e->n - (addr - e->addr);
			return e->bytes + (addr - e->addr);
		}
	}
	return NULL;
}

/* The prefixes that a jump may have: none that some processors interpret in another way. */
static bool harmless(const struct dp_insn *jump)
{
	for (uint8_t i = 0; i < jump->opcode_at; i++)
		switch (jump->bytes[i]) {
		case 0x66:
		case 0xf0:
		case 0xf2:
		case 0xf3:
			return false;
		default:
			break;
		}
	return true;
}

/* The target of the jump at `addr`: a direct one, or one through the quadword after it. 0 if there is none. */
static uint64_t jump_at(const struct check *c, uint64_t addr)
{
	struct dp_insn insn;
	size_t n;
	uint64_t target;
	const uint8_t *bytes = bytes_at(c, addr, &n);
	if (!bytes || !dp_decode_zydis(bytes, n, addr, &insn) || !harmless(&insn))
		return 0;
	if (insn.flow == DP_FLOW_JMP)
		return insn.target;
	if (n < 14 || memcmp(bytes, "\xff\x25\0\0\0\0", 6) != 0)
		return 0;
	memcpy(&target, bytes + 6, sizeof(target));
	return target;
}

/* An entry of the stub: an address that the plan pairs with the site. */
static bool is_entry(const struct dp_plan *plan, uint64_t addr)
{
	for (int i = 0; i < plan->npairs; i++)
		if (plan->pair[i].stub == addr && plan->pair[i].original == plan->site)
			return addr >= plan->stub && addr < plan->stub_end;
	return false;
}

static void follow(struct check *c, const struct dp_plan *plan)
{
	uint64_t at = plan->site;
	size_t n;
	if (!inside(c->code, plan))
		return;
	const uint8_t *now = c->code->now + (plan->site - c->code->lo);
	if (memcmp(now, plan->new_bytes, plan->len) != 0)
		violation(c, plan, "another plan has changed its bytes", plan->site);
	if (plan->tactic == DP_TACTIC_TRAP) {
		if (*now != 0xcc || plan->changed != 1)
			violation(c, plan, "no int3", plan->site);
		at = plan->stub;
	}
	for (int hops = 0; plan->tactic != DP_TACTIC_TRAP && hops < HOPS && !is_entry(plan, at); hops++) {
		uint64_t next = jump_at(c, at);
		if (!next) {
			violation(c, plan, "a jump is missing", at);
			return;
		}
		at = next;
	}
	if (plan->tactic != DP_TACTIC_TRAP && !is_entry(plan, at))
		violation(c, plan, "its jumps do not lead to its stub", at);
	if (!bytes_at(c, plan->stub, &n) || plan->stub_end - plan->stub > n)
		violation(c, plan, "its stub is not mapped", plan->stub);
}

/* ---- what must not change --------------------------------------------------------------------------------------------- */

static uint64_t start_of(const struct code *code, uint64_t addr)
{
	for (uint64_t at = addr; at >= code->lo && addr - at < DP_INSN_MAX; at--)
		if (*code_mark(code, at) & MARK_START)
			return at;
	return 0;
}

/* The instructions that the plan's changed bytes belong to. */
static void check_neighbours(struct check *c, const struct dp_plan *plan)
{
	if (!inside(c->code, plan))
		return;
	for (uint64_t at = plan->site; at < plan->site + plan->changed; at++) {
		struct dp_insn insn;
		size_t i = at - c->code->lo;
		if (c->code->now[i] == c->code->old[i])
			continue;
		uint64_t start = start_of(c->code, at);
		bool known = start && dp_decode_zydis(c->code->old + (start - c->code->lo), c->code->hi - start, start, &insn);
		if (!known || start + insn.len <= at) {
			violation(c, plan, "changes bytes that are not an instruction", at);
			continue;
		}
		uint8_t mark = *code_mark(c->code, start);
		bool padding = mark & MARK_PADDING && !(mark & MARK_TARGET) && dp_insn_is_padding(&insn) &&
		               !dp_text_endbr(&c->code->base, start);
		if (!(mark & (MARK_HEAD | MARK_INTERIOR)) && !padding)
			violation(c, plan, "changes an instruction of no plan", start);
	}
}

static int by_stub(const void *a, const void *b)
{
	const struct dp_plan *const *x = a, *const *y = b;
	return (*x)->stub < (*y)->stub ? -1 : (*x)->stub > (*y)->stub;
}

static void check_stubs(struct check *c)
{
	const struct dp_plan **sorted = calloc(c->layout->nplans + 1, sizeof(*sorted));
	for (size_t i = 0; sorted && i < c->layout->nplans; i++)
		sorted[i] = &c->layout->plan[i];
	if (sorted)
		qsort(sorted, c->layout->nplans, sizeof(*sorted), by_stub);
	for (size_t i = 1; sorted && i < c->layout->nplans; i++)
		if (sorted[i]->stub < sorted[i - 1]->stub_end)
			violation(c, sorted[i], "its stub overlaps another one", sorted[i]->stub);
	free(sorted);
}

static void check_extents(struct check *c, const struct dp_image *image)
{
	const struct dp_plan none = {0};
	for (size_t i = 0; i < c->layout->nextents; i++) {
		const struct dp_extent *e = &c->layout->extent[i];
		if (e->addr % 4096 || e->n % 4096 || (i && e->addr < e[-1].addr + e[-1].n))
			violation(c, &none, "an extent is not whole pages, or overlaps another", e->addr);
		for (size_t k = 0; k < dp_image_nmaps(image); k++)
			if (dp_image_map(image, k)->start.v < e->addr + e->n && e->addr < dp_image_map(image, k)->end.v)
				violation(c, &none, "an extent overlaps a mapping", e->addr);
	}
}

size_t check_layout(struct code *code, const struct dp_image *image, const struct layout *layout)
{
	struct check c = {.code = code, .layout = layout};
	for (size_t i = 0; i < layout->nplans; i++)
		apply(&c, &layout->plan[i]);
	for (size_t i = 0; i < layout->nplans; i++) {
		follow(&c, &layout->plan[i]);
		check_neighbours(&c, &layout->plan[i]);
	}
	check_stubs(&c);
	check_extents(&c, image);
	for (size_t i = layout->nplans; i-- > 0;)
		restore(&c, &layout->plan[i]);
	return c.violations;
}
