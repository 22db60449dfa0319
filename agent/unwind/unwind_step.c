/* SPDX-License-Identifier: MIT */
/* Steps from one frame to its caller by every kind of rule, through signal frames, and by frame pointers if no rule is known. */
#include "agent/unwind/unwind_walk.h"

static int compute_cfa(struct dp_walk *w, const struct dp_unwind_row *row, uint64_t *ret)
{
	uint64_t at = w->gpr[row->reg & 15] + (uint64_t)(int64_t)row->off;

	if (DP_UNLIKELY(!(w->known >> (row->reg & 15) & 1)))
		return 0;
	if (row->kind == DP_UNWIND_REG) {
		*ret = at;
		return 1;
	}
	if (row->kind == DP_UNWIND_PLT) {
		*ret = at + ((w->pc & 15) >= row->index ? 8 : 0);
		return 1;
	}
	if (row->kind == DP_UNWIND_INDEX) {
		if (!(w->known >> (row->index & 15) & 1))
			return 0;
		at += 8 * w->gpr[row->index & 15];
	} else if (row->kind != DP_UNWIND_DEREF) {
		return 0;
	}
	if (!dp_walk_read(w, at, ret))
		return 0;
	*ret += (uint64_t)(int64_t)row->add;
	return 1;
}

/* The value that `rule` gives for a register; `*value` is its value in this frame. */
static DP_NOINLINE int apply(struct dp_walk *w, int16_t rule, uint64_t cfa, uint64_t *value)
{
	int code = rule & 7;
	int64_t off = (int64_t)(rule >> 3) * 8;

	if (code == DP_UNWIND_AT_CFA)
		return dp_walk_read(w, cfa + (uint64_t)off, value);
	if (code == DP_UNWIND_SAME)
		return 1;
	if (code == DP_UNWIND_AT_RBP)
		return w->known >> DP_GPR_RBP & 1 && dp_walk_read(w, w->gpr[DP_GPR_RBP] + (uint64_t)off, value);
	if (code == DP_UNWIND_AT_RSP)
		return dp_walk_read(w, w->gpr[DP_GPR_RSP] + (uint64_t)off, value);
	if (code == DP_UNWIND_IN_REG) {
		*value = w->gpr[(rule >> 3) & 15];
		return w->known >> ((rule >> 3) & 15) & 1;
	}
	if (code == DP_UNWIND_VALUE) {
		*value = cfa + (uint64_t)off;
		return 1;
	}
	return 0;
}

static inline uint32_t number_of(uint32_t i)
{
	return i < DP_UNWIND_R12 ? DP_GPR_RBX + i : DP_GPR_R12 - DP_UNWIND_R12 + i;
}

/* Registers other than rsp, rbp and the return address. One whose source register was just replaced is lost. */
static void recover(struct dp_walk *w, const struct dp_unwind_row *row, uint64_t cfa, uint32_t which)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < DP_UNWIND_RA; i++) {
		uint32_t bit = 1u << number_of(i);
		int16_t rule = row->rule[i];

		if (!(which >> i & 1))
			continue;
		w->known &= ~bit;
		if ((rule & 7) == DP_UNWIND_IN_REG && done >> ((rule >> 3) & 15) & 1)
			continue;
		if (apply(w, rule, cfa, &w->gpr[number_of(i)]))
			w->known |= bit;
		done |= bit;
	}
}

/* Ensures progress: towards the stack's base, or a bounded number of times to another stack. */
static int may_move(struct dp_walk *w, uint64_t sp)
{
	if (sp > w->gpr[DP_GPR_RSP])
		return 1;
	if (sp == w->gpr[DP_GPR_RSP] && !w->exact)
		return 0;
	return w->switches && w->switches--;
}

static int step_row(struct dp_walk *w, const struct dp_unwind_row *row)
{
	uint64_t cfa, ra = 0, rbp = w->gpr[DP_GPR_RBP], sp;
	uint32_t which = row->changed & w->head->tracked;
	int rbp_known;

	if (!compute_cfa(w, row, &cfa) || !apply(w, row->rule[DP_UNWIND_RA], cfa, &ra))
		return 0;
	sp = cfa;
	if (DP_UNLIKELY(row->changed >> DP_UNWIND_RSP & 1) && !apply(w, row->rule[DP_UNWIND_RSP], cfa, &sp))
		return 0;
	rbp_known = (w->known >> DP_GPR_RBP & 1) | (row->changed >> DP_UNWIND_RBP & 1);
	if (!apply(w, row->rule[DP_UNWIND_RBP], cfa, &rbp))
		rbp_known = 0;
	which &= ~(1u << DP_UNWIND_RSP | 1u << DP_UNWIND_RBP);
	if (which)
		recover(w, row, cfa, which);
	if (DP_UNLIKELY(sp <= w->gpr[DP_GPR_RSP]) && !may_move(w, sp))
		return 0;
	w->known = (w->known & DP_GPR_SAVED & ~(1u << DP_GPR_RBP)) | (uint32_t)rbp_known << DP_GPR_RBP;
	w->gpr[DP_GPR_RBP] = rbp;
	w->gpr[DP_GPR_RSP] = sp;
	w->pc = ra;
	w->exact = row->flags & DP_UNWIND_EXACT;
	return 1;
}

/* Order of the kernel's struct sigcontext: r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp; one nibble each. */
#define SIGCONTEXT_ORDER UINT64_C(0x41023567fedcba98)
#define SIGCONTEXT_GREGS 40 /* in struct ucontext */

static int step_signal(struct dp_walk *w)
{
	uint64_t at = w->gpr[DP_GPR_RSP] + SIGCONTEXT_GREGS, order = SIGCONTEXT_ORDER;

	for (int i = 0; i < 16; i++, at += 8, order >>= 4)
		if (!dp_walk_read(w, at, &w->gpr[order & 15]))
			return 0;
	if (!w->switches || !dp_walk_read(w, at, &w->pc))
		return 0;
	w->switches--;
	w->exact = 1;
	w->known = 0xffff;
	dp_walk_change_stack(w);
	return 1;
}

/* mov $15, %eax (or %rax); syscall: the signal return of a libc without unwind information for it */
static int is_sigreturn(struct dp_walk *w)
{
	uint64_t code;

	if (DP_UNWIND_READ_CODE(w->agent, &code, w->pc, sizeof(code)))
		return 0;
	return code == UINT64_C(0x0f0000000fc0c748) || (code & UINT64_C(0xffffffffffffff)) == UINT64_C(0x050f0000000fb8);
}

/* E8 and four bytes, or FF with 2 as the reg field of its ModRM byte, followed by up to five more bytes. */
int dp_walk_behind_call(struct dp_walk *w)
{
	uint64_t code = 0, page = w->pc & (DP_UNWIND_PAGE - 1);

	if (DP_UNWIND_READ_CODE(w->agent, &code, w->pc - 8, sizeof(code))) {
		if (!page || page >= 8 ||
		    DP_UNWIND_READ_CODE(w->agent, (uint8_t *)&code + 8 - page, w->pc - page, (uint32_t)page))
			return 0;
	}
	if ((code >> 24 & 0xff) == 0xe8)
		return 1;
	for (unsigned back = 2; back <= 7; back++) {
		uint64_t at = code >> 8 * (8 - back);

		if (back != 5 && (at & 0x38ff) == 0x10ff)
			return 1;
	}
	return 0;
}

/*
 * The thread is at the first or last instruction of a function: rbp is still, or again, the caller's. Returns where the return
 * address is, in words above rsp; -1: the code does not tell. Our jump at a probe is none of these instructions.
 */
static int at_edge(struct dp_walk *w)
{
	uint64_t code;

	if (!w->exact || DP_UNWIND_READ_CODE(w->agent, &code, w->pc, sizeof(code)))
		return -1;
	if ((code & 0xffffffff) == 0xfa1e0ff3) /* endbr64 */
		code >>= 32;
	if ((code & 0xff) == 0x55 || (code & 0xff) == 0xc3 || (code & 0xff) == 0xc2) /* push rbp; ret */
		return 0;
	code &= 0xffffff;
	return code == 0xe58948 || code == 0xec8b48 ? 1 : -1; /* mov rbp, rsp */
}

/* The caller of a function that has not made its frame yet, or has left it. */
static int step_edge(struct dp_walk *w, int words)
{
	uint64_t rsp = w->gpr[DP_GPR_RSP], stack[2];

	if (rsp & 7 || dp_self_read(w->agent, stack, rsp, 8 * ((uint32_t)words + 1)))
		return 0;
	dp_walk_guess_from_here(w);
	if (words)
		w->gpr[DP_GPR_RBP] = stack[0];
	w->gpr[DP_GPR_RSP] = rsp + 8 * ((uint64_t)words + 1);
	w->pc = stack[words];
	w->exact = 0;
	w->how = w->marks;
	w->known &= DP_GPR_SAVED;
	return 1;
}

static int step_frame_pointer(struct dp_walk *w)
{
	int words;
	uint64_t rbp = w->gpr[DP_GPR_RBP], frame[2]; /* the caller's rbp, the return address */

	if (is_sigreturn(w))
		return step_signal(w);
	words = at_edge(w);
	if (words >= 0)
		return step_edge(w, words);
	if (!(w->known >> DP_GPR_RBP & 1) || rbp & 7 || rbp < w->gpr[DP_GPR_RSP] ||
	    rbp - w->gpr[DP_GPR_RSP] > DP_UNWIND_REACH * DP_UNWIND_PAGE)
		return 0;
	/* A guess: even pages known as stack are not read directly, because another, shorter stack may be there now. */
	if (dp_self_read(w->agent, frame, rbp, sizeof(frame)))
		return 0;
	dp_walk_guess_from_here(w);
	w->gpr[DP_GPR_RBP] = frame[0];
	w->gpr[DP_GPR_RSP] = rbp + 16;
	w->pc = frame[1];
	w->exact = 0;
	w->how = w->marks;
	w->known &= 1u << DP_GPR_RSP | 1u << DP_GPR_RBP;
	return 1;
}

int dp_walk_step(struct dp_walk *w, const struct dp_unwind_row *row)
{
	w->how = 0;
	if (!row || row->kind == DP_UNWIND_NONE)
		return step_frame_pointer(w);
	if (row->kind == DP_UNWIND_SIGNAL)
		return step_signal(w);
	if (DP_UNLIKELY(row->flags & DP_UNWIND_GUESSED))
		dp_walk_guess_from_here(w);
	return step_row(w, row);
}
