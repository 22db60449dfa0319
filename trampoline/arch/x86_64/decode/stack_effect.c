/* SPDX-License-Identifier: MIT */
/*
 * Derives a function's stack layout from its code: for hand-written code without an unwind table.
 *
 * At its first byte the return address is at rsp. From there every path is followed, adding up the effect of each instruction on
 * rsp and on the registers that a caller may need. Where two paths disagree, or an instruction changes rsp in another way than
 * pushing, popping, adding and restoring it from rbp, the state is unknown from there on: a walk then ends, or follows frame
 * pointers. objtool does the same for the kernel.
 */
#include "agent/unwind/unwind.h"
#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>
#include <string.h>

#define SAVED     6 /* rbx, rbp, r12 to r15 */
#define SIZE_MOST 65536u
#define DEEPEST   (INT32_C(1) << 20)
#define UNSURE    (-1)

enum { RSP = 4, RBP = 5, SAVED_RBP = 1 };

struct state {
	int64_t depth;        /* CFA - rsp */
	int64_t frame;        /* CFA - rbp; 0: rbp does not point into this frame */
	int16_t saved[SAVED]; /* (CFA - its place) / 8; 0: the register is the caller's; UNSURE */
	uint8_t len;          /* of the instruction, once it was decoded */
	bool reached;
	bool lost; /* depth is unknown; frame may be known */
};

struct follow {
	const uint8_t *code;
	size_t n;
	struct state *at; /* of each byte */
	uint32_t *todo;
	bool *queued;
	size_t ntodo;
};

struct shape {
	uint8_t rex, opcode;
	bool wide;           /* the opcode follows an 0f */
	const uint8_t *rest; /* after the opcode */
	bool modrm_reg;      /* ModRM names two registers */
	uint8_t reg, rm;     /* with their REX bits; rm only if modrm_reg */
};

static struct shape shape_of(const uint8_t *p)
{
	struct shape s = {0};

	if ((*p & 0xf0) == 0x40)
		s.rex = *p++;
	s.wide = *p == 0x0f;
	p += s.wide;
	s.opcode = *p++;
	s.rest = p;
	s.modrm_reg = *p >= 0xc0;
	s.reg = (uint8_t)((*p >> 3 & 7) | (s.rex & 4) << 1);
	s.rm = (uint8_t)((*p & 7) | (s.rex & 1) << 3);
	return s;
}

/* Index in state.saved; -1: not a callee-saved register. */
static int saved_index(unsigned reg)
{
	if (reg >= 12)
		return (int)reg - 10;
	return reg == 3 ? 0 : reg == RBP ? SAVED_RBP : -1;
}

static int64_t read_int(const uint8_t *p, bool wide)
{
	int32_t value;

	memcpy(&value, p, sizeof(value));
	return wide ? value : (int8_t)*p;
}

static void push(struct state *s, unsigned reg)
{
	int i = saved_index(reg);

	s->depth += 8;
	/* The first push saves the caller's value: no code changes a callee-saved register before saving it. */
	if (i >= 0 && !s->saved[i] && !s->lost && s->depth % 8 == 0)
		s->saved[i] = (int16_t)(s->depth / 8 <= INT16_MAX ? s->depth / 8 : UNSURE);
}

static void pop(struct state *s, unsigned reg)
{
	int i = saved_index(reg);

	if (i >= 0 && s->saved[i])
		s->saved[i] = !s->lost && s->saved[i] * 8 == s->depth ? 0 : s->saved[i];
	if (reg == RBP)
		s->frame = 0;
	s->lost |= reg == RSP;
	s->depth -= 8;
}

static void to_frame(struct state *s, int64_t off)
{
	s->lost = !s->frame;
	s->depth = s->frame - off;
}

/* add, sub, lea and mov with rsp as their result, in the supported forms. */
static bool adjusts(struct state *s, const struct shape *i)
{
	const uint8_t *p = i->rest;

	if ((i->rex & 0xfb) != 0x48 || i->rex & 1)
		return false;
	if ((i->opcode == 0x81 || i->opcode == 0x83) && (*p == 0xec || *p == 0xc4))
		s->depth += (*p == 0xec ? 1 : -1) * read_int(p + 1, i->opcode == 0x81);
	else if (i->opcode == 0x8d && (*p == 0x64 || *p == 0xa4) && p[1] == 0x24 && i->rex == 0x48)
		s->depth -= read_int(p + 2, *p == 0xa4);
	else if (i->opcode == 0x8d && (*p == 0x65 || *p == 0xa5) && i->rex == 0x48 && s->frame)
		to_frame(s, read_int(p + 1, *p == 0xa5));
	else if (((i->opcode == 0x89 && *p == 0xec) || (i->opcode == 0x8b && *p == 0xe5)) && i->rex == 0x48 && s->frame)
		to_frame(s, 0);
	else if (((i->opcode == 0x89 && *p == 0xe5) || (i->opcode == 0x8b && *p == 0xec)) && i->rex == 0x48 &&
	         s->saved[SAVED_RBP] > 0 && !s->lost)
		s->frame = s->depth;
	else
		return false;
	return true;
}

enum { NOTHING = 0, TO_REG = 1, TO_RM = 2, TO_LOW = 4 }; /* which operand is written, when it is a general register */

static unsigned writes_what(const struct shape *i)
{
	const uint8_t op = i->opcode, group = i->reg & 7;

	if (op < 0x40 && (op & 7) < 4) /* add, or, adc, sbb, and, sub, xor; cmp only compares */
		return op >= 0x38 ? NOTHING : op & 2 ? TO_REG : TO_RM;
	if (op == 0x63 || op == 0x69 || op == 0x6b || op == 0x8a || op == 0x8b || op == 0x8d)
		return TO_REG;
	if (op == 0x86 || op == 0x87)
		return TO_REG | TO_RM;
	if ((op & 0xfc) == 0xd0 || (op & 0xfe) == 0x88 || (op & 0xfe) == 0xc0 || (op & 0xfe) == 0xc6)
		return TO_RM;
	if ((op & 0xfc) == 0x80)
		return group == 7 ? NOTHING : TO_RM;
	if ((op & 0xfe) == 0xf6)
		return group == 2 || group == 3 ? TO_RM : NOTHING;
	if ((op & 0xfe) == 0xfe)
		return group <= 1 ? TO_RM : NOTHING;
	return (op & 0xf0) == 0xb0 || (op & 0xf8) == 0x90 ? TO_LOW : NOTHING;
}

/* After 0f: cmov, set, shifts, bit tests, imul, cmpxchg, movzx, movsx, popcnt and similar, xadd, bswap. */
static unsigned wide_writes_what(const struct shape *i)
{
	const uint8_t op = i->opcode;

	if ((op & 0xf0) == 0x40 || op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xb8 || (op >= 0xbc && op <= 0xbf))
		return TO_REG;
	if (op == 0xc0 || op == 0xc1)
		return TO_REG | TO_RM;
	if ((op & 0xf0) == 0x90 || (op >= 0xa3 && op <= 0xa5) || (op >= 0xab && op <= 0xad) || (op >= 0xb0 && op <= 0xb3) ||
	    op == 0xba || op == 0xbb || op == 0x7e)
		return TO_RM;
	return (op & 0xf8) == 0xc8 ? TO_LOW : NOTHING;
}

/* The full register of a byte operand: without REX, 4 to 7 are ah to bh. */
static unsigned whole(const struct shape *i, unsigned reg, bool byte)
{
	return byte && !i->rex && reg >= 4 && reg < 8 ? reg - 4 : reg;
}

/* Whether an instruction that neither pushes nor pops, nor adjusts rsp, writes a register in whole or in part. */
static bool writes(const struct shape *i, unsigned reg)
{
	const unsigned what = i->wide ? wide_writes_what(i) : writes_what(i), low = (i->opcode & 7) | (unsigned)(i->rex & 1) << 3;
	const bool byte = i->wide ? (i->opcode & 0xf0) == 0x90 || i->opcode == 0xb0 || i->opcode == 0xc0
	                          : (i->opcode & 0xf8) == 0xb0 || !(i->opcode & 1);

	if (what == TO_LOW)
		return whole(i, low, !i->wide && (i->opcode & 0xf8) == 0xb0) == reg;
	return (what & TO_REG && whole(i, i->reg, byte) == reg) || (what & TO_RM && i->modrm_reg && whole(i, i->rm, byte) == reg);
}

/* cpuid writes rbx; VEX and three-byte opcodes are treated roughly: adcx, mulx, andn and similar. */
static bool writes_many(const struct shape *i)
{
	if (i->wide)
		return i->opcode == 0xa2 || i->opcode == 0xc7 || (i->opcode == 0x38 && i->rest[0] >= 0xf0);
	return i->opcode == 0xc4 && (i->rest[0] & 0x1f) >= 2 && i->rest[2] >= 0xf0;
}

/* A register that is written before a push saves it no longer has the caller's value. */
static void overwrite(struct state *s, const struct shape *i)
{
	static const uint8_t number[SAVED] = {3, RBP, 12, 13, 14, 15};

	s->lost |= writes(i, RSP);
	if (writes(i, RBP))
		s->frame = 0;
	for (int k = 0; k < SAVED; k++)
		if (!s->saved[k] && (writes_many(i) || writes(i, number[k])))
			s->saved[k] = UNSURE;
}

static bool pushes_or_pops(struct state *s, const struct shape *i)
{
	const unsigned low = (i->opcode & 7) | (unsigned)(i->rex & 1) << 3;

	if (i->wide) {
		const bool segment = (i->opcode & 0xf6) == 0xa0; /* push and pop of fs and gs: never used */

		s->lost |= segment;
		return segment;
	}
	if ((i->opcode & 0xf8) == 0x50) {
		push(s, low);
	} else if ((i->opcode & 0xf8) == 0x58) {
		pop(s, low);
	} else if (i->opcode == 0x68 || i->opcode == 0x6a || i->opcode == 0x9c || (i->opcode == 0xff && (i->reg & 7) == 6)) {
		s->depth += 8;
	} else if (i->opcode == 0x9d || (i->opcode == 0x8f && !i->modrm_reg)) {
		s->depth -= 8;
	} else if (i->opcode == 0xc9) {
		to_frame(s, 0);
		pop(s, RBP);
	} else if (i->opcode == 0xc8 || i->opcode == 0x8f) {
		s->lost = true;
	} else {
		return false;
	}
	return true;
}

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x3e || byte == 0x64 || byte == 0x65 ||
	       byte == 0xf0;
}

/* Applies the instruction's effect. */
static void apply(struct state *s, const struct shape *i, bool cut)
{
	if (pushes_or_pops(s, i))
		s->lost |= cut; /* two bytes, not eight */
	else if (i->wide || !adjusts(s, i))
		overwrite(s, i);
	if (!s->lost && (s->depth < 8 || s->depth > DEEPEST || s->depth % 8))
		s->lost = true;
	if (s->lost)
		s->depth = 0;
}

static bool ends(const struct shape *i)
{
	if (i->wide)
		return i->opcode == 0x0b;
	return i->opcode == 0xc3 || i->opcode == 0xc2 || i->opcode == 0xe9 || i->opcode == 0xeb || i->opcode == 0xf4 ||
	       i->opcode == 0xcc || (i->opcode == 0xff && ((i->reg & 7) == 4 || (i->reg & 7) == 5));
}

/* Merges two paths. True if less is known than before. */
static bool merge(struct state *old, const struct state *s)
{
	struct state was = *old;

	if (!old->reached) {
		*old = *s;
		old->reached = true;
		return true;
	}
	if (s->lost || old->depth != s->depth) {
		old->lost = true;
		old->depth = 0;
	}
	if (old->frame != s->frame)
		old->frame = 0;
	for (int i = 0; i < SAVED; i++)
		if (old->saved[i] != s->saved[i])
			old->saved[i] = UNSURE;
	return old->lost != was.lost || old->frame != was.frame || memcmp(old->saved, was.saved, sizeof(was.saved));
}

static void go_on(struct follow *f, uint64_t to, const struct state *s)
{
	if (to < f->n && merge(&f->at[to], s) && !f->queued[to]) {
		f->queued[to] = true;
		f->todo[f->ntodo++] = (uint32_t)to;
	}
}

/* Passes the state after one instruction on to its successors. */
static void step(struct follow *f, uint32_t at)
{
	uint8_t bytes[32] = {0}, *p = bytes;
	struct state s = f->at[at];
	struct dp_insn_step step;
	struct shape i;

	memcpy(bytes, f->code + at, f->n - at < sizeof(bytes) ? f->n - at : sizeof(bytes));
	if (!dp_decode_step(f->code + at, f->n - at, at, &step))
		return;
	f->at[at].len = step.len;
	while (p < bytes + step.len - 1 && is_prefix(*p))
		p++;
	i = shape_of(p);
	apply(&s, &i, memchr(bytes, 0x66, (size_t)(p - bytes)) != NULL);
	if (step.relative && !i.wide && i.opcode == 0xe8 && step.target == at + step.len) {
		s.lost = true; /* a call to the next instruction: either gets the pc, or runs the following code twice; how
		                  long the return address stays is unknown */
		s.depth = 0;
	}
	if (step.relative && (i.wide || i.opcode != 0xe8))
		go_on(f, step.target, &s);
	if (!ends(&i))
		go_on(f, at + step.len, &s);
}

/* ---- rows --------------------------------------------------------------------------------------------------------------- */

static int16_t rule_of(int16_t saved)
{
	if (saved == UNSURE || saved > -DP_UNWIND_RULE_MIN)
		return DP_UNWIND_RULE(DP_UNWIND_UNKNOWN, 0);
	return saved ? (int16_t)DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -saved) : DP_UNWIND_RULE(DP_UNWIND_SAME, 0);
}

static struct dp_unwind_row row_of(const struct state *s)
{
	static const uint8_t number[SAVED] = {DP_UNWIND_RBX,     DP_UNWIND_RBP,     DP_UNWIND_R12,
	                                      DP_UNWIND_R12 + 1, DP_UNWIND_R12 + 2, DP_UNWIND_R12 + 3};
	struct dp_unwind_row row = {0};

	if (!s->reached || (s->lost && !s->frame))
		return row;
	row.kind = DP_UNWIND_REG;
	row.reg = s->lost ? RBP : RSP;
	row.off = (int32_t)(s->lost ? s->frame : s->depth);
	row.rule[DP_UNWIND_RA] = DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -1);
	for (int i = 0; i < SAVED; i++) {
		row.rule[number[i]] = rule_of(s->saved[i]);
		row.changed = (uint8_t)(row.changed | (s->saved[i] != 0) << number[i]);
	}
	row.flags = DP_UNWIND_GUESSED;
	return row;
}

/* The kernel sets up the return from a signal handler: walkers recognise it by these bytes. */
static bool is_sigreturn(const uint8_t *code, size_t n)
{
	return (n >= 9 && !memcmp(code, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9)) ||
	       (n >= 7 && !memcmp(code, "\xb8\x0f\0\0\0\x0f\x05", 7));
}

static bool prepare(struct follow *f)
{
	f->at = calloc(f->n, sizeof(*f->at));
	f->todo = calloc(f->n, sizeof(*f->todo));
	f->queued = calloc(f->n, sizeof(*f->queued));
	return f->at && f->todo && f->queued;
}

/*
 * A row for each instruction reached, and "nothing known" after those without a successor, and at the end of the analysed part.
 */
static void give_rows(const struct follow *f, size_t n, dp_unwind_each each, void *data)
{
	static const struct dp_unwind_row none;
	uint32_t end = UINT32_MAX;

	for (uint32_t at = 0; at < f->n; at++) {
		const struct dp_unwind_row row = row_of(&f->at[at]);

		if (f->at[at].reached || at == end)
			each(at, &row, data);
		if (f->at[at].reached)
			end = at + f->at[at].len;
	}
	if (f->n < n)
		each((uint32_t)f->n, &none, data);
}

void dp_stack_effect(const uint8_t *code, size_t n, dp_unwind_each each, void *data)
{
	struct follow f = {.code = code, .n = n < SIZE_MOST ? n : SIZE_MOST};
	const struct state start = {.depth = 8};

	if (f.n && !is_sigreturn(code, n) && prepare(&f)) {
		go_on(&f, 0, &start);
		while (f.ntodo) {
			uint32_t at = f.todo[--f.ntodo];

			f.queued[at] = false;
			step(&f, at);
		}
		give_rows(&f, n, each, data);
	}
	free(f.at);
	free(f.todo);
	free(f.queued);
}
