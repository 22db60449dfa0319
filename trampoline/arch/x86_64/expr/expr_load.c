/* SPDX-License-Identifier: MIT */
/*
 * Loads, and facts about a hit. A load is one guarded instruction if the agent's fault handler is installed; otherwise the agent
 * reads by a system call.
 */
#include "trampoline/arch/x86_64/expr/expr_code.h"

#include <string.h>

/* ---- the agent ------------------------------------------------------------------------------------------------------ */

void dp_code_ask(struct dp_expr_code *c, const struct dp_ask *ask, const char *text, bool may_fail)
{
	struct dp_label data = dp_asm_label(c->a), over = dp_asm_label(c->a);
	struct dp_ask a = *ask;
	a.agent = c->rt->agent;
	dp_code_claim(c, DP_RCX);
	dp_code_claim(c, DP_RDX);
	if (!c->rt->ask)
		c->a->failed = true;
	dp_asm_lea_label(c->a, data, DP_RDX);
	dp_asm_call(c->a, c->rt->ask, DP_RCX);
	if (may_fail) {
		dp_asm_test(c->a, 8, DP_RCX, dp_rm_reg(DP_RCX));
		dp_asm_jcc(c->a, DP_CC_E, dp_code_failure(c));
	}
	dp_asm_jmp(c->a, over);
	dp_asm_align(c->a, sizeof(uint64_t));
	dp_asm_bind(c->a, data);
	dp_asm_data(c->a, &a, sizeof(a));
	if (text)
		dp_asm_data(c->a, text, strlen(text) + 1);
	dp_asm_bind(c->a, over);
}

bool dp_code_guards(const struct dp_expr_code *c, unsigned n)
{
	return c->rt->faults && c->a->nguards + n <= DP_ASM_GUARDS;
}

/* ---- loads ---------------------------------------------------------------------------------------------------------- */

/* Strips added constants and returns the rest of the address. */
static const struct dp_expr *base_of(const struct dp_expr *e, int32_t *disp)
{
	for (*disp = 0; e->kind == DP_EXPR_BINARY && e->op == DP_OP_ADD;) {
		uint64_t k;
		bool left = dp_expr_constant(e->a, &k);
		int64_t sum = 0;
		if (!left && !dp_expr_constant(e->b, &k))
			break;
		if (__builtin_add_overflow((int64_t)k, (int64_t)*disp, &sum) || sum != (int32_t)sum)
			break;
		*disp = (int32_t)sum;
		e = left ? e->b : e->a;
	}
	return e;
}

/* The operand of a load. */
static struct dp_rm address(struct dp_expr_code *c, const struct dp_expr *e)
{
	int32_t disp;
	const struct dp_expr *base = base_of(e, &disp);
	struct dp_part part;
	bool whole = dp_expr_part(base, &part) && part.size == 8;
	if (base->kind == DP_EXPR_THREAD && c->rt->identity == DP_ID_SELF)
		return dp_rm_fs((uint32_t)disp);
	if (whole && part.reg == DP_RSP)
		return dp_rm_mem(c->view.base, (int64_t)c->view.rsp + c->view.pushed + disp);
	if (whole && !dp_view_is_saved(&c->view, part.reg))
		return dp_rm_mem(part.reg, disp);
	dp_expr_value(c, base);
	return dp_rm_mem(DP_RAX, disp);
}

void dp_code_load(struct dp_expr_code *c, const struct dp_expr *e)
{
	if (!dp_code_guards(c, 1)) {
		dp_expr_value(c, e->a);
		dp_code_ask(c, &(struct dp_ask){.kind = DP_ASK_LOAD, .size = e->size}, NULL, true);
		dp_code_extend(c, e->size, e->is_signed);
		return;
	}
	struct dp_rm from = address(c, e->a);
	if (!dp_code_guards(c, 1)) { /* the address took the last one */
		dp_asm_lea(c->a, from, DP_RAX);
		dp_code_ask(c, &(struct dp_ask){.kind = DP_ASK_LOAD, .size = e->size}, NULL, true);
		dp_code_extend(c, e->size, e->is_signed);
		return;
	}
	dp_asm_guard(c->a, dp_code_failure(c));
	if (e->is_signed)
		dp_asm_mov_sx(c->a, e->size, from, DP_RAX);
	else
		dp_asm_mov_zx(c->a, e->size, from, DP_RAX);
}

/* ---- facts ---------------------------------------------------------------------------------------------------------- */

static void ask_for(struct dp_expr_code *c, enum dp_ask_kind kind)
{
	dp_code_ask(c, &(struct dp_ask){.kind = (uint8_t)kind}, NULL, false);
}

void dp_code_thread(struct dp_expr_code *c)
{
	if (c->rt->identity == DP_ID_SELF)
		dp_asm_mov_load(c->a, 8, dp_rm_fs(0), DP_RAX);
	else
		ask_for(c, DP_ASK_THREAD);
}

/*
 * The kernel stores the processor's number (12 bits) and its node as the limit of a segment, for the vdso. lsl is older than
 * rdpid and rdtscp, and needs one register.
 */
static void emit_cpu(struct dp_expr_code *c)
{
	enum { CPUNODE_SEGMENT = 0x7b };
	struct dp_label end = dp_asm_label(c->a);
	dp_asm_mov_const(c->a, CPUNODE_SEGMENT, DP_RAX);
	dp_asm_data(c->a, "\x0f\x03\xc0", 3); /* lsl %eax,%eax */
	dp_asm_jcc(c->a, DP_CC_E, end);
	ask_for(c, DP_ASK_CPU);
	dp_asm_bind(c->a, end);
	dp_asm_alu_imm(c->a, DP_ALU_AND, 4, 0xfff, dp_rm_reg(DP_RAX));
}

static void emit_time(struct dp_expr_code *c)
{
	dp_code_claim(c, DP_RDX);
	dp_asm_rdtsc(c->a);
	dp_asm_shift(c->a, DP_SHIFT_SHL, 32, DP_RDX);
	dp_asm_alu_store(c->a, DP_ALU_OR, 8, DP_RDX, dp_rm_reg(DP_RAX));
}

/* In a fork child the word is 0 until the agent is asked. */
static void emit_pid(struct dp_expr_code *c)
{
	struct dp_label known = dp_asm_label(c->a);
	dp_asm_mov_const(c->a, c->rt->agent + offsetof(struct dp_agent, pid), DP_RAX);
	dp_asm_mov_load(c->a, 4, dp_rm_mem(DP_RAX, 0), DP_RAX);
	if (!c->rt->follows)
		return;
	dp_asm_test(c->a, 4, DP_RAX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(c->a, DP_CC_NE, known);
	ask_for(c, DP_ASK_PID);
	dp_asm_bind(c->a, known);
}

static void emit_kept(struct dp_expr_code *c, int32_t word)
{
	if (!word)
		c->a->failed = true;
	dp_asm_mov_load(c->a, 8, dp_rm_mem(c->view.base, word + c->view.pushed), DP_RAX);
}

void dp_code_fact(struct dp_expr_code *c, enum dp_fact fact)
{
	switch (fact) {
	case DP_FACT_PID:
		emit_pid(c);
		break;
	case DP_FACT_TID:
		if (c->rt->identity == DP_ID_SELF)
			dp_asm_mov_load(c->a, 4, dp_rm_fs(c->rt->tid_offset), DP_RAX);
		else
			ask_for(c, DP_ASK_TID);
		break;
	case DP_FACT_CPU:
		emit_cpu(c);
		break;
	case DP_FACT_TIME:
		emit_time(c);
		break;
	case DP_FACT_DURATION:
		emit_kept(c, c->view.duration);
		break;
	case DP_FACT_CALL:
		emit_kept(c, c->view.call);
		break;
	case DP_FACT_HITS:
		emit_kept(c, c->view.hits);
		break;
	case DP_FACT_CALLER: /* the call pushed it, and the return will pop it: it can be read */
		dp_asm_mov_load(c->a, 8, dp_rm_mem(c->view.base, c->view.rsp + c->view.pushed), DP_RAX);
		break;
	default:
		c->a->failed = true;
	}
}
