/* SPDX-License-Identifier: MIT */
/* One crafted function for each way in which code may lead into a window: each must be refused, and accepted without it. */
#include "helper_text.h"

#include "trampoline/arch/x86_64/tactics/tactics.h"
#include "trampoline/arch/x86_64/tactics/window.h"

#include <criterion/criterion.h>
#include <string.h>

#define AT     UINT64_C(0x5555550010a0)
#define BIAS   UINT64_C(0x555555000000)
#define DATA   UINT64_C(0x555555004000)
#define SITE   32 /* offset of the window in the code */
#define INSIDE (AT + SITE + 2)

/* xor %eax,%eax; mov %edx,%ecx; add %eax,%ecx; then nops up to the end. Before it: nops, and the ret of a far-away function. */
static void craft(uint8_t code[96])
{
	static const uint8_t window[] = {0x31, 0xc0, 0x89, 0xd1, 0x01, 0xc1};
	memset(code, 0x90, 96);
	memcpy(code + SITE, window, sizeof(window));
	code[95] = 0xc3;
}

static void module(struct helper_module *m, const uint8_t *code)
{
	helper_code(m, AT, code, 96);
	m->text.bias = BIAS;
}

static enum dp_tag fit(const struct helper_module *m, uint64_t site, struct dp_fit *ret)
{
	struct dp_insn first;
	size_t at = site - AT;
	memset(ret, 0, sizeof(*ret));
	cr_assert_null(dp_decode(m->segment[0].bytes + at, 96 - at, site, &first));
	struct dp_analysis *known;
	cr_assert_null(dp_analysis_create(&known));
	struct dp_error *err = dp_window_fit(known, &m->text, &first, DP_FIT_INSNS, ret);
	enum dp_tag tag = err ? err->tag : DP_TAG_COUNT;
	dp_error_destroy(err);
	dp_analysis_destroy(known);
	return tag;
}

static void expect(const struct helper_module *m, bool proved, const char *why)
{
	struct dp_fit result;
	enum dp_tag tag = fit(m, AT + SITE, &result);
	cr_expect_eq(tag, proved ? DP_TAG_COUNT : DP_TAG_TOO_SHORT, "%s: %s", why, tag == DP_TAG_COUNT ? "proved" : "refused");
}

static void put_rel32(uint8_t *code, size_t opcode_at, size_t opcode_size, uint64_t target)
{
	uint32_t rel = (uint32_t)(target - (AT + opcode_at + opcode_size + 4));
	memcpy(code + opcode_at + opcode_size, &rel, sizeof(rel));
}

Test(window, proved_when_nothing_leads_inside)
{
	uint8_t code[96];
	struct helper_module m;
	struct dp_fit result;
	craft(code);
	module(&m, code);
	cr_assert_eq(fit(&m, AT + SITE, &result), DP_TAG_COUNT);
	cr_expect_eq(result.ninsns, 3);
	cr_expect_eq(result.ninterior, 2);
	cr_expect_eq(result.interior[0], 2);
	cr_expect_eq(result.interior[1], 4);
}

Test(window, short_branch_into_the_interior_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	craft(code);
	module(&m, code);
	code[10] = 0x74;
	code[11] = SITE + 2 - 12;
	expect(&m, false, "je inside");
	code[11] = SITE - 12;
	expect(&m, true, "je to the site");
	code[60] = 0xe2;
	code[61] = (uint8_t)(SITE + 4 - 62);
	expect(&m, false, "loop inside");
}

Test(window, short_branch_from_another_function_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	craft(code);
	module(&m, code);
	m.text.function = AT + 16;
	m.text.size = 80;
	code[1] = 0xeb;
	code[2] = SITE + 2 - 3;
	expect(&m, false, "jmp from in front of the function");
}

Test(window, near_branch_at_any_byte_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	static const uint8_t jcc[] = {0x0f, 0x8f}, xbegin[] = {0xc7, 0xf8};
	craft(code);
	module(&m, code);
	m.text.function = AT + 24;
	m.text.size = 72;
	code[3] = 0xe8;
	put_rel32(code, 3, 1, INSIDE);
	expect(&m, false, "call");
	code[3] = 0xe9;
	expect(&m, false, "jmp");
	memcpy(code + 2, jcc, 2);
	put_rel32(code, 2, 2, INSIDE);
	expect(&m, false, "jcc");
	memcpy(code + 2, xbegin, 2);
	expect(&m, false, "xbegin");
	code[3] = 0x90;
	expect(&m, true, "no branch any more");
}

Test(window, rip_relative_operand_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	static const uint8_t lea[] = {0x48, 0x8d, 0x05};
	craft(code);
	module(&m, code);
	memcpy(code + 4, lea, 3);
	put_rel32(code, 4, 3, INSIDE);
	expect(&m, false, "lea inside");
	put_rel32(code, 4, 3, AT + 70);
	expect(&m, false, "lea of another label of the function");
	put_rel32(code, 4, 3, AT);
	expect(&m, true, "lea of the function itself");
}

/* The address of an operand is relative to the end of the instruction, which is after its immediate. */
Test(window, rip_relative_operand_before_an_immediate_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	static const uint8_t cmpb[] = {0x80, 0x3d}, movl[] = {0xc7, 0x05};
	craft(code);
	module(&m, code);
	memcpy(code + 4, cmpb, 2);
	put_rel32(code, 4, 2, INSIDE - 1);
	expect(&m, false, "cmpb $0x90,inside");
	memcpy(code + 4, movl, 2);
	put_rel32(code, 4, 2, INSIDE - 4);
	expect(&m, false, "movl $0x90909090,inside");
	put_rel32(code, 4, 2, INSIDE + 40);
	expect(&m, true, "data behind it");
}

Test(window, pointers_in_data_are_refused)
{
	uint8_t code[96];
	uint64_t data[4] = {0};
	struct helper_module m;
	craft(code);
	module(&m, code);
	helper_add(&m, DATA, data, sizeof(data));
	data[2] = INSIDE;
	expect(&m, false, "target address");
	data[2] = INSIDE - BIAS;
	expect(&m, false, "file address");
	data[2] = AT + SITE - BIAS;
	expect(&m, true, "the site itself");
	data[2] = 0;
	memcpy((uint8_t *)data + 5, &(uint64_t){INSIDE}, sizeof(uint64_t));
	expect(&m, false, "unaligned");
}

Test(window, self_relative_pointer_is_refused)
{
	uint8_t code[96];
	int32_t data[4] = {0};
	struct helper_module m;
	craft(code);
	module(&m, code);
	helper_add(&m, DATA, data, sizeof(data));
	data[1] = (int32_t)(INSIDE - (DATA + 4));
	expect(&m, false, "as in .eh_frame");
}

Test(window, jump_table_is_refused)
{
	uint8_t code[96];
	int32_t table[4];
	struct helper_module m;
	static const uint8_t lea[] = {0x48, 0x8d, 0x05};
	craft(code);
	module(&m, code);
	memcpy(code + 4, lea, 3);
	put_rel32(code, 4, 3, DATA);
	for (int i = 0; i < 4; i++)
		table[i] = (int32_t)(AT + 64 - DATA);
	helper_add(&m, DATA, table, sizeof(table));
	expect(&m, true, "table that leads elsewhere");
	table[3] = (int32_t)(INSIDE - DATA);
	expect(&m, false, "last entry leads inside");
	table[1] = 0;
	expect(&m, true, "the run ends before that entry");
}

Test(window, landing_pad_is_refused)
{
	uint8_t code[96];
	uint64_t pad = INSIDE;
	struct helper_module m;
	craft(code);
	module(&m, code);
	m.text.pads = &pad;
	m.text.npads = 1;
	expect(&m, false, "landing pad");
	pad = AT + SITE;
	expect(&m, true, "landing pad at the site");
	m.text.pads_known = false;
	expect(&m, false, "pads unknown");
}

/* `source` is the only pad, or NULL: they are not known. */
static void read_pads(struct dp_text *text)
{
	text->pads_known = text->source;
	text->pads = text->source;
	text->npads = text->source ? 1 : 0;
}

Test(window, landing_pads_that_are_read_late_count)
{
	uint8_t code[96];
	uint64_t pad = INSIDE;
	struct helper_module m;
	craft(code);
	module(&m, code);
	m.text.pads_known = false;
	m.text.read_pads = read_pads;
	m.text.source = &pad;
	expect(&m, false, "landing pad");
	pad = AT + SITE;
	expect(&m, true, "landing pad at the site");
	m.text.source = NULL;
	expect(&m, false, "pads unknown");
}

Test(window, absolute_immediate_counts_only_at_fixed_addresses)
{
	uint8_t code[96];
	struct helper_module m;
	const uint64_t at = 0x401000;
	const uint32_t inside = (uint32_t)at + SITE + 2;
	struct dp_insn first;
	struct dp_fit result = {0};
	craft(code);
	helper_code(&m, at, code, sizeof(code));
	code[4] = 0xbf; /* mov $inside, %edi */
	memcpy(code + 5, &inside, sizeof(inside));
	struct dp_analysis *known;
	cr_assert_null(dp_decode(code + SITE, 64, at + SITE, &first));
	cr_assert_null(dp_analysis_create(&known));
	struct dp_error *err = dp_window_fit(known, &m.text, &first, DP_FIT_INSNS, &result);
	cr_expect(err && err->tag == DP_TAG_TOO_SHORT);
	dp_error_destroy(err);
	dp_analysis_destroy(known);
}

Test(window, unknown_function_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	craft(code);
	module(&m, code);
	m.text.function = m.text.size = 0;
	expect(&m, false, "unknown function");
}

Test(window, code_that_does_not_decode_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	craft(code);
	module(&m, code);
	code[80] = 0x06;
	expect(&m, false, "06 is no instruction");
}

Test(window, branch_between_instructions_is_refused)
{
	uint8_t code[96];
	struct helper_module m;
	static const uint8_t long_nop[] = {0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00};
	craft(code);
	module(&m, code);
	memcpy(code + 50, long_nop, sizeof(long_nop));
	code[60] = 0x75;
	code[61] = (uint8_t)(52 - 62);
	expect(&m, false, "into the middle of the nop");
}

Test(window, call_and_syscall_only_as_the_last)
{
	uint8_t code[96];
	struct helper_module m;
	struct dp_fit result;
	static const uint8_t call_rax[] = {0xff, 0xd0}, syscall_bytes[] = {0x0f, 0x05};
	craft(code);
	module(&m, code);
	memcpy(code + SITE, call_rax, 2);
	expect(&m, false, "call first");
	memcpy(code + SITE, syscall_bytes, 2);
	expect(&m, false, "syscall first");
	craft(code);
	memcpy(code + SITE + 4, call_rax, 2);
	cr_assert_eq(fit(&m, AT + SITE, &result), DP_TAG_COUNT);
	cr_expect_eq(result.insn[2].flow, DP_FLOW_CALL_IND);
}

Test(window, ret_only_with_padding_behind)
{
	uint8_t code[96];
	struct helper_module m;
	struct dp_fit result;
	craft(code);
	module(&m, code);
	code[SITE + 2] = 0xc3;
	cr_assert_eq(fit(&m, AT + SITE, &result), DP_TAG_COUNT);
	cr_expect_eq(result.covered, 3, "the code after the ret stays");
	cr_expect_eq(result.ninsns, 2);
	cr_expect_eq(result.ninterior, 1);
	memset(code + SITE + 3, 0xcc, 5);
	cr_assert_eq(fit(&m, AT + SITE, &result), DP_TAG_COUNT);
	cr_expect_eq(result.ninsns, 2);
	cr_expect_eq(result.ninterior, 3);
}

/* Return addresses and code after the function's end must not change: the jump shares their bytes. */
Test(window, shorter_than_a_jump)
{
	static const uint8_t last_call[] = {0x90, 0xff, 0xd0, 0x31, 0xc0, 0x31, 0xc9}; /* nop; call *%rax; xor; xor */
	uint8_t code[96];
	struct helper_module m;
	struct dp_fit result;
	craft(code);
	module(&m, code);
	memcpy(code + SITE, last_call, sizeof(last_call));
	cr_assert_eq(fit(&m, AT + SITE, &result), DP_TAG_COUNT);
	cr_expect_eq(result.covered, 3);
	cr_expect_eq(result.ninsns, 2);
	cr_expect_eq(fit(&m, AT + SITE + 1, &result), DP_TAG_TOO_SHORT, "the call alone");
	craft(code);
	m.text.size = SITE + 4;
	cr_assert_eq(fit(&m, AT + SITE, &result), DP_TAG_COUNT);
	cr_expect_eq(result.covered, 4, "the function ends there");
	cr_expect_eq(result.ninsns, 2);
	m.text.size = SITE + 2;
	cr_expect_eq(fit(&m, AT + SITE, &result), DP_TAG_TOO_SHORT, "nothing follows");
}
