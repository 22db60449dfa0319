/* SPDX-License-Identifier: MIT */
/*
 * A stub's layout, ascending:
 *
 *	descriptor, operations      data for the agent
 *	slow:                       asks the agent for a record
 *	body (only with a condition)
 *	entry:                      prologue, gates, then the condition or the body, then the epilogue
 *
 * so that what runs most often runs straight. The prologue steps over the red zone, then frees rax for the flags: lahf and
 * seto, which together with sahf and an addition cost nothing, while popfq costs as much as the rest of a hit. Everything
 * happens above rsp, because a signal may arrive between any two instructions.
 *
 * The fast path is re-entrant without a lock prefix: a signal handler of the same thread is the only one that can move
 * slot.head in between, and cmpxchg is one instruction. The timestamp is read inside of that loop, so the records that it
 * reserves lie in the order of their timestamps.
 *
 * With the LTTng sink the body asks the sink for the record and hands it back filled; there is no ring and no slow path. The
 * direction flag stays the program's there too: to look at it and to clear it for compiled code is up to the sink's entry points.
 */
#include "trampoline/arch/x86_64/stub.h"
#include "trampoline/arch/x86_64/answer.h"
#include "trampoline/arch/x86_64/asm.h"
#include "trampoline/arch/x86_64/capture.h"
#include "trampoline/arch/x86_64/expr.h"
#include "trampoline/arch/x86_64/hook.h"
#include "trampoline/arch/x86_64/hook_syscall.h"

enum { CACHE_LINE = 64 };

enum form {
	FORM_PLAIN, /* no condition: the body is part of the entry */
	FORM_LIGHT, /* the condition needs no registers */
	FORM_FULL,  /* it does: they are saved before it */
};

struct stub {
	struct dp_asm a;
	const struct dp_runtime *rt;
	const struct dp_request *req;
	enum form form;
	uint32_t reserve;
	struct dp_view view; /* the full one */
	struct dp_label desc, slow, have, body, restore, leave;
};

/* ---- the frame ------------------------------------------------------------------------------------------------------ */

/* lea -128(%rsp),%rsp; push %rax; flags into rax */
static void emit_prologue(struct dp_asm *a)
{
	dp_asm_lea(a, dp_rm_mem(DP_RSP, -DP_VIEW_RED_ZONE), DP_RSP);
	dp_asm_push(a, DP_RAX);
	dp_asm_lahf(a);
	dp_asm_seto_al(a);
}

/* The opposite. 0x7f + 1 overflows, 0x7f + 0 does not; sahf leaves OF alone. */
static void emit_epilogue(struct dp_asm *a)
{
	dp_asm_add_al(a, 0x7f);
	dp_asm_sahf(a);
	dp_asm_pop(a, DP_RAX);
	dp_asm_lea(a, dp_rm_mem(DP_RSP, DP_VIEW_RED_ZONE), DP_RSP);
}

static const uint8_t taken[] = {DP_RAX, DP_RCX, DP_RDX, DP_RSI}; /* rax: the flags */

static void emit_save(struct dp_asm *a)
{
	for (size_t i = 0; i < sizeof(taken); i++)
		dp_asm_push(a, taken[i]);
}

static void emit_restore(struct dp_asm *a)
{
	for (size_t i = sizeof(taken); i > 0; i--)
		dp_asm_pop(a, taken[i - 1]);
}

/* Leaves if one of the request's words is 0. The flags are in rax by now. */
static void emit_gates(struct stub *s)
{
	for (size_t i = 0; i < sizeof(s->req->gate) / sizeof(s->req->gate[0]); i++)
		if (s->req->gate[i]) {
			dp_asm_cmp_zero(&s->a, s->req->gate[i], DP_RCX);
			dp_asm_jcc(&s->a, DP_CC_E, s->leave);
		}
}

/* ---- the record ----------------------------------------------------------------------------------------------------- */

/* Timestamp into rdx; changes rax. */
static void emit_rdtsc(struct dp_asm *a)
{
	dp_asm_rdtsc(a);
	dp_asm_shift(a, DP_SHIFT_SHL, 32, DP_RDX);
	dp_asm_alu_store(a, DP_ALU_OR, 8, DP_RAX, dp_rm_reg(DP_RDX));
}

/* Record into rcx, slot into rsi, timestamp into rdx, by the agent; to `restore` if there is no room. */
static void emit_acquire(struct stub *s)
{
	struct dp_asm *a = &s->a;
	dp_asm_lea_label(a, s->desc, DP_RAX);
	dp_asm_call(a, s->rt->acquire, DP_RCX);
	dp_asm_test(a, 8, DP_RCX, dp_rm_reg(DP_RCX));
	dp_asm_jcc(a, DP_CC_E, s->restore);
	emit_rdtsc(a);
}

/* The slot of this thread into rsi. */
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

/* One store makes the record valid, so it is the last. */
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
	if (dp_capture_calls(s->req->fields)) {
		dp_capture_call(a, &s->view, s->rt, s->req->fields, s->desc);
	} else {
		dp_capture_inline(a, &s->view, s->req->fields);
		emit_commit(s);
	}
}

/* The sink's record into rcx; to `restore` if there is none. Filled, it goes back. */
static void emit_sink_body(struct stub *s)
{
	struct dp_asm *a = &s->a;
	dp_asm_lea_label(a, s->desc, DP_RAX);
	dp_asm_call(a, s->rt->enter, DP_RCX);
	dp_asm_test(a, 8, DP_RCX, dp_rm_reg(DP_RCX));
	dp_asm_jcc(a, DP_CC_E, s->restore);
	if (dp_capture_calls(s->req->fields)) {
		dp_capture_call(a, &s->view, s->rt, s->req->fields, s->desc);
		return;
	}
	unsigned bytes = dp_capture_inline(a, &s->view, s->req->fields);
	dp_asm_mov_const(a, bytes, DP_RDX);
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

/* ---- the whole ------------------------------------------------------------------------------------------------------ */

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
	dp_capture_put_ops(&s->a, s->req->fields);
}

static void emit_out_of_line(struct stub *s)
{
	if (s->rt->identity == DP_ID_SELF && !s->rt->enter && !s->req->hook) {
		dp_asm_bind(&s->a, s->slow);
		emit_acquire(s);
		dp_asm_jmp(&s->a, s->have);
	}
	if (s->form == FORM_PLAIN)
		return;
	dp_asm_align(&s->a, 16);
	dp_asm_bind(&s->a, s->body);
	if (s->form == FORM_LIGHT)
		emit_save(&s->a);
	emit_body(s);
	if (s->form == FORM_LIGHT) {
		dp_asm_bind(&s->a, s->restore);
		emit_restore(&s->a);
		dp_asm_jmp(&s->a, s->leave);
	} else {
		dp_asm_jmp(&s->a, s->restore);
	}
}

static void emit_entry(struct stub *s)
{
	struct dp_view light = dp_view_light(s->req->site);
	emit_prologue(&s->a);
	emit_gates(s);
	if (s->form != FORM_LIGHT)
		emit_save(&s->a);
	if (s->form == FORM_PLAIN)
		emit_body(s);
	else
		dp_expr_jump(&s->a, s->form == FORM_LIGHT ? &light : &s->view, s->req->when, true, s->body);
	if (s->form != FORM_LIGHT) {
		dp_asm_bind(&s->a, s->restore);
		emit_restore(&s->a);
	}
	dp_asm_bind(&s->a, s->leave);
	emit_epilogue(&s->a);
}

static void stub_init(struct stub *s, struct dp_buf *out, uint64_t at)
{
	bool plain = !s->req->when || s->req->hook;
	dp_asm_init(&s->a, out, at);
	s->reserve = s->req->hook ? 0 : (uint32_t)dp_capture_reserve(s->req->fields);
	s->view = dp_view_full(s->req->site);
	s->form = plain ? FORM_PLAIN : dp_expr_is_light(s->req->when) ? FORM_LIGHT : FORM_FULL;
	s->desc = dp_asm_label(&s->a);
	s->slow = dp_asm_label(&s->a);
	s->have = dp_asm_label(&s->a);
	s->body = dp_asm_label(&s->a);
	s->restore = dp_asm_label(&s->a);
	s->leave = dp_asm_label(&s->a);
}

struct dp_error *dp_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_runtime *rt, const struct dp_request *req,
                              uint64_t *entry)
{
	struct stub s;
	s.rt = rt;
	s.req = req;
	if (req->syscall)
		return dp_syscall_stub_emit(out, at, req, entry);
	if (at % 16)
		return dp_error(DP_TAG_INTERNAL, "stub at 0x%llx is not aligned", (unsigned long long)at);
	if (req->answer || req->enters)
		return dp_answer_stub_emit(out, at, rt, req, entry);
	if (!req->hook && dp_capture_reserve(req->fields) > DP_RECORD_MAX)
		return dp_error(DP_TAG_SYNTAX, "the fields of one probe take %zu bytes, at most %u fit into a record",
		                dp_capture_reserve(req->fields), DP_RECORD_MAX);
	stub_init(&s, out, at);
	emit_data(&s);
	emit_out_of_line(&s);
	dp_asm_align(&s.a, CACHE_LINE); /* a short stub then is one fetch: a false condition costs as much as its jumps */
	uint64_t start = dp_asm_here(&s.a);
	emit_entry(&s);
	bool good = dp_asm_finish(&s.a);
	if (out->failed)
		return dp_error(DP_TAG_NOMEM, "out of memory for a stub");
	if (!good)
		return dp_error(DP_TAG_SYNTAX, "the condition is too complex to compile: split or simplify it");
	*entry = start;
	return NULL;
}
