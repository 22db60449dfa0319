/* SPDX-License-Identifier: MIT */
/*
 * Executes plans: every instruction of a function of this program is probed, one at a time, with every tactic that fits; the
 * function's results must not change. The probe's condition is false, so that no agent is needed.
 */
#include "helper_text.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/code/text.h"
#include "trampoline/space/space.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

/* Code like a program's: without the code that sanitizers insert between its instructions. */
#define IN_SECTION __attribute__((noinline, section("probe_me"), no_sanitize("address", "undefined")))
extern const uint8_t __start_probe_me[], __stop_probe_me[];
#define NEAR 256u

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

static struct {
	const struct dp_plan *plan;
} trapped;

/* Does what the agent does at a trap. */
static void on_trap(int sig, siginfo_t *info, void *data)
{
	ucontext_t *uc = data;
	(void)sig;
	(void)info;
	if (!trapped.plan || (uint64_t)uc->uc_mcontext.gregs[REG_RIP] != trapped.plan->site + 1)
		_exit(99);
	uc->uc_mcontext.gregs[REG_RIP] = (long long)trapped.plan->entry;
}

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
	const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
	memset(b, 0, sizeof(*b));
	sigaction(SIGTRAP, &action, NULL);
	helper_self(&b->self);
	cr_assert_null(dp_expr_parse("rsp == 1", &b->never));
	read_maps(maps, sizeof(maps));
	cr_assert_null(dp_image_create(maps, "", 0, &b->image));
	/* Evicted neighbours may be before the section and after it, as far as short jumps reach. */
	uint64_t page = dp_page_down((uint64_t)__start_probe_me - NEAR), end = dp_page_up((uint64_t)__stop_probe_me + NEAR);
	cr_assert_eq(mprotect((void *)page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	b->expected = result();
}

static void bench_fini(struct bench *b)
{
	dp_expr_destroy(b->never);
	dp_image_destroy(b->image);
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

static void write_plans(const struct dp_plan *plan, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		cr_assert_eq(memcmp((void *)plan[i].site, plan[i].old_bytes, plan[i].len), 0);
		memcpy((void *)plan[i].site, plan[i].new_bytes, plan[i].changed);
	}
}

static void take_out_plans(const struct dp_plan *plan, size_t n)
{
	while (n-- > 0)
		memcpy((void *)plan[n].site, plan[n].old_bytes, plan[n].changed);
}

/* Calls the function with all plans applied. */
static bool try_plans(struct bench *b, struct dp_planner *planner)
{
	const struct dp_extent *extent;
	const struct dp_plan *plan;
	size_t n = dp_planner_extents(planner, &extent), nplans = dp_planner_plans(planner, &plan);
	bool mapped = map_extents(extent, n);
	if (mapped) {
		write_plans(plan, nplans);
		trapped.plan = &plan[nplans - 1];
		uint64_t got = result();
		take_out_plans(plan, nplans);
		cr_assert_eq(got, b->expected, "%s at 0x%lx", dp_tactic_name(plan[nplans - 1].tactic), plan[nplans - 1].site);
	}
	for (size_t i = 0; i < n; i++)
		munmap((void *)extent[i].addr, extent[i].n);
	return mapped;
}

static struct dp_planner *new_planner(const struct bench *b, struct dp_space **space)
{
	const struct dp_runtime runtime = {.agent = 0x10000000, .acquire = 0x10100000, .tid_offset = 0x2d0};
	struct dp_planner *planner;
	cr_assert_null(dp_space_from_image(b->image, space));
	cr_assert_null(dp_planner_create(*space, &runtime, &planner));
	return planner;
}

static bool add(struct bench *b, struct dp_planner *planner, struct dp_request *request)
{
	struct dp_plan plan;
	request->text = &b->self.text;
	helper_function(&b->self, request->site);
	struct dp_error *err = dp_planner_add(planner, request, &plan);
	dp_error_destroy(err);
	return !err;
}

static void try_site(struct bench *b, uint64_t site, enum dp_tactic tactic)
{
	struct dp_request request = {
	        .site = site, .fields = &b->fields, .when = b->never, .lost = 0x20000000, .tactics = 1u << tactic};
	struct dp_space *space;
	struct dp_planner *planner = new_planner(b, &space);
	if (add(b, planner, &request) && try_plans(b, planner))
		b->placed[tactic]++;
	dp_planner_destroy(planner);
	dp_space_destroy(space);
}

static uint64_t next_insn(uint64_t at)
{
	struct dp_insn insn;
	cr_assert(dp_decode_zydis((const uint8_t *)at, (uint64_t)__stop_probe_me - at, at, &insn));
	return at + insn.len;
}

Test(plan_exec, a_function_goes_on_with_each_of_its_instructions_probed)
{
	static struct bench b;
	unsigned sites = 0;
	bench_init(&b);
	for (uint64_t at = (uint64_t)__start_probe_me, end = (uint64_t)__stop_probe_me; at < end; at = next_insn(at), sites++)
		for (enum dp_tactic tactic = DP_TACTIC_JUMP; tactic < DP_TACTIC_COUNT; tactic++)
			try_site(&b, at, tactic);
	for (enum dp_tactic tactic = DP_TACTIC_JUMP; tactic < DP_TACTIC_COUNT; tactic++)
		cr_expect_gt(b.placed[tactic], sites / 10, "%s: %u of %u", dp_tactic_name(tactic), b.placed[tactic], sites);
	bench_fini(&b);
}

/* All at once, in an order in which later requests are in the way of earlier ones. */
static void try_all(struct bench *b, unsigned tactics, size_t step)
{
	static struct dp_request request[2000];
	struct dp_space *space;
	struct dp_planner *planner = new_planner(b, &space);
	size_t n = 0, placed = 0;
	for (uint64_t at = (uint64_t)__start_probe_me; at < (uint64_t)__stop_probe_me && n < 2000; at = next_insn(at))
		request[n++] = (struct dp_request){
		        .site = at, .fields = &b->fields, .when = b->never, .lost = 0x20000000, .tactics = tactics};
	for (size_t first = 0; first < step; first++)
		for (size_t i = first; i < n; i += step)
			placed += add(b, planner, &request[i]);
	/* The exact number depends on the free addresses around this process. */
	cr_expect_gt(placed, n * 9 / 10, "%zu of %zu", placed, n);
	cr_assert(try_plans(b, planner), "the planned pages are not free");
	dp_planner_destroy(planner);
	dp_space_destroy(space);
}

Test(plan_exec, a_function_goes_on_with_all_of_its_instructions_probed_at_once)
{
	static struct bench b;
	bench_init(&b);
	try_all(&b, DP_TACTICS_LIVE, 1);
	try_all(&b, DP_TACTICS_LIVE, 7);
	try_all(&b, DP_TACTICS_JUMPS, 3);
	bench_fini(&b);
}

static unsigned called[3];

static void call_0(void)
{
	called[0]++;
}

static void call_1(void)
{
	called[1]++;
}

static void call_2(void)
{
	called[2]++;
}

/* Three hooks at one site, each with its own plan: each hit calls all of them, with every tactic. */
static void try_stack(struct bench *b, uint64_t site, enum dp_tactic tactic)
{
	void (*const hook[])(void) = {call_0, call_1, call_2};
	struct dp_request request[3];
	struct dp_space *space;
	struct dp_planner *planner = new_planner(b, &space);
	bool good = true;
	memset(called, 0, sizeof(called));
	for (unsigned i = 0; i < 3 && good; i++) {
		request[i] = (struct dp_request){
		        .site = site, .probe = DP_NO_PROBE, .hook = (uint64_t)hook[i], .tactics = 1u << tactic};
		good = add(b, planner, &request[i]);
		cr_expect(good || !i, "%s at 0x%lx: a further hook was refused", dp_tactic_name(tactic), site);
	}
	if (good && try_plans(b, planner) && called[0]) {
		cr_assert(called[0] == called[1] && called[0] == called[2], "%s at 0x%lx: %u %u %u", dp_tactic_name(tactic), site,
		          called[0], called[1], called[2]);
		b->placed[tactic]++;
	}
	dp_planner_destroy(planner);
	dp_space_destroy(space);
}

Test(plan_exec, several_probes_at_one_site_are_all_hit)
{
	static struct bench b;
	bench_init(&b);
	for (uint64_t at = (uint64_t)__start_probe_me; at < (uint64_t)__stop_probe_me; at = next_insn(at))
		for (enum dp_tactic tactic = DP_TACTIC_JUMP; tactic < DP_TACTIC_TRAP; tactic++)
			try_stack(&b, at, tactic);
	for (enum dp_tactic tactic = DP_TACTIC_JUMP; tactic < DP_TACTIC_TRAP; tactic++)
		cr_expect_gt(b.placed[tactic], 5, "%s: %u", dp_tactic_name(tactic), b.placed[tactic]);
	bench_fini(&b);
}

/* Hits of the hook at `site`, with or without an evicting probe at the instruction before it. UINT_MAX: not possible here. */
static unsigned hits_after(struct bench *b, uint64_t before, uint64_t site)
{
	struct dp_request first = {
	        .site = before, .probe = DP_NO_PROBE, .hook = (uint64_t)call_0, .tactics = 1u << DP_TACTIC_EVICT};
	struct dp_request second = {.site = site, .probe = DP_NO_PROBE, .hook = (uint64_t)call_1, .tactics = DP_TACTICS_LIVE};
	struct dp_space *space;
	struct dp_planner *planner = new_planner(b, &space);
	memset(called, 0, sizeof(called));
	bool good = (!before || add(b, planner, &first)) && add(b, planner, &second) && try_plans(b, planner);
	dp_planner_destroy(planner);
	dp_space_destroy(space);
	return good ? called[1] : UINT_MAX;
}

Test(plan_exec, a_probe_on_an_evicted_instruction_misses_no_hit)
{
	static struct bench b;
	unsigned both = 0;
	uint64_t before = 0;
	bench_init(&b);
	for (uint64_t at = (uint64_t)__start_probe_me; at < (uint64_t)__stop_probe_me; before = at, at = next_insn(at)) {
		const unsigned alone = hits_after(&b, 0, at), after = before ? hits_after(&b, before, at) : UINT_MAX;
		if (alone == UINT_MAX || after == UINT_MAX || !alone)
			continue;
		cr_assert_eq(alone, after, "0x%lx, evicted for 0x%lx: %u, %u", at, before, alone, after);
		both++;
	}
	cr_expect_gt(both, 20, "%u", both);
	bench_fini(&b);
}
