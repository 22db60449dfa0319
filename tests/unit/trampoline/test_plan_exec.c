/* SPDX-License-Identifier: MIT */
/*
 * Plans carried out: every instruction of a function of this program is probed, one at a time, with every tactic that fits; the
 * function must go on computing what it computed. The probe's condition is false, so that no agent is needed.
 */
#include "helper_text.h"

#include "trampoline/arch/x86_64/decode.h"
#include "trampoline/space.h"
#include "trampoline/text.h"

#include "trampoline/arch/x86_64/tactics.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define IN_SECTION __attribute__((noinline, section("probe_me")))
extern const uint8_t __start_probe_me[], __stop_probe_me[];

static double scale = 0.5;
static const char *const words[] = {"one", "three", "seventeen", "", "x"};

IN_SECTION static uint64_t leaf(uint64_t a, uint64_t b)
{
	volatile uint64_t red_zone[4] = {a, b, a ^ b, a + b};
	return red_zone[a % 4] * 31 + red_zone[b % 4];
}

IN_SECTION static uint64_t choose(uint64_t v)
{
	switch (v % 7) {
	case 0:
		return v + 1;
	case 1:
		return v * 3;
	case 2:
		return v ^ 0x55;
	case 3:
		return v >> 2;
	case 4:
		return leaf(v, v + 1);
	case 5:
		return strlen(words[v % 5]);
	default:
		return v - 9;
	}
}

IN_SECTION static uint64_t compute(uint64_t n, uint64_t (*step)(uint64_t))
{
	uint64_t sum = n;
	double real = (double)n;
	for (uint64_t i = 0; i < n; i++) {
		sum = sum * 6364136223846793005u + step(i + sum % 11);
		if (sum & 8)
			sum += leaf(i, n);
		else if ((int64_t)sum < 0)
			sum /= i + 3;
		real = real * scale + (double)(sum % 1000);
	}
	return sum ^ (uint64_t)real ^ step(n);
}

static uint64_t result(void)
{
	uint64_t (*volatile f)(uint64_t, uint64_t(*)(uint64_t)) = compute;
	return f(40, choose) + f(3, choose);
}

struct bench {
	struct helper_module self;
	struct dp_image *image;
	struct dp_fields fields;
	struct dp_expr *never;
	unsigned placed[DP_TACTIC_COUNT];
	uint64_t expected;
};

static void read_maps(char *text, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	cr_assert(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

static void bench_init(struct bench *b)
{
	static char maps[65536];
	memset(b, 0, sizeof(*b));
	helper_self(&b->self);
	cr_assert_null(dp_expr_parse("rsp == 1", &b->never));
	read_maps(maps, sizeof(maps));
	cr_assert_null(dp_image_create(maps, "", 0, &b->image));
	uint64_t page = dp_page_down((uint64_t)__start_probe_me), end = dp_page_up((uint64_t)__stop_probe_me);
	cr_assert_eq(mprotect((void *)page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	b->expected = result();
}

static bool map_extents(const struct dp_extent *extent, size_t n)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	for (size_t i = 0; i < n; i++) {
		if (mmap((void *)extent[i].addr, extent[i].n, PROT_READ | PROT_WRITE, flags, -1, 0) != (void *)extent[i].addr)
			return false;
		memcpy((void *)extent[i].addr, extent[i].bytes, extent[i].n);
		mprotect((void *)extent[i].addr, extent[i].n, PROT_READ | PROT_EXEC);
	}
	return true;
}

/* Calls the function with the plan in force. */
static void try_plan(struct bench *b, struct dp_planner *planner, const struct dp_plan *plan)
{
	const struct dp_extent *extent;
	size_t n = dp_planner_extents(planner, &extent);
	if (map_extents(extent, n)) {
		memcpy((void *)plan->site, plan->new_bytes, plan->len);
		uint64_t got = result();
		memcpy((void *)plan->site, plan->old_bytes, plan->len);
		cr_assert_eq(got, b->expected, "%s at 0x%lx", dp_tactic_name(plan->tactic), plan->site);
		b->placed[plan->tactic]++;
	}
	for (size_t i = 0; i < n; i++)
		munmap((void *)extent[i].addr, extent[i].n);
}

static void try_site(struct bench *b, uint64_t site, enum dp_tactic tactic)
{
	const struct dp_runtime runtime = {.agent = 0x10000000, .acquire = 0x10100000, .tid_offset = 0x2d0};
	struct dp_request request = {
	        .site = site, .text = &b->self.text, .fields = &b->fields, .when = b->never, .lost = 0x20000000};
	struct dp_space *space;
	struct dp_planner *planner;
	struct dp_plan plan;
	cr_assert_null(dp_space_from_image(b->image, &space));
	cr_assert_null(dp_planner_create(space, &runtime, &planner));
	request.tactics = 1u << tactic;
	helper_function(&b->self, site);
	struct dp_error *err = dp_planner_add(planner, &request, &plan);
	if (!err)
		try_plan(b, planner, &plan);
	dp_error_destroy(err);
	dp_planner_destroy(planner);
	dp_space_destroy(space);
}

Test(plan_exec, a_function_goes_on_with_each_of_its_instructions_probed)
{
	static struct bench b;
	unsigned sites = 0;
	bench_init(&b);
	for (uint64_t at = (uint64_t)__start_probe_me, end = (uint64_t)__stop_probe_me; at < end;) {
		struct dp_insn insn;
		cr_assert(dp_decode_zydis((const uint8_t *)at, end - at, at, &insn));
		for (size_t n = 0, tactic = dp_tactics[0].tactic; n < dp_ntactics; tactic = dp_tactics[++n % dp_ntactics].tactic)
			try_site(&b, at, (enum dp_tactic)tactic);
		sites++;
		at += insn.len;
	}
	for (size_t n = 0, tactic = dp_tactics[0].tactic; n < dp_ntactics; tactic = dp_tactics[++n % dp_ntactics].tactic)
		cr_expect_gt(b.placed[tactic], sites / 10, "%s: %u of %u", dp_tactic_name((enum dp_tactic)tactic),
		             b.placed[tactic], sites);
	dp_expr_destroy(b.never);
	dp_image_destroy(b.image);
}
