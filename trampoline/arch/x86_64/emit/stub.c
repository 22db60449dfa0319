/* SPDX-License-Identifier: MIT */
/*
 * A stub's layout, ascending:
 *
 *	descriptor, operations      data for the agent
 *	slow:                       gets a record from the agent
 *	aside:                      failures, and the ends of strings
 *	body (only with a condition)
 *	entry:                      prologue, gates, then the condition or the body, then the epilogue
 *
 * so that the most frequent path runs straight. If the program writes its flags before it reads them (flags.h) they are not
 * preserved, and a condition on registers alone is tested before the prologue: a false one costs a compare and a branch. The
 * prologue steps over the red zone, then saves rax and puts the flags there: lahf and seto, which together with sahf and an
 * addition cost nothing, while popfq costs as much as the rest of a hit. All data is above rsp, because a signal may arrive
 * between any two instructions.
 *
 * The fast path is re-entrant without a lock prefix: only a signal handler of the same thread can change slot.head in between,
 * and cmpxchg is one instruction. The timestamp is read inside of that loop, so the records are in the order of their timestamps.
 *
 * With the LTTng sink the body gets the record from the sink and hands it back filled; there is no ring and no slow path. The
 * direction flag stays the program's there too: the sink's entry points clear it for compiled code.
 */
#include "trampoline/arch/x86_64/emit/stub.h"
#include "trampoline/arch/x86_64/decode/flags.h"
#include "trampoline/arch/x86_64/emit/aggregate.h"
#include "trampoline/arch/x86_64/asm/asm.h"
#include "trampoline/arch/x86_64/emit/capture.h"
#include "trampoline/arch/x86_64/emit/frame.h"
#include "trampoline/arch/x86_64/expr/expr.h"
#include "trampoline/arch/x86_64/hooks/hook.h"
#include "trampoline/arch/x86_64/hooks/hook_syscall.h"
#include "trampoline/arch/x86_64/emit/pair.h"

enum { CACHE_LINE = 64 };

struct stub {
	struct dp_asm a;
	const struct dp_runtime *rt;
	const struct dp_request *req;
	bool plain;               /* no condition: the body is part of the entry */
	bool flags;               /* the program's flags must be preserved */
	bool bare;                /* the condition is before the prologue, which is part of the body */
	enum dp_view_level level; /* registers that the condition needs saved */
	uint32_t reserve;
	struct dp_capture_code capture;
	struct dp_exits exits; /* of the condition */
	struct dp_label desc, slow, have, body, restore, unwind, leave;
	bool timed;    /* the hit needs the duration of the call */
	bool enters;   /* the hit is the call's entry */
	bool counted;  /* it needs the number of hits */
	unsigned room; /* enum dp_frame_room */
	struct dp_label find, known, unpaired;
};

/* ---- registers ------------------------------------------------------------------------------------------------------- */

static const uint8_t taken[] = {DP_RAX, DP_RCX, DP_RDX, DP_RSI}; /* rax: the flags */

static void emit_save(struct dp_asm *a, enum dp_view_level from, enum dp_view_level to)
{
	for (unsigned i = from; i < to; i++)
		dp_asm_push(a, taken[i]);
}

static void emit_restore(struct dp_asm *a, enum dp_view_level from, enum dp_view_level to)
{
	for (unsigned i = from; i > to; i--)
		dp_asm_pop(a, taken[i - 1]);
}

/* ---- the record ----------------------------------------------------------------------------------------------------- */

/* Timestamp into rdx; changes rax. */
static void emit_rdtsc(struct dp_asm *a)
{
	dp_asm_rdtsc(a);
	dp_asm_shift(a, DP_SHIFT_SHL, 32, DP_RDX);
	dp_asm_alu_store(a, DP_ALU_OR, 8, DP_RAX, dp_rm_reg(DP_RDX));
}

/* Gets record into rcx, slot into rsi, timestamp into rdx from the agent; to `restore` if there is no room. */
static void emit_acquire(struct stub *s)
{
	struct dp_asm *a = &s->a;
	dp_asm_lea_label(a, s->desc, DP_RAX);
	dp_asm_call(a, s->rt->acquire, DP_RCX);
	dp_asm_test(a, 8, DP_RCX, dp_rm_reg(DP_RCX));
	dp_asm_jcc(a, DP_CC_E, s->restore);
	emit_rdtsc(a);
}

/* Loads this thread's slot into rsi. */
static void emit_lookup(struct stub *s)
{
	struct dp_asm *a = &s->a;
	_Static_assert(sizeof(struct dp_thread_entry) == 16, "the index is scaled by a shift");
	dp_asm_mov_load(a, 8, dp_rm_fs(0), DP_RAX);
	dp_asm_mov_const(a, s->rt->agent + DP_AGENT_TABLE, DP_RDX);
	dp_asm_imul_imm(a, (int32_t)DP_HASH_MULT, dp_rm_reg(DP_RAX), DP_RCX);
	dp_asm_shift(a, DP_SHIFT_SHR, 64 - DP_TABLE_BITS, DP_RCX);
	dp_asm_shift(a, DP_SHIFT_SHL, 4, DP_RCX);
	dp_asm_alu_load(a, DP_ALU_CMP, 8, dp_rm_index(DP_RDX, DP_RCX, offsetof(struct dp_thread_entry, key)), DP_RAX);
	dp_asm_jcc(a, DP_CC_NE, s->slow);
	dp_asm_mov_load(a, 8, dp_rm_index(DP_RDX, DP_RCX, offsetof(struct dp_thread_entry, slot)), DP_RSI);
	dp_asm_test(a, 8, DP_RSI, dp_rm_reg(DP_RSI)); /* 0: a handler has forked between the last two loads */
	dp_asm_jcc(a, DP_CC_E, s->slow);
	dp_asm_mov_load(a, 4, dp_rm_fs(s->rt->tid_offset), DP_RAX);
	dp_asm_alu_load(a, DP_ALU_CMP, 4, dp_rm_mem(DP_RSI, offsetof(struct dp_slot, tid)), DP_RAX);
	dp_asm_jcc(a, DP_CC_NE, s->slow);
}

/* Record into rcx, timestamp into rdx. */
static void emit_reserve(struct stub *s)
{
	struct dp_asm *a = &s->a;
	struct dp_rm head = dp_rm_mem(DP_RSI, offsetof(struct dp_slot, head));
	struct dp_label again = dp_asm_label(a);
	dp_asm_bind(a, again);
	dp_asm_mov_load(a, 8, head, DP_RCX);
	emit_rdtsc(a);
	dp_asm_mov_store(a, 8, DP_RCX, dp_rm_reg(DP_RAX));
	dp_asm_lea(a, dp_rm_mem(DP_RCX, s->reserve), DP_RCX);
	dp_asm_alu_store(a, DP_ALU_CMP, 8, DP_RCX, dp_rm_mem(DP_RSI, offsetof(struct dp_slot, limit)));
	dp_asm_jcc(a, DP_CC_B, s->slow);
	dp_asm_cmpxchg(a, DP_RCX, head);
	dp_asm_jcc(a, DP_CC_NE, again);
	dp_asm_mov_load(a, 8, dp_rm_mem(DP_RSI, offsetof(struct dp_slot, mask)), DP_RCX);
	dp_asm_alu_store(a, DP_ALU_AND, 8, DP_RAX, dp_rm_reg(DP_RCX));
	dp_asm_alu_load(a, DP_ALU_ADD, 8, dp_rm_mem(DP_RSI, offsetof(struct dp_slot, base)), DP_RCX);
}

/* This store makes the record valid, so it comes last. */
static void emit_commit(struct stub *s)
{
	struct dp_record head = {.size = s->reserve, .probe = s->req->probe};
	uint64_t word = head.size | (uint64_t)head.probe << 32;
	dp_asm_mov_const(&s->a, word, DP_RAX);
	dp_asm_mov_store(&s->a, 8, DP_RAX, dp_rm_mem(DP_RCX, 0));
}

static void emit_ring_body(struct stub *s)
{
	struct dp_asm *a = &s->a;
	if (s->rt->identity == DP_ID_SELF) {
		emit_lookup(s);
		emit_reserve(s);
	} else {
		emit_acquire(s);
	}
	dp_asm_bind(a, s->have);
	dp_asm_mov_store(a, 8, DP_RDX, dp_rm_mem(DP_RCX, offsetof(struct dp_record, tsc)));
	if (s->capture.calls) {
		dp_capture_call(&s->capture);
	} else {
		dp_capture_inline(&s->capture);
		emit_commit(s);
	}
}

/* Gets the sink's record into rcx; to `restore` if there is none. Hands it back filled. */
static void emit_sink_body(struct stub *s)
{
	struct dp_asm *a = &s->a;
	dp_asm_lea_label(a, s->desc, DP_RAX);
	dp_asm_call(a, s->rt->enter, DP_RCX);
	dp_asm_test(a, 8, DP_RCX, dp_rm_reg(DP_RCX));
	dp_asm_jcc(a, DP_CC_E, s->restore);
	if (s->capture.calls) {
		dp_capture_call(&s->capture);
		return;
	}
	dp_capture_inline(&s->capture);
	dp_asm_lea_label(a, s->desc, DP_RAX);
	dp_asm_call(a, s->rt->emit, DP_RSI);
}

static void emit_body(struct stub *s)
{
	if (s->req->hook)
		dp_hook_call(&s->a, s->req->hook);
	else if (s->rt->enter)
		emit_sink_body(s);
	else
		emit_ring_body(s);
}

/* ---- all --------------------------------------------------------------------------------------------------------------- */

static void emit_data(struct stub *s)
{
	struct dp_probe_desc desc = {
	        .agent = s->rt->agent,
	        .lost = s->req->lost,
	        .reserve = s->reserve,
	        .probe = s->req->probe,
	        .site = s->req->site,
	        .event = s->req->event,
	};
	if (s->req->hook)
		return;
	dp_asm_bind(&s->a, s->desc);
	dp_asm_data(&s->a, &desc, sizeof(desc));
	dp_capture_put_data(&s->capture);
}

/* The condition cannot be evaluated. Many threads may count at once. */
static void emit_undecided(struct stub *s)
{
	if (!s->exits.n)
		return;
	dp_exits_put(&s->a, &s->exits);
	dp_asm_mov_const(&s->a, s->req->lost + offsetof(struct dp_lost, unreadable), DP_RAX);
	dp_asm_lock_inc(&s->a, dp_rm_mem(DP_RAX, 0));
	dp_asm_jmp(&s->a, s->unwind);
}

/* ---- returns with durations -------------------------------------------------------------------------------------------- */

/* Threads whose block only the agent can find, and calls without a known entry. */
static void emit_unpaired(struct stub *s)
{
	struct dp_label lost = dp_asm_label(&s->a);
	if (s->req->goroutines) {
		dp_asm_bind(&s->a, s->unpaired);
		dp_agg_ask(&s->a, s->rt, s->desc, s->unwind);
		dp_agg_lose(&s->a, s->rt, s->req, offsetof(struct dp_agg_loss, unpaired));
		dp_asm_jmp(&s->a, s->unwind);
		return;
	}
	dp_asm_bind(&s->a, s->find);
	dp_agg_ask(&s->a, s->rt, s->desc, s->unwind);
	dp_asm_jcc(&s->a, DP_CC_NE, lost);
	dp_asm_jmp(&s->a, s->known);
	if (s->req->only_paired) {
		dp_asm_bind(&s->a, s->unpaired);
		dp_asm_jmp(&s->a, s->unwind);
	}
	dp_asm_bind(&s->a, lost);
	if (!s->req->only_paired)
		dp_asm_bind(&s->a, s->unpaired);
	dp_agg_lose(&s->a, s->rt, s->req, offsetof(struct dp_agg_loss, unpaired));
	dp_asm_jmp(&s->a, s->unwind);
}

static void emit_block(struct stub *s)
{
	struct dp_asm *a = &s->a;
	if (!s->req->goroutines && s->rt->identity == DP_ID_SELF)
		dp_agg_block(a, s->rt, s->find);
	else if (!s->req->goroutines)
		dp_asm_jmp(a, s->find);
	dp_asm_bind(a, s->known);
}

/* The duration into the frame and into rax. */
static void emit_duration(struct stub *s, const struct dp_view *view)
{
	dp_pair_now(&s->a);
	emit_block(s);
	dp_pair_leave(&s->a, view, s->rt, s->req, s->unpaired);
}

/* Only a call whose entry is recorded is a pair, so this comes after the condition. */
static void emit_number(struct stub *s, const struct dp_view *view)
{
	emit_block(s);
	dp_pair_enter(&s->a, view, s->rt, s->req);
}

/* Saves all registers at once: condition and fields find duration and number in that frame. */
static void emit_framed(struct stub *s)
{
	struct dp_asm *a = &s->a;
	struct dp_expr_code c = {.a = a, .rt = s->rt, .exits = s->exits, .view = dp_frame_view(s->req->site, s->room)};
	dp_frame_save(a, s->room);
	if (s->timed)
		emit_duration(s, &c.view);
	if (s->counted)
		dp_frame_count(a, &c.view, s->rt, s->req->hits);
	if (s->req->slower) {
		dp_asm_mov_const(a, s->req->slower, DP_RCX);
		dp_asm_alu_store(a, DP_ALU_CMP, 8, DP_RCX, dp_rm_reg(DP_RAX));
		dp_asm_jcc(a, DP_CC_B, s->unwind);
	}
	if (s->req->when)
		dp_expr_jump(&c, s->req->when, false, s->unwind);
	if (s->enters)
		emit_number(s, &c.view);
	emit_body(s);
	dp_asm_bind(a, s->restore);
	dp_asm_bind(a, s->unwind);
	dp_frame_restore(a, s->room);
}

static void emit_out_of_line(struct stub *s)
{
	if (s->rt->identity == DP_ID_SELF && !s->rt->enter && !s->req->hook) {
		dp_asm_bind(&s->a, s->slow);
		emit_acquire(s);
		dp_asm_jmp(&s->a, s->have);
	}
	if (!s->req->hook)
		dp_capture_put_aside(&s->capture);
	emit_undecided(s);
	if (s->timed || (s->enters && !s->req->goroutines))
		emit_unpaired(s);
	if (s->plain || s->room)
		return;
	dp_asm_align(&s->a, 16);
	dp_asm_bind(&s->a, s->body);
	if (s->bare)
		dp_frame_enter(&s->a, false);
	emit_save(&s->a, s->level, DP_VIEW_FULL);
	emit_body(s);
	dp_asm_bind(&s->a, s->restore);
	emit_restore(&s->a, DP_VIEW_FULL, s->level);
	if (s->bare)
		dp_frame_leave(&s->a, false);
	dp_asm_jmp(&s->a, s->unwind);
}

static void emit_condition(struct stub *s)
{
	struct dp_expr_code c = {.a = &s->a, .rt = s->rt, .exits = s->exits, .view = dp_view_at(s->level, s->req->site)};
	emit_save(&s->a, DP_VIEW_LIGHT, s->level);
	dp_expr_jump(&c, s->req->when, true, s->body);
	dp_asm_bind(&s->a, s->unwind);
	emit_restore(&s->a, s->level, DP_VIEW_LIGHT);
}

static void emit_bare(struct stub *s)
{
	struct dp_expr_code c = {.a = &s->a, .rt = s->rt, .view = dp_view_bare(s->req->site)};
	dp_frame_gates(&s->a, s->req, s->leave);
	dp_expr_jump(&c, s->req->when, true, s->body);
	dp_asm_bind(&s->a, s->unwind);
	dp_asm_bind(&s->a, s->leave);
}

static void emit_entry(struct stub *s)
{
	if (s->bare) {
		emit_bare(s);
		return;
	}
	dp_frame_enter(&s->a, s->flags);
	dp_frame_gates(&s->a, s->req, s->leave);
	if (s->room) {
		emit_framed(s);
	} else if (s->plain) {
		emit_save(&s->a, DP_VIEW_LIGHT, DP_VIEW_FULL);
		emit_body(s);
		dp_asm_bind(&s->a, s->restore);
		emit_restore(&s->a, DP_VIEW_FULL, DP_VIEW_LIGHT);
	} else {
		emit_condition(s);
	}
	dp_asm_bind(&s->a, s->leave);
	dp_frame_leave(&s->a, s->flags);
}

static void init_condition(struct stub *s)
{
	s->plain = !s->req->when || s->req->hook;
	s->exits.n = 0;
	s->flags = true;
	s->bare = false;
	if (s->plain)
		return;
	s->flags = !dp_flags_free(s->rt, s->req);
	s->level = dp_expr_level(s->rt, s->req->when);
	s->bare = !s->flags && !s->room && s->level == DP_VIEW_LIGHT && dp_frame_gates_near(&s->a, s->req);
	dp_exits_init(&s->a, s->req->when, &s->exits);
}

static void init_capture(struct stub *s)
{
	unsigned taken_guards = s->plain ? 0 : dp_expr_guards(s->req->when);
	s->capture.a = &s->a;
	s->capture.view = dp_frame_view(s->req->site, s->room);
	s->capture.desc = s->desc;
	dp_capture_init(&s->capture, s->rt, s->req->fields, taken_guards < DP_ASM_GUARDS ? DP_ASM_GUARDS - taken_guards : 0);
	if (s->req->small_stack && !s->rt->enter)
		s->capture.rt.backtrace = s->rt->apart;
}

static bool asks_for(const struct dp_request *req, enum dp_fact fact)
{
	bool asks = !req->hook && dp_expr_asks_for(req->when, fact);
	for (size_t i = 0; !req->hook && !asks && i < req->fields->n; i++)
		asks = dp_expr_asks_for(req->fields->field[i].expr, fact) ||
		       dp_expr_asks_for(req->fields->field[i].count, fact);
	return asks;
}

static void stub_init(struct stub *s, struct dp_buf *out, uint64_t at)
{
	dp_asm_init(&s->a, out, at);
	s->reserve = s->req->hook ? 0 : (uint32_t)dp_capture_reserve(s->req->fields);
	s->desc = dp_asm_label(&s->a);
	s->slow = dp_asm_label(&s->a);
	s->have = dp_asm_label(&s->a);
	s->body = dp_asm_label(&s->a);
	s->restore = dp_asm_label(&s->a);
	s->unwind = dp_asm_label(&s->a);
	s->leave = dp_asm_label(&s->a);
	s->find = dp_asm_label(&s->a);
	s->known = dp_asm_label(&s->a);
	s->unpaired = dp_asm_label(&s->a);
	s->enters = s->req->pair && s->req->enters;
	s->timed = s->req->pair && !s->enters;
	s->counted = s->req->hits && asks_for(s->req, DP_FACT_HITS);
	s->room = (!s->req->pair                                 ? DP_FRAME_PLAIN
	           : s->enters || asks_for(s->req, DP_FACT_CALL) ? DP_FRAME_CALLED
	                                                         : DP_FRAME_TIMED) |
	          (s->counted ? DP_FRAME_COUNTED : 0u);
	init_condition(s);
	if (!s->req->hook)
		init_capture(s);
}

bool dp_stub_finish(struct dp_asm *a, struct dp_stub *ret)
{
	_Static_assert(DP_ASM_GUARDS <= DP_PLAN_FIXUPS, "all of them fit into a plan");
	if (!dp_asm_finish(a) || a->out->len - a->start > UINT16_MAX)
		return false;
	ret->nfixups = (uint8_t)a->nguards;
	for (unsigned i = 0; i < a->nguards; i++) {
		ret->fixup[i].load = (uint16_t)a->guard[i].load;
		ret->fixup[i].to = (uint16_t)a->label[a->guard[i].label];
	}
	return true;
}

static struct dp_error *uncompiled(void)
{
	return dp_error(DP_TAG_SYNTAX, "the condition or a field is too complex to compile: split or simplify it");
}

struct dp_error *dp_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_runtime *rt, const struct dp_request *req,
                              struct dp_stub *ret)
{
	struct stub s;
	s.rt = rt;
	s.req = req;
	ret->nfixups = 0;
	if (req->syscall)
		return dp_syscall_stub_emit(out, at, req, &ret->entry);
	if (at % 16)
		return dp_error(DP_TAG_INTERNAL, "stub at 0x%llx is not aligned", (unsigned long long)at);
	if (req->answer || (req->enters && req->probe == DP_NO_PROBE))
		return dp_agg_stub_emit(out, at, rt, req, ret);
	if (!req->hook && dp_capture_reserve(req->fields) > DP_RECORD_MAX)
		return dp_error(DP_TAG_SYNTAX,
		                "the probe's fields take %zu bytes, a record has room for %u: capture fewer or shorter fields",
		                dp_capture_reserve(req->fields), DP_RECORD_MAX);
	if (req->goroutines)
		DP_TRY(dp_pair_goroutine_check(rt));
	stub_init(&s, out, at);
	emit_data(&s);
	emit_out_of_line(&s);
	dp_asm_align(&s.a, CACHE_LINE); /* a short stub is then one fetch: a false condition costs only its jumps */
	ret->entry = dp_asm_here(&s.a);
	emit_entry(&s);
	bool good = dp_stub_finish(&s.a, ret);
	if (out->failed)
		return dp_error_nomem();
	return good ? NULL : uncompiled();
}
