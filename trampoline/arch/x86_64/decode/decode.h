/* SPDX-License-Identifier: MIT */
/* One instruction, with the properties that matter for moving it and for jumping over it. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_DECODE_DECODE_H
#define DP_TRAMPOLINE_ARCH_X86_64_DECODE_DECODE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_INSN_MAX 15

enum dp_flow {
	DP_FLOW_NEXT,    /* continues after itself */
	DP_FLOW_JMP,     /* direct: target, rel_at, rel_size */
	DP_FLOW_JCC,     /* direct, by flags */
	DP_FLOW_JCXZ,    /* direct, rel8 only: jcxz, jecxz, jrcxz, loop, loope, loopne */
	DP_FLOW_CALL,    /* direct */
	DP_FLOW_XBEGIN,  /* falls through; `target` is where an abort continues */
	DP_FLOW_JMP_IND, /* through a register or memory */
	DP_FLOW_CALL_IND,
	DP_FLOW_RET,     /* ret, iret */
	DP_FLOW_SYSCALL, /* syscall, int 0x80: a thread may wait in the kernel with its pc after it */
	DP_FLOW_TRAP,    /* raises a signal by design: its handler may read the pc */
	DP_FLOW_ODD,     /* far transfers, 16-bit branches, sysenter */
};

struct dp_insn {
	uint64_t addr;
	uint64_t target; /* of a direct branch */
	enum dp_flow flow;
	uint8_t bytes[DP_INSN_MAX];
	uint8_t len;
	uint8_t rel_at, rel_size; /* position of a direct branch's operand */
	uint8_t opcode_at;        /* first opcode byte, after the prefixes */
	uint8_t modrm_at;         /* 0: none */
	uint8_t disp_at;          /* position of a RIP-relative disp32; 0: none */
	bool addr32;              /* address-size prefix: a RIP-relative address is truncated to 32 bits */
	bool stack_base;          /* memory operand based on rsp */
	bool stack_reg;           /* its register operand in ModRM.rm is rsp itself */
	bool nop;                 /* any nop: padding, if nothing leads to it */
	bool guarded;             /* DP_FLOW_TRAP that may be moved: the agent's handler will report its signal at the original
	                             address */
};

/*
 * Decodes the instruction at `addr`, whose bytes (and maybe more) are bytes[0..n). Capstone and Zydis must agree on the length;
 * Zydis alone decides if Capstone does not know the instruction. DP_TAG_UNDECODABLE otherwise.
 */
struct dp_error *dp_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *ret) DP_MUST_CHECK;
/* Zydis alone: fast enough for whole functions. False if it cannot decode. */
bool dp_decode_zydis(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *ret);
/* The subset that a walk through a function needs, in a tenth of the time. */
struct dp_insn_step {
	uint64_t target; /* of a relative branch */
	uint8_t len;
	bool relative; /* it is a relative branch */
	bool odd;      /* a relative branch of a rarer kind: loop, jrcxz, xbegin, 16 bits */
};
bool dp_decode_step(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn_step *ret);
/* Capstone's length of the instruction, 0 if it cannot decode. `text` (or NULL) gets its AT&T text. */
size_t dp_decode_capstone(const uint8_t *bytes, size_t n, uint64_t addr, char *text, size_t size);

/* Formats "0x1234: push %rbp" for messages. */
#define DP_INSN_TEXT 96
const char *dp_insn_text(const struct dp_insn *insn, char buf[static DP_INSN_TEXT]);
/* Whether execution can reach the next instruction without a branch. True for calls: they return there. */
bool dp_insn_continues(const struct dp_insn *insn);
/* int3, or any nop. */
bool dp_insn_is_padding(const struct dp_insn *insn);

#endif
