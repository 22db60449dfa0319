/* SPDX-License-Identifier: MIT */
/*
 * The compiled unwind tables: the tool makes them from .eh_frame, the agent walks with them.
 *
 * One read-only block; all contents are found by offsets from its start:
 *
 *   struct dp_unwind          header
 *   struct dp_unwind_range[]  executable segments of the target, ascending, absolute addresses
 *   struct dp_unwind_row[]    the distinct rules, shared by all ranges; [0] is "nothing known"
 *   per range: uint32_t pc[]  offsets from the range's start, ascending: where a rule starts to apply
 *              uint16_t row[] the rule's index
 *
 * A rule says how to get the caller's state from a frame's own: the CFA (normally the caller's rsp), the return address and the
 * registers that rules of outer frames may need. Numbering of registers: as in struct dp_regs. The names follow DWARF 5, 6.4.
 */
#ifndef DP_AGENT_UNWIND_UNWIND_H
#define DP_AGENT_UNWIND_UNWIND_H

#include <stdint.h>

#define DP_UNWIND_MAGIC UINT64_C(0x31646e6977757064) /* "dpuwind1" */

struct dp_unwind {
	uint64_t magic;
	uint64_t size;       /* of the block */
	uint32_t generation; /* distinguishes cache entries of one block from those of the block it replaced */
	uint32_t tracked;    /* bit i: some rule starts from the register of rule[i]; only these are worth recovering */
	uint32_t nranges, nrows;
	uint32_t ranges_offset, rows_offset;
};

struct dp_unwind_range {
	uint64_t start, end;
	uint32_t n; /* entries of pc[] and row[]; 0: known code without tables */
	uint32_t pc_offset, row_offset;
	uint32_t reserved;
};

enum dp_unwind_kind {
	DP_UNWIND_NONE = 0,   /* nothing known */
	DP_UNWIND_REG = 1,    /* CFA = reg + off */
	DP_UNWIND_PLT = 2,    /* CFA = rsp + off + (pc % 16 >= index ? 8 : 0) */
	DP_UNWIND_DEREF = 3,  /* CFA = *(reg + off) + add */
	DP_UNWIND_INDEX = 4,  /* CFA = *(reg + off + 8 * index) + add, `index` a register */
	DP_UNWIND_SIGNAL = 5, /* the kernel's rt_sigframe: a ucontext at rsp */
};

/* Where a register of the caller is: a code in the low 3 bits, a signed number n above. */
enum dp_unwind_code {
	DP_UNWIND_SAME = 0,    /* unchanged; for rsp: the CFA */
	DP_UNWIND_AT_CFA = 1,  /* in memory at CFA + 8n */
	DP_UNWIND_AT_RBP = 2,  /* in memory at rbp + 8n */
	DP_UNWIND_AT_RSP = 3,  /* in memory at rsp + 8n */
	DP_UNWIND_IN_REG = 4,  /* in register n */
	DP_UNWIND_VALUE = 5,   /* is CFA + 8n */
	DP_UNWIND_UNKNOWN = 6, /* lost */
	DP_UNWIND_END = 7,     /* of the return address: no caller */
};
#define DP_UNWIND_RULE(code, n) ((int16_t)((n)*8 + (code)))
#define DP_UNWIND_RULE_MAX      4095 /* bounds of n */
#define DP_UNWIND_RULE_MIN      (-4096)

enum dp_unwind_reg { /* index into dp_unwind_row.rule */
	             DP_UNWIND_RBX,
	             DP_UNWIND_RSP,
	             DP_UNWIND_RBP,
	             DP_UNWIND_R12, /* r13, r14, r15 follow */
	             DP_UNWIND_RA = 7,
	             DP_UNWIND_NRULES = 8,
};

#define DP_UNWIND_EXACT 1u /* flag: a signal frame; the caller's pc is the interrupted one and does not follow a call */
#define DP_UNWIND_PLAIN                                                                                                          \
	2u /* flag: DP_UNWIND_REG of rsp or rbp, return address at CFA - 8, rsp, rbp and rbx same or in memory at the CFA */
#define DP_UNWIND_GENERATED 8u /* flag of DP_UNWIND_NONE: memory without a file, in which the program generates code */
#define DP_UNWIND_GUESSED   4u /* flag, without DP_UNWIND_PLAIN: read from code, not from a table; may be wrong */

struct dp_unwind_row {
	uint8_t kind, reg, index, flags;
	int32_t off;
	int32_t add;
	int16_t rule[DP_UNWIND_NRULES];
	uint8_t changed; /* bit i: rule[i] is not DP_UNWIND_SAME (i < 7) */
	uint8_t reserved[3];
};
_Static_assert(sizeof(struct dp_unwind_row) == 32, "rows are found by a shift");

#define DP_UNWIND_ROWS_MAX 65535u

/*
 * The hot cache of a slot: words, so that a nested signal never sees half an entry. A set is two neighbouring words. Entry: bits
 * 0-15 row, 16-25 generation, 26-63 pc / sets; 0 is empty. An entry and its set identify the pc completely, so a match is exact.
 * After the entries: as many guesses (uint16_t) of the place of a frame's entry, found by the place of the next inner frame's.
 * They are verified; they let the processor work ahead of the chain of return addresses.
 */
#define DP_UNWIND_SETS_SHIFT  9u
#define DP_UNWIND_ENTRIES     1024u                                       /* two per set */
#define DP_UNWIND_CACHE       (DP_UNWIND_ENTRIES + DP_UNWIND_ENTRIES / 4) /* words of 8 bytes in all */
#define DP_UNWIND_GENERATIONS 1024u
#define DP_UNWIND_PC_MAX      (UINT64_C(1) << 47) /* user addresses are below */

/*
 * Bytes of a slot's memo (unwind_memo.c), all 0 at first. Its first word is 1 while a hit uses it: who gets the slot writes 0. It
 * is memory of one process, which a fork child does not share.
 */
#define DP_UNWIND_MEMO 4096u

/*
 * struct dp_slot.stack_lo contains the stack range found readable as one word, for the same reason: the first page's address,
 * plus the number of pages in its low 12 bits. stack_hi is not used.
 */
#define DP_UNWIND_PAGE UINT64_C(4096)

#endif
