/* SPDX-License-Identifier: MIT */
/* Unwinds frame by frame. The stack may contain anything, so every step must ascend, and the number of steps is limited. */
#include "pmodules/frames/frames.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1 << 16, OUTER_SHARE = 4, SWITCHES_MAX = 16 };

static bool load(struct dp_debug_ctx *w, uint64_t addr, uint64_t *ret)
{
	return dp_debug_ctx_get(w, addr, ret, sizeof(*ret), NULL);
}

static void set(struct dp_snap_registers *r, unsigned i, uint64_t v)
{
	r->value[i] = v;
	r->known |= 1u << i;
}

/* ---- by rule -------------------------------------------------------------------------------------------------------------- */

static bool cfa_of(struct dp_debug_ctx *w, struct dp_fstate *s)
{
	const struct dp_frule *rule = &s->plan->rule;
	uint64_t v = 0;
	if (rule->cfa_plain) {
		if (!(s->regs.known >> rule->cfa_reg & 1))
			return false;
		v = s->regs.value[rule->cfa_reg] + (uint64_t)rule->cfa_off;
	} else {
		const struct dp_eval e = {.w = w, .frame = s, .nesting = 1};
		if (dp_eval_number(&e, rule->ops, rule->n, &v))
			return false;
	}
	s->cfa = v;
	return true;
}

static void recover(struct dp_debug_ctx *w, const struct dp_fstate *s, unsigned i, struct dp_snap_registers *to)
{
	const struct dp_freg *r = &s->plan->rule.reg[i];
	const struct dp_eval e = {.w = w, .frame = s, .nesting = 1, .has_initial = false};
	uint64_t v = 0, at = s->cfa + (uint64_t)r->off;
	bool known = false;
	switch (r->kind) {
	case DP_FRULE_SAME:
		known = s->regs.known >> i & 1;
		v = s->regs.value[i];
		break;
	case DP_FRULE_AT_CFA:
		known = load(w, at, &v);
		break;
	case DP_FRULE_IS_CFA:
		known = true;
		v = at;
		break;
	case DP_FRULE_REG:
		known = s->regs.known >> r->reg & 1;
		v = s->regs.value[r->reg];
		break;
	case DP_FRULE_AT_EXPR:
		known = !dp_eval_number(&e, r->ops, r->n, &at) && load(w, at, &v);
		break;
	case DP_FRULE_IS_EXPR:
		known = !dp_eval_number(&e, r->ops, r->n, &v);
		break;
	default:
		break;
	}
	if (known)
		set(to, i, v);
}

static bool by_rule(struct dp_debug_ctx *w, const struct dp_fstate *s, struct dp_fstate *outer)
{
	for (unsigned i = 0; i < DP_SNAP_REGS; i++)
		recover(w, s, i, &outer->regs);
	outer->is_guess = s->plan->rule.is_guess;
	outer->exact = s->plan->rule.is_signal;
	return outer->regs.known >> DP_FRAME_PC & 1;
}

/* ---- by guessing ---------------------------------------------------------------------------------------------------------- */

static bool is_code(struct dp_frames *f, uint64_t addr)
{
	const struct dp_map *map = dp_image_map_at(f->w->image, dp_addr_of(addr));
	return map && map->exec;
}

/* Is the instruction before pc a call? */
static bool is_behind_call(struct dp_frames *f, uint64_t pc)
{
	uint8_t b[7];
	if (!is_code(f, pc - 1) || !dp_debug_ctx_get(f->w, pc - 7, b, sizeof(b), NULL))
		return false;
	if (b[2] == 0xe8 || (b[5] == 0xff && (b[6] & 0x38) == 0x10))
		return true;
	for (unsigned n = 3; n <= 7; n++)
		if (b[7 - n] == 0xff && (b[8 - n] & 0x38) == 0x10)
			return true;
	return false;
}

/* A call went to an address without code: its return address is still at rsp. */
static bool by_bad_call(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer)
{
	uint64_t pc;
	const uint64_t sp = s->regs.value[DP_FRAME_RSP];
	if (!s->exact || is_code(f, s->regs.value[DP_FRAME_PC]) || !load(f->w, sp, &pc) || !is_behind_call(f, pc))
		return false;
	outer->regs = s->regs;
	set(&outer->regs, DP_FRAME_PC, pc);
	set(&outer->regs, DP_FRAME_RSP, sp + 8);
	return true;
}

static bool by_frame_pointer(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer)
{
	uint64_t fp, pc;
	const uint64_t at = s->regs.value[DP_FRAME_RBP];
	if (!(s->regs.known >> DP_FRAME_RBP & 1) || at < s->regs.value[DP_FRAME_RSP] || at % 8 || !load(f->w, at, &fp) ||
	    !load(f->w, at + 8, &pc) || !is_behind_call(f, pc))
		return false;
	outer->regs = (struct dp_snap_registers){0};
	set(&outer->regs, DP_FRAME_PC, pc);
	set(&outer->regs, DP_FRAME_RSP, at + 16);
	set(&outer->regs, DP_FRAME_RBP, fp);
	outer->is_guess = true;
	return true;
}

bool dp_frame_step(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer, const char **why)
{
	const struct dp_frule *rule = &s->plan->rule;
	*outer = (struct dp_fstate){0};
	*why = NULL;
	if (rule->is_end)
		return false;
	if (rule->is_known && s->cfa && by_rule(f->w, s, outer) &&
	    !(rule->is_guess && !is_behind_call(f, outer->regs.value[DP_FRAME_PC])))
		return outer->regs.value[DP_FRAME_PC] != 0;
	if (rule->is_known && !rule->is_guess) {
		*why = s->cfa ? "the stack cannot be read" : "the frame's address (CFA) is lost";
		return false;
	}
	*outer = (struct dp_fstate){0};
	if (by_bad_call(f, s, outer) || by_frame_pointer(f, s, outer))
		return true;
	*why = "there are no unwind tables for this code";
	return false;
}

/* ---- the whole stack ----------------------------------------------------------------------------------------------------- */

static void first(struct dp_frames *f, const struct dp_stopped_thread *t, struct dp_fstate *s)
{
	const struct user_regs_struct *r = &t->regs;
	const uint64_t v[DP_SNAP_REGS] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
	                                  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip};
	*s = (struct dp_fstate){.exact = true, .xmm = t->has_vector ? t->xmm : NULL};
	memcpy(s->regs.value, v, sizeof(v));
	s->regs.known = (1u << DP_SNAP_REGS) - 1;
	s->plan = dp_frames_plan(f, r->rip, true);
}

static bool enter(struct dp_frames *f, struct dp_fstate *s)
{
	if (!s->plan)
		s->plan = dp_frames_plan(f, s->regs.value[DP_FRAME_PC], s->exact);
	if (!s->plan)
		return false;
	s->is_signal = s->plan->rule.is_signal;
	if (s->plan->rule.is_known)
		cfa_of(f->w, s);
	return true;
}

/* Must ascend, except at a signal frame: the handler may use an alternate stack. */
static bool leads_up(const struct dp_fstate *s, const struct dp_fstate *outer, unsigned *switches)
{
	const uint64_t sp = s->regs.value[DP_FRAME_RSP], up = outer->regs.value[DP_FRAME_RSP];
	if (!(outer->regs.known >> DP_FRAME_RSP & 1))
		return false;
	if (up > sp)
		return true;
	return (s->is_signal || outer->is_signal) && (*switches)++ < SWITCHES_MAX;
}

/* Innermost frames keep their index; the outermost are in a ring buffer after them. */
static struct dp_fstate *place(struct dp_fwalk *walk, size_t i, size_t max)
{
	const size_t outer = max / OUTER_SHARE, inner = max - outer;
	if (i < inner || !outer)
		return &walk->state[i < max ? i : max - 1];
	return &walk->state[inner + (i - inner) % outer];
}

static void unroll(struct dp_fwalk *walk, size_t total, size_t max)
{
	const size_t outer = max / OUTER_SHARE, inner = max - outer;
	walk->n = total < max ? total : max;
	walk->inner = total <= max ? walk->n : inner;
	walk->more = total - walk->n;
	const size_t shift = walk->more && outer ? (total - inner) % outer : 0;
	struct dp_fstate *copy = shift ? malloc(outer * sizeof(*copy)) : NULL;
	if (copy) {
		for (size_t i = 0; i < outer; i++)
			copy[i] = walk->state[inner + (i + shift) % outer];
		memcpy(&walk->state[inner], copy, outer * sizeof(*copy));
	}
	free(copy);
	for (size_t i = 0; i < walk->n; i++)
		walk->state[i].caller = i + 1 < walk->n && !(walk->more && i + 1 == inner) ? &walk->state[i + 1] : NULL;
}

bool dp_frames_walk(struct dp_frames *f, const struct dp_stopped_thread *t, size_t max, struct dp_fwalk *ret)
{
	struct dp_fstate s, outer;
	size_t total = 0;
	unsigned switches = 0;
	*ret = (struct dp_fwalk){0};
	max = max < 4 ? 4 : max;
	ret->state = malloc(max * sizeof(*ret->state));
	if (!ret->state)
		return false;
	first(f, t, &s);
	while (enter(f, &s)) {
		*place(ret, total++, max) = s;
		if (total >= STEPS_MAX) {
			ret->why = "the stack is too deep to follow";
			break;
		}
		if (!dp_frame_step(f, &s, &outer, &ret->why))
			break;
		if (outer.exact)
			outer.plan = dp_frames_plan(f, outer.regs.value[DP_FRAME_PC], true);
		if (!leads_up(&s, &outer, &switches)) {
			ret->why = "the stack is corrupt: its frames do not ascend";
			break;
		}
		s = outer;
	}
	unroll(ret, total, max);
	return true;
}

void dp_fwalk_fini(struct dp_fwalk *walk)
{
	free(walk->state);
	*walk = (struct dp_fwalk){0};
}
