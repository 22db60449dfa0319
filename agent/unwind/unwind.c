/* SPDX-License-Identifier: MIT */
/*
 * The walker: computes the chain of callers from the registers at a probe, inside the target, without a debugger.
 *
 * Each round finds the rule for the frame's pc (cache, else two binary searches), computes the CFA, and reads the return address
 * and the few registers that outer rules may start from. A return address points after the call, maybe already into the next
 * function, so it is looked up one byte lower. The site itself and a pc that a signal interrupted are exact.
 *
 * Nearly all frames are plain: CFA from rsp or rbp, return address below it. A run of those is walked in registers here; for any
 * other unwind_step.c does one frame, and the run continues. A nested hit in a signal handler may use the same slot at any point:
 * shared data is one word at a time, working data is local. Stack used, with all callees: about 750 bytes.
 */
#include "agent/unwind/apart.h"
#include "agent/unwind/unwind_memo.h"
#include "agent/unwind/unwind_walk.h"

_Static_assert(DP_APART_CACHE == DP_UNWIND_CACHE * sizeof(uint64_t) && DP_APART_TOP % 64 == 0, "the stack follows the cache");
_Static_assert(offsetof(struct dp_capture, slot) == DP_CAPTURE_SLOT && offsetof(struct dp_slot, cache) == DP_SLOT_CACHE &&
                       offsetof(struct dp_slot, apart) == DP_SLOT_APART,
               "apart.S");

static int usable(const struct dp_unwind *u)
{
	return u && u->magic == DP_UNWIND_MAGIC && u->nrows &&
	       (uint64_t)u->rows_offset + (uint64_t)u->nrows * sizeof(struct dp_unwind_row) <= u->size &&
	       (uint64_t)u->ranges_offset + (uint64_t)u->nranges * sizeof(struct dp_unwind_range) <= u->size;
}

/* What is needed to repeat a walk. */
static void prepare(struct dp_walk *w, const struct dp_capture *capture, const struct dp_unwind *head)
{
	uint64_t word = __atomic_load_n(&capture->slot->stack_lo, __ATOMIC_RELAXED);

	w->slot = capture->slot;
	w->head = head;
	dp_walk_set_range(w, word & -DP_UNWIND_PAGE, (word & -DP_UNWIND_PAGE) + (word & (DP_UNWIND_PAGE - 1)) * DP_UNWIND_PAGE);
}

static void start(struct dp_walk *w, const struct dp_capture *capture, const struct dp_unwind *head)
{
	prepare(w, capture, head);
	w->agent = (const struct dp_agent *)capture->desc->agent;
	w->block = (const uint8_t *)head;
	w->rows = (const struct dp_unwind_row *)(w->block + w->head->rows_offset);
	w->nrows = w->head->nrows;
	w->cache = (uint64_t *)w->slot->cache;
	w->place = capture->desc->probe % DP_UNWIND_ENTRIES;
	w->generation = w->head->generation % DP_UNWIND_GENERATIONS;
	w->rare = w->head->tracked & ~(1u << DP_UNWIND_RBX | 1u << DP_UNWIND_RSP | 1u << DP_UNWIND_RBP);
	for (int i = 0; i < 16; i++)
		w->gpr[i] = capture->regs->gpr[i];
	w->pc = capture->regs->rip;
	w->known = 0xffff;
	w->switches = DP_UNWIND_SWITCHES;
	w->exact = 1;
	w->own = 1;
	w->guessed = 0;
	w->how = 0;
	w->marks = capture->desc->event ? 0 : DP_FRAME_BY_POINTER; /* readers of LTTng's events expect addresses */
	if (DP_UNLIKELY(w->gpr[DP_GPR_RSP] < w->lo || w->gpr[DP_GPR_RSP] >= w->hi))
		dp_walk_enter_stack(w);
}

struct run {               /* what changes between plain frames, in registers */
	uint64_t pc, look; /* the frame's pc; the pc to look up */
	uint64_t rsp, rbp, rbx;
	uint32_t known, place;
};

static inline int plain_rule(const struct dp_walk *w, int16_t rule, uint64_t cfa, uint64_t *value)
{
	uint64_t at = cfa + (uint64_t)(int64_t)(rule & -8);

	if (!rule)
		return 1;
	if (DP_UNLIKELY(!dp_walk_in_range(w, at)))
		return 0;
	*value = DP_UNWIND_LOAD(at);
	return 1;
}

/* The rule of a plain frame. The guess gives it and the pc is only compared, so the load does not wait for the pc. */
static inline const struct dp_unwind_row *plain_row(const struct dp_walk *w, const struct run *r, uint32_t guess)
{
	uint64_t entry = dp_walk_entry(w, guess), number = entry & 0xffff;
	const struct dp_unwind_row *row = &w->rows[number];

	if (DP_UNLIKELY(entry >> 16 != dp_walk_key(w, r->look) || guess / 2 != dp_walk_set(r->look) || number >= w->nrows))
		return 0;
	return DP_LIKELY(row->flags == DP_UNWIND_PLAIN && !(row->changed & w->rare)) ? row : 0;
}

/* One frame whose rule is cached, guessed and plain. Otherwise returns 0 and changes nothing; the general code does the frame. */
static inline int plain_step(const struct dp_walk *w, struct run *r, uint32_t depth)
{
	uint32_t guess = *dp_walk_guess(w, r->place, depth) % DP_UNWIND_ENTRIES;
	const struct dp_unwind_row *row = plain_row(w, r, guess);
	uint64_t cfa = r->rsp, rbp = r->rbp, rbx = r->rbx;

	if (DP_UNLIKELY(!row))
		return 0;
	if (row->reg != DP_GPR_RSP) {
		cfa = rbp;
		__asm__ volatile("" : "+r"(cfa)); /* a predicted branch: a conditional move would wait for rbp */
	}
	cfa += (uint64_t)(int64_t)row->off;
	if (DP_UNLIKELY(cfa <= r->rsp || !dp_walk_in_range(w, cfa - 8)))
		return 0;
	if (DP_UNLIKELY(!plain_rule(w, row->rule[DP_UNWIND_RBP], cfa, &rbp) ||
	                !plain_rule(w, row->rule[DP_UNWIND_RBX], cfa, &rbx)))
		return 0;
	r->pc = DP_UNWIND_LOAD(cfa - 8);
	r->look = r->pc - 1;
	r->rsp = cfa;
	r->rbp = rbp;
	r->rbx = rbx;
	r->known = (r->known & DP_GPR_SAVED) | (row->changed & 1u) << DP_GPR_RBX;
	r->place = guess;
	return 1;
}

/* Walks consecutive plain frames. Records the frames that it leaves; returns the total number of frames. */
static inline uint32_t plain_run(struct dp_walk *w, uint8_t *to, uint32_t n, uint32_t limit)
{
	struct run r = {w->pc, w->pc - !w->exact, w->gpr[DP_GPR_RSP], w->gpr[DP_GPR_RBP], w->gpr[DP_GPR_RBX], w->known, w->place};
	uint32_t first = n;
	uint64_t pc = r.pc;

	if (DP_UNLIKELY(!w->cache || !(r.known >> DP_GPR_RBP & 1)))
		return n;
	for (; n < limit && plain_step(w, &r, n); n++, pc = r.pc)
		__builtin_memcpy(to + 8 * n, &pc, 8);
	if (n == first)
		return n;
	w->pc = r.pc;
	w->gpr[DP_GPR_RSP] = r.rsp;
	w->gpr[DP_GPR_RBP] = r.rbp;
	w->gpr[DP_GPR_RBX] = r.rbx;
	w->known = r.known;
	w->place = r.place;
	w->exact = 0;
	return n;
}

/*
 * A pc outside of every module (generated code) is recorded if it follows a call, or if its memory is known to be executable: an
 * interpreter may push a return address and jump. The frames that frame pointers find beyond it count only if the chain returns
 * into a module. A pc in a module that does not follow a call is the start of something (a context, a signal handler's return):
 * it is looked up as it is.
 */
static uint32_t walk(struct dp_walk *w, uint8_t *to, uint32_t n, uint32_t limit)
{
	uint32_t sure = n, first = 0; /* first: 1 if the first frame beyond the sure ones counts by itself */

	for (;;) {
		uint32_t before = n;
		uint64_t frame;
		const struct dp_unwind_row *row;
		int called = 1;

		n = plain_run(w, to, n, limit);
		if (n > before)
			sure = n;
		if (n == limit)
			return n;
		if (!w->pc || w->pc >= DP_UNWIND_PC_MAX)
			break;
		row = dp_walk_lookup(w, n);
		if (DP_UNLIKELY(!row || row->kind == DP_UNWIND_NONE) && !w->exact && !(called = dp_walk_behind_call(w))) {
			if (!row)
				break;
			if (!(row->flags & DP_UNWIND_GENERATED)) {
				w->exact = 1;
				row = dp_walk_lookup(w, n);
			}
		}
		frame = w->pc | w->how;
		__builtin_memcpy(to + 8 * n, &frame, 8);
		n++;
		if (row && !(row->flags & DP_UNWIND_GENERATED))
			sure = n;
		else if (n == sure + 1)
			first = (uint32_t)called;
		if (n == limit)
			return n;
		if (!dp_walk_step(w, row))
			break;
	}
	return n > sure ? sure + first : n;
}

static void go_on(struct dp_walk *w, const struct dp_recalled *r)
{
	w->pc = r->pc;
	w->gpr[DP_GPR_RSP] = r->rsp;
	w->gpr[DP_GPR_RBP] = r->rbp;
	w->gpr[DP_GPR_RBX] = r->rbx;
	w->known = DP_GPR_SAVED;
	w->exact = 0;
}

static uint32_t frames(const struct dp_capture *capture, const struct dp_unwind *head, uint8_t *to, uint32_t limit)
{
	struct dp_recalled r;
	struct dp_walk w;
	uint32_t n;

	prepare(&w, capture, head);
	r = dp_memo_recall(&w, capture->regs, to, limit);
	if (DP_LIKELY(r.whole))
		return r.n;
	start(&w, capture, head);
	if (r.n)
		go_on(&w, &r);
	n = walk(&w, to, r.n, limit);
	if (!r.n && w.slot->memo) {
		start(&w, capture, head);
		dp_memo_learn(&w, limit);
	}
	return n;
}

/* A fork child keeps the tables that it joined with: what its parent loads later is not in its memory. */
static const struct dp_unwind *tables(const struct dp_agent *agent)
{
	const struct dp_control *control = (const struct dp_control *)agent->control;
	const uint64_t latest = control && !agent->process ? DP_LOAD(&control->unwind_latest) : 0;

	return (const struct dp_unwind *)(agent->unwind + latest);
}

void dp_agent_backtrace(struct dp_capture *capture, const struct dp_op *op)
{
	uint32_t limit = op->size < DP_BACKTRACE_MAX ? op->size : DP_BACKTRACE_MAX;
	const struct dp_agent *agent = (const struct dp_agent *)capture->desc->agent;
	const struct dp_unwind *head = tables(agent);
	uint8_t *to = capture->cursor;
	uint32_t n = limit != 0;

	if (usable(head))
		n = frames(capture, head, to + 1, limit);
	else if (limit)
		__builtin_memcpy(to + 1, &capture->regs->rip, 8);
	to[0] = (uint8_t)n;
	capture->cursor = to + 1 + 8 * n;
}
