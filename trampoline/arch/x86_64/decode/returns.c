/* SPDX-License-Identifier: MIT */
/*
 * Finds a function's instruction starts and exits: every ret, and every jump out of it, which replaces a call and a ret (a tail
 * call). Return addresses are neither read nor changed. Instructions are decoded linearly; undecodable bytes are data, and the
 * rest of the part is not analysed.
 */
#include "trampoline/arch/x86_64/decode/returns.h"

#include <stdlib.h>

static bool grow(void **array, size_t n, size_t size)
{
	if (n & (n - 1))
		return true;
	void *grown = realloc(*array, (n ? 2 * n : 1) * size);
	if (!grown)
		return false;
	*array = grown;
	return true;
}

bool dp_parts_hold(const struct dp_parts *parts, uint64_t addr)
{
	for (size_t i = 0; i < parts->n; i++)
		if (addr - parts->part[i].start < parts->part[i].size)
			return true;
	return false;
}

/* ---- the walk ------------------------------------------------------------------------------------------------------ */

struct walk {
	const struct dp_parts *parts;
	struct dp_points points;
	uint64_t *target; /* of direct branches inside the function */
	size_t ntargets;
	bool failed; /* out of memory */
};

static bool is_direct(const struct dp_insn *insn)
{
	return insn->flow == DP_FLOW_JMP || insn->flow == DP_FLOW_JCC || insn->flow == DP_FLOW_JCXZ;
}

static void add_exit(struct walk *w, struct dp_exit exit)
{
	if (!grow((void **)&w->points.exit, w->points.nexits, sizeof(exit)))
		w->failed = true;
	else
		w->points.exit[w->points.nexits++] = exit;
}

static void add_target(struct walk *w, uint64_t target)
{
	if (!grow((void **)&w->target, w->ntargets, sizeof(target)))
		w->failed = true;
	else
		w->target[w->ntargets++] = target;
}

static void take_direct(struct walk *w, const struct dp_insn *insn)
{
	struct dp_exit exit = {.addr = insn->addr, .target = insn->target, .kind = DP_EXIT_JUMP};
	if (dp_parts_hold(w->parts, insn->target)) {
		add_target(w, insn->target);
		return;
	}
	if (insn->flow == DP_FLOW_JCC)
		exit.when = dp_jcc_condition(insn);
	else if (insn->flow == DP_FLOW_JCXZ)
		exit.kind = DP_EXIT_UNSURE;
	add_exit(w, exit);
}

static void take_insn(struct walk *w, const struct dp_insn *insn)
{
	const struct dp_start start = {.addr = insn->addr};
	if (!grow((void **)&w->points.insn, w->points.ninsns, sizeof(start))) {
		w->failed = true;
		return;
	}
	w->points.insn[w->points.ninsns++] = start;
	if (insn->flow == DP_FLOW_RET)
		add_exit(w, (struct dp_exit){.addr = insn->addr, .kind = DP_EXIT_RET});
	else if (is_direct(insn))
		take_direct(w, insn);
}

static bool walk_part(struct walk *w, const struct dp_range *part)
{
	const uint64_t end = part->start + part->size;
	struct dp_insn insn;
	for (uint64_t at = part->start; at < end && !w->failed; at += insn.len) {
		size_t n;
		const uint8_t *bytes = dp_text_at(w->parts->text, at, &n);
		if (!bytes || !dp_decode_zydis(bytes, n, at, &insn) || at + insn.len > end) {
			w->points.undecodable = w->points.undecodable ? w->points.undecodable : at;
			return false;
		}
		take_insn(w, &insn);
	}
	return true;
}

/* ---- branches between bytes ---------------------------------------------------------------------------------------- */

static int compare_starts(const void *a, const void *b)
{
	const struct dp_start *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The last of the sorted starts at or before `addr`. */
static struct dp_start *start_before(struct dp_start *sorted, size_t n, uint64_t addr)
{
	size_t lo = 0, hi = n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (sorted[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &sorted[lo - 1] : NULL;
}

/* glibc jumps over a lock prefix if there is only one thread: these bytes are one instruction and two. */
static void mark_entered(struct walk *w)
{
	struct dp_start *insn = w->points.insn;
	if (w->points.ninsns)
		qsort(insn, w->points.ninsns, sizeof(*insn), compare_starts);
	for (size_t i = 0; i < w->ntargets; i++) {
		struct dp_start *s = start_before(insn, w->points.ninsns, w->target[i]);
		if (s && s->addr != w->target[i])
			s->entered = true;
	}
}

/* ---- jumps that need more analysis ----------------------------------------------------------------------------------- */

/* A jump to the function's start is a loop, or a tail call to itself: then the frame has been removed before. */
static bool calls_itself(const struct walk *w, const struct dp_function_code *code, const struct dp_insn *insn, size_t i)
{
	return insn->flow == DP_FLOW_JMP && insn->target == w->parts->part[0].start && dp_after_epilogue(code, i);
}

static void judge(struct walk *w, struct dp_function_code *code, size_t i)
{
	struct dp_insn insn;
	size_t n;
	const uint64_t at = w->points.insn[i].addr;
	const uint8_t *bytes = dp_text_at(w->parts->text, at, &n);
	if (!bytes || !dp_decode_zydis(bytes, n, at, &insn))
		return;
	if (calls_itself(w, code, &insn, i))
		add_exit(w, (struct dp_exit){.addr = at, .target = insn.target, .kind = DP_EXIT_JUMP});
	const enum dp_leave leave = insn.flow == DP_FLOW_JMP_IND ? dp_indirect_leaves(code, i) : DP_LEAVE_NO;
	if (leave != DP_LEAVE_NO)
		add_exit(w, (struct dp_exit){.addr = at, .kind = leave == DP_LEAVE_YES ? DP_EXIT_JUMP : DP_EXIT_UNSURE});
}

static void judge_jumps(struct walk *w)
{
	struct dp_function_code code = {.parts = w->parts, .insn = w->points.insn, .n = w->points.ninsns};
	for (size_t i = 0; i < w->points.ninsns && !w->failed; i++)
		judge(w, &code, i);
}

static int compare_exits(const void *a, const void *b)
{
	const struct dp_exit *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

struct dp_error *dp_text_points(const struct dp_text *text, const struct dp_range *part, size_t n, struct dp_points *ret)
{
	const struct dp_parts parts = {text, part, n};
	struct walk w = {.parts = &parts};
	for (size_t i = 0; i < n; i++)
		walk_part(&w, &part[i]);
	mark_entered(&w);
	judge_jumps(&w);
	free(w.target);
	if (w.failed) {
		dp_points_fini(&w.points);
		return dp_error_nomem();
	}
	if (w.points.nexits)
		qsort(w.points.exit, w.points.nexits, sizeof(*w.points.exit), compare_exits);
	*ret = w.points;
	return NULL;
}

void dp_points_fini(struct dp_points *points)
{
	free(points->insn);
	free(points->exit);
	*points = (struct dp_points){0};
}
