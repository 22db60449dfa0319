/* SPDX-License-Identifier: MIT */
/* Stack-effect analysis: by hand for each form, and for all of libc against its unwind tables. */
#include "agent/unwind/unwind.h"
#include "probes/image/module.h"
#include "probes/unwind/unwind_cfi.h"
#include "trampoline/trampoline.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 256

enum { RSP = 4, RBP = 5 };

static struct dp_unwind_row rows[MOST]; /* of each byte */
static size_t given;

static void take(uint32_t offset, const struct dp_unwind_row *row, void *data)
{
	size_t n = *(size_t *)data;

	given++;
	for (size_t i = offset; i < n; i++)
		rows[i] = *row;
}

static void follow(const void *code, size_t n)
{
	memset(rows, 0, sizeof(rows));
	given = 0;
	dp_stack_effect(code, n, take, &n);
}

static void assert_row(size_t at, uint8_t reg, int32_t off)
{
	cr_assert_eq(rows[at].kind, DP_UNWIND_REG, "at %zu: no rule", at);
	cr_assert_eq(rows[at].reg, reg, "at %zu: the CFA's register is %u", at, rows[at].reg);
	cr_assert_eq(rows[at].off, off, "at %zu: the CFA's offset is %d", at, rows[at].off);
}

static void assert_unknown(size_t at)
{
	cr_assert_eq(rows[at].kind, DP_UNWIND_NONE, "at %zu: a rule is known, offset %d", at, rows[at].off);
}

Test(stack_effect, pushes_and_pops)
{
	/* push rbx; push r12; sub rsp, 24; call +0x100; add rsp, 24; pop r12; pop rbx; ret; (nothing leads here) nop */
	static const uint8_t code[] = {0x53, 0x41, 0x54, 0x48, 0x83, 0xec, 24,   0xe8, 0,    1,   0,
	                               0,    0x48, 0x83, 0xc4, 24,   0x41, 0x5c, 0x5b, 0xc3, 0x90};

	follow(code, sizeof(code));
	assert_row(0, RSP, 8);
	cr_assert_eq(rows[0].changed, 0);
	cr_assert_eq(rows[0].flags, DP_UNWIND_GUESSED);
	cr_assert_eq(rows[0].rule[DP_UNWIND_RA], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -1));
	assert_row(1, RSP, 16);
	cr_assert_eq(rows[1].rule[DP_UNWIND_RBX], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -2));
	assert_row(3, RSP, 24);
	cr_assert_eq(rows[3].rule[DP_UNWIND_R12], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -3));
	assert_row(7, RSP, 48);
	assert_row(12, RSP, 48);
	assert_row(16, RSP, 24);
	assert_row(18, RSP, 16);
	cr_assert_eq(rows[18].rule[DP_UNWIND_R12], 0);
	assert_row(19, RSP, 8);
	cr_assert_eq(rows[19].changed, 0);
	assert_unknown(20);
}

Test(stack_effect, frame_that_is_realigned)
{
	/* push rbp; mov rbp, rsp; push r15; and rsp, -64; nop; lea rsp, [rbp - 8]; pop r15; pop rbp; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x48, 0x83, 0xe4, 0xc0,
	                               0x90, 0x48, 0x8d, 0x65, 0xf8, 0x41, 0x5f, 0x5d, 0xc3};

	follow(code, sizeof(code));
	assert_row(6, RSP, 24);
	assert_row(10, RBP, 16);
	cr_assert_eq(rows[10].rule[DP_UNWIND_RBP], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -2));
	cr_assert_eq(rows[10].rule[DP_UNWIND_R12 + 3], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -3));
	assert_row(15, RSP, 24);
	assert_row(17, RSP, 16);
	assert_row(18, RSP, 8);
}

Test(stack_effect, leave_and_what_is_behind_a_jump)
{
	/* push rbp; mov rbp, rsp; sub rsp, 0x1000; test eax, eax; je to the leave; jmp rax; (unknown) nop; leave; ret */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0,    16,   0,
	                               0,    0x85, 0xc0, 0x74, 3,    0xff, 0xe0, 0x90, 0xc9, 0xc3};

	follow(code, sizeof(code));
	assert_row(15, RSP, 16 + 4096);
	assert_unknown(17);
	assert_row(18, RSP, 16 + 4096);
	assert_row(19, RSP, 8);
}

Test(stack_effect, paths_that_disagree)
{
	/* test eax, eax; je L; push rdi; L: nop; ret */
	static const uint8_t code[] = {0x85, 0xc0, 0x74, 1, 0x57, 0x90, 0xc3};

	follow(code, sizeof(code));
	assert_row(4, RSP, 8);
	assert_unknown(5);
	assert_unknown(6);
}

/* Stacks that are changed by other means, and more pops than pushes: nothing is known from there on. */
Test(stack_effect, other_stacks)
{
	static const uint8_t code[][7] = {
	        {0x48, 0x89, 0xfc, 0x90, 0xc3},       /* mov rsp, rdi */
	        {0x48, 0x8b, 0x27, 0x90, 0xc3},       /* mov rsp, [rdi] */
	        {0x48, 0x94, 0x90, 0xc3},             /* xchg rsp, rax */
	        {0x48, 0x01, 0xc4, 0x90, 0xc3},       /* add rsp, rax */
	        {0x48, 0x0f, 0x44, 0xe0, 0x90, 0xc3}, /* cmove rsp, rax */
	        {0x5f, 0x90, 0xc3},                   /* pop rdi: the return address */
	        {0x5c, 0x90, 0xc3},                   /* pop rsp */
	        {0x66, 0x50, 0x90, 0xc3},             /* push ax */
	        {0x48, 0xff, 0xc4, 0x90, 0xc3},       /* inc rsp */
	        {0x0f, 0xa0, 0x90, 0xc3},             /* push fs */
	        {0x0f, 0xa1, 0x90, 0xc3},             /* pop fs */
	        {0x0f, 0xa8, 0x90, 0xc3},             /* push gs */
	        {0x66, 0x0f, 0xa9, 0x90, 0xc3},       /* pop gs */
	        {0xe8, 0, 0, 0, 0, 0x90, 0xc3},       /* call 1f; 1: */
	};

	for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++) {
		const uint8_t *nop = memchr(code[i] + 1, 0x90, 6);

		follow(code[i], (size_t)(nop - code[i]) + 2);
		assert_row(0, RSP, 8);
		cr_assert_eq(rows[nop - code[i]].kind, DP_UNWIND_NONE, "form %zu", i);
	}
}

Test(stack_effect, what_only_reads_rsp)
{
	/* mov rax, rsp; mov [rsp + 8], rdi; cmp rsp, rax; test rsp, rsp; lea rax, [rsp - 4]; cmp rsp, 8; ret */
	static const uint8_t code[] = {0x48, 0x89, 0xe0, 0x48, 0x89, 0x7c, 0x24, 8,    0x48, 0x39, 0xc4, 0x48,
	                               0x85, 0xe4, 0x48, 0x8d, 0x44, 0x24, 0xfc, 0x48, 0x83, 0xfc, 8,    0xc3};

	follow(code, sizeof(code));
	assert_row(sizeof(code) - 1, RSP, 8);
}

/* A register that is written without a push is lost; a pushed one is not. */
Test(stack_effect, registers_that_are_lost)
{
	/* mov [rsp - 8], rbx; mov ebx, 5; push rbp; xor ebp, ebp; mov bh, 1; inc r12; cmp r13, r14; bswap r15d; ret */
	static const uint8_t code[] = {0x48, 0x89, 0x5c, 0x24, 0xf8, 0xbb, 5,    0,    0,    0,    0x55, 0x31, 0xed,
	                               0xb7, 1,    0x49, 0xff, 0xc4, 0x4d, 0x39, 0xf5, 0x41, 0x0f, 0xcf, 0xc3};

	follow(code, sizeof(code));
	cr_assert_eq(rows[5].changed, 0);
	cr_assert_eq(rows[10].rule[DP_UNWIND_RBX], DP_UNWIND_UNKNOWN);
	cr_assert_eq(rows[10].flags, DP_UNWIND_GUESSED);
	const struct dp_unwind_row *last = &rows[sizeof(code) - 1];
	cr_assert_eq(last->rule[DP_UNWIND_RBP], DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -2));
	cr_assert_eq(last->rule[DP_UNWIND_R12], DP_UNWIND_UNKNOWN);
	cr_assert_eq(last->rule[DP_UNWIND_R12 + 1], 0);
	cr_assert_eq(last->rule[DP_UNWIND_R12 + 2], 0);
	cr_assert_eq(last->rule[DP_UNWIND_R12 + 3], DP_UNWIND_UNKNOWN);
	assert_row(sizeof(code) - 1, RSP, 16);
}

Test(stack_effect, return_from_a_signal_is_left_to_the_walker)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};

	follow(code, sizeof(code));
	cr_assert_eq(given, 0);
}

static void take_last(uint32_t offset, const struct dp_unwind_row *row, void *data)
{
	if (offset >= 65536)
		*(uint8_t *)data = row->kind + 1;
}

/* In a function that is too long to be analysed, the rest is unknown. */
Test(stack_effect, what_is_not_read_is_not_known)
{
	static uint8_t code[70000];
	uint8_t kind = 0;

	memset(code, 0x90, sizeof(code));
	dp_stack_effect(code, sizeof(code), take_last, &kind);
	cr_assert_eq(kind, DP_UNWIND_NONE + 1);
}

/* ---- all of libc -------------------------------------------------------------------------------------------------------- */

struct compared {
	const struct dp_unwind_rows *tables;
	uint64_t start, at; /* of the segment; of the function */
	long same, different, unknown;
};

static const struct dp_unwind_row *row_at(const struct dp_unwind_rows *tables, uint64_t offset)
{
	size_t lo = 0, hi = tables->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (tables->pc[mid] <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &tables->rule[lo ? tables->row[lo - 1] : 0];
}

static void compare(uint32_t offset, const struct dp_unwind_row *row, void *data)
{
	struct compared *c = data;
	const struct dp_unwind_row *table = row_at(c->tables, c->at - c->start + offset);

	if (row->kind == DP_UNWIND_NONE || table->kind != DP_UNWIND_REG)
		c->unknown++;
	else if (row->reg == table->reg && row->off != table->off)
		c->different++;
	else
		c->same++;
}

static struct dp_module *libc_of(struct dp_image *image)
{
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		if (strstr(dp_module_name(dp_image_module(image, i)), "libc.so"))
			return dp_image_module(image, i);
	cr_assert_fail("no libc");
	return NULL;
}

static char *own_maps(void)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen("/proc/self/maps", "re");

	cr_assert(text && f);
	cr_assert_gt(fread(text, 1, (1 << 20) - 1, f), 0);
	fclose(f);
	return text;
}

static void compare_functions(struct dp_module *m, struct compared *c)
{
	const struct dp_fdes *fdes = dp_module_fdes(m);

	for (size_t i = 0; i < fdes->n; i++) {
		struct dp_span code;
		const struct dp_unwind_row *first = row_at(c->tables, fdes->fde[i].start - c->start);

		if (first->kind != DP_UNWIND_REG || first->reg != RSP || first->off != 8 ||
		    !dp_elf_at(m->elf, fdes->fde[i].start, &code))
			continue;
		c->at = fdes->fde[i].start;
		dp_stack_effect(code.bytes, fdes->fde[i].size, compare, c);
	}
}

/* libc's own tables are wrong in a few of a thousand places (its multi-precision functions do not describe their pushes). */
Test(stack_effect, agrees_with_the_tables_of_libc)
{
	struct dp_image *image = NULL;
	struct dp_unwind_rows tables;
	struct dp_cfi_section section;
	struct compared c = {.tables = &tables};
	char *maps = own_maps();
	dp_addr addr;
	uint64_t end;

	cr_assert_null(dp_image_create(maps, "", 0, &image));
	struct dp_module *m = libc_of(image);
	cr_assert(dp_module_eh_frame(m, &addr, &section.bytes, &section.size));
	section.addr = addr.v - (uint64_t)m->bias;
	cr_assert(dp_elf_extent(m->elf, &c.start, &end));
	dp_unwind_rows_init(&tables);
	cr_assert(dp_cfi_compile(&section, c.start, end, &tables));
	compare_functions(m, &c);
	cr_log_info("%ld the same, %ld different, %ld unknown", c.same, c.different, c.unknown);
	cr_assert_gt(c.same, 100000);
	cr_assert_lt(c.different * 200, c.same, "%ld of %ld differ", c.different, c.same);
	cr_assert_lt(c.unknown * 20, c.same, "%ld of %ld are unknown", c.unknown, c.same);
	dp_unwind_rows_fini(&tables);
	dp_image_destroy(image);
	free(maps);
}
