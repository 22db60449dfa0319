/* SPDX-License-Identifier: MIT */
/* Unwinds frame by frame. The stack may contain anything, so every step must ascend, and the number of steps is limited. */
#include "pmodules/frames/frames.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1 << 16, OUTER_SHARE = 4, SWITCHES_MAX = 16 };

static bool get(void *data, uint64_t addr, void *buf, size_t n)
{
	return dp_debug_ctx_get(data, addr, buf, n, NULL);
}

static void set(struct dp_frame_regs *r, unsigned i, uint64_t v)
{
	r->value[i] = v;
	r->known |= 1u << i;
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

/* Interpreters that are generated push a return address and jump. */
static bool is_generated(struct dp_frames *f, uint64_t pc)
{
	const struct dp_map *map = dp_image_map_at(f->w->image, dp_addr_of(pc - 1));
	return map && map->exec && !*map->path;
}

/* A call went to an address without code: its return address is still at rsp. */
static bool by_bad_call(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer)
{
	uint64_t pc;
	const uint64_t sp = s->regs.value[DP_FRAME_RSP];
	if (!s->exact || is_code(f, s->regs.value[DP_FRAME_PC]) || !get(f->w, sp, &pc, sizeof(pc)) || !is_behind_call(f, pc))
		return false;
	outer->regs = s->regs;
	set(&outer->regs, DP_FRAME_PC, pc);
	set(&outer->regs, DP_FRAME_RSP, sp + 8);
	return true;
}

/* As the agent does (unwind_step.c): at a push, mov or ret, in words above rsp; -1: the code does not tell. */
static int return_address_at(struct dp_frames *f, const struct dp_fstate *s)
{
	uint64_t code = 0;
	if (!s->exact || !dp_debug_ctx_get(f->w, s->regs.value[DP_FRAME_PC], &code, sizeof(code), NULL))
		return -1;
	if ((code & 0xffffffff) == 0xfa1e0ff3) /* endbr64 */
		code >>= 32;
	if ((code & 0xff) == 0x55 || (code & 0xff) == 0xc3 || (code & 0xff) == 0xc2) /* push rbp; ret */
		return 0;
	code &= 0xffffff;
	return code == 0xe58948 || code == 0xec8b48 ? 1 : -1; /* mov rbp, rsp */
}

/* The function has not made its frame yet, or has left it: rbp is the caller's. */
static bool by_edge(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer)
{
	const int words = return_address_at(f, s);
	const uint64_t sp = s->regs.value[DP_FRAME_RSP];
	uint64_t stack[2];
	if (words < 0 || !get(f->w, sp, stack, 8 * ((size_t)words + 1)) ||
	    !(is_behind_call(f, stack[words]) || is_generated(f, stack[words])))
		return false;
	outer->regs = s->regs;
	set(&outer->regs, DP_FRAME_PC, stack[words]);
	set(&outer->regs, DP_FRAME_RSP, sp + 8 * ((uint64_t)words + 1));
	if (words)
		set(&outer->regs, DP_FRAME_RBP, stack[0]);
	outer->is_guess = outer->by_frame_pointer = true;
	return true;
}

static bool by_frame_pointer(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer)
{
	uint64_t fp, pc;
	const uint64_t at = s->regs.value[DP_FRAME_RBP];
	if (!(s->regs.known >> DP_FRAME_RBP & 1) || at < s->regs.value[DP_FRAME_RSP] || at % 8 ||
	    !get(f->w, at, &fp, sizeof(fp)) || !get(f->w, at + 8, &pc, sizeof(pc)) ||
	    !(is_behind_call(f, pc) || is_generated(f, pc)))
		return false;
	outer->regs = (struct dp_frame_regs){0};
	set(&outer->regs, DP_FRAME_PC, pc);
	set(&outer->regs, DP_FRAME_RSP, at + 16);
	set(&outer->regs, DP_FRAME_RBP, fp);
	outer->is_guess = outer->by_frame_pointer = true;
	return true;
}

static bool by_rule(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer)
{
	const struct dp_fplan *p = s->plan;
	outer->is_guess = p->is_guess;
	outer->exact = p->rule.is_signal;
	return s->cfa && dp_frule_step(&p->rule, &s->regs, s->cfa, &(struct dp_frame_memory){get, f->w}, &outer->regs) &&
	       (!p->is_guess || is_behind_call(f, outer->regs.value[DP_FRAME_PC]));
}

/* Unwinds to the caller. False at the end of the stack; *why is NULL if that is the normal end. */
static bool step(struct dp_frames *f, const struct dp_fstate *s, struct dp_fstate *outer, const char **why)
{
	const struct dp_frule *rule = &s->plan->rule;
	*outer = (struct dp_fstate){0};
	*why = NULL;
	if (rule->is_end)
		return false;
	if (rule->is_known && by_rule(f, s, outer))
		return outer->regs.value[DP_FRAME_PC] != 0;
	if (rule->is_known && !s->plan->is_guess) {
		*why = s->cfa ? "the stack cannot be read" : "the frame's address (CFA) is lost";
		return false;
	}
	*outer = (struct dp_fstate){0};
	if (by_bad_call(f, s, outer) || by_edge(f, s, outer) || by_frame_pointer(f, s, outer))
		return true;
	*why = "there are no unwind tables for this code";
	return false;
}

/* ---- the whole stack ----------------------------------------------------------------------------------------------------- */

static void first(struct dp_frames *f, const struct dp_stopped_thread *t, struct dp_fstate *s)
{
	*s = (struct dp_fstate){.exact = true, .xmm = t->has_vector ? t->xmm : NULL, .regs = dp_frame_regs_of(&t->regs)};
	s->plan = dp_frames_plan(f, t->regs.rip, true);
}

static bool enter(struct dp_frames *f, struct dp_fstate *s)
{
	if (!s->plan)
		s->plan = dp_frames_plan(f, s->regs.value[DP_FRAME_PC], s->exact);
	if (!s->plan)
		return false;
	s->is_signal = s->plan->rule.is_signal;
	s->cfa = dp_frule_cfa(&s->plan->rule, &s->regs, &(struct dp_frame_memory){get, f->w});
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
		if (!step(f, &s, &outer, &ret->why))
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
