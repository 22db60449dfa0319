/* SPDX-License-Identifier: MIT */
/* One instruction, as far as moving it and jumping over it need to know. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_DECODE_H
#define DP_TRAMPOLINE_ARCH_X86_64_DECODE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_INSN_MAX 15

enum dp_flow {
	DP_FLOW_NEXT,    /* continues behind itself */
	DP_FLOW_JMP,     /* direct: target, rel_at, rel_size */
	DP_FLOW_JCC,     /* direct, by flags */
	DP_FLOW_JCXZ,    /* direct, rel8 only: jcxz, jecxz, jrcxz, loop, loope, loopne */
	DP_FLOW_CALL,    /* direct */
	DP_FLOW_XBEGIN,  /* falls through; `target` is where an abort continues */
	DP_FLOW_JMP_IND, /* through a register or memory */
	DP_FLOW_CALL_IND,
	DP_FLOW_RET,     /* ret, iret */
	DP_FLOW_SYSCALL, /* syscall, int 0x80: a thread may rest in the kernel with its pc behind it */
	DP_FLOW_TRAP,    /* raises a signal by design: its handler looks at the pc */
	DP_FLOW_ODD,     /* far transfers, 16-bit branches, sysenter */
};

struct dp_insn {
	uint64_t addr;
	uint64_t target; /* of a direct branch */
	enum dp_flow flow;
	uint8_t bytes[DP_INSN_MAX];
	uint8_t len;
	uint8_t rel_at, rel_size; /* place of a direct branch's operand */
	uint8_t opcode_at;        /* first opcode byte, behind prefixes */
	uint8_t modrm_at;         /* 0: none */
	uint8_t disp_at;          /* place of a RIP-relative disp32; 0: none */
	bool addr32;              /* address-size prefix: a RIP-relative address would be cut to 32 bits */
	bool stack_base;          /* memory operand based on rsp */
	bool stack_reg;           /* its register operand in ModRM.rm is rsp itself */
	bool nop;                 /* any nop: padding, when nothing leads to it */
	bool guarded;             /* DP_FLOW_TRAP, and the agent's handler will show its signal at its own place: it may be moved */
};

/*
 * Decodes the instruction at `addr`, whose bytes (and maybe more) are bytes[0..n). Capstone and Zydis must agree on the length;
 * what Capstone does not know, Zydis decides alone. DP_TAG_UNDECODABLE otherwise.
 */
struct dp_error *dp_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *ret) DP_MUST_CHECK;
/* Zydis alone: fast enough to walk through whole functions. False if it cannot decode. */
bool dp_decode_zydis(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *ret);
/* What a walk through a function needs of an instruction: the same answer in a tenth of the time. */
struct dp_step {
	uint64_t target; /* of a relative branch */
	uint8_t len;
	bool relative; /* it is one */
	bool odd;      /* and one of the rarer ones: loops, jrcxz, xbegin, 16 bits */
};
bool dp_decode_step(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_step *ret);
/* Capstone's length of the instruction, 0 if it cannot decode. `text` (or NULL) gets its AT&T text. */
size_t dp_decode_capstone(const uint8_t *bytes, size_t n, uint64_t addr, char *text, size_t size);

/* "0x1234: push %rbp" for messages. */
#define DP_INSN_TEXT 96
const char *dp_insn_text(const struct dp_insn *insn, char buf[static DP_INSN_TEXT]);
/* Can the instruction behind it be reached from it without a branch? True for calls: they return there. */
bool dp_insn_continues(const struct dp_insn *insn);
/* int3, or any nop. */
bool dp_insn_is_padding(const struct dp_insn *insn);

#endif
