/* SPDX-License-Identifier: MIT */
/* Stubs whose key is several values: what the agent gets, and that the hit leaves no trace. */
#include "test_stub_world.h"

static uint64_t keyed_words[8], keyed_cells[DP_AGG_WORDS];
static unsigned keyed_asked;

/* In the place of the agent, so it keeps to general registers, and a sanitizer's checks would not. */
__attribute__((target("general-regs-only"), no_sanitize("address", "undefined"))) static void note_key(const uint64_t *words)
{
	keyed_asked++;
	for (unsigned i = 0; i < 8 && i <= words[0]; i++)
		keyed_words[i] = words[i];
}

void (*keyed_note)(const uint64_t *) = note_key;
uint64_t *keyed_result = keyed_cells;
void keyed_thunk(void);
__asm__(".text\n" /* the stub's rax, rcx, rdx and rsi are free */
        "keyed_thunk:\n"
        "	push %rdi; push %r8; push %r9; push %r10; push %r11; push %rbp\n"
        "	mov %rsp,%rbp; and $-16,%rsp; mov %rdx,%rdi; call *keyed_note(%rip); mov %rbp,%rsp\n"
        "	pop %rbp; pop %r11; pop %r10; pop %r9; pop %r8; pop %rdi\n"
        "	mov keyed_result(%rip),%rsi; xor %ecx,%ecx; ret\n");

static struct machine hit(const struct probe *p, uint64_t rdi)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	machine_randomize(&in, world.stack);
	in.gpr[7] = rdi;
	machine_fill(world.stack);
	memcpy(before, world.stack, sizeof(before));
	machine_run(&in, &out, p->entry);
	world_check_state(&in, &out, before, DP_STUB_STACK_CALLS);
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
