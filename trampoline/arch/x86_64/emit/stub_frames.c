/* SPDX-License-Identifier: MIT */
/*
 * Follows a stub's code as the processor would, both ways at each branch, and tracks rsp: pushes and pops, lea, and rbx once it
 * points to the frame (aligning the stack for calls into C loses rsp). The first push of a register since the site saves the
 * program's value.
 */
#include "trampoline/code/frames.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

enum { RBX = 3, RSP = 4 };

struct state {
	bool seen;
	bool has[2];    /* whether the program's rsp is known relative to rsp, to rbx */
	int32_t off[2]; /* its distance */
	uint64_t original;
	int32_t saved[DP_FRAME_REGS];
};
enum { BY_RSP, BY_RBX };

struct walk {
	ZydisDecoder decoder;
	const uint8_t *bytes;
	size_t n;
	uint64_t start;
	const struct dp_pc_pair *pair;
	size_t npairs;
	struct state *at;  /* for each byte: the state before the instruction there, if `seen` */
	uint32_t *pending; /* offsets of instructions still to be followed */
	size_t npending;
};

struct insn {
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

/* ---- one instruction ------------------------------------------------------------------------------------------------ */

/* Number of a whole general register, or -1. */
static int reg_of(const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || op->reg.value < ZYDIS_REGISTER_RAX || op->reg.value > ZYDIS_REGISTER_R15)
		return -1;
	return op->reg.value - ZYDIS_REGISTER_RAX;
}

/* The base of "disp(%rsp)" or "disp(%rbx)", or -1. */
static int by_of(const ZydisDecodedOperand *op)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.index != ZYDIS_REGISTER_NONE)
		return -1;
	return op->mem.base == ZYDIS_REGISTER_RSP ? BY_RSP : op->mem.base == ZYDIS_REGISTER_RBX ? BY_RBX : -1;
}

static void push(struct state *s, int reg)
{
	s->off[BY_RSP] += 8;
	if (reg >= 0 && reg != RSP && s->has[BY_RSP] && !s->saved[reg])
		s->saved[reg] = -s->off[BY_RSP];
}

static void pop(struct state *s, int reg)
{
	if (reg >= 0 && s->has[BY_RSP] && s->saved[reg] == -s->off[BY_RSP])
		s->saved[reg] = 0;
	s->off[BY_RSP] -= 8;
	if (reg == RBX)
		s->has[BY_RBX] = false;
	if (reg == RSP)
		s->has[BY_RSP] = false;
}

/* to = from + disp, both of them rsp or rbx */
static void derive(struct state *s, int to, int from, int64_t disp)
{
	s->has[to] = s->has[from];
	s->off[to] = s->off[from] - (int32_t)disp;
}

static bool is_written(const ZydisDecodedOperand *op, ZydisRegister reg)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
	       ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value) == reg;
}

static void other(struct state *s, const struct insn *i)
{
	for (unsigned k = 0; k < i->in.operand_count; k++) {
		s->has[BY_RSP] &= !is_written(&i->op[k], ZYDIS_REGISTER_RSP);
		s->has[BY_RBX] &= !is_written(&i->op[k], ZYDIS_REGISTER_RBX);
	}
}

static int as_base(int reg)
{
	return reg == RSP ? BY_RSP : reg == RBX ? BY_RBX : -1;
}

static void step(struct state *s, const struct insn *i)
{
	const int to = as_base(reg_of(&i->op[0]));
	switch (i->in.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		push(s, i->in.mnemonic == ZYDIS_MNEMONIC_PUSH ? reg_of(&i->op[0]) : -1);
		return;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPFQ:
		pop(s, i->in.mnemonic == ZYDIS_MNEMONIC_POP ? reg_of(&i->op[0]) : -1);
		return;
	case ZYDIS_MNEMONIC_LEA:
		if (to >= 0 && by_of(&i->op[1]) >= 0)
			derive(s, to, by_of(&i->op[1]), i->op[1].mem.disp.value);
		else
			other(s, i);
		return;
	case ZYDIS_MNEMONIC_MOV:
		if (to >= 0 && as_base(reg_of(&i->op[1])) >= 0)
			derive(s, to, as_base(reg_of(&i->op[1])), 0);
		else
			other(s, i);
		return;
	case ZYDIS_MNEMONIC_CALL: /* returns with rsp unchanged */
		return;
	default:
		other(s, i);
	}
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

static void reach(struct walk *w, uint64_t pc, const struct state *s)
{
	const uint64_t at = pc - w->start;
	if (at >= w->n || w->at[at].seen)
		return;
	w->at[at] = *s;
	w->at[at].seen = true;
	w->pending[w->npending++] = (uint32_t)at;
}

static bool goes_on(const struct insn *i)
{
	return i->in.mnemonic != ZYDIS_MNEMONIC_JMP && i->in.mnemonic != ZYDIS_MNEMONIC_RET &&
	       i->in.mnemonic != ZYDIS_MNEMONIC_UD2;
}

static void follow(struct walk *w, uint32_t at)
{
	struct state s = w->at[at];
	struct insn i;
	uint64_t target;
	const uint64_t pc = w->start + at;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(&w->decoder, w->bytes + at, w->n - at, &i.in, i.op)))
		return;
	step(&s, &i);
	if (i.in.mnemonic != ZYDIS_MNEMONIC_CALL && i.in.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE &&
	    i.op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&i.in, &i.op[0], pc, &target)))
		reach(w, target, &s);
	if (goes_on(&i))
		reach(w, pc + i.in.length, &s);
}

/* Sets the known states first, so that no other state is recorded for them. */
static void begin(struct walk *w)
{
	for (size_t k = 0; k < w->npairs; k++) {
		const struct state s = {.has = {[BY_RSP] = true}, .original = w->pair[k].original};
		reach(w, w->pair[k].stub, &s);
	}
}

static struct dp_frame_row row_of(const struct state *s, uint64_t pc)
{
	const int by = s->has[BY_RSP] ? BY_RSP : BY_RBX;
	struct dp_frame_row row = {.pc = pc, .original = s->original, .known = s->has[by], .base = by == BY_RSP ? RSP : RBX};
	row.offset = s->off[by];
	memcpy(row.saved, s->saved, sizeof(row.saved));
	return row;
}

static bool same(const struct dp_frame_row *a, const struct dp_frame_row *b)
{
	return a->original == b->original && a->known == b->known && a->base == b->base && a->offset == b->offset &&
	       !memcmp(a->saved, b->saved, sizeof(a->saved));
}

static struct dp_error *gather(const struct walk *w, struct dp_frame_rows *ret)
{
	struct dp_frame_row *row = calloc(w->n + 1, sizeof(*row));
	size_t n = 0;
	if (!row)
		return dp_error_nomem();
	for (size_t at = 0; at < w->n; at++) {
		if (!w->at[at].seen)
			continue;
		row[n] = row_of(&w->at[at], w->start + at);
		n += !n || !same(&row[n - 1], &row[n]);
	}
	*ret = (struct dp_frame_rows){.row = row, .n = n, .end = w->start + w->n};
	return NULL;
}

struct dp_error *dp_stub_frames(const uint8_t *bytes, size_t n, uint64_t start, const struct dp_pc_pair *pair, size_t npairs,
                                struct dp_frame_rows *ret)
{
	struct walk w = {.bytes = bytes, .n = n, .start = start, .pair = pair, .npairs = npairs};
	struct dp_error *err = NULL;
	w.at = calloc(n + 1, sizeof(*w.at));
	w.pending = calloc(n + 1, sizeof(*w.pending));
	ZydisDecoderInit(&w.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (w.at && w.pending) {
		begin(&w);
		while (w.npending)
			follow(&w, w.pending[--w.npending]);
		err = gather(&w, ret);
	} else {
		err = dp_error_nomem();
	}
	free(w.at);
	free(w.pending);
	return err;
}

void dp_frame_rows_fini(struct dp_frame_rows *rows)
{
	free(rows->row);
	*rows = (struct dp_frame_rows){0};
}
