/* SPDX-License-Identifier: MIT */
/*
 * Floating-point values, as the bits of doubles in general registers. An operation borrows xmm0 and xmm1 (their low 128 bits: SSE
 * instructions write only those) and MXCSR, whose sticky flags, masks and rounding are the program's. All are restored at the end
 * of the operation, so that a failure elsewhere in the expression has nothing to restore.
 */
#include "trampoline/arch/x86_64/expr/expr_code.h"

#include <string.h>

enum { FRAME = 48, MXCSR = 32, DEFAULT = 36, DEFAULT_MXCSR = 0x1f80 };

static void code(struct dp_expr_code *c, const char *bytes, size_t n)
{
	dp_asm_data(c->a, bytes, n);
}
#define CODE(c, bytes) code(c, bytes, sizeof(bytes) - 1)

static void borrow(struct dp_expr_code *c)
{
	dp_asm_lea(c->a, dp_rm_mem(DP_RSP, -FRAME), DP_RSP);
	dp_asm_movups_store(c->a, 0, dp_rm_mem(DP_RSP, 0));
	dp_asm_movups_store(c->a, 1, dp_rm_mem(DP_RSP, 16));
	CODE(c, "\x0f\xae\x5c\x24\x20");             /* stmxcsr 32(%rsp) */
	CODE(c, "\xc7\x44\x24\x24\x80\x1f\x00\x00"); /* movl $0x1f80,36(%rsp) */
	CODE(c, "\x0f\xae\x54\x24\x24");             /* ldmxcsr 36(%rsp) */
	_Static_assert(MXCSR == 0x20 && DEFAULT == 0x24 && DEFAULT_MXCSR == 0x1f80, "as written above");
}

static void give_back(struct dp_expr_code *c)
{
	CODE(c, "\x0f\xae\x54\x24\x20"); /* ldmxcsr 32(%rsp) */
	CODE(c, "\x0f\x10\x04\x24");     /* movups (%rsp),%xmm0 */
	CODE(c, "\x0f\x10\x4c\x24\x10"); /* movups 16(%rsp),%xmm1 */
	dp_asm_lea(c->a, dp_rm_mem(DP_RSP, FRAME), DP_RSP);
}

#define MOVQ_RAX_XMM0 "\x66\x48\x0f\x6e\xc0"
#define MOVQ_RCX_XMM1 "\x66\x48\x0f\x6e\xc9"
#define MOVQ_RCX_XMM0 "\x66\x48\x0f\x6e\xc1"
#define MOVQ_RAX_XMM1 "\x66\x48\x0f\x6e\xc8"
#define MOVQ_XMM0_RAX "\x66\x48\x0f\x7e\xc0"
#define MOVD_EAX_XMM0 "\x66\x0f\x6e\xc0"
#define MOVD_XMM0_EAX "\x66\x0f\x7e\xc0"

bool dp_code_is_float(enum dp_expr_op op)
{
	return op >= DP_OP_FADD && op <= DP_OP_FGE;
}

static void arithmetic(struct dp_expr_code *c, enum dp_expr_op op)
{
	static const char opcode[] = {0x58, 0x5c, 0x59, 0x5e}; /* add, sub, mul, div */
	const char insn[] = {(char)0xf2, 0x0f, opcode[op - DP_OP_FADD], (char)0xc1};
	CODE(c, MOVQ_RAX_XMM0 MOVQ_RCX_XMM1);
	code(c, insn, sizeof(insn)); /* opsd %xmm1,%xmm0 */
	CODE(c, MOVQ_XMM0_RAX);
}

/* cmpsd makes all ones or all zeroes; > and >= are < and <= with exchanged sides, so that a NaN makes them false. */
static void compare(struct dp_expr_code *c, enum dp_expr_op op)
{
	static const char predicate[] = {0, 4, 1, 2, 1, 2}; /* eq, neq, lt, le, lt, le */
	const char insn[] = {(char)0xf2, 0x0f, (char)0xc2, (char)0xc1, predicate[op - DP_OP_FEQ]};
	if (op >= DP_OP_FGT)
		CODE(c, MOVQ_RCX_XMM0 MOVQ_RAX_XMM1);
	else
		CODE(c, MOVQ_RAX_XMM0 MOVQ_RCX_XMM1);
	code(c, insn, sizeof(insn)); /* cmpsd $predicate,%xmm1,%xmm0 */
	CODE(c, MOVQ_XMM0_RAX);
	dp_asm_alu_imm(c->a, DP_ALU_AND, 4, 1, dp_rm_reg(DP_RAX));
}

void dp_code_float(struct dp_expr_code *c, enum dp_expr_op op)
{
	borrow(c);
	if (op >= DP_OP_FEQ)
		compare(c, op);
	else
		arithmetic(c, op);
	give_back(c);
}

#define CVTSI2SD "\xf2\x48\x0f\x2a\xc0" /* %rax,%xmm0 */
#define CVTSI2SS "\xf3\x48\x0f\x2a\xc0"

/* A value with its highest bit set is halved, keeping its lowest bit for the rounding, and then doubled. */
static void from_unsigned(struct dp_expr_code *c, bool single)
{
	struct dp_label large = dp_asm_label(c->a), end = dp_asm_label(c->a);
	dp_code_claim(c, DP_RCX);
	dp_asm_test(c->a, 8, DP_RAX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(c->a, DP_CC_S, large);
	code(c, single ? CVTSI2SS : CVTSI2SD, 5);
	dp_asm_jmp(c->a, end);
	dp_asm_bind(c->a, large);
	dp_asm_mov_store(c->a, 4, DP_RAX, dp_rm_reg(DP_RCX));
	dp_asm_shift(c->a, DP_SHIFT_SHR, 1, DP_RAX);
	dp_asm_alu_imm(c->a, DP_ALU_AND, 4, 1, dp_rm_reg(DP_RCX));
	dp_asm_alu_store(c->a, DP_ALU_OR, 8, DP_RCX, dp_rm_reg(DP_RAX));
	code(c, single ? CVTSI2SS : CVTSI2SD, 5);
	code(c, single ? "\xf3\x0f\x58\xc0" : "\xf2\x0f\x58\xc0", 4); /* adds[sd] %xmm0,%xmm0 */
	dp_asm_bind(c->a, end);
}

/* From 2^63 on: subtracts 2^63, and sets it as the highest bit. */
static void to_unsigned(struct dp_expr_code *c)
{
	struct dp_label small = dp_asm_label(c->a), end = dp_asm_label(c->a);
	dp_code_claim(c, DP_RCX);
	CODE(c, MOVQ_RAX_XMM0);
	dp_asm_mov_const(c->a, UINT64_C(0x43e0000000000000), DP_RCX); /* 0x1p63 */
	CODE(c, MOVQ_RCX_XMM1 "\x66\x0f\x2e\xc1");                    /* ucomisd %xmm1,%xmm0 */
	dp_asm_jcc(c->a, DP_CC_B, small);                             /* or unordered */
	CODE(c, "\xf2\x0f\x5c\xc1"
	        "\xf2\x48\x0f\x2c\xc0"
	        "\x48\x0f\xba\xf8\x3f"); /* subsd, cvttsd2si, btc $63 */
	dp_asm_jmp(c->a, end);
	dp_asm_bind(c->a, small);
	CODE(c, "\xf2\x48\x0f\x2c\xc0"); /* cvttsd2si %xmm0,%rax */
	dp_asm_bind(c->a, end);
}

static void convert(struct dp_expr_code *c, enum dp_expr_op op)
{
	switch (op) {
	case DP_OP_I2D:
		CODE(c, CVTSI2SD MOVQ_XMM0_RAX);
		break;
	case DP_OP_I2F:
		CODE(c, CVTSI2SS MOVD_XMM0_EAX);
		break;
	case DP_OP_U2D:
		from_unsigned(c, false);
		CODE(c, MOVQ_XMM0_RAX);
		break;
	case DP_OP_U2F:
		from_unsigned(c, true);
		CODE(c, MOVD_XMM0_EAX);
		break;
	case DP_OP_D2I:
		CODE(c, MOVQ_RAX_XMM0 "\xf2\x48\x0f\x2c\xc0"); /* cvttsd2si %xmm0,%rax */
		break;
	case DP_OP_D2U:
		to_unsigned(c);
		break;
	case DP_OP_F2D:
		CODE(c, MOVD_EAX_XMM0 "\xf3\x0f\x5a\xc0" MOVQ_XMM0_RAX); /* cvtss2sd %xmm0,%xmm0 */
		break;
	default:
		CODE(c, MOVQ_RAX_XMM0 "\xf2\x0f\x5a\xc0" MOVD_XMM0_EAX); /* cvtsd2ss %xmm0,%xmm0 */
	}
}

void dp_code_convert(struct dp_expr_code *c, enum dp_expr_op op)
{
	if (op == DP_OP_FNEG) {
		CODE(c, "\x48\x0f\xba\xf8\x3f"); /* btc $63,%rax */
		return;
	}
	borrow(c);
	convert(c, op);
	give_back(c);
}
