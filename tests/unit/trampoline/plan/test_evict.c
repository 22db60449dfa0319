/* SPDX-License-Identifier: MIT */
/* Evicted instructions: which may be moved, to where, and that none is half moved. */
#include "helper_plans.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/space/space.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define AT   UINT64_C(0x555555555000)
#define SIZE 128

/* A function of nops with `bytes` at +64; the last byte returns. */
static void craft(uint8_t code[SIZE], const uint8_t *bytes, size_t n)
{
	memset(code, 0x90, SIZE);
	memcpy(code + 64, bytes, n);
	code[SIZE - 1] = 0xc3;
}

static enum dp_tag add(struct world *w, uint64_t site, unsigned tactics, struct dp_plan *plan)
{
	w->request.site = site;
	w->request.tactics = tactics;
	struct dp_error *err = dp_planner_add(w->planner, &w->request, plan);
	enum dp_tag tag = err ? err->tag : DP_TAG_COUNT;
	dp_error_destroy(err);
	return tag;
}

#define SUCCESSOR (AT + 66)

static bool moved(const struct dp_plan *plan, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < n; i++)
		if (plan[i].site < addr + 2 && addr < plan[i].site + plan[i].changed)
			return true;
	return false;
}

/* How many instructions were evicted for the one at +64, if that at +66 was; -1 if it was not. */
static int evicted(const uint8_t *bytes, size_t n, const struct dp_protected *keep)
{
	uint8_t code[SIZE];
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	const struct dp_plan *all;
	craft(code, bytes, n);
	helper_code(&m, AT, code, SIZE);
	m.text.keep = keep;
	m.text.nkeep = keep != NULL;
	world_init(&w, &m);
	bool good = add(&w, AT + 64, 1u << DP_TACTIC_EVICT, &plan) == DP_TAG_COUNT;
	const size_t plans = dp_planner_plans(w.planner, &all);
	int victims = moved(all, plans, SUCCESSOR) ? (int)plans - 1 : -1;
	cr_assert_eq(helper_check_plans(&w, &m), good ? 1 : 0);
	world_fini(&w);
	return victims;
}

/* The offset of the evicted instruction to which the site's short jump leads; -1 if the site has a near jump. */
static int hosted(const uint8_t *bytes, size_t n)
{
	uint8_t code[SIZE];
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	const struct dp_plan *all;
	craft(code, bytes, n);
	helper_code(&m, AT, code, SIZE);
	world_init(&w, &m);
	cr_assert_eq(add(&w, AT + 64, 1u << DP_TACTIC_EVICT, &plan), DP_TAG_COUNT);
	cr_assert_eq(dp_planner_plans(w.planner, &all), 2);
	cr_assert_eq(helper_check_plans(&w, &m), 1);
	cr_expect_eq(plan.nsupports, 1);
	cr_expect_eq(plan.support[0], all[0].site);
	world_fini(&w);
	return plan.new_bytes[0] == 0xeb ? (int)(plan.support[0] - AT) : -1;
}

/* xor %eax,%eax; then an instruction of five bytes, whose jump is free, and with it the top byte of the site's jump */
static const uint8_t easy[] = {0x31, 0xc0, 0xb8, 1, 2, 3, 4};

Test(evict, the_successor_gives_way)
{
	cr_expect_eq(evicted(easy, sizeof(easy), NULL), 1);
}

Test(evict, a_neighbour_in_reach_hosts_the_jump)
{
	/*
	 * Zeros after the site, as rel32's upper bytes, would lead below address 0; the stub of the ten-byte mov has room for two
	 * jumps.
	 */
	static const uint8_t two[] = {0x31, 0xc0, 0x0f, 0x05, 0x80, 0xfc, 0x80, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8};
	/* push %rax has room for the eb only: the next instruction's first byte, 0f, determines the target */
	static const uint8_t one[] = {0x50, 0x0f, 0x05, 0x0f, 0x05, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	                              0x90, 0x90, 0x48, 0xb8, 1,    2,    3,    4,    5,    6,    7,    8};
	cr_expect_eq(hosted(two, sizeof(two)), 71);
	cr_expect_eq(hosted(one, sizeof(one)), 78);
}

/* Each of these in the place of the instruction to evict, surrounded by one-byte nops. */
Test(evict, what_may_not_be_moved_stays)
{
	static const uint8_t endbr[] = {0x31, 0xc0, 0xf3, 0x0f, 0x1e, 0xfa}, call[] = {0x31, 0xc0, 0x0f, 0x05};
	static const uint8_t trap[] = {0x31, 0xc0, 0x0f, 0x0b}, int80[] = {0x31, 0xc0, 0xcd, 0x80};
	static const uint8_t eip[] = {0x31, 0xc0, 0x67, 0x8b, 0x05, 0, 0, 0, 0};
	cr_expect_eq(evicted(endbr, sizeof(endbr), NULL), -1, "endbr64");
	cr_expect_eq(evicted(call, sizeof(call), NULL), -1, "syscall");
	cr_expect_eq(evicted(trap, sizeof(trap), NULL), -1, "ud2");
	cr_expect_eq(evicted(int80, sizeof(int80), NULL), -1, "int $0x80");
	cr_expect_eq(evicted(eip, sizeof(eip), NULL), -1, "an address relative to eip");
}

/* Bytes that decode as instructions by chance must not be changed. */
Test(evict, data_in_a_function_is_left_alone)
{
	uint8_t zeros[sizeof(easy) + 4] = {0}, undecodable[sizeof(easy) + 1] = {0}, jump[sizeof(easy)];
	memcpy(zeros, easy, sizeof(easy));
	memcpy(undecodable, easy, sizeof(easy));
	memcpy(jump, easy, sizeof(easy));
	undecodable[sizeof(easy)] = 0x06;
	cr_expect_eq(evicted(zeros, sizeof(zeros), NULL), 1, "control reaches the successor");
	cr_expect_eq(evicted(undecodable, sizeof(undecodable), NULL), 1, "control reaches the successor");
	jump[0] = 0xeb; /* jmp .+4: in a function that holds data, the bytes after it may be anything */
	jump[1] = 0x02;
	zeros[0] = undecodable[0] = 0xeb;
	zeros[1] = undecodable[1] = 0x02;
	cr_expect_eq(evicted(jump, sizeof(jump), NULL), -1, "the jump leads into it");
	jump[1] = 0x05;
	cr_expect_eq(evicted(jump, sizeof(jump), NULL), 1);
	cr_expect_eq(evicted(zeros, sizeof(zeros), NULL), -1);
	cr_expect_eq(evicted(undecodable, sizeof(undecodable), NULL), -1);
}

/* In a process of one thread glibc jumps over the lock prefix: there the jump of an evicted instruction would be entered. */
Test(evict, what_is_entered_in_its_middle_is_neither_probed_nor_evicted)
{
	static const uint8_t behind[] = {0x74, 0x01, 0xf0, 0x48, 0x0f, 0xb1, 0x0d, 1, 2, 3, 4};
	static const uint8_t near[] = {0x31, 0xc0, 0x0f, 0x05, 0x74, 0x01, 0xf0, 0x48, 0x0f, 0xb1, 0x0d, 1, 2, 3, 4};
	static const unsigned tactics[] = {0, 1u << DP_TACTIC_JUMP, 1u << DP_TACTIC_PUN, 1u << DP_TACTIC_TRAP};
	uint8_t code[SIZE], other[sizeof(near)];
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	cr_expect_eq(evicted(behind, sizeof(behind), NULL), -1, "control reaches it");
	memcpy(other, near, sizeof(near));
	other[5] = 0; /* the same branch, to the instruction's start */
	for (unsigned entered = 0; entered < 2; entered++) {
		craft(code, entered ? near : other, sizeof(near));
		helper_code(&m, AT, code, SIZE);
		world_init(&w, &m);
		const struct dp_plan *all;
		add(&w, AT + 64, 1u << DP_TACTIC_EVICT, &plan);
		const size_t n = dp_planner_plans(w.planner, &all);
		cr_expect_eq(moved(all, n, AT + 70), !entered, "a neighbour with room for two jumps");
		world_fini(&w);
	}
	for (size_t i = 0; i < sizeof(tactics) / sizeof(*tactics); i++) {
		world_init(&w, &m);
		cr_expect_eq(add(&w, AT + 70, tactics[i], &plan), DP_TAG_NOT_BOUNDARY);
		world_fini(&w);
	}
}

Test(evict, DP_RSEQ_neither_probed_nor_evicted)
{
	static const struct dp_protected successor = {AT + 66, 1, ""}, site = {AT + 65, 1, ""};
	uint8_t code[SIZE];
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	cr_expect_eq(evicted(easy, sizeof(easy), &successor), -1, "a range that begins with the successor");
	craft(code, easy, sizeof(easy));
	helper_code(&m, AT, code, SIZE);
	m.text.keep = &site;
	m.text.nkeep = 1;
	world_init(&w, &m);
	cr_expect_eq(add(&w, AT + 64, 0, &plan), DP_TAG_RSEQ);
	cr_expect_eq(add(&w, AT + 64, 1u << DP_TACTIC_TRAP, &plan), DP_TAG_RSEQ);
	cr_expect_eq(add(&w, AT + 66, 1u << DP_TACTIC_JUMP, &plan), DP_TAG_COUNT, "after it");
	world_fini(&w);
}

/* A world in which the instruction at AT + 66 has been evicted for a probe at AT + 64. */
static struct dp_plan evict_one(struct world *w, struct helper_module *m)
{
	static uint8_t code[SIZE];
	struct dp_plan plan;
	const struct dp_plan *all;
	craft(code, easy, sizeof(easy));
	helper_code(m, AT, code, SIZE);
	world_init(w, m);
	cr_assert_eq(add(w, AT + 64, 1u << DP_TACTIC_EVICT, &plan), DP_TAG_COUNT);
	cr_assert_eq(dp_planner_plans(w->planner, &all), 2);
	cr_assert_eq(all[0].site, AT + 66);
	return all[0];
}

/* The address in the plan's stub at which the instruction at `addr` runs, 0: there is none. */
static uint64_t copy_of(const struct dp_plan *plan, uint64_t addr)
{
	for (uint8_t k = 0; k < plan->npairs; k++)
		if (plan->pair[k].original == addr && plan->pair[k].stub >= plan->stub && plan->pair[k].stub < plan->stub_end)
			return plan->pair[k].stub;
	return 0;
}

/* The way back must not lead to the successor's jump, in the middle of the site's own: that costs up to 11 ns. */
Test(evict, the_stub_goes_on_with_the_successor)
{
	struct helper_module m;
	struct world w;
	const struct dp_plan *all;
	size_t n;
	evict_one(&w, &m);
	dp_planner_plans(w.planner, &all);
	const uint64_t copy = copy_of(&all[1], AT + 66);
	cr_assert(copy);
	world_freeze(&w);
	const uint8_t *bytes = world_placed(&w, copy, &n);
	cr_expect_eq(memcmp(bytes, easy + 2, 5), 0, "a mov, not a jump");
	cr_expect_eq(world_follow_placed(&w, copy + 5), AT + 71);
	cr_expect_eq(helper_check_plans(&w, &m), 1);
	world_fini(&w);
}

/* ... unless the successor gets a probe, whose hits would be missing. */
Test(evict, the_stub_leads_to_the_successors_probe)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	const struct dp_plan *all;
	evict_one(&w, &m);
	w.request.probe = 7;
	for (unsigned i = 0; i < 2; i++) /* another one in front of it, too */
		cr_assert_eq(add(&w, AT + 66, 0, &plan), DP_TAG_COUNT);
	cr_assert_eq(dp_planner_plans(w.planner, &all), 3);
	cr_assert_eq(all[1].site, AT + 64);
	const uint64_t copy = copy_of(&all[1], AT + 66);
	cr_assert(copy);
	world_freeze(&w);
	cr_expect_eq(world_follow_placed(&w, copy), all[2].springboard);
	cr_expect_eq(world_follow_placed(&w, all[2].springboard), all[2].entry);
	cr_expect_not(copy_of(&all[1], AT + 71), "nothing runs after that jump");
	cr_expect_eq(helper_check_plans(&w, &m), 3);
	world_fini(&w);
}

/* A probe is requested at an evicted instruction: its jump stays, its stub becomes the probe's. */
Test(evict, an_evicted_instruction_becomes_a_probe_where_it_is)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	const struct dp_plan before = evict_one(&w, &m), *all;
	cr_assert_eq(before.probe, DP_NO_PROBE);
	cr_expect_not(before.calls_out);
	w.request.probe = 7;
	cr_assert_eq(add(&w, AT + 66, 0, &plan), DP_TAG_COUNT);
	cr_assert_eq(dp_planner_plans(w.planner, &all), 2);
	cr_expect_eq(all[0].probe, 7);
	cr_expect_eq(memcmp(all[0].new_bytes, before.new_bytes, sizeof(before.new_bytes)), 0);
	cr_expect_gt(all[0].stub_end - all[0].stub, before.stub_end - before.stub);
	cr_expect_eq(helper_check_plans(&w, &m), 2);
	world_fini(&w);
}

/* A hook is requested there: from then on its stub calls out. */
Test(evict, an_evicted_instruction_becomes_a_hook)
{
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	const struct dp_plan *all;
	evict_one(&w, &m);
	w.request.probe = DP_NO_PROBE;
	w.request.hook = AT;
	cr_assert_eq(add(&w, AT + 66, 0, &plan), DP_TAG_COUNT);
	cr_assert_eq(dp_planner_plans(w.planner, &all), 2);
	cr_expect_eq(all[0].site, AT + 66);
	cr_expect(all[0].calls_out);
	cr_expect_not(all[1].calls_out);
	world_fini(&w);
}

/* ---- replanning --------------------------------------------------------------------------------------------------------- */

/* A probe relies on the bytes of the next instruction, which is then requested too. */
Test(evict, who_is_in_the_way_is_placed_anew)
{
	static const uint8_t tail[] = {0x31, 0xc0, 0x89, 0xd1, 0x48, 0x89, 0xc7, 0xb8, 1, 0, 0, 0};
	uint8_t code[SIZE];
	struct helper_module m;
	struct world w;
	struct dp_plan plan;
	craft(code, tail, sizeof(tail));
	helper_code(&m, AT, code, SIZE);
	world_init(&w, &m);
	for (uint64_t at = AT + 60; at < AT + 64; at++)
		cr_assert_eq(add(&w, at, DP_TACTICS_LIVE, &plan), DP_TAG_COUNT);
	cr_assert_eq(add(&w, AT + 64, 1u << DP_TACTIC_PUN, &plan), DP_TAG_COUNT);
	cr_assert_eq(add(&w, AT + 66, DP_TACTICS_LIVE, &plan), DP_TAG_COUNT);
	cr_assert_eq(add(&w, AT + 68, DP_TACTICS_LIVE, &plan), DP_TAG_COUNT);
	cr_expect_eq(helper_check_plans(&w, &m), 7);
	world_fini(&w);
}

struct shot { /* the whole state of a planner */
	struct dp_plan *plan;
	size_t nplans;
	uint64_t addr[64];
	uint8_t *bytes;
	size_t nextents, size;
};

static void take(struct shot *s, struct dp_planner *planner)
{
	const struct dp_plan *plan;
	const struct dp_extent *extent;
	s->nplans = dp_planner_plans(planner, &plan);
	s->plan = malloc(s->nplans * sizeof(*plan));
	memcpy(s->plan, plan, s->nplans * sizeof(*plan));
	s->nextents = dp_planner_extents(planner, &extent);
	cr_assert_leq(s->nextents, 64);
	s->bytes = NULL;
	s->size = 0;
	for (size_t i = 0; i < s->nextents; i++) {
		s->addr[i] = extent[i].addr;
		s->bytes = realloc(s->bytes, s->size + extent[i].n);
		memcpy(s->bytes + s->size, extent[i].bytes, extent[i].n);
		s->size += extent[i].n;
	}
}

static void compare(const struct shot *a, const struct shot *b)
{
	cr_assert_eq(a->nplans, b->nplans);
	for (size_t i = 0; i < a->nplans; i++)
		cr_assert_eq(memcmp(&a->plan[i], &b->plan[i], sizeof(a->plan[i])), 0, "plan %zu at 0x%lx", i, a->plan[i].site);
	cr_assert(a->nextents == b->nextents && a->size == b->size);
	cr_assert_eq(memcmp(a->addr, b->addr, a->nextents * sizeof(*a->addr)), 0);
	cr_assert_eq(memcmp(a->bytes, b->bytes, a->size), 0);
}

static void drop(struct shot *s)
{
	free(s->plan);
	free(s->bytes);
}

/* Every second instruction of a piece of libc is planned, by all tactics; a request that fails changes nothing. */
Test(evict, a_request_that_fails_leaves_everything_exactly_as_it_was)
{
	static struct helper_module libc;
	struct world w;
	struct dp_plan plan;
	uint64_t seed = 12345;
	unsigned refused = 0;
	helper_libc(&libc);
	uint64_t at = helper_random_insn(&libc, &seed);
	while (!helper_function(&libc, at) || libc.text.size < 600 || libc.text.size > 3000)
		at = helper_random_insn(&libc, &seed);
	world_init(&w, &libc);
	at = libc.text.function;
	for (unsigned i = 0; at < libc.text.function + libc.text.size; i++) {
		struct dp_insn insn;
		cr_assert(dp_decode_zydis((const uint8_t *)at, DP_INSN_MAX, at, &insn));
		struct shot before = {0}, after = {0};
		if (i % 2 == 0) {
			add(&w, at, DP_TACTICS_LIVE, &plan);
		} else {
			take(&before, w.planner);
			if (add(&w, at, 1u << DP_TACTIC_WINDOW, &plan) != DP_TAG_COUNT) {
				take(&after, w.planner);
				compare(&before, &after);
				refused++;
			}
			drop(&before);
			drop(&after);
		}
		at += insn.len;
	}
	cr_expect_gt(refused, 5, "%u", refused);
	helper_check_plans(&w, &libc);
	world_fini(&w);
}

/* As dense as possible: whole functions, in random order, each instruction by any tactic. */
Test(evict, all_instructions_of_functions_in_random_order)
{
	static struct helper_module libc;
	struct world w;
	struct dp_plan plan;
	static uint64_t site[4000];
	uint64_t seed = 4711;
	size_t n = 0, placed = 0, probes = 0;
	helper_libc(&libc);
	world_init(&w, &libc);
	for (unsigned f = 0; f < 8; f++) {
		uint64_t at = helper_random_insn(&libc, &seed), first = n;
		if (!helper_function(&libc, at))
			continue;
		for (at = libc.text.function; at < libc.text.function + libc.text.size && n < 4000;) {
			struct dp_insn insn;
			cr_assert(dp_decode_zydis((const uint8_t *)at, DP_INSN_MAX, at, &insn));
			site[n++] = at;
			at += insn.len;
		}
		for (size_t i = n; i-- > first + 1;) {
			size_t k = first + helper_random(&seed) % (i - first + 1);
			uint64_t swap = site[i];
			site[i] = site[k];
			site[k] = swap;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (helper_function(&libc, site[i]))
			placed += add(&w, site[i], DP_TACTICS_LIVE, &plan) == DP_TAG_COUNT;
	cr_expect_gt(placed, n * 98 / 100, "%zu of %zu", placed, n);
	probes = helper_check_plans(&w, &libc);
	cr_expect_eq(probes, placed);
	world_fini(&w);
}
