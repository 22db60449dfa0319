/* SPDX-License-Identifier: MIT */
/*
 * Walks along plain frames, kept from hit to hit. The result of such a walk depends on its tables, on the place where it starts,
 * and on the words that it reads: return addresses, and those saved values of rbp that a frame was computed from. While these are
 * the same, so is the result. So a hit reads all of these words again and compares them, but looks up no rule. Their addresses
 * are kept as distances from rsp, as are the values of rbp: the same calls match at another depth of the stack.
 *
 * A memo is many words, which must belong together. So one hit at a time uses a slot's memos, and one in a signal handler in the
 * middle walks without. What a handler does in the middle:
 *   it leaves by longjmp   the memos remain taken, and the thread's walks are slower, until another thread gets the slot
 *   it forks               the memory is private. Its child goes on with zeroes, finds the memos not taken, and keeps nothing
 * Whatever the memory contains, no word outside of the known stack is read.
 */
#include "agent/unwind/unwind_memo.h"

enum { WAYS = 4, WORDS = 80 };
#define UNCHANGED UINT32_MAX
#define WAIT_MAX  127

struct memo {
	uint64_t pc;                 /* where it starts; 0: nothing is kept */
	uint64_t rbp;                /* there, minus rsp; compared if `framed` */
	uint32_t generation;         /* of the tables */
	uint32_t rbp_from, rbx_from; /* after the last frame: distance of the word that has the value, or UNCHANGED */
	uint8_t limit;               /* that it was made for */
	uint8_t frames, bases;       /* how many: return addresses, at the start of the arrays; values of rbp, from their end */
	uint8_t framed;              /* some frame was computed from the first rbp */
	uint8_t ends;                /* one more frame follows, which has no caller */
	uint8_t wait, left;          /* walks to be missed before the next is kept; grows while none is repeated */
	uint64_t value[WORDS];       /* of rbp: minus rsp */
	uint32_t at[WORDS];          /* minus rsp */
};

struct memos {
	uint64_t taken;
	struct memo way[WAYS];
};
_Static_assert(sizeof(struct memos) <= DP_UNWIND_MEMO, "unwind.h");

static struct memos *take(const struct dp_walk *w)
{
	struct memos *all = (struct memos *)w->slot->memo;

	if (!all || DP_LOAD(&all->taken))
		return 0;
	DP_STORE(&all->taken, 1); /* a handler in between has given them back */
	return all;
}

/* False: this process is a child of the one that took them. */
static int give_back(struct memos *all)
{
	const int ours = DP_LOAD(&all->taken) != 0;

	DP_STORE(&all->taken, 0);
	return ours;
}

static struct memo *way_of(struct memos *all, uint64_t pc, uint64_t rsp)
{
	return &all->way[((pc ^ rsp >> 4) * DP_HASH_MULT) >> 62];
}

/* How many bytes from rsp on a word may start in. */
static uint64_t room_at(const struct dp_walk *w, uint64_t rsp)
{
	const uint64_t below = rsp - w->lo;

	return below < w->span ? w->span - below : 0;
}

static int same_start(const struct memo *m, const struct dp_regs *regs)
{
	return !m->framed || regs->gpr[DP_GPR_RBP] - regs->gpr[DP_GPR_RSP] == m->rbp;
}

/*
 * Of the frames up to the return address at `last`, which are known to be the same: then this stack has the words below. The
 * known range may be that of a former, larger stack in this place, whose other words are unmapped by now.
 */
static int same_bases(const struct dp_walk *w, const struct memo *m, const struct dp_regs *regs, uint32_t last)
{
	const uint64_t rsp = regs->gpr[DP_GPR_RSP], room = room_at(w, rsp);
	const uint32_t n = m->bases;

	for (uint32_t i = WORDS; n <= WORDS && i-- > WORDS - n && m->at[i] < last;)
		if (m->at[i] >= room || DP_UNWIND_LOAD(rsp + m->at[i]) - rsp != m->value[i])
			return 0;
	return n <= WORDS;
}

/* Writes r->n frames and the pc of the next one. 0: a return address is another. */
static int same_frames(const struct dp_walk *w, const struct memo *m, const struct dp_regs *regs, uint8_t *to,
                       struct dp_recalled *r)
{
	const uint64_t rsp = regs->gpr[DP_GPR_RSP], room = room_at(w, rsp);
	uint64_t pc = regs->rip;

	for (uint32_t i = 0; i < r->n; i++, to += 8) {
		const uint64_t at = m->at[i];

		__builtin_memcpy(to, &pc, 8);
		if (DP_UNLIKELY(at >= room))
			return 0;
		pc = DP_UNWIND_LOAD(rsp + at);
		if (DP_UNLIKELY(pc != m->value[i]))
			return 0;
	}
	r->pc = pc;
	return 1;
}

/* A register after the last frame. */
static uint64_t value_from(const struct dp_walk *w, uint32_t from, const struct dp_regs *regs, unsigned reg)
{
	const uint64_t rsp = regs->gpr[DP_GPR_RSP];

	return from >= room_at(w, rsp) ? regs->gpr[reg] : DP_UNWIND_LOAD(rsp + from);
}

static int fits(const struct dp_walk *w, const struct memo *m, const struct dp_regs *regs, uint32_t limit)
{
	return m->pc == regs->rip && m->generation == w->head->generation && limit <= m->limit && m->frames &&
	       m->frames <= WORDS && same_start(m, regs);
}

static struct dp_recalled repeat(const struct dp_walk *w, const struct memo *m, const struct dp_regs *regs, uint8_t *to,
                                 uint32_t limit)
{
	struct dp_recalled r = {.n = m->frames < limit ? m->frames : limit};

	/* none: a child's memory was wiped since fits() */
	if (!r.n || !same_frames(w, m, regs, to, &r) || !same_bases(w, m, regs, m->at[r.n - 1]))
		return (struct dp_recalled){.n = 0};
	r.whole = r.n == limit;
	if (r.whole)
		return r;
	r.rsp = regs->gpr[DP_GPR_RSP] + m->at[r.n - 1] + 8;
	r.rbp = value_from(w, m->rbp_from, regs, DP_GPR_RBP);
	r.rbx = value_from(w, m->rbx_from, regs, DP_GPR_RBX);
	if (m->ends) {
		__builtin_memcpy(to + 8 * r.n++, &r.pc, 8);
		r.whole = 1;
	}
	return r;
}

struct dp_recalled dp_memo_recall(const struct dp_walk *w, const struct dp_regs *regs, uint8_t *to, uint32_t limit)
{
	struct dp_recalled r = {.n = 0};
	struct memos *all = take(w);
	struct memo *m;

	if (!all)
		return r;
	m = way_of(all, regs->rip, regs->gpr[DP_GPR_RSP]);
	if (fits(w, m, regs, limit))
		r = repeat(w, m, regs, to, limit);
	if (r.n && m->wait)
		m->wait = m->left = 0;
	if (!give_back(all))
		r = (struct dp_recalled){.n = 0};
	return r;
}

/* ---- learning ------------------------------------------------------------------------------------------------------------- */

struct lesson {
	struct memo *m;
	uint64_t rsp; /* at the hit */
};

struct saved {
	uint64_t value;
	uint32_t from;
};

static int note_frame(struct lesson *l, uint64_t addr, uint64_t value)
{
	struct memo *m = l->m;

	if (m->frames + m->bases >= WORDS || addr - l->rsp >= UNCHANGED)
		return 0;
	m->at[m->frames] = (uint32_t)(addr - l->rsp);
	m->value[m->frames] = value;
	m->frames++;
	return 1;
}

/* The next frame is computed from rbp. */
static int note_base(struct lesson *l, uint64_t rbp)
{
	struct memo *m = l->m;
	const uint32_t last = WORDS - m->bases;

	if (m->rbp_from == UNCHANGED) {
		m->framed = 1;
		m->rbp = rbp - l->rsp;
		return 1;
	}
	if (m->bases && m->at[last] == m->rbp_from)
		return 1;
	if (m->frames + m->bases >= WORDS)
		return 0;
	m->at[last - 1] = m->rbp_from;
	m->value[last - 1] = rbp - l->rsp;
	m->bases++;
	return 1;
}

/* A register that the frame may have saved. */
static int restore(const struct dp_walk *w, const struct lesson *l, int16_t rule, uint64_t cfa, struct saved *ret)
{
	const uint64_t at = cfa + (uint64_t)(int64_t)(rule & -8);

	if (!rule)
		return 1;
	if (!dp_walk_in_range(w, at) || at - l->rsp >= UNCHANGED)
		return 0;
	*ret = (struct saved){DP_UNWIND_LOAD(at), (uint32_t)(at - l->rsp)};
	return 1;
}

/* Exactly what plain_step() of unwind.c does. 0: not a plain frame, or no room. */
static int learn_step(struct dp_walk *w, struct lesson *l, const struct dp_unwind_row *row)
{
	struct saved rbp = {w->gpr[DP_GPR_RBP], l->m->rbp_from}, rbx = {w->gpr[DP_GPR_RBX], l->m->rbx_from};
	const uint64_t rsp = w->gpr[DP_GPR_RSP];
	const uint64_t cfa = (row->reg == DP_GPR_RSP ? rsp : rbp.value) + (uint64_t)(int64_t)row->off;

	if (row->flags != DP_UNWIND_PLAIN || (row->changed & w->rare))
		return 0;
	if (cfa <= rsp || !dp_walk_in_range(w, cfa - 8))
		return 0;
	if (row->reg != DP_GPR_RSP && !note_base(l, rbp.value))
		return 0;
	if (!restore(w, l, row->rule[DP_UNWIND_RBP], cfa, &rbp) || !restore(w, l, row->rule[DP_UNWIND_RBX], cfa, &rbx))
		return 0;
	w->pc = DP_UNWIND_LOAD(cfa - 8);
	if (!note_frame(l, cfa - 8, w->pc))
		return 0;
	w->exact = 0;
	w->gpr[DP_GPR_RSP] = cfa;
	w->gpr[DP_GPR_RBP] = rbp.value;
	w->gpr[DP_GPR_RBX] = rbx.value;
	l->m->rbp_from = rbp.from;
	l->m->rbx_from = rbx.from;
	return 1;
}

/* A frame in a module that says that it has no caller. */
static int is_last(const struct dp_unwind_row *row)
{
	return row->kind == DP_UNWIND_REG && (row->rule[DP_UNWIND_RA] & 7) == DP_UNWIND_END;
}

static void learn_all(struct dp_walk *w, struct lesson *l, uint32_t limit)
{
	for (uint32_t n = 0; n < limit; n++) {
		const struct dp_unwind_row *row = w->pc && w->pc < DP_UNWIND_PC_MAX ? dp_walk_lookup(w, n) : 0;

		if (!row)
			return;
		if (learn_step(w, l, row))
			continue;
		l->m->ends = is_last(row) != 0;
		return;
	}
}

static int is_due(struct memo *m)
{
	if (m->left) {
		m->left--;
		return 0;
	}
	m->left = m->wait;
	if (m->wait < WAIT_MAX)
		m->wait = (uint8_t)(2 * m->wait + 1);
	return 1;
}

void dp_memo_learn(struct dp_walk *w, uint32_t limit)
{
	struct memos *all = take(w);
	struct lesson l = {.rsp = w->gpr[DP_GPR_RSP]};
	const uint64_t pc = w->pc;

	if (!all)
		return;
	l.m = way_of(all, pc, l.rsp);
	if (is_due(l.m)) {
		DP_STORE(&l.m->pc, 0);
		l.m->generation = w->head->generation;
		l.m->rbp_from = l.m->rbx_from = UNCHANGED;
		l.m->limit = (uint8_t)limit;
		l.m->frames = l.m->bases = l.m->framed = l.m->ends = 0;
		learn_all(w, &l, limit);
		if (DP_LOAD(&all->taken))
			DP_STORE(&l.m->pc, pc); /* last: a child whose memory was wiped before has no frames */
	}
	give_back(all);
}
