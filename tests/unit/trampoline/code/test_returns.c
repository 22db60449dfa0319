/* SPDX-License-Identifier: MIT */
#include "helper_text.h"

#include "trampoline/arch/x86_64/decode/returns.h"

#include <criterion/criterion.h>
#include <string.h>

#define AT   UINT64_C(0x401000)
#define DATA UINT64_C(0x403000)

struct world {
	struct helper_module m;
	struct dp_points points;
};

/* The whole code is one function, unless parts are given. */
static void walk(struct world *w, const struct dp_range *part, size_t n)
{
	struct dp_error *err = dp_text_points(&w->m.text, part, n, &w->points);
	cr_assert_null(err);
}

static void walk_code(struct world *w, const uint8_t *code, size_t n)
{
	const struct dp_range all = {AT, n};
	helper_code(&w->m, AT, code, n);
	walk(w, &all, 1);
}

static void expect_exit(const struct world *w, size_t i, uint64_t addr, enum dp_exit_kind kind, uint64_t target)
{
	cr_assert_lt(i, w->points.nexits);
	const struct dp_exit *e = &w->points.exit[i];
	cr_expect(e->addr == addr && e->kind == kind && e->target == target, "exit %zu: 0x%lx, kind %d, to 0x%lx", i, e->addr,
	          e->kind, e->target);
}

Test(returns, every_instruction_and_every_ret_is_found)
{
	/* push %rbp; test %edi,%edi; je 1f; pop %rbp; ret; 1: pop %rbp; ret $8 */
	static const uint8_t code[] = {0x55, 0x85, 0xff, 0x74, 0x02, 0x5d, 0xc3, 0x5d, 0xc2, 8, 0};
	static const uint64_t starts[] = {0, 1, 3, 5, 6, 7, 8};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_assert_eq(w.points.ninsns, 7);
	for (size_t i = 0; i < 7; i++)
		cr_expect(w.points.insn[i].addr == AT + starts[i] && !w.points.insn[i].entered, "%zu", i);
	cr_assert_eq(w.points.nexits, 2);
	expect_exit(&w, 0, AT + 6, DP_EXIT_RET, 0);
	expect_exit(&w, 1, AT + 8, DP_EXIT_RET, 0);
	cr_expect_eq(w.points.undecodable, 0);
	dp_points_fini(&w.points);
}

Test(returns, a_jump_out_is_a_tail_call_and_one_to_the_own_start_a_loop)
{
	/* jmp 0x401000 - itself; jmp far away; jmp past the end */
	static const uint8_t code[] = {0xeb, 0xfe, 0xe9, 0, 0, 0x10, 0, 0xeb, 0x00};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_assert_eq(w.points.nexits, 2);
	expect_exit(&w, 0, AT + 2, DP_EXIT_JUMP, AT + 7 + 0x100000);
	expect_exit(&w, 1, AT + 7, DP_EXIT_JUMP, AT + 9);
	dp_points_fini(&w.points);
}

Test(returns, a_call_of_itself_in_the_place_of_a_return_is_an_exit)
{
	/* push %rbx; call away; pop %rbx; xor %edx,%edx; jmp to the start */
	static const uint8_t code[] = {0x53, 0xe8, 0, 0, 0x10, 0, 0x5b, 0x31, 0xd2, 0xeb, 0xf5};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_assert_eq(w.points.nexits, 1);
	expect_exit(&w, 0, AT + 9, DP_EXIT_JUMP, AT);
	dp_points_fini(&w.points);
}

Test(returns, a_conditional_tail_jump_is_an_exit_only_when_it_is_taken)
{
	/* je out; jg out (long form); jrcxz out */
	static const uint8_t code[] = {0x74, 0x40, 0x0f, 0x8f, 0, 1, 0, 0, 0xe3, 0x40};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_assert_eq(w.points.nexits, 3);
	cr_expect_str_eq(w.points.exit[0].when, "(rflags & 0x40) != 0");
	cr_expect_str_eq(w.points.exit[1].when, "((rflags >> 6 | rflags >> 7 ^ rflags >> 11) & 1) == 0");
	expect_exit(&w, 2, AT + 8, DP_EXIT_UNSURE, AT + 10 + 0x40);
	dp_points_fini(&w.points);
}

/* Compares the condition with the processor's definition of jcc, for every condition and every state of the flags. */
Test(returns, conditions_of_jumps_are_those_of_the_processor)
{
	static const unsigned bits[] = {0x1, 0x4, 0x40, 0x80, 0x800};
	for (unsigned cc = 0; cc < 16; cc++)
		for (unsigned flags = 0; flags < 32; flags++) {
			const uint8_t bytes[2] = {(uint8_t)(0x70 | cc), 0};
			struct dp_regs regs = {0};
			struct dp_insn insn;
			struct dp_expr *expr;
			for (unsigned i = 0; i < 5; i++)
				regs.rflags |= flags >> i & 1 ? bits[i] : 0;
			cr_assert(dp_decode_zydis(bytes, 2, AT, &insn));
			cr_assert_null(dp_expr_parse(dp_jcc_condition(&insn), &expr));
			const bool c = regs.rflags & 1, p = regs.rflags & 4, z = regs.rflags & 0x40, s = regs.rflags & 0x80,
			           o = regs.rflags & 0x800;
			const bool even[8] = {o, c, z, c || z, s, p, s != o, z || s != o};
			cr_expect_eq(dp_expr_eval(expr, &regs) != 0, even[cc / 2] != (cc & 1), "cc %u, flags 0x%lx", cc,
			             (unsigned long)regs.rflags);
			dp_expr_destroy(expr);
		}
}

Test(returns, a_function_that_never_comes_back_has_no_exit)
{
	/* call away; ud2 */
	static const uint8_t code[] = {0xe8, 0, 0, 0x10, 0, 0x0f, 0x0b};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_expect_eq(w.points.nexits, 0);
	cr_expect_eq(w.points.ninsns, 2);
	dp_points_fini(&w.points);
}

Test(returns, nothing_is_believed_behind_what_does_not_decode)
{
	/* ret; 06 is no instruction in 64-bit mode; c3 is data then */
	static const uint8_t code[] = {0x90, 0xc3, 0x06, 0xc3};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_expect_eq(w.points.undecodable, AT + 2);
	cr_expect_eq(w.points.nexits, 1);
	cr_expect_eq(w.points.ninsns, 2);
	dp_points_fini(&w.points);
}

Test(returns, an_instruction_across_the_end_is_none)
{
	static const uint8_t code[] = {0xc3, 0xb8, 0, 0};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_expect_eq(w.points.undecodable, AT + 1);
	cr_expect_eq(w.points.ninsns, 1);
	dp_points_fini(&w.points);
}

Test(returns, an_instruction_that_is_entered_in_the_middle_is_marked)
{
	/* je 1f; lock; 1: cmpxchg %eax,(%rdi); ret */
	static const uint8_t code[] = {0x74, 0x01, 0xf0, 0x0f, 0xb1, 0x07, 0xc3};
	struct world w = {0};
	walk_code(&w, code, sizeof(code));
	cr_assert_eq(w.points.ninsns, 3);
	cr_expect(!w.points.insn[0].entered && w.points.insn[1].entered && !w.points.insn[2].entered);
	dp_points_fini(&w.points);
}

Test(returns, jumps_between_parts_do_not_leave)
{
	/* f: je f.cold; ret; nop * 3; f.cold: jmp f+2 */
	static const uint8_t code[] = {0x74, 0x04, 0xc3, 0x90, 0x90, 0x90, 0xeb, 0xfa};
	static const struct dp_range parts[] = {{AT, 3}, {AT + 6, 2}};
	struct world w = {0};
	helper_code(&w.m, AT, code, sizeof(code));
	walk(&w, parts, 2);
	cr_assert_eq(w.points.nexits, 1);
	expect_exit(&w, 0, AT + 2, DP_EXIT_RET, 0);
	dp_points_fini(&w.points);
	walk(&w, parts, 1);
	cr_expect_eq(w.points.nexits, 2);
	dp_points_fini(&w.points);
}

/* ---- indirect jumps ------------------------------------------------------------------------------------------------ */

/* Classifies the only indirect jump in the code, with `data` after it. */
static int judged(const uint8_t *code, size_t n, const void *data, size_t ndata)
{
	struct world w = {0};
	const struct dp_range all = {AT, n};
	helper_code(&w.m, AT, code, n);
	if (ndata)
		helper_add(&w.m, DATA, data, ndata);
	walk(&w, &all, 1);
	cr_assert_leq(w.points.nexits, 1);
	int kind = w.points.nexits ? (int)w.points.exit[0].kind : -1;
	dp_points_fini(&w.points);
	return kind;
}

#define STAYS (-1)

Test(returns, jumps_through_memory_that_the_linker_fills_leave)
{
	static const uint8_t got[] = {0xff, 0x25, 0, 0x20, 0, 0}, notrack[] = {0x3e, 0xff, 0x25, 0, 0x20, 0, 0};
	cr_expect_eq(judged(got, sizeof(got), NULL, 0), DP_EXIT_JUMP);
	cr_expect_eq(judged(notrack, sizeof(notrack), NULL, 0), DP_EXIT_JUMP);
}

Test(returns, jumps_through_pointers_and_vtables_leave)
{
	static const uint8_t vtable[] = {0x48, 0x8b, 0x07, 0xff, 0x60, 0x10};  /* mov (%rdi),%rax; jmp *16(%rax) */
	static const uint8_t pointer[] = {0x48, 0x8b, 0x47, 0x08, 0xff, 0xe0}; /* mov 8(%rdi),%rax; jmp *%rax */
	static const uint8_t argument[] = {0xff, 0xe6};                        /* jmp *%rsi */
	cr_expect_eq(judged(vtable, sizeof(vtable), NULL, 0), DP_EXIT_JUMP);
	cr_expect_eq(judged(pointer, sizeof(pointer), NULL, 0), DP_EXIT_JUMP);
	cr_expect_eq(judged(argument, sizeof(argument), NULL, 0), DP_EXIT_JUMP);
}

/* lea DATA(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax */
static const uint8_t by_offsets[] = {0x48, 0x8d, 0x15, 0xf9, 0x1f, 0, 0, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0};

Test(returns, a_table_of_offsets_into_the_function_stays)
{
	const int32_t inside[] = {(int32_t)(AT + 7 - DATA), (int32_t)(AT + 11 - DATA), (int32_t)(AT + 14 - DATA), 0};
	const int32_t outside[] = {-4, 1000, -9, 7};
	cr_expect_eq(judged(by_offsets, sizeof(by_offsets), inside, sizeof(inside)), STAYS);
	cr_expect_eq(judged(by_offsets, sizeof(by_offsets), outside, sizeof(outside)), DP_EXIT_UNSURE);
}

Test(returns, a_table_of_addresses_is_told_by_its_first_entry)
{
	/* jmp *DATA(,%rax,8), in a program at a fixed address */
	static const uint8_t code[] = {0xff, 0x24, 0xc5, 0x00, 0x30, 0x40, 0x00};
	const uint64_t inside[] = {AT + 1, AT + 2}, functions[] = {AT + 0x500, AT + 0x600};
	cr_expect_eq(judged(code, sizeof(code), inside, sizeof(inside)), STAYS);
	cr_expect_eq(judged(code, sizeof(code), functions, sizeof(functions)), DP_EXIT_JUMP);
}

Test(returns, computed_goto_stays_and_what_looks_the_same_is_unsure)
{
	static const uint8_t table[] = {0x48, 0x8b, 0x04, 0xc2, 0xff, 0xe0};             /* mov (%rdx,%rax,8),%rax; jmp *%rax */
	static const uint8_t threaded[] = {0x90, 0xff, 0x20};                            /* jmp *(%rax) */
	static const uint8_t label[] = {0x48, 0x8d, 0x05, 2, 0, 0, 0, 0xff, 0xe0, 0x90}; /* lea 1f,%rax; jmp *%rax; 1: */
	const uint64_t pointers[] = {0, AT + 1};                                         /* set by a relocation */
	cr_expect_eq(judged(table, sizeof(table), pointers, sizeof(pointers)), STAYS);
	cr_expect_eq(judged(table, sizeof(table), NULL, 0), DP_EXIT_JUMP);
	cr_expect_eq(judged(threaded, sizeof(threaded), pointers, sizeof(pointers)), DP_EXIT_UNSURE);
	cr_expect_eq(judged(label, sizeof(label), NULL, 0), DP_EXIT_UNSURE);
}

Test(returns, what_has_given_its_frame_back_leaves)
{
	static const uint8_t label[] = {0x48, 0x8d, 0x05, 4,    0,    0,
	                                0,    0x5b, 0x90, 0xff, 0xe0, 0x90}; /* lea 1f; pop %rbx; nop; jmp; 1: */
	static const uint8_t scratch[] = {0x48, 0x8d, 0x05, 4, 0, 0, 0, 0x59, 0x90, 0xff, 0xe0, 0x90}; /* the same, pop %rcx */
	cr_expect_eq(judged(label, sizeof(label), NULL, 0), DP_EXIT_JUMP);
	cr_expect_eq(judged(scratch, sizeof(scratch), NULL, 0), DP_EXIT_UNSURE);
}

Test(returns, pointers_to_the_beginning_are_no_labels)
{
	static const uint8_t pointer[] = {0x48, 0x8b, 0x07, 0xff, 0xe0}; /* mov (%rdi),%rax; jmp *%rax */
	const uint64_t start[] = {AT, AT + sizeof(pointer)};
	cr_expect_eq(judged(pointer, sizeof(pointer), start, sizeof(start)), DP_EXIT_JUMP);
}
