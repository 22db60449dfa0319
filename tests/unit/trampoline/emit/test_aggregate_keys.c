/* SPDX-License-Identifier: MIT */
/* Stubs whose key is several values: what the agent gets, and that the hit leaves no trace. */
#include "test_stub_world.h"

static uint64_t keyed_words[8], keyed_cells[DP_AGG_WORDS];
static unsigned keyed_asked;
static const struct dp_probe_desc *keyed_desc;

/* In the place of the agent, so it keeps to general registers, and a sanitizer's checks would not. */
__attribute__((target("general-regs-only"), no_sanitize("address", "undefined"))) static void
note_key(const uint64_t *words, const struct dp_probe_desc *desc)
{
	keyed_asked++;
	keyed_desc = desc;
	for (unsigned i = 0; i < 8; i++)
		keyed_words[i] = words[i];
}

void (*keyed_note)(const uint64_t *, const struct dp_probe_desc *) = note_key;
uint64_t *keyed_result = keyed_cells;
void keyed_thunk(void);
__asm__(".pushsection .text\n" /* the stub's rax, rcx, rdx and rsi are free */
        "keyed_thunk:\n"
        "	push %rdi; push %r8; push %r9; push %r10; push %r11; push %rbp\n"
        "	mov %rsp,%rbp; and $-16,%rsp; mov %rdx,%rdi; mov %rax,%rsi; call *keyed_note(%rip); mov %rbp,%rsp\n"
        "	pop %rbp; pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi\n"
        "	mov keyed_result(%rip),%rsi; xor %ecx,%ecx; ret\n.popsection\n");

static struct machine hit(const struct probe *p, uint64_t rdi)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	machine_randomize(&in, world.stack);
	in.gpr[7] = rdi;
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p->entry);
	/* With a small stack the agent takes another one; note_apart() and note_key(), which may not be optimized, do not. */
	world_check_state(&in, &out, before, DP_STUB_STACK_CALLS + (p->req.small_stack ? 256 : 0));
	return in;
}

Test(answer_keys, several_values_and_the_return_address)
{
	struct dp_expr arg = {.kind = DP_EXPR_REG, .reg = 7, .size = 8}, caller = {.kind = DP_EXPR_FACT, .value = DP_FACT_CALLER};
	struct dp_agg next = {.what = DP_AGG_COUNT};
	struct dp_agg answer = {.what = DP_AGG_COUNT, .key = {&arg, &caller}, .nkeys = 2, .next = &next};
	struct probe probe;
	world_create(false);
	world.rt.answers.head = 4096;
	world.rt.keyed = (uint64_t)&keyed_thunk;
	probe_init(&probe, NULL, NULL);
	probe.req.answer = &answer;
	probe_place(&probe, 0, NULL);
	for (unsigned k = 0; k < 3; k++) {
		const struct machine in = hit(&probe, 77 + k);
		uint64_t top;
		memcpy(&top, (const void *)in.gpr[4], sizeof(top));
		cr_expect_eq(keyed_words[0], 2);
		cr_expect_eq(keyed_words[1], 77 + k);
		cr_expect_eq(keyed_words[2], top, "the word at the top of the stack");
	}
	cr_expect_eq(keyed_asked, 3);
	cr_expect_eq(keyed_cells[0], 3);
	cr_expect_eq(keyed_cells[1], 3);
	probe_fini(&probe);
	world_destroy();
}

static void begin(struct probe *probe, const struct dp_agg *answer, bool faults)
{
	world_create(faults);
	world.rt.answers.head = 4096;
	world.rt.keyed = (uint64_t)&keyed_thunk;
	probe_init(probe, NULL, NULL);
	probe->req.answer = answer;
	probe_place(probe, 0, NULL);
	keyed_asked = 0;
	keyed_cells[0] = 0;
}

/* The agent gets the string's address and length, and an operation for each string. */
Test(answer_keys, strings)
{
	struct dp_expr arg = {.kind = DP_EXPR_REG, .reg = 7, .size = 8}, length = {.kind = DP_EXPR_REG, .reg = 6, .size = 8};
	struct dp_expr k = {.kind = DP_EXPR_CONST, .value = 5};
	struct dp_agg answer = {.what = DP_AGG_COUNT,
	                        .key = {&arg, &k, &length},
	                        .nkeys = 3,
	                        .text = {{.size = 68}, {0}, {.size = 132, .count = &arg, .count_is_signed = true}}};
	struct probe probe;
	begin(&probe, &answer, false);
	const struct machine in = hit(&probe, 1234);
	const struct dp_op *op = (const void *)((const uint8_t *)keyed_desc + keyed_desc->reserve);
	cr_expect_eq(keyed_words[0], 3);
	cr_expect_eq(keyed_words[1], 1234);
	cr_expect_eq(keyed_words[2], 5);
	cr_expect_eq(keyed_words[3], in.gpr[6]);
	cr_expect_eq(keyed_words[4], 1234, "the length");
	cr_expect_eq(keyed_desc->stack_words, 1 + 3 + 9 + 17);
	cr_expect_eq(op[0].field, 1);
	cr_expect_eq(op[0].size, 68);
	cr_expect_eq(op[0].count, DP_COUNT_NONE);
	cr_expect_eq(op[1].field, 3);
	cr_expect_eq(op[1].size, 132);
	cr_expect_eq(op[1].count, DP_COUNT_SIGNED);
	cr_expect_eq(op[1].addr, 4);
	cr_expect_eq(op[2].field, 0, "the last one");
	cr_expect_eq(keyed_cells[0], 1);
	probe_fini(&probe);
	world_destroy();
}

/* Such a hit counts, with an address that is never mapped, and a length for which it is read. */
Test(answer_keys, strings_whose_address_or_length_cannot_be_computed)
{
	struct dp_expr arg = {.kind = DP_EXPR_REG, .reg = 7, .size = 8}, one = {.kind = DP_EXPR_CONST, .value = 1};
	struct dp_expr quotient = {.kind = DP_EXPR_BINARY, .op = DP_OP_UDIV, .a = &one, .b = &arg};
	struct dp_expr sum = {.kind = DP_EXPR_BINARY, .op = DP_OP_ADD, .a = &arg, .b = &quotient};
	const struct dp_agg_text plain = {.size = 68}, counted = {.size = 68, .count = &sum}, other = {.size = 68, .count = &one};
	struct dp_agg answers[] = {{.what = DP_AGG_COUNT, .key = {&sum, &arg}, .nkeys = 2, .text = {plain}},
	                           {.what = DP_AGG_COUNT, .key = {&arg, &arg}, .nkeys = 2, .text = {counted}},
	                           {.what = DP_AGG_COUNT, .key = {&sum, &arg}, .nkeys = 2, .text = {other}}};
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		struct probe probe;
		begin(&probe, &answers[i], false);
		hit(&probe, 0);
		cr_expect_eq(keyed_words[1], UINT64_C(1) << 63, "%zu", i);
		cr_expect_eq(keyed_words[2], 0);
		if (i)
			cr_expect_eq(keyed_words[3], UINT64_C(1) << 62, "%zu", i);
		hit(&probe, 7);
		cr_expect_eq(keyed_words[1], 7, "%zu", i);
		if (i)
			cr_expect_eq(keyed_words[3], i == 1 ? 7 : 1, "%zu", i);
		cr_expect_eq(keyed_asked, 2);
		cr_expect_eq(keyed_cells[0], 2);
		cr_expect_eq(world.lost.unreadable, 0);
		probe_fini(&probe);
		world_destroy();
	}
}

/* The agent's helper for the stack of its own, which goroutines' strings need, keeps to the C ABI. */
#define IN_HIT __attribute__((target("general-regs-only"), no_sanitize("address", "undefined")))
static struct dp_op apart_op;

IN_HIT static void note_apart(struct dp_capture *c, const struct dp_op *op)
{
	uint64_t *cells = (void *)c->record; /* struct dp_cells, then the key */
	note_key(cells + 2, c->desc);
	apart_op = *op;
	cells[0] = (uint64_t)keyed_cells;
	cells[1] = 0;
}

IN_HIT static void note_end(struct dp_capture *c)
{
	(void)c;
}

Test(answer_keys, strings_of_goroutines_are_copied_on_another_stack)
{
	struct dp_expr arg = {.kind = DP_EXPR_REG, .reg = 7, .size = 8}, length = {.kind = DP_EXPR_REG, .reg = 6, .size = 8};
	struct dp_agg answer = {.what = DP_AGG_COUNT, .key = {&arg, &arg}, .nkeys = 2, .text = {{.size = 68, .count = &length}}};
	for (unsigned frames = 0; frames < 8; frames += 7) {
		struct probe probe;
		world_create(false);
		world.rt.answers.head = 4096;
		world.rt.stacked_apart = (uint64_t)note_apart;
		world.rt.stacked_done = (uint64_t)note_end;
		answer.stack = frames;
		probe_init(&probe, NULL, NULL);
		probe.req.answer = &answer;
		probe.req.small_stack = true;
		probe_place(&probe, 0, NULL);
		keyed_asked = 0;
		keyed_cells[0] = 0;
		const struct machine in = hit(&probe, 99);
		const struct dp_op *op = (const void *)((const uint8_t *)keyed_desc + keyed_desc->reserve);
		cr_expect_eq(keyed_asked, 1);
		cr_expect_eq(keyed_words[0], 2);
		cr_expect_eq(keyed_words[1], 99);
		cr_expect_eq(keyed_words[2], 99);
		cr_expect_eq(keyed_words[3], in.gpr[6], "the length");
		cr_expect_eq(apart_op.addr, 2 | (uint64_t)frames << 32);
		cr_expect_eq(apart_op.size, frames);
		cr_expect_eq(op[0].size, 68);
		cr_expect_eq(op[0].addr, 3);
		cr_expect_eq(op[1].field, 0, "the last one");
		cr_expect_eq(keyed_cells[0], 1);
		probe_fini(&probe);
		world_destroy();
	}
}
