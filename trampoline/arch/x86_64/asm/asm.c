/* SPDX-License-Identifier: MIT */
/*
 * An instruction is [prefixes] [REX] opcode [ModRM [SIB] [disp]] [imm]. REX = 0100WRXB: W makes the operand 64 bits wide, R, X
 * and B are the fourth bits of the ModRM register, the SIB index and the base. The code below has to handle three exceptions:
 * base rsp/r12 needs a SIB byte, base rbp/r13 needs a displacement, and byte registers 4-7 mean spl..dil with any REX prefix but
 * ah..bh without one.
 */
#include "trampoline/arch/x86_64/asm/asm.h"

#include <string.h>

/* Avoids the call if there is room. */
static void byte(struct dp_asm *a, unsigned b)
{
	struct dp_buf *out = a->out;
	const uint8_t value = (uint8_t)b;
	if (out->cap - out->len < 2) {
		dp_buf_put(out, &value, 1);
		return;
	}
	out->data[out->len++] = value;
	out->data[out->len] = 0;
}

/* The low bytes: host and target are both little-endian. */
static void word(struct dp_asm *a, uint64_t v, unsigned bytes)
{
	struct dp_buf *out = a->out;
	if (out->cap - out->len < sizeof(v) + 1) {
		dp_buf_put(out, &v, bytes);
		return;
	}
	memcpy(out->data + out->len, &v, sizeof(v)); /* a whole register; the excess bytes are overwritten next */
	out->len += bytes;
	out->data[out->len] = 0;
}

static bool is_imm8(int64_t v)
{
	return v == (int8_t)v;
}

static unsigned imm_bytes(unsigned size)
{
	return size > 4 ? 4 : size;
}

/* ---- operand encoding ----------------------------------------------------------------------------------------------- */

static void modrm_mem(struct dp_asm *a, unsigned reg, struct dp_rm rm)
{
	bool sib = rm.indexed || (rm.reg & 7) == DP_RSP;
	unsigned mod = rm.disp == 0 && (rm.reg & 7) != DP_RBP ? 0 : is_imm8(rm.disp) ? 1 : 2;
	if (rm.fs) {
		byte(a, (reg & 7) << 3 | 4);
		byte(a, 0x25);
		word(a, (uint32_t)rm.disp, 4);
		return;
	}
	byte(a, mod << 6 | (reg & 7) << 3 | (sib ? 4 : rm.reg & 7));
	if (sib)
		byte(a, (rm.indexed ? rm.index & 7 : 4u) << 3 | (rm.reg & 7));
	if (mod)
		word(a, (uint32_t)rm.disp, mod == 1 ? 1 : 4);
}

/* A byte operand in spl, bpl, sil or dil exists only with a REX prefix. */
static bool byte_needs_rex(unsigned size, unsigned reg, bool high)
{
	return size == 1 && reg >= 4 && reg < 8 && !high;
}

static unsigned rex_of(unsigned size, unsigned reg, struct dp_rm rm)
{
	unsigned rex = (size == 8) << 3 | (reg >> 3) << 2;
	if (rm.memory && rm.indexed)
		rex |= (rm.index >> 3) << 1;
	if (!rm.fs)
		rex |= rm.reg >> 3;
	return rex;
}

/* Marks an opcode whose `reg` is a register operand, not an extension: as a byte register it may need a prefix. */
#define REG_OPERAND 0x10000u

/* [fs] [66] [REX] opcode ModRM. `opcode` is one byte or 0x0fXX, in its wide form: the byte form has the low bit clear. */
static void encode(struct dp_asm *a, unsigned opcode, unsigned size, unsigned reg, struct dp_rm rm)
{
	unsigned rex = rex_of(size, reg, rm);
	bool forced = (!rm.memory && byte_needs_rex(size, rm.reg, rm.high)) ||
	              (opcode & REG_OPERAND && byte_needs_rex(size, reg, false));
	if (rm.high && (rex || forced))
		a->failed = true; /* no such instruction */
	if (rm.fs)
		byte(a, 0x64);
	if (size == 2)
		byte(a, 0x66);
	if (rex || forced)
		byte(a, 0x40 | rex);
	if (opcode & 0xff00)
		byte(a, opcode >> 8 & 0xff);
	byte(a, size == 1 ? opcode & 0xfe : opcode & 0xff);
	if (rm.memory)
		modrm_mem(a, reg, rm);
	else
		byte(a, 0xc0 | (reg & 7) << 3 | ((rm.reg & 7) + (rm.high ? 4 : 0)));
}

/* ---- moves ---------------------------------------------------------------------------------------------------------- */

/* mov from,%to */
void dp_asm_mov_load(struct dp_asm *a, unsigned size, struct dp_rm from, unsigned to)
{
	encode(a, REG_OPERAND | 0x8b, size, to, from);
}

/* mov %from,to */
void dp_asm_mov_store(struct dp_asm *a, unsigned size, unsigned from, struct dp_rm to)
{
	encode(a, REG_OPERAND | 0x89, size, from, to);
}

/* movzbl from,%to; movzwl from,%to; mov from,%to (32 bits: the upper half becomes zero; 64 bits) */
void dp_asm_mov_zx(struct dp_asm *a, unsigned size, struct dp_rm from, unsigned to)
{
	if (size > 2) {
		dp_asm_mov_load(a, size, from, to);
		return;
	}
	if (size == 1 && !from.memory && byte_needs_rex(1, from.reg, from.high)) {
		byte(a, 0x40 | (to >> 3) << 2);
		byte(a, 0x0f);
		byte(a, 0xb6);
		byte(a, 0xc0 | (to & 7) << 3 | from.reg);
		return;
	}
	encode(a, size == 1 ? 0x0fb6 : 0x0fb7, 4, to, from);
}

/* movsbq from,%to; movswq from,%to; movslq from,%to; mov from,%to */
void dp_asm_mov_sx(struct dp_asm *a, unsigned size, struct dp_rm from, unsigned to)
{
	static const uint16_t opcode[] = {[1] = 0x0fbe, [2] = 0x0fbf, [4] = 0x63, [8] = 0x8b};
	encode(a, opcode[size], 8, to, from);
}

/* xor %to,%to; mov $value,%to (32 bits, sign-extended or 64 bits: the shortest) */
void dp_asm_mov_const(struct dp_asm *a, uint64_t value, unsigned to)
{
	if (value == 0) {
		dp_asm_alu_store(a, DP_ALU_XOR, 4, to, dp_rm_reg(to));
	} else if (value <= UINT32_MAX) {
		if (to > 7)
			byte(a, 0x41);
		byte(a, 0xb8 + (to & 7));
		word(a, value, 4);
	} else if ((int64_t)value == (int32_t)value) {
		encode(a, 0xc7, 8, 0, dp_rm_reg(to));
		word(a, value, 4);
	} else {
		byte(a, 0x48 + (to >> 3));
		byte(a, 0xb8 + (to & 7));
		word(a, value, 8);
	}
}

/* lea from,%to */
void dp_asm_lea(struct dp_asm *a, struct dp_rm from, unsigned to)
{
	encode(a, REG_OPERAND | 0x8d, 8, to, from);
}

/* push %reg */
void dp_asm_push(struct dp_asm *a, unsigned reg)
{
	if (reg > 7)
		byte(a, 0x41);
	byte(a, 0x50 + (reg & 7));
}

/* pop %reg */
void dp_asm_pop(struct dp_asm *a, unsigned reg)
{
	if (reg > 7)
		byte(a, 0x41);
	byte(a, 0x58 + (reg & 7));
}

/* movups %xmm,to */
void dp_asm_movups_store(struct dp_asm *a, unsigned xmm, struct dp_rm to)
{
	encode(a, 0x0f11, 4, xmm, to);
}

/* movlps %xmm,to */
void dp_asm_movlps_store(struct dp_asm *a, unsigned xmm, struct dp_rm to)
{
	encode(a, 0x0f13, 4, xmm, to);
}

/* movss %xmm,to */
void dp_asm_movss_store(struct dp_asm *a, unsigned xmm, struct dp_rm to)
{
	byte(a, 0xf3);
	encode(a, 0x0f11, 4, xmm, to);
}

/* movd %xmm,%to; movq %xmm,%to */
void dp_asm_mov_xmm(struct dp_asm *a, unsigned size, unsigned xmm, unsigned to)
{
	byte(a, 0x66);
	encode(a, 0x0f7e, size, xmm, dp_rm_reg(to));
}

/* ---- arithmetic ----------------------------------------------------------------------------------------------------- */

/* op from,%to */
void dp_asm_alu_load(struct dp_asm *a, enum dp_alu op, unsigned size, struct dp_rm from, unsigned to)
{
	encode(a, REG_OPERAND | (unsigned)op << 3 | 3, size, to, from);
}

/* op %from,to */
void dp_asm_alu_store(struct dp_asm *a, enum dp_alu op, unsigned size, unsigned from, struct dp_rm to)
{
	encode(a, REG_OPERAND | (unsigned)op << 3 | 1, size, from, to);
}

/* op $imm,to (64 bits: sign-extended) */
void dp_asm_alu_imm(struct dp_asm *a, enum dp_alu op, unsigned size, int32_t imm, struct dp_rm to)
{
	bool narrow = size > 1 && is_imm8(imm);
	encode(a, narrow ? 0x83 : 0x81, size, op, to);
	word(a, (uint32_t)imm, narrow ? 1 : imm_bytes(size));
}

/* test %from,to */
void dp_asm_test(struct dp_asm *a, unsigned size, unsigned from, struct dp_rm to)
{
	encode(a, REG_OPERAND | 0x85, size, from, to);
}

/* test $imm,to (64 bits: sign-extended) */
void dp_asm_test_imm(struct dp_asm *a, unsigned size, int32_t imm, struct dp_rm to)
{
	encode(a, 0xf7, size, 0, to);
	word(a, (uint32_t)imm, imm_bytes(size));
}

/* imul from,%to */
void dp_asm_imul(struct dp_asm *a, struct dp_rm from, unsigned to)
{
	encode(a, 0x0faf, 8, to, from);
}

/* imul $imm,from,%to */
void dp_asm_imul_imm(struct dp_asm *a, int32_t imm, struct dp_rm from, unsigned to)
{
	encode(a, 0x69, 8, to, from);
	word(a, (uint32_t)imm, 4);
}

/* not %reg; neg %reg */
void dp_asm_unary(struct dp_asm *a, enum dp_unary op, unsigned reg)
{
	encode(a, 0xf7, 8, op, dp_rm_reg(reg));
}

/* shl $count,%reg; shr; sar */
void dp_asm_shift(struct dp_asm *a, enum dp_shift op, unsigned count, unsigned reg)
{
	encode(a, 0xc1, 8, op, dp_rm_reg(reg));
	byte(a, count);
}

/* shl %cl,%reg; shr; sar */
void dp_asm_shift_cl(struct dp_asm *a, enum dp_shift op, unsigned reg)
{
	encode(a, 0xd3, 8, op, dp_rm_reg(reg));
}

/* bsf %from,%to */
void dp_asm_bsf(struct dp_asm *a, unsigned from, unsigned to)
{
	encode(a, 0x0fbc, 8, to, dp_rm_reg(from));
}

/* cmpxchg %from,to (not locked) */
void dp_asm_cmpxchg(struct dp_asm *a, unsigned from, struct dp_rm to)
{
	encode(a, 0x0fb1, 8, from, to);
}

/* lock incq to */
void dp_asm_lock_inc(struct dp_asm *a, struct dp_rm to)
{
	byte(a, 0xf0);
	encode(a, 0xff, 8, 0, to);
}

/* idiv %by; div %by */
void dp_asm_divide(struct dp_asm *a, bool is_signed, unsigned by)
{
	encode(a, 0xf7, 8, is_signed ? 7 : 6, dp_rm_reg(by));
}

/* cqo */
void dp_asm_cqo(struct dp_asm *a)
{
	dp_asm_data(a, "\x48\x99", 2);
}

/* ---- flags and the rest --------------------------------------------------------------------------------------------- */

/* lahf */
void dp_asm_lahf(struct dp_asm *a)
{
	byte(a, 0x9f);
}

/* sahf */
void dp_asm_sahf(struct dp_asm *a)
{
	byte(a, 0x9e);
}

/* seto %al */
void dp_asm_seto_al(struct dp_asm *a)
{
	dp_asm_data(a, "\x0f\x90\xc0", 3);
}

/* add $imm,%al */
void dp_asm_add_al(struct dp_asm *a, int8_t imm)
{
	byte(a, 0x04);
	byte(a, (uint8_t)imm);
}

/* pushfq */
void dp_asm_pushfq(struct dp_asm *a)
{
	byte(a, 0x9c);
}

/* popfq */
void dp_asm_popfq(struct dp_asm *a)
{
	byte(a, 0x9d);
}

/* cld */
void dp_asm_cld(struct dp_asm *a)
{
	byte(a, 0xfc);
}

/* rdtsc */
void dp_asm_rdtsc(struct dp_asm *a)
{
	dp_asm_data(a, "\x0f\x31", 2);
}
