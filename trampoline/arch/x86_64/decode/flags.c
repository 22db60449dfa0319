/* SPDX-License-Identifier: MIT */
/*
 * Preserving the flags costs as much as a compare and a count together, and is rarely needed: functions start by moving registers
 * and adjusting the stack. So the code after the site is followed, into calls and both ways at branches, until each flag has been
 * written. Some writes in the decoder's terms may write nothing (a shift by cl of 0, a repeated compare of length 0), so only
 * instructions that always write are counted as writes; all doubtful ones are counted as reads.
 */
#include "trampoline/arch/x86_64/decode/flags.h"
#include "trampoline/code/text.h"

#include <Zydis/Zydis.h>

#define FLAGS (ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

enum { STEPS = 40, WAYS = 8 };

struct way {
	uint64_t addr;
	uint32_t flags; /* not written yet */
};

struct walk {
	const struct dp_text *text;
	struct way way[WAYS];
	unsigned n;
};

static bool writes_always(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_XADD:
	case ZYDIS_MNEMONIC_CMPXCHG:
	case ZYDIS_MNEMONIC_COMISS:
	case ZYDIS_MNEMONIC_COMISD:
	case ZYDIS_MNEMONIC_UCOMISS:
	case ZYDIS_MNEMONIC_UCOMISD:
	case ZYDIS_MNEMONIC_VUCOMISS:
	case ZYDIS_MNEMONIC_VUCOMISD:
		return true;
	default:
		return false;
	}
}

/* A logical instruction leaves AF undefined: its old value is not needed. */
static uint32_t written(const ZydisDecodedInstruction *in)
{
	const ZydisAccessedFlags *f = in->cpu_flags;
	if (!f || !writes_always(in->mnemonic))
		return 0;
	return f->modified | f->set_0 | f->set_1 | (f->undefined & ZYDIS_CPUFLAG_AF);
}

/* Leaves the program's own code, or raises a signal by design. */
static bool leads_elsewhere(const ZydisDecodedInstruction *in)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_INTERRUPT:
		return true;
	default:
		break;
	}
	if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || in->mnemonic == ZYDIS_MNEMONIC_UD2 ||
	    in->mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return true;
	return in->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && !in->raw.imm[0].is_relative;
}

static bool add_way(struct walk *w, uint64_t addr, uint32_t flags)
{
	if (w->n == WAYS)
		return false;
	w->way[w->n++] = (struct way){addr, flags};
	return true;
}

static bool looks(const ZydisDecodedInstruction *in, uint32_t flags)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFD:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_LAHF:
		return true;
	default:
		return in->cpu_flags && (in->cpu_flags->tested & flags);
	}
}

/* One instruction of a path. False: it reads a flag, or that is unknown. */
static bool step(struct walk *w, const ZydisDecoder *decoder, struct way at)
{
	size_t n;
	const uint8_t *bytes = dp_text_at(w->text, at.addr, &n);
	ZydisDecodedInstruction in;
	if (!bytes || ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, n, &in)))
		return false;
	if (looks(&in, at.flags) || leads_elsewhere(&in))
		return false;
	const uint32_t left = at.flags & ~written(&in);
	const uint64_t next = at.addr + in.length;
	if (!left)
		return true;
	if (in.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE)
		return add_way(w, next, left);
	if (in.meta.category == ZYDIS_CATEGORY_COND_BR && !add_way(w, next, left))
		return false;
	return add_way(w, next + in.raw.imm[0].value.u, left);
}

bool dp_flags_dead(const struct dp_text *text, uint64_t addr)
{
	struct walk w = {.text = text, .way = {{addr, FLAGS}}, .n = 1};
	ZydisDecoder decoder;
	if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return false;
	for (unsigned i = 0; w.n; i++)
		if (i == STEPS || !step(&w, &decoder, w.way[--w.n]))
			return false;
	return true;
}

static bool asks(const struct dp_expr *e)
{
	return e && (e->kind == DP_EXPR_RFLAGS || asks(e->a) || asks(e->b) || asks(e->c));
}

static bool answer_asks(const struct dp_agg *answer)
{
	bool some = asks(answer->by) || answer->stack;
	for (unsigned i = 0; i < answer->nkeys; i++)
		some |= !answer->key[i] || asks(answer->key[i]);
	for (; answer; answer = answer->next)
		some |= asks(answer->value);
	return some;
}

bool dp_flags_free(const struct dp_runtime *rt, const struct dp_request *req)
{
	if (rt->flags_shown || !req->text || req->hook || asks(req->when) || (req->answer && answer_asks(req->answer)))
		return false;
	for (size_t i = 0; req->fields && i < req->fields->n; i++) {
		const struct dp_field *f = &req->fields->field[i];
		if (f->source == DP_SRC_RFLAGS || f->source == DP_SRC_UNWIND || f->source == DP_SRC_PARK || asks(f->expr) ||
		    asks(f->count))
			return false;
	}
	return dp_flags_dead(req->text, req->site);
}
