/* SPDX-License-Identifier: MIT */
/*
 * What a function does to its stack, read from its code: for hand-written code that no unwind table describes.
 *
 * At its first byte the return address is at rsp. From there every path is followed, and what each instruction does to rsp and to
 * the registers that a caller may need is added up. Where two paths disagree, or an instruction does something else to
 * rsp than pushing, popping, adding and restoring it from rbp, nothing is known from there on: a walk then ends, or follows frame
 * pointers. As objtool does for the kernel.
 */
#include "agent/unwind.h"
#include "trampoline/arch/x86_64/decode.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>
#include <string.h>

#define SAVED     6 /* rbx, rbp, r12 to r15 */
#define SIZE_MOST 65536u
#define DEEPEST   (INT32_C(1) << 20)
#define UNSURE    (-1)

enum { RSP = 4, RBP = 5, SAVED_RBP = 1 };

struct state {
	int32_t depth;        /* CFA - rsp */
	int32_t frame;        /* CFA - rbp; 0: rbp is not of this frame */
	int16_t saved[SAVED]; /* (CFA - its place) / 8; 0: the register is the caller's; UNSURE */
	uint8_t len;          /* of the instruction, once it has been looked at */
	bool reached;
	bool lost; /* depth is not known; frame may be */
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
	bool wide;           /* the opcode is behind an 0f */
	const uint8_t *rest; /* behind the opcode */
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

/* Which of state.saved; -1: no register that a callee preserves. */
static int saved_index(unsigned reg)
{
	if (reg >= 12)
		return (int)reg - 10;
	return reg == 3 ? 0 : reg == RBP ? SAVED_RBP : -1;
}

static int32_t read_int(const uint8_t *p, bool wide)
{
	int32_t value = (int8_t)*p;

	if (wide)
		memcpy(&value, p, sizeof(value));
	return value;
}

static void push(struct state *s, unsigned reg)
{
	int i = saved_index(reg);

	s->depth += 8;
	/* The first time it is the caller's value: nobody changes a register that has to be preserved before it is saved. */
	if (i >= 0 && !s->saved[i] && !s->lost && s->depth % 8 == 0)
		s->saved[i] = s->depth / 8 <= INT16_MAX ? (int16_t)(s->depth / 8) : UNSURE;
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

static void to_frame(struct state *s, int32_t off)
{
	s->lost = !s->frame;
	s->depth = s->frame - off;
}

/* add, sub, lea and mov with rsp as their result, in the forms that are understood. */
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

/* Does an instruction that is none of those above write register `reg`, rsp or rbp, by its ModRM byte? */
static bool writes(const struct shape *i, uint8_t reg)
{
	uint8_t group = i->reg & 7;

	switch (i->opcode) {
	case 0x8b:
	case 0x8d:
	case 0x63:
	case 0x03:
	case 0x0b:
	case 0x13:
	case 0x1b:
	case 0x23:
	case 0x2b:
	case 0x33:
	case 0x69:
	case 0x6b:
		return i->reg == reg;
	case 0x87:
		return i->reg == reg || (i->modrm_reg && i->rm == reg);
	case 0x01:
	case 0x09:
	case 0x11:
	case 0x19:
	case 0x21:
	case 0x29:
	case 0x31:
	case 0x89:
	case 0xc1:
	case 0xd1:
	case 0xd3:
	case 0xc7:
		return i->modrm_reg && i->rm == reg;
	case 0x81:
	case 0x83:
		return i->modrm_reg && i->rm == reg && group != 7;
	case 0xf7:
		return i->modrm_reg && i->rm == reg && (group == 2 || group == 3);
	case 0xff:
		return i->modrm_reg && i->rm == reg && group <= 1;
	default:
		return (i->opcode & 0xf8) == 0xb8 || (i->opcode & 0xf8) == 0x90 ? ((i->opcode & 7) | (i->rex & 1) << 3) == reg
		                                                                : false;
	}
}

/* The same for opcodes behind 0f: cmov, imul, movzx, movsx, bswap, bit tests, shifts, xadd, cmpxchg, popcnt and its like. */
static bool wide_writes(const struct shape *i, uint8_t reg)
{
	switch (i->opcode) {
	case 0xaf:
	case 0xb6:
	case 0xb7:
	case 0xb8:
	case 0xbc:
	case 0xbd:
	case 0xbe:
	case 0xbf:
		return i->reg == reg;
	case 0xa4:
	case 0xa5:
	case 0xab:
	case 0xac:
	case 0xad:
	case 0xb1:
	case 0xb3:
	case 0xba:
	case 0xbb:
	case 0x7e:
		return i->modrm_reg && i->rm == reg;
	case 0xc1:
		return i->reg == reg || (i->modrm_reg && i->rm == reg);
	default:
		if ((i->opcode & 0xf0) == 0x40)
			return i->reg == reg;
		return (i->opcode & 0xf8) == 0xc8 && ((i->opcode & 7) | (i->rex & 1) << 3) == reg;
	}
}

static bool pushes_or_pops(struct state *s, const struct shape *i)
{
	const unsigned low = (i->opcode & 7) | (unsigned)(i->rex & 1) << 3;

	if (i->wide)
		return false;
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

/* What the instruction leaves behind. */
static void apply(struct state *s, const struct shape *i, bool cut)
{
	if (pushes_or_pops(s, i)) {
		s->lost |= cut; /* two bytes, not eight */
	} else if (i->wide) {
		s->lost |= wide_writes(i, RSP);
		s->frame = wide_writes(i, RBP) ? 0 : s->frame;
	} else if (!adjusts(s, i)) {
		s->lost |= writes(i, RSP);
		s->frame = writes(i, RBP) ? 0 : s->frame;
	}
	if (!s->lost && (s->depth < 8 || s->depth > DEEPEST || s->depth % 8))
		s->lost = true;
}

static bool ends(const struct shape *i)
{
	if (i->wide)
		return i->opcode == 0x0b;
	return i->opcode == 0xc3 || i->opcode == 0xc2 || i->opcode == 0xe9 || i->opcode == 0xeb || i->opcode == 0xf4 ||
	       i->opcode == 0xcc || (i->opcode == 0xff && ((i->reg & 7) == 4 || (i->reg & 7) == 5));
}

/* Two paths come together. True if something is known less well than before. */
static bool merge(struct state *old, const struct state *s)
{
	struct state was = *old;

	if (!old->reached) {
		*old = *s;
		old->reached = true;
		return true;
	}
	if (old->lost || s->lost || old->depth != s->depth) {
		old->lost = true;
		old->depth = was.lost ? was.depth : 0;
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

/* One instruction: its state is handed on to those that may come next. */
static void step(struct follow *f, uint32_t at)
{
	uint8_t bytes[32] = {0}, *p = bytes;
	struct state s = f->at[at];
	struct dp_step step;
	struct shape i;

	memcpy(bytes, f->code + at, f->n - at < sizeof(bytes) ? f->n - at : sizeof(bytes));
	if (!dp_decode_step(f->code + at, f->n - at, at, &step))
		return;
	f->at[at].len = step.len;
	while (p < bytes + step.len - 1 && is_prefix(*p))
		p++;
	i = shape_of(p);
	apply(&s, &i, memchr(bytes, 0x66, (size_t)(p - bytes)) != NULL);
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
	row.off = s->lost ? s->frame : s->depth;
	row.rule[DP_UNWIND_RA] = DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -1);
	for (int i = 0; i < SAVED; i++) {
		row.rule[number[i]] = rule_of(s->saved[i]);
		row.changed = (uint8_t)(row.changed | (s->saved[i] != 0) << number[i]);
	}
	if (s->saved[0] != UNSURE && s->saved[SAVED_RBP] != UNSURE)
		row.flags = DP_UNWIND_PLAIN;
	return row;
}

/* A return from a signal handler is called by the kernel: walkers know it by these bytes. */
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

/* A row for each instruction that was reached, and "nothing known" behind those that nothing follows. */
static void give_rows(const struct follow *f, dp_unwind_each each, void *data)
{
	uint32_t end = UINT32_MAX;

	for (uint32_t at = 0; at < f->n; at++) {
		const struct dp_unwind_row row = row_of(&f->at[at]);

		if (f->at[at].reached || at == end)
			each(at, &row, data);
		if (f->at[at].reached)
			end = at + f->at[at].len;
	}
}

void dp_follow_stack(const uint8_t *code, size_t n, dp_unwind_each each, void *data)
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
		give_rows(&f, each, data);
	}
	free(f.at);
	free(f.todo);
	free(f.queued);
}
