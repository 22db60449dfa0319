/* SPDX-License-Identifier: MIT */
/*
 * Stubs that aggregate: correct sums from any state, in low memory and far, for a thread's own block and the shared one; the hit
 * leaves no trace.
 */
#include "test_stub_world.h"
#include "tests/unit/trampoline/emit/test_decimal.h"
#include "trampoline/arch/x86_64/emit/aggregate.h"
#include "trampoline/arch/x86_64/emit/pair.h"

#include <asm/hwcap2.h>
#include <sys/auxv.h>

#define PAIR   9u
#define SPREAD 0x9000u /* size of a shared block: it uses the room of both blocks */

struct home { /* state and cells, with the layout of a process */
	struct dp_agent agent;
	struct dp_aggs answers;
	struct dp_aggs_head head;
	uint64_t block[2][4096 + 2 * DP_AGG_PAIRS];
};

uint64_t answer_block, answer_shared, answer_asked;
void answer_thunk(void);
__asm__(".pushsection .text\n" /* obeys agent/abi.h, and destroys all that it may */
        "answer_thunk:\n"
        "	incq answer_asked(%rip)\n"
        "	mov answer_block(%rip),%rsi; mov answer_shared(%rip),%rcx\n"
        "	mov $0x5a5a5a5a5a5a5a5a,%rax; mov %rax,%rdx; add %rax,%rax; ret\n.popsection\n");

static struct home *home;
static struct probe probe;
static struct dp_agg answer;
static struct dp_expr arg = {.kind = DP_EXPR_REG, .reg = 7, .size = 8}; /* rdi */

/* BASE: identified by the base of fs; FIRST: likewise, and in no table; APART: threads cannot be identified */
enum who { KNOWN, BASE, FIRST, UNKNOWN, SHARED, APART };

static uint64_t self_key(void)
{
	uint64_t self;
	__asm__("mov %%fs:0,%0" : "=r"(self));
	return self;
}

/* Sets the table entry that the stub reads for us. */
static void set_entry(uint64_t key, uint64_t block)
{
	const uint64_t i = (self_key() * DP_HASH_MULT) >> (64 - DP_TABLE_BITS);
	home->agent.answer_key[i] = key;
	home->agent.answer_block[i] = block;
}

static void make_home(uint64_t at, enum who who)
{
	home = mmap((void *)at, sizeof(*home), PROT_READ | PROT_WRITE,
	            MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	cr_assert_neq(home, MAP_FAILED);
	world.rt.agent = (uint64_t)&home->agent;
	world.rt.cells = (uint64_t)&answer_thunk;
	world.rt.tick_ns = UINT64_C(3) << 31; /* 1.5 */
	make_decimal();
	world.rt.decimal = (uint64_t)&decimal;
	home->answers = (struct dp_aggs){.head = (uint64_t)&home->head};
	home->answers.size = sizeof(home->block[0]);
	home->answers.nblocks = 1;
	home->answers.pairs = 4096 * 8;
	home->answers.loss = 4000 * 8;
	world.rt.answers = home->answers;
	answer_block = (uint64_t)home->block[who == SHARED];
	answer_shared = who == SHARED;
	answer_asked = 0;
	world.rt.bases = who == BASE || who == FIRST;
	world.rt.identity = who == APART || world.rt.bases ? DP_ID_TID : DP_ID_SELF;
	home->agent.answer_first[0] = self_key() + (who == FIRST ? 0 : 1);
	home->agent.live = DP_LIVE;
	if (who == APART)
		world.rt.answers.size = SPREAD;
	if (who == KNOWN || who == BASE)
		set_entry(self_key(), (uint64_t)home->block[0]);
}

static void begin(uint64_t at, enum who who, const char *when)
{
	world_create(false);
	make_home(at, who);
	probe_init(&probe, NULL, when);
	probe.req.answer = &answer;
}

static void end(void)
{
	probe_fini(&probe);
	munmap(home, sizeof(*home));
	world_destroy();
}

static uint64_t *cells_of(enum who who)
{
	return home->block[who == SHARED] + WORLD_PROBE * (dp_agg_words(&answer) + dp_agg_pending(&answer));
}

/* One hit from a random state with this rdi. */
static struct machine hit(uint64_t rdi)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	machine_randomize(&in, world.stack);
	in.gpr[7] = rdi;
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, probe.entry);
	if (probe.req.text) /* the program overwrites the flags next */
		out.rflags = in.rflags;
	world_check_state(&in, &out, before, DP_STUB_STACK);
	return in;
}

/* Numbers of every size, and those at the bounds. */
static uint64_t value(unsigned i)
{
	const uint64_t one = UINT64_C(1) << (i / 4 % 64), near[] = {one - 1, one, one + 1, machine_random() >> (i % 64)};
	return i % 8 < 4 ? near[i % 4] : -near[i % 4];
}

static unsigned log2_bucket(int64_t v)
{
	unsigned bucket = 0;
	if (v < 0)
		return DP_AGG_LOG2_WORDS - 1;
	for (; v; v >>= 1)
		bucket++;
	return bucket;
}

static unsigned linear_bucket(int64_t v)
{
	if (v < answer.low)
		return 0;
	const uint64_t at = (uint64_t)v - (uint64_t)answer.low;
	return at / answer.step < answer.buckets ? (unsigned)(at / answer.step) + 1 : answer.buckets + 1;
}

static void add_part(const struct dp_agg *part, uint64_t *want, int64_t v)
{
	if (part->what & DP_AGG_LOG2)
		want[log2_bucket(v)]++;
	else if (part->what & DP_AGG_DECIMAL)
		want[decimal_bucket(v)]++;
	else if (part->what & DP_AGG_LINEAR)
		want[linear_bucket(v)]++;
	else
		want[0]++;
	if (part->what & DP_AGG_SUM)
		want[DP_AGG_WORD_SUM] += (uint64_t)v;
	const uint64_t up = (uint64_t)v ^ UINT64_C(1) << 63;
	if (part->what & DP_AGG_MAX && want[DP_AGG_WORD_MAX] < up)
		want[DP_AGG_WORD_MAX] = up;
	if (part->what & DP_AGG_MIN && want[DP_AGG_WORD_MIN] < ~up)
		want[DP_AGG_WORD_MIN] = ~up;
}

static void add(uint64_t *want, int64_t v)
{
	for (const struct dp_agg *part = &answer; part; want += dp_agg_own_words(part), part = part->next)
		add_part(part, want, v);
}

/* Adds up in the first block what the stub has spread over several. */
static void gather(void)
{
	const unsigned words = dp_agg_words(&answer), at = WORLD_PROBE * (words + dp_agg_pending(&answer));
	const bool extremes = answer.what & (DP_AGG_MIN | DP_AGG_MAX);
	for (unsigned b = 1; b < 1u << DP_AGG_SPREAD_BITS; b++) {
		uint64_t *from = &home->block[0][b * SPREAD / 8 + at], *to = &home->block[0][at];
		for (unsigned i = 0; i < words; i++) {
			if (!extremes || (i != DP_AGG_WORD_MAX && i != DP_AGG_WORD_MIN))
				to[i] += from[i];
			else if (to[i] < from[i])
				to[i] = from[i];
			from[i] = 0;
		}
	}
}

static void check_empty(void)
{
	const uint8_t *bytes = (const uint8_t *)home->block;
	for (size_t i = 0; i < sizeof(home->block); i++)
		cr_assert_eq(bytes[i], 0, "byte %zu of the blocks", i);
}

/* xor %eax,%eax: the flags are free. */
static const struct dp_segment segment = {UINT64_C(0x123456789abc), (const uint8_t *)"\x31\xc0", 2, true};
static const struct dp_text text = {.segment = &segment, .nsegments = 1};

static void check(uint64_t at, enum who who)
{
	uint64_t want[4096] = {0};
	const unsigned words = dp_agg_words(&answer);
	begin(at, who, NULL);
	if (machine_random() % 2)
		probe.req.text = &text;
	probe_place(&probe, 64 * (machine_random() % 16), NULL);
	for (unsigned i = 0; i < 1024; i++) {
		const uint64_t v = value(i);
		hit(v);
		add(want, (int64_t)v);
	}
	if (who == APART)
		gather();
	cr_assert_arr_eq(cells_of(who), want, words * sizeof(*want), "kind %x, at %lx, who %d", answer.what, at, who);
	memset(cells_of(who), 0, words * sizeof(*want));
	check_empty();
	const bool far = at > UINT32_MAX; /* from there, stubs do not look at the first blocks' keys */
	cr_assert_eq(answer_asked, who == UNKNOWN || who == SHARED || (who == FIRST && far) ? 1024 : 0);
	end();
}

static void check_everywhere(struct dp_agg of)
{
	answer = of;
	for (unsigned i = 0; i < 4; i++)
		check(0x30000000, KNOWN);
	for (enum who who = KNOWN; who <= APART; who++) {
		if ((who == BASE || who == FIRST) && !(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
			continue;
		check(0x30000000, who);
		check(UINT64_C(1) << 45, who);
	}
}

Test(answer, counts)
{
	check_everywhere((struct dp_agg){.what = DP_AGG_COUNT});
}

Test(answer, sums_least_and_greatest_of_any_sign)
{
	check_everywhere((struct dp_agg){.what = DP_AGG_SUM | DP_AGG_MIN | DP_AGG_MAX, .value = &arg});
	check_everywhere((struct dp_agg){.what = DP_AGG_MIN, .value = &arg});
}

Test(answer, powers_of_two)
{
	check_everywhere((struct dp_agg){.what = DP_AGG_LOG2, .value = &arg});
}

/* Every bound, and the numbers beside it. */
Test(answer, decimal_steps)
{
	uint64_t want[DP_AGG_DECIMAL_WORDS] = {0};
	check_everywhere((struct dp_agg){.what = DP_AGG_DECIMAL, .value = &arg});
	begin(0x30000000, KNOWN, NULL);
	probe_place(&probe, 0, NULL);
	for (unsigned i = 0; i < DP_AGG_DECIMAL_WORDS - 1; i++)
		for (int64_t v = dp_decimal_from(i) - 1; v <= dp_decimal_from(i) + 1; v++) {
			hit((uint64_t)v);
			want[decimal_bucket(v)]++;
			cr_expect_eq(dp_decimal_bucket(v), decimal_bucket(v), "%ld", v);
		}
	cr_expect_arr_eq(cells_of(KNOWN), want, sizeof(want));
	end();
}

Test(answer, steps_narrow_and_wide)
{
	static const struct {
		int64_t low;
		uint64_t step;
		uint32_t buckets;
	} of[] = {{0, 1, 10}, {-7, 3, 100}, {0, 1000, 4000}, {-1000000, 4294967, 900}, {INT64_MIN, UINT64_C(1) << 54, 1000},
	          {5, 7, 1}};
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		answer = (struct dp_agg){
		        .what = DP_AGG_LINEAR, .value = &arg, .low = of[i].low, .step = of[i].step, .buckets = of[i].buckets};
		check(0x30000000, KNOWN);
		check(UINT64_C(1) << 45, SHARED);
	}
}

Test(answer, several_of_one_hit)
{
	struct dp_agg last = {.what = DP_AGG_COUNT}, next = {.what = DP_AGG_LOG2, .value = &arg, .next = &last};
	check_everywhere((struct dp_agg){.what = DP_AGG_SUM | DP_AGG_MIN | DP_AGG_MAX, .value = &arg, .next = &next});
}

/* A hit counts for all of them or for none. */
Test(answer, none_of_several_if_a_value_cannot_be_computed)
{
	struct dp_expr zero = {.kind = DP_EXPR_CONST};
	struct dp_expr quotient = {.kind = DP_EXPR_BINARY, .op = DP_OP_UDIV, .a = &arg, .b = &arg};
	struct dp_agg next = {.what = DP_AGG_SUM, .value = &quotient};
	answer = (struct dp_agg){.what = DP_AGG_LOG2, .value = &zero, .next = &next};
	begin(0x30000000, KNOWN, NULL);
	probe_place(&probe, 0, NULL);
	for (unsigned k = 0; k < 10; k++)
		hit(k % 2);
	cr_expect_eq(cells_of(KNOWN)[0], 5);
	cr_expect_eq(cells_of(KNOWN)[DP_AGG_LOG2_WORDS], 5);
	cr_expect_eq(cells_of(KNOWN)[DP_AGG_LOG2_WORDS + DP_AGG_WORD_SUM], 5);
	end();
}

Test(answer, only_where_the_condition_holds)
{
	static const char *const when[] = {"rdi == 5", "rdi * 3 + rsp - rsp == 15"};
	answer = (struct dp_agg){.what = DP_AGG_COUNT};
	for (size_t i = 0; i < 4; i++) {
		begin(0x30000000, KNOWN, when[i / 2]);
		probe.req.text = i % 2 ? &text : NULL;
		probe_place(&probe, 0, NULL);
		for (unsigned k = 0; k < 100; k++)
			hit(k % 10);
		cr_expect_eq(cells_of(KNOWN)[0], 10, "%s", when[i / 2]);
		end();
	}
}

/* In a fork child nothing points to the parent's cells any more; the agent reports that there are none. */
Test(answer, nothing_without_a_block)
{
	answer = (struct dp_agg){.what = DP_AGG_COUNT};
	begin(0x30000000, KNOWN, NULL);
	set_entry(0, 0);
	answer_block = 0;
	probe_place(&probe, 0, NULL);
	for (unsigned k = 0; k < 50; k++)
		hit(k);
	cr_expect_eq(answer_asked, 50);
	check_empty();
	end();
}

/* ---- durations ---- */

static struct dp_expr took = {.kind = DP_EXPR_FACT, .value = DP_FACT_DURATION};
static struct probe entry;

static struct dp_agg_pair *pair_at(uint64_t rsp)
{
	struct dp_agg_pair *pairs = (void *)((uint8_t *)home->block[0] + home->answers.pairs);
	return &pairs[rsp >> 4 & (DP_AGG_PAIRS - 1)];
}

static void begin_timed(void)
{
	answer = (struct dp_agg){.what = DP_AGG_SUM | DP_AGG_MIN | DP_AGG_MAX, .value = &took};
	begin(0x30000000, KNOWN, NULL);
	probe.req.pair = PAIR;
	probe_place(&probe, 0, NULL);
	probe_init(&entry, NULL, NULL);
	entry.req.pair = PAIR;
	entry.req.enters = true;
	entry.req.probe = DP_NO_PROBE;
	probe_place(&entry, 4096, NULL);
}

static void run_at(const struct probe *p, uint64_t rsp)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	machine_randomize(&in, world.stack);
	in.gpr[4] = rsp;
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p->entry);
	world_check_state(&in, &out, before, DP_STUB_STACK);
}

static const struct dp_agg_loss *loss(void)
{
	return (const struct dp_agg_loss *)(const void *)((uint8_t *)home->block[0] + home->answers.loss) + WORLD_PROBE;
}

Test(answer, NO_VALUE_for_calls_of_goroutines_without_a_base_of_fs)
{
	struct dp_runtime rt = {.identity = DP_ID_TID};
	struct dp_error *err = dp_pair_goroutine_check(&rt);
	cr_assert_not_null(err);
	cr_expect_eq(err->tag, DP_TAG_NO_VALUE);
	dp_error_destroy(err);
	rt.bases = true;
	cr_expect_null(dp_pair_goroutine_check(&rt));
	rt = (struct dp_runtime){.identity = DP_ID_SELF};
	cr_expect_null(dp_pair_goroutine_check(&rt));
}

Test(answer, a_return_finds_the_entry_at_its_stack_address_once)
{
	begin_timed();
	const uint64_t top = ((uint64_t)world.stack + MACHINE_STACK / 2) & ~UINT64_C(15);
	for (unsigned k = 0; k < 20; k++)
		run_at(&entry, top - 16 * k - 8); /* recursion */
	for (unsigned k = 20; k-- > 0;)
		run_at(&probe, top - 16 * k - 8);
	cr_expect_eq(cells_of(KNOWN)[DP_AGG_WORD_COUNT], 20);
	cr_expect_eq(loss()->unpaired, 0);
	run_at(&probe, top - 8);
	run_at(&probe, top - 500 * 16);
	cr_expect_eq(cells_of(KNOWN)[DP_AGG_WORD_COUNT], 20);
	cr_expect_eq(loss()->unpaired, 2);
	end();
}

Test(answer, another_function_or_stack_at_the_same_place_is_no_pair)
{
	begin_timed();
	const uint64_t rsp = (((uint64_t)world.stack + MACHINE_STACK / 2) & ~UINT64_C(15)) - 8;
	run_at(&entry, rsp);
	pair_at(rsp)->call ^= 1; /* another number */
	run_at(&probe, rsp);
	run_at(&entry, rsp);
	pair_at(rsp)->call += (uint64_t)DP_AGG_PAIRS << 20; /* 256 KiB further */
	run_at(&probe, rsp);
	cr_expect_eq(cells_of(KNOWN)[DP_AGG_WORD_COUNT], 0);
	cr_expect_eq(loss()->unpaired, 2);
	end();
}

/* The entry that longjmp() left at a stack address is replaced by the next call's. */
Test(answer, a_new_call_takes_the_place_of_one_that_never_returned)
{
	begin_timed();
	const uint64_t rsp = (((uint64_t)world.stack + MACHINE_STACK / 2) & ~UINT64_C(15)) - 8;
	run_at(&entry, rsp);
	pair_at(rsp)->tsc -= UINT64_C(1) << 50;
	run_at(&entry, rsp);
	run_at(&probe, rsp);
	cr_expect_eq(cells_of(KNOWN)[DP_AGG_WORD_COUNT], 1);
	cr_expect_lt(cells_of(KNOWN)[DP_AGG_WORD_SUM], UINT64_C(1) << 50);
	end();
}

Test(answer, durations_are_in_ns)
{
	begin_timed();
	const uint64_t rsp = (((uint64_t)world.stack + MACHINE_STACK / 2) & ~UINT64_C(15)) - 8;
	run_at(&entry, rsp);
	pair_at(rsp)->tsc -= UINT64_C(1) << 50;
	run_at(&probe, rsp);
	const uint64_t ns = cells_of(KNOWN)[DP_AGG_WORD_SUM], least = UINT64_C(3) << 49; /* 1.5 ns a tick */
	cr_expect_geq(ns, least);
	cr_expect_lt(ns, least + (UINT64_C(1) << 44));
	end();
}

/* Buckets as the tool reads them: each hit is in one. */
static void check_buckets(const uint64_t *want)
{
	const uint64_t *cells = cells_of(KNOWN), last = cells[dp_agg_words(&answer)];
	for (unsigned i = 0; i < dp_agg_words(&answer); i++)
		cr_expect_eq(cells[i] + (last == i + 1), want[i], "bucket %u", i);
}

static void histogram_of_durations(struct dp_agg of)
{
	uint64_t want[128] = {0};
	begin_timed();
	answer = of;
	probe_place(&probe, 0, NULL);
	const uint64_t rsp = (((uint64_t)world.stack + MACHINE_STACK / 2) & ~UINT64_C(15)) - 8;
	check_buckets(want);
	for (unsigned k = 0; k < 100; k++) {
		const unsigned shift = 30 + (unsigned)(machine_random() % 20);
		run_at(&entry, rsp);
		pair_at(rsp)->tsc -= UINT64_C(1) << shift;
		run_at(&probe, rsp);
		const int64_t ns = (int64_t)(UINT64_C(3) << (shift - 1)); /* and some more */
		add(want, ns);
		check_buckets(want);
	}
	end();
}

Test(answer, each_duration_is_in_a_bucket_at_once)
{
	histogram_of_durations((struct dp_agg){.what = DP_AGG_LOG2, .value = &took});
	histogram_of_durations((struct dp_agg){.what = DP_AGG_DECIMAL, .value = &took});
	histogram_of_durations((struct dp_agg){.what = DP_AGG_LINEAR, .value = &took, .step = UINT64_C(1) << 43, .buckets = 90});
}

Test(answer, only_calls_that_took_long_enough)
{
	static const uint64_t least[] = {1, (UINT64_C(3) << 49) - 1, UINT64_C(1) << 60, UINT64_MAX};
	begin_timed();
	const uint64_t rsp = (((uint64_t)world.stack + MACHINE_STACK / 2) & ~UINT64_C(15)) - 8;
	for (unsigned k = 0; k < 4; k++) {
		probe.req.slower = least[k];
		probe_place(&probe, 0, NULL);
		run_at(&entry, rsp);
		pair_at(rsp)->tsc -= UINT64_C(1) << 50;
		run_at(&probe, rsp);
		cr_expect_eq(cells_of(KNOWN)[DP_AGG_WORD_COUNT], k < 2 ? k + 1 : 2);
		cr_expect_eq(pair_at(rsp)->call, 0);
	}
	end();
}
