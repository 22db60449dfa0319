/* SPDX-License-Identifier: MIT */
/* Two decoders must agree; their control flow decides how an instruction is moved. */
#include "helper_text.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/code/text.h"

#include <criterion/criterion.h>
#include <string.h>

#define AT UINT64_C(0x401000)

struct expectation {
	const char *name;
	uint8_t n, bytes[15];
	enum dp_flow flow;
	uint64_t target;
};

static const struct expectation table[] = {
        {"push", 1, {0x55}, DP_FLOW_NEXT, 0},
        {"jmp rel8", 2, {0xeb, 0x10}, DP_FLOW_JMP, AT + 0x12},
        {"jmp rel32", 5, {0xe9, 0xfb, 0xff, 0xff, 0xff}, DP_FLOW_JMP, AT},
        {"je rel8", 2, {0x74, 0xfe}, DP_FLOW_JCC, AT},
        {"jg rel32", 6, {0x0f, 0x8f, 0, 1, 0, 0}, DP_FLOW_JCC, AT + 0x106},
        {"jrcxz", 2, {0xe3, 0x00}, DP_FLOW_JCXZ, AT + 2},
        {"loopne", 2, {0xe0, 0x00}, DP_FLOW_JCXZ, AT + 2},
        {"call", 5, {0xe8, 0, 0, 0, 0}, DP_FLOW_CALL, AT + 5},
        {"addr32 call", 6, {0x67, 0xe8, 0, 0, 0, 0}, DP_FLOW_CALL, AT + 6},
        {"data16 rex.W call", 8, {0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0}, DP_FLOW_CALL, AT + 8},
        {"xbegin", 6, {0xc7, 0xf8, 0, 0, 0, 0}, DP_FLOW_XBEGIN, AT + 6},
        {"xabort", 3, {0xc6, 0xf8, 0}, DP_FLOW_NEXT, 0},
        {"jmp *rax", 2, {0xff, 0xe0}, DP_FLOW_JMP_IND, 0},
        {"call *mem", 3, {0xff, 0x50, 0x08}, DP_FLOW_CALL_IND, 0},
        {"far jmp", 2, {0xff, 0x28}, DP_FLOW_ODD, 0},
        {"far call", 2, {0xff, 0x18}, DP_FLOW_ODD, 0},
        {"data16 call *rax", 3, {0x66, 0xff, 0xd0}, DP_FLOW_ODD, 0},
        {"ret", 1, {0xc3}, DP_FLOW_RET, 0},
        {"ret imm", 3, {0xc2, 8, 0}, DP_FLOW_RET, 0},
        {"lret", 1, {0xcb}, DP_FLOW_RET, 0},
        {"iretq", 2, {0x48, 0xcf}, DP_FLOW_RET, 0},
        {"syscall", 2, {0x0f, 0x05}, DP_FLOW_SYSCALL, 0},
        {"int 0x80", 2, {0xcd, 0x80}, DP_FLOW_SYSCALL, 0},
        {"int 3", 2, {0xcd, 0x03}, DP_FLOW_TRAP, 0},
        {"int3", 1, {0xcc}, DP_FLOW_TRAP, 0},
        {"ud2", 2, {0x0f, 0x0b}, DP_FLOW_TRAP, 0},
        {"hlt", 1, {0xf4}, DP_FLOW_TRAP, 0},
        {"sysenter", 2, {0x0f, 0x34}, DP_FLOW_ODD, 0},
};

Test(decode, flow_and_target_of_each_kind)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct dp_insn insn;
		struct dp_error *err = dp_decode(table[i].bytes, table[i].n, AT, &insn);
		cr_assert_null(err, "%s: %s", table[i].name, err ? err->message : "");
		cr_expect_eq(insn.len, table[i].n, "%s: length %u", table[i].name, insn.len);
		cr_expect_eq(insn.flow, table[i].flow, "%s: flow %d", table[i].name, insn.flow);
		cr_expect_eq(insn.target, table[i].target, "%s: target 0x%lx", table[i].name, insn.target);
	}
}

Test(decode, instructions_that_capstone_does_not_know_are_decoded)
{
	static const struct {
		const char *name;
		uint8_t n, bytes[15];
	} unknown[] = {
	        {"vpminub (%rsi),%ymm16,%ymm17", 6, {0x62, 0xe1, 0x7d, 0x20, 0xda, 0x0e}},
	        {"kmovd %k0,%eax", 4, {0xc5, 0xfb, 0x93, 0xc0}},
	        {"tpause %eax", 4, {0x66, 0x0f, 0xae, 0xf0}},
	        {"rdsspq %rax", 5, {0xf3, 0x48, 0x0f, 0x1e, 0xc8}},
	        {"vpternlogd $0xde,%ymm16,%ymm17,%ymm18", 7, {0x62, 0xa3, 0x75, 0x20, 0x25, 0xd0, 0xde}},
	};
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		struct dp_insn insn;
		struct dp_error *err = dp_decode(unknown[i].bytes, unknown[i].n, AT, &insn);
		cr_assert_null(err, "%s: %s", unknown[i].name, err ? err->message : "");
		cr_expect_eq(insn.len, unknown[i].n, "%s", unknown[i].name);
	}
}

static void expect_undecodable(const uint8_t *bytes, size_t n, const char *says)
{
	struct dp_insn insn;
	struct dp_error *err = dp_decode(bytes, n, AT, &insn);
	cr_assert(err && err->tag == DP_TAG_UNDECODABLE, "decoded");
	cr_expect(strstr(err->message, says), "%s", err->message);
	dp_error_destroy(err);
}

Test(decode, DP_UNDECODABLE_names_the_bytes)
{
	expect_undecodable((const uint8_t[]){0x06, 0x90}, 2, "06 90");
	expect_undecodable((const uint8_t[]){0xe9, 0x00}, 2, "0x401000");
	expect_undecodable((const uint8_t[]){0}, 0, "0x401000");
}

/* They raise SIGILL on all processors that dynprobe runs on. Taken for branches, they would become jcc. */
Test(decode, branches_of_another_processor_family_are_not_taken_for_branches)
{
	expect_undecodable((const uint8_t[]){0xc5, 0x70, 0x85, 0x18, 0xf9, 0x01, 0x4e}, 7, "c5 70 85 18");
	expect_undecodable((const uint8_t[]){0xc5, 0xe8, 0x84, 0xdc, 0xf6, 0x57, 0x48}, 7, "c5 e8 84 dc");
}

/* Whether it has a 16-bit displacement depends on the processor. */
Test(decode, DP_UNDECODABLE_where_the_decoders_disagree)
{
	expect_undecodable((const uint8_t[]){0x66, 0xe9, 0, 0, 0, 0}, 6, "disagree");
}

Test(decode, rip_relative_and_stack_operands_are_found)
{
	static const uint8_t rip[] = {0x62, 0xf3, 0x75, 0x48, 0x25, 0x15, 1, 0, 0, 0, 0x96},
	                     moved[] = {0x8b, 0x04, 0x25, 0, 0, 0, 0};
	static const uint8_t on_rsp[] = {0x48, 0x8b, 0x44, 0x24, 8}, on_r12[] = {0x49, 0x8b, 0x44, 0x24, 8}, rsp[] = {0xff, 0xd4},
	                     r12[] = {0x41, 0xff, 0xd4};
	struct dp_insn insn;
	cr_assert_null(dp_decode(rip, sizeof(rip), AT, &insn));
	cr_expect_eq(insn.disp_at, 6);
	cr_assert_null(dp_decode(moved, sizeof(moved), AT, &insn));
	cr_expect_eq(insn.disp_at, 0, "absolute");
	cr_assert_null(dp_decode(on_rsp, sizeof(on_rsp), AT, &insn));
	cr_expect(insn.stack_base && !insn.stack_reg);
	cr_assert_null(dp_decode(on_r12, sizeof(on_r12), AT, &insn));
	cr_expect(!insn.stack_base);
	cr_assert_null(dp_decode(rsp, sizeof(rsp), AT, &insn));
	cr_expect(insn.stack_reg);
	cr_assert_null(dp_decode(r12, sizeof(r12), AT, &insn));
	cr_expect(!insn.stack_reg);
}

/* On real code the decoders never differ, and Capstone's gaps are few. */
Test(decode, decoders_agree_on_the_code_of_libc)
{
	struct helper_module libc;
	uint64_t seed = 4711;
	unsigned disagree = 0, gaps = 0;
	helper_libc(&libc);
	for (int i = 0; i < 5000; i++) {
		struct dp_insn insn;
		size_t n, other;
		uint64_t addr = helper_random_insn(&libc, &seed);
		const uint8_t *bytes = dp_text_at(&libc.text, addr, &n);
		cr_assert(dp_decode_zydis(bytes, n, addr, &insn));
		other = dp_decode_capstone(bytes, n, addr, NULL, 0);
		gaps += !other;
		disagree += other && other != insn.len;
	}
	cr_expect_leq(disagree, 5, "%u of 5000", disagree);
	cr_expect_leq(gaps, 250, "%u of 5000", gaps);
}

static void expect_same_step(const uint8_t *bytes, size_t n, uint64_t addr)
{
	struct dp_insn insn;
	struct dp_insn_step step;
	const bool known = dp_decode_zydis(bytes, n, addr, &insn);
	cr_assert_eq(dp_decode_step(bytes, n, addr, &step), known, "%02x %02x %02x %02x: decoded", bytes[0], bytes[1], bytes[2],
	             bytes[3]);
	if (!known)
		return;
	const bool direct = insn.flow == DP_FLOW_JMP || insn.flow == DP_FLOW_JCC || insn.flow == DP_FLOW_CALL;
	cr_assert_eq(step.len, insn.len, "%02x %02x %02x %02x: %u bytes, not %u", bytes[0], bytes[1], bytes[2], bytes[3],
	             step.len, insn.len);
	cr_assert_eq(step.relative, insn.rel_size != 0);
	cr_assert_eq(step.relative && !step.odd, direct);
	if (step.relative)
		cr_assert_eq(step.target, insn.target);
}

/* A cached result must hold for all instructions with the same first bytes. Two rounds: the first fills the cache. */
Test(decode, steps_are_what_the_decoder_says)
{
	static const uint8_t prefixes[] = {0x00, 0x66, 0xf2, 0xf3, 0x67, 0x2e, 0xf0};
	uint64_t state = 0x5a17;
	uint8_t bytes[24];
	for (unsigned round = 0; round < 2; round++)
		for (unsigned k = 0; k < 300000; k++) {
			size_t at = 0;
			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = (uint8_t)(helper_random(&state) >> 32);
			bytes[at] = prefixes[k % sizeof(prefixes)];
			at += bytes[at] != 0;
			if (k & 8)
				bytes[at++] = (uint8_t)(0x40 | (k >> 4 & 0xf));
			if (k & 0x1000)
				bytes[at++] = 0x0f;
			if (k & 0x2000) /* a SIB byte without a base */
				bytes[at + 1] = (uint8_t)((bytes[at + 1] & 0xf8) | 4), bytes[at + 2] |= 5;
			expect_same_step(bytes, 1 + (k & 0x40000 ? k % sizeof(bytes) : sizeof(bytes) - 1), AT);
		}
}

Test(decode, steps_of_libc)
{
	struct helper_module m;
	struct dp_insn insn;
	size_t n;
	helper_libc(&m);
	for (uint64_t at = m.code; at + 64 < m.code_end; at += insn.len) {
		const uint8_t *bytes = dp_text_at(&m.text, at, &n);
		expect_same_step(bytes, n, at);
		if (!dp_decode_zydis(bytes, n, at, &insn))
			insn.len = 1;
	}
}
