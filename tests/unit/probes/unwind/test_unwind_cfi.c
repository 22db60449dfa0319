/* SPDX-License-Identifier: MIT */
/* Hand-written call frame information: what each instruction does to a row, and what happens to malformed entries. */
#include "probes/unwind/unwind_cfi.h"

#include <criterion/criterion.h>
#include <string.h>

#define ADDR  0x10000u /* of the section */
#define START 0x20000u /* of the code */
#define SIZE  0x1000u

struct section {
	uint8_t bytes[512];
	size_t n;
};

static void put(struct section *s, const void *bytes, size_t n)
{
	if (n)
		memcpy(s->bytes + s->n, bytes, n);
	s->n += n;
}

static void put32(struct section *s, uint32_t v)
{
	put(s, &v, 4);
}

/* "zR" with pc-relative sdata4 ("zRS" for signal frames); code 1, data -8; CFA = rsp + 8, return address at CFA - 8 */
static void put_cie(struct section *s, bool signal)
{
	static const uint8_t plain[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0};
	static const uint8_t special[] = {1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0};

	put32(s, 4 + 16);
	put32(s, 0);
	put(s, signal ? special : plain, 16);
}

static void put_fde(struct section *s, uint32_t start, uint32_t size, const void *insns, size_t n)
{
	static const uint8_t no_augmentation = 0;

	put32(s, (uint32_t)(4 + 8 + 1 + n));
	put32(s, (uint32_t)s->n); /* the CIE is the first entry */
	put32(s, start - (ADDR + (uint32_t)s->n));
	put32(s, size);
	put(s, &no_augmentation, 1);
	put(s, insns, n);
}

static struct dp_unwind_rows compile(const struct section *s)
{
	struct dp_cfi_section section = {ADDR, s->bytes, s->n};
	struct dp_unwind_rows rows;

	dp_unwind_rows_init(&rows);
	cr_assert(dp_cfi_compile(&section, START, START + SIZE, &rows));
	return rows;
}

static struct dp_unwind_row row_at(const struct dp_unwind_rows *rows, uint32_t pc)
{
	struct dp_unwind_row row = rows->rule[0];

	for (size_t i = 0; i < rows->n && rows->pc[i] <= pc; i++)
		row = rows->rule[rows->row[i]];
	return row;
}

/* The row at `pc` of a function at START with these CFA instructions. */
static struct dp_unwind_row one(const void *insns, size_t n, uint32_t pc)
{
	struct section s = {.n = 0};
	struct dp_unwind_rows rows;
	struct dp_unwind_row row;

	put_cie(&s, false);
	put_fde(&s, START, 0x100, insns, n);
	rows = compile(&s);
	row = row_at(&rows, pc);
	dp_unwind_rows_fini(&rows);
	return row;
}
#define ONE(pc, ...) one((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), pc)

Test(unwind_cfi, push_and_pop)
{
	/* advance 1; def_cfa_offset 16; offset rbp at 2; advance 5; restore rbp; def_cfa_offset 8 */
	static const uint8_t insns[] = {0x41, 0x0e, 16, 0x86, 2, 0x45, 0xc6, 0x0e, 8};
	struct dp_unwind_row row = one(insns, sizeof(insns), 0);

	cr_assert_eq(row.kind, DP_UNWIND_REG);
	cr_assert_eq(row.reg, 4);
	cr_assert_eq(row.off, 8);
	cr_assert_eq(row.rule[DP_UNWIND_RA], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -1));
	row = one(insns, sizeof(insns), 3);
	cr_assert_eq(row.off, 16);
	cr_assert_eq(row.rule[DP_UNWIND_RBP], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -2));
	cr_assert_eq(row.changed, 1u << DP_UNWIND_RBP);
	cr_assert_eq(row.flags, DP_UNWIND_PLAIN);
	row = one(insns, sizeof(insns), 6);
	cr_assert_eq(row.off, 8);
	cr_assert_eq(row.changed, 0);
}

Test(unwind_cfi, functions_end_where_they_end)
{
	struct section s = {.n = 0};
	struct dp_unwind_rows rows;

	put_cie(&s, false);
	put_fde(&s, START + 0x80, 0x10, NULL, 0); /* out of order */
	put_fde(&s, START + 0x10, 0x20, NULL, 0);
	put_fde(&s, START - 0x10, 0x10, NULL, 0);
	put_fde(&s, START + SIZE - 8, 0x100, NULL, 0);
	rows = compile(&s);
	cr_assert_eq(row_at(&rows, 0x0f).kind, DP_UNWIND_NONE);
	cr_assert_eq(row_at(&rows, 0x10).kind, DP_UNWIND_REG);
	cr_assert_eq(row_at(&rows, 0x2f).kind, DP_UNWIND_REG);
	cr_assert_eq(row_at(&rows, 0x30).kind, DP_UNWIND_NONE);
	cr_assert_eq(row_at(&rows, 0x80).kind, DP_UNWIND_REG);
	cr_assert_eq(row_at(&rows, 0x90).kind, DP_UNWIND_NONE);
	cr_assert_eq(row_at(&rows, SIZE - 1).kind, DP_UNWIND_REG);
	for (size_t i = 1; i < rows.n; i++)
		cr_assert_gt(rows.pc[i], rows.pc[i - 1]);
	dp_unwind_rows_fini(&rows);
}

Test(unwind_cfi, remembered_state_comes_back_whole)
{
	/* remember; advance 1; def_cfa rbp 16; offset rbx at 3; advance 1; restore_state */
	static const uint8_t insns[] = {0x0a, 0x41, 0x0c, 6, 16, 0x83, 3, 0x41, 0x0b};

	cr_assert_eq(one(insns, sizeof(insns), 1).reg, 5);
	cr_assert_eq(one(insns, sizeof(insns), 2).reg, 4);
	cr_assert_eq(one(insns, sizeof(insns), 2).changed, 0);
}

Test(unwind_cfi, restore_state_without_remember_gives_up)
{
	cr_assert_eq(ONE(0, 0x41, 0x0b).kind, DP_UNWIND_REG);
	cr_assert_eq(ONE(1, 0x41, 0x0b).kind, DP_UNWIND_NONE);
	cr_assert_eq(ONE(0xff, 0x41, 0x0b).kind, DP_UNWIND_NONE);
}

Test(unwind_cfi, remembering_too_deep_gives_up)
{
	uint8_t insns[100];

	memset(insns, 0x0a, sizeof(insns));
	cr_assert_eq(one(insns, sizeof(insns), 0).kind, DP_UNWIND_NONE);
}

Test(unwind_cfi, linkage_table_expression)
{
	struct dp_unwind_row row = ONE(0, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);

	cr_assert_eq(row.kind, DP_UNWIND_PLT);
	cr_assert_eq(row.off, 8);
	cr_assert_eq(row.index, 11);
	/* an expression that only begins like a PLT's */
	cr_assert_eq(ONE(0, 0x0f, 10, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24).kind, DP_UNWIND_NONE);
}

Test(unwind_cfi, realigned_stack_expressions)
{
	struct dp_unwind_row row = ONE(0, 0x0f, 3, 0x76, 0x78, 0x06); /* breg6 -8; deref */

	cr_assert_eq(row.kind, DP_UNWIND_DEREF);
	cr_assert_eq(row.reg, 5);
	cr_assert_eq(row.off, -8);
	cr_assert_eq(row.add, 0);
	row = ONE(0, 0x0f, 5, 0x77, 40, 0x06, 0x23, 8); /* breg7 40; deref; plus_uconst 8 */
	cr_assert_eq(row.kind, DP_UNWIND_DEREF);
	cr_assert_eq(row.off, 40);
	cr_assert_eq(row.add, 8);
	row = ONE(0, 0x10, 6, 2, 0x76, 0, 0x10, 3, 2, 0x76, 0x68); /* rbp at breg6 0, rbx at breg6 -24 */
	cr_assert_eq(row.rule[DP_UNWIND_RBP], DP_UNWIND_RULE(DP_UNWIND_AT_RBP, 0));
	cr_assert_eq(row.rule[DP_UNWIND_RBX], DP_UNWIND_RULE(DP_UNWIND_AT_RBP, -3));
	row = ONE(0, 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8); /* *(rsp + 8 + r9 * 8) + 8 */
	cr_assert_eq(row.kind, DP_UNWIND_INDEX);
	cr_assert_eq(row.index, 9);
	cr_assert_eq(row.add, 8);
}

Test(unwind_cfi, what_rows_cannot_say_is_unknown)
{
	cr_assert_eq(ONE(0, 0x0c, 17, 8).kind, DP_UNWIND_NONE);         /* CFA from xmm0 */
	cr_assert_eq(ONE(0, 0x0f, 2, 0x12, 0x13).kind, DP_UNWIND_NONE); /* dup; drop */
	cr_assert_eq(ONE(0, 0x0f, 0).kind, DP_UNWIND_NONE);
	cr_assert_eq(ONE(0, 0x16, 6, 1, 0x30).rule[DP_UNWIND_RBP] & 7, DP_UNWIND_UNKNOWN);    /* val_expression */
	cr_assert_eq(ONE(0, 0x86, 0x80, 0x80, 1).rule[DP_UNWIND_RBP] & 7, DP_UNWIND_UNKNOWN); /* too far for a row */
	cr_assert_eq(ONE(0, 0x07, 3).rule[DP_UNWIND_RBX] & 7, DP_UNWIND_UNKNOWN);
	cr_assert_eq(ONE(0, 0x07, 16).rule[DP_UNWIND_RA] & 7, DP_UNWIND_END);
	cr_assert_eq(ONE(0, 0x09, 16, 5).rule[DP_UNWIND_RA], DP_UNWIND_RULE(DP_UNWIND_IN_REG, 7)); /* rip in rdi */
	cr_assert_eq(ONE(0, 0x3f).kind, DP_UNWIND_NONE);                                           /* no such instruction */
}

Test(unwind_cfi, signal_frames)
{
	/* def_cfa_expression breg7 160; deref. rsp and rip at their places in a ucontext (rsp + 160, rsp + 168) */
	static const uint8_t whole[] = {0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 7, 3, 0x77, 0xa0, 1, 0x10, 16, 3, 0x77, 0xa8, 1};
	struct section s = {.n = 0};
	struct dp_unwind_rows rows;

	put_cie(&s, true);
	put_fde(&s, START, 0x10, whole, sizeof(whole));
	put_fde(&s, START + 0x10, 0x10, NULL, 0);
	rows = compile(&s);
	cr_assert_eq(row_at(&rows, 0).kind, DP_UNWIND_SIGNAL);
	cr_assert_eq(row_at(&rows, 0x10).kind, DP_UNWIND_REG);
	cr_assert_eq(row_at(&rows, 0x10).flags, DP_UNWIND_EXACT);
	dp_unwind_rows_fini(&rows);
}

/* A section cut anywhere, and one with any byte changed, gives rows in order, within the code, and no fault. */
Test(unwind_cfi, damaged_sections)
{
	static const uint8_t insns[] = {0x41, 0x0e, 16,   0x86, 2,    0x02, 9, 0x0f, 3,    0x76,
	                                0x78, 0x06, 0x0a, 0x44, 0x0b, 0x10, 3, 2,    0x76, 0x68};
	struct section s = {.n = 0}, bad;

	put_cie(&s, false);
	put_fde(&s, START, 0x40, insns, sizeof(insns));
	put_fde(&s, START + 0x40, 0x40, insns, sizeof(insns));
	for (size_t i = 0; i < s.n * 257; i++) {
		struct dp_unwind_rows rows;

		bad = s;
		if (i / s.n == 256)
			bad.n = i % s.n;
		else
			bad.bytes[i % s.n] = (uint8_t)(i / s.n);
		rows = compile(&bad);
		for (size_t j = 0; j < rows.n; j++)
			cr_assert(rows.pc[j] < SIZE && rows.row[j] < rows.nrules && (!j || rows.pc[j] > rows.pc[j - 1]));
		dp_unwind_rows_fini(&rows);
	}
}
