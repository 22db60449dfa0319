/* SPDX-License-Identifier: MIT */
/*
 * A small x86-64 encoder, for the instructions in stubs only. Operands are in AT&T order (source, destination), functions are
 * named after mnemonics. Misuse (a label never bound, a jump out of reach) sets `failed`, to be checked once at the end, like the
 * buffer's own flag.
 */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_ASM_ASM_H
#define DP_TRAMPOLINE_ARCH_X86_64_ASM_ASM_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum dp_gpr {
	DP_RAX,
	DP_RCX,
	DP_RDX,
	DP_RBX,
	DP_RSP,
	DP_RBP,
	DP_RSI,
	DP_RDI,
	DP_R8,
	DP_R9,
	DP_R10,
	DP_R11,
	DP_R12,
	DP_R13,
	DP_R14,
	DP_R15,
};

/* Condition codes as in the opcodes of jcc and setcc; cc ^ 1 is the opposite. */
enum dp_cc {
	DP_CC_O,
	DP_CC_NO,
	DP_CC_B,
	DP_CC_AE,
	DP_CC_E,
	DP_CC_NE,
	DP_CC_BE,
	DP_CC_A,
	DP_CC_S,
	DP_CC_NS,
	DP_CC_P,
	DP_CC_NP,
	DP_CC_L,
	DP_CC_GE,
	DP_CC_LE,
	DP_CC_G,
};

/* The arithmetic instructions that share one encoding; the value is the opcode's /digit. */
enum dp_alu {
	DP_ALU_ADD = 0,
	DP_ALU_OR = 1,
	DP_ALU_AND = 4,
	DP_ALU_SUB = 5,
	DP_ALU_XOR = 6,
	DP_ALU_CMP = 7,
};
enum dp_shift {
	DP_SHIFT_SHL = 4,
	DP_SHIFT_SHR = 5,
	DP_SHIFT_SAR = 7,
};
enum dp_unary {
	DP_UNARY_NOT = 2,
	DP_UNARY_NEG = 3,
};

/* An operand that may be a register or memory. */
struct dp_rm {
	bool memory;
	bool high;     /* register: ah, ch, dh, bh */
	bool fs;       /* memory: fs:disp, no base */
	bool indexed;  /* memory: disp(base,index,1) */
	uint8_t reg;   /* the register, or the base */
	uint8_t index; /* not rsp */
	int32_t disp;
};

static inline struct dp_rm dp_rm_reg(unsigned reg)
{
	return (struct dp_rm){.reg = (uint8_t)reg};
}

/* The second byte of rax, rcx, rdx or rbx. */
static inline struct dp_rm dp_rm_high(unsigned reg)
{
	return (struct dp_rm){.reg = (uint8_t)reg, .high = true};
}

static inline struct dp_rm dp_rm_mem(unsigned base, int64_t disp)
{
	return (struct dp_rm){.memory = true, .reg = (uint8_t)base, .disp = (int32_t)disp};
}

static inline struct dp_rm dp_rm_index(unsigned base, unsigned index, int64_t disp)
{
	return (struct dp_rm){
	        .memory = true, .indexed = true, .reg = (uint8_t)base, .index = (uint8_t)index, .disp = (int32_t)disp};
}

static inline struct dp_rm dp_rm_fs(uint32_t disp)
{
	return (struct dp_rm){.memory = true, .fs = true, .disp = (int32_t)disp};
}

#define DP_ASM_FIXUPS 640
#define DP_ASM_LABELS 640
#define DP_ASM_GUARDS 32 /* DP_PLAN_FIXUPS */

struct dp_label {
	uint16_t id;
};

struct dp_asm {
	struct dp_buf *out;
	uint64_t at;  /* address of out->data[start] */
	size_t start; /* out->len at creation */
	bool failed;
	uint16_t nlabels, nfixups;
	int64_t label[DP_ASM_LABELS]; /* offset from start, -1 while unbound */
	struct {
		uint32_t end; /* offset from start of the byte after the displacement */
		uint16_t label;
		uint16_t bytes; /* 1 or 4 */
	} fixup[DP_ASM_FIXUPS];
	uint16_t nguards;
	struct {
		uint32_t load;  /* offset from start of an instruction that may fault */
		uint16_t label; /* where its thread continues */
	} guard[DP_ASM_GUARDS];
};

void dp_asm_init(struct dp_asm *a, struct dp_buf *out, uint64_t at);
/* Resolves open references. False if something failed; the bytes are then useless. */
bool dp_asm_finish(struct dp_asm *a);
uint64_t dp_asm_here(const struct dp_asm *a);
void dp_asm_align(struct dp_asm *a, unsigned to); /* a power of two; filled with int3 */
void dp_asm_data(struct dp_asm *a, const void *bytes, size_t n);
struct dp_label dp_asm_label(struct dp_asm *a);
void dp_asm_bind(struct dp_asm *a, struct dp_label label);
/* The next instruction may fault; its thread then continues at `to`, which must be in the same stub. At most DP_ASM_GUARDS. */
void dp_asm_guard(struct dp_asm *a, struct dp_label to);

/* `size` is the operand's width in bytes: 1, 2, 4 or 8. */
void dp_asm_mov_load(struct dp_asm *a, unsigned size, struct dp_rm from, unsigned to);
void dp_asm_mov_store(struct dp_asm *a, unsigned size, unsigned from, struct dp_rm to);
void dp_asm_mov_zx(struct dp_asm *a, unsigned size, struct dp_rm from, unsigned to);
void dp_asm_mov_sx(struct dp_asm *a, unsigned size, struct dp_rm from, unsigned to); /* to 64 bits; not from ah..bh */
void dp_asm_mov_const(struct dp_asm *a, uint64_t value, unsigned to);
void dp_asm_lea(struct dp_asm *a, struct dp_rm from, unsigned to);
void dp_asm_lea_label(struct dp_asm *a, struct dp_label from, unsigned to);
void dp_asm_alu_label(struct dp_asm *a, enum dp_alu op, struct dp_label from, unsigned to); /* 64 bits in the stub's own data */
void dp_asm_push(struct dp_asm *a, unsigned reg);
void dp_asm_pop(struct dp_asm *a, unsigned reg);

void dp_asm_alu_load(struct dp_asm *a, enum dp_alu op, unsigned size, struct dp_rm from, unsigned to);
void dp_asm_alu_store(struct dp_asm *a, enum dp_alu op, unsigned size, unsigned from, struct dp_rm to);
void dp_asm_alu_imm(struct dp_asm *a, enum dp_alu op, unsigned size, int32_t imm, struct dp_rm to);
void dp_asm_test(struct dp_asm *a, unsigned size, unsigned from, struct dp_rm to);
void dp_asm_test_imm(struct dp_asm *a, unsigned size, int32_t imm, struct dp_rm to);
void dp_asm_imul(struct dp_asm *a, struct dp_rm from, unsigned to);
void dp_asm_imul_imm(struct dp_asm *a, int32_t imm, struct dp_rm from, unsigned to);
void dp_asm_unary(struct dp_asm *a, enum dp_unary op, unsigned reg);
void dp_asm_shift(struct dp_asm *a, enum dp_shift op, unsigned count, unsigned reg);
void dp_asm_shift_cl(struct dp_asm *a, enum dp_shift op, unsigned reg);
void dp_asm_bsf(struct dp_asm *a, unsigned from, unsigned to);
void dp_asm_cmpxchg(struct dp_asm *a, unsigned from, struct dp_rm to);
void dp_asm_lock_inc(struct dp_asm *a, struct dp_rm to);           /* 64 bits */
void dp_asm_divide(struct dp_asm *a, bool is_signed, unsigned by); /* rdx:rax, after cqo or with rdx 0 */
void dp_asm_cqo(struct dp_asm *a);

void dp_asm_lahf(struct dp_asm *a);
void dp_asm_sahf(struct dp_asm *a);
void dp_asm_seto_al(struct dp_asm *a);
void dp_asm_add_al(struct dp_asm *a, int8_t imm);
void dp_asm_pushfq(struct dp_asm *a);
void dp_asm_popfq(struct dp_asm *a);
void dp_asm_cld(struct dp_asm *a);
void dp_asm_rdtsc(struct dp_asm *a);
void dp_asm_movups_store(struct dp_asm *a, unsigned xmm, struct dp_rm to);
void dp_asm_movlps_store(struct dp_asm *a, unsigned xmm, struct dp_rm to);
void dp_asm_movss_store(struct dp_asm *a, unsigned xmm, struct dp_rm to);
void dp_asm_mov_xmm(struct dp_asm *a, unsigned size, unsigned xmm, unsigned to); /* movd, movq: low 4 or 8 bytes */

/* Jumps to bound labels are short if that reaches; forward ones are near, unless the short form is requested. */
void dp_asm_jmp(struct dp_asm *a, struct dp_label to);
void dp_asm_jcc(struct dp_asm *a, enum dp_cc cc, struct dp_label to);
void dp_asm_jcc_short(struct dp_asm *a, enum dp_cc cc, struct dp_label to);
/* Direct if that reaches, else through `scratch`. */
void dp_asm_call(struct dp_asm *a, uint64_t target, unsigned scratch);
/* Compares the 32-bit word at an address with 0. Direct if that reaches, else through `scratch`, which is saved on the stack. */
void dp_asm_cmp_zero(struct dp_asm *a, uint64_t address, unsigned scratch);

#endif
