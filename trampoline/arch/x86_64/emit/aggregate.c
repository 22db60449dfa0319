/* SPDX-License-Identifier: MIT */
/*
 * A stub that aggregates, ascending:
 *
 *	descriptor                  for the agent
 *	slow paths                  the thread's first hit, and threads that have no block
 *	entry:                      prologue, gates, condition, cells, epilogue
 *
 * A thread finds its block by a hash of %fs:0 (agent/abi.h), which is the same for all threads. In low memory the tables'
 * addresses are part of the instructions. The thread id is not checked: the cells belong to the control block. A plain count
 * needs only two registers, and tests its condition before it saves them, if the flags need not be preserved.
 */
#include "trampoline/arch/x86_64/emit/aggregate_stub.h"

#include "trampoline/arch/x86_64/decode/flags.h"
#include "trampoline/arch/x86_64/emit/pair.h"

enum { CACHE_LINE = 64 };

/* ---- blocks ---------------------------------------------------------------------------------------------------------- */

static bool in_low_memory(uint64_t address)
{
	return address <= INT32_MAX - 4096;
}

static bool is_low(const struct dp_runtime *rt)
{
	return in_low_memory(rt->agent + sizeof(struct dp_agent)) && in_low_memory(rt->answers.head);
}

/* op disp(base,%rdx,8),reg; without a base the address is absolute: REX.W opcode ModRM SIB disp32 */
static void in_table(struct dp_asm *a, uint8_t opcode, unsigned reg, bool absolute, uint64_t disp)
{
	const uint8_t modrm = (uint8_t)((absolute ? 0x04 : 0x84) | reg << 3),
	              sib = (uint8_t)(0xc0 | DP_RDX << 3 | (absolute ? 5 : DP_RSI));
	dp_asm_data(a, (uint8_t[]){0x48, opcode, modrm, sib}, 4);
	dp_asm_data(a, &disp, 4);
}

/* Loads the thread's key into rcx. A thread without an fs base of its own has no entry in the table. */
static void find_key(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label slow)
{
	static const uint8_t rdfsbase_rcx[] = {0xf3, 0x48, 0x0f, 0xae, 0xc1};
	if (!rt->bases) {
		dp_asm_mov_load(a, 8, dp_rm_fs(0), DP_RCX);
		return;
	}
	dp_asm_data(a, rdfsbase_rcx, sizeof(rdfsbase_rcx));
	dp_asm_test(a, 8, DP_RCX, dp_rm_reg(DP_RCX));
	dp_asm_jcc(a, DP_CC_E, slow);
}

/*
 * The first blocks, in low memory. A store through an address that comes from rdfsbase holds up the next rdfsbase: 5 ns. After a
 * comparison the address is known in advance.
 */
static void find_first(struct dp_asm *a, const struct dp_runtime *rt, unsigned to, struct dp_label found)
{
	static const uint8_t cmp_absolute_rcx[] = {0x48, 0x3b, 0x0c, 0x25};
	for (unsigned i = 0; i < DP_AGG_FIRST && i < rt->answers.nblocks; i++) {
		const uint64_t key = rt->agent + offsetof(struct dp_agent, answer_first) + i * sizeof(uint64_t);
		dp_asm_mov_const(a, rt->answers.head + DP_AGGS_HEAD + i * rt->answers.size, to);
		dp_asm_data(a, cmp_absolute_rcx, sizeof(cmp_absolute_rcx));
		dp_asm_data(a, &key, 4);
		dp_asm_jcc(a, DP_CC_E, found);
	}
}

/* Loads this thread's block into `to`; changes rcx, rdx, and rsi if the table is far. */
static void find_block(struct dp_asm *a, const struct dp_runtime *rt, unsigned to, struct dp_label slow)
{
	const bool low = is_low(rt);
	const uint64_t table = low ? rt->agent : 0;
	struct dp_label found = dp_asm_label(a);
	if (!low)
		dp_asm_mov_const(a, rt->agent, DP_RSI);
	find_key(a, rt, slow);
	if (low && rt->bases)
		find_first(a, rt, to, found);
	dp_asm_imul_imm(a, (int32_t)DP_HASH_MULT, dp_rm_reg(DP_RCX), DP_RDX);
	dp_asm_shift(a, DP_SHIFT_SHR, 64 - DP_TABLE_BITS, DP_RDX);
	in_table(a, 0x3b, DP_RCX, low, table + offsetof(struct dp_agent, answer_key)); /* cmp */
	dp_asm_jcc(a, DP_CC_NE, slow);
	in_table(a, 0x8b, to, low, table + offsetof(struct dp_agent, answer_block)); /* mov */
	dp_asm_test(a, 8, to, dp_rm_reg(to)); /* 0: a handler has forked between the last two loads */
	dp_asm_jcc(a, DP_CC_E, slow);
	dp_asm_bind(a, found);
}

void dp_agg_block(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label slow)
{
	find_block(a, rt, DP_RSI, slow);
}

/*
 * If threads cannot be distinguished: loads one of 1 << DP_AGG_SPREAD_BITS blocks into rsi, selected by the stack pointer. All
 * are shared, but two threads rarely use the same. To `slow` in a fork child, where the agent's memory is wiped. Changes rcx, rdx
 * and flags.
 */
static void spread_block(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label slow)
{
	dp_asm_mov_const(a, rt->agent, DP_RSI);
	dp_asm_alu_imm(a, DP_ALU_CMP, 8, 0, dp_rm_mem(DP_RSI, offsetof(struct dp_agent, live)));
	dp_asm_jcc(a, DP_CC_E, slow);
	dp_asm_mov_store(a, 8, DP_RSP, dp_rm_reg(DP_RCX));
	dp_asm_shift(a, DP_SHIFT_SHR, 16, DP_RCX);
	dp_asm_imul_imm(a, (int32_t)DP_HASH_MULT, dp_rm_reg(DP_RCX), DP_RCX);
	dp_asm_shift(a, DP_SHIFT_SHR, 64 - DP_AGG_SPREAD_BITS, DP_RCX);
	dp_asm_imul_imm(a, (int32_t)rt->answers.size, dp_rm_reg(DP_RCX), DP_RCX);
	dp_asm_mov_const(a, rt->answers.head + DP_AGGS_HEAD, DP_RSI);
	dp_asm_alu_store(a, DP_ALU_ADD, 8, DP_RCX, dp_rm_reg(DP_RSI));
}

void dp_agg_ask(struct dp_asm *a, const struct dp_runtime *rt, struct dp_label desc, struct dp_label lost)
{
	struct dp_label found = dp_asm_label(a);
	dp_asm_push(a, DP_RAX);
	dp_asm_lea_label(a, desc, DP_RAX);
	dp_asm_call(a, rt->cells, DP_RCX);
	dp_asm_pop(a, DP_RAX);
	dp_asm_test(a, 8, DP_RSI, dp_rm_reg(DP_RSI));
	dp_asm_jcc(a, DP_CC_NE, found);
	dp_asm_jmp(a, lost);
	dp_asm_bind(a, found);
	dp_asm_test(a, 8, DP_RCX, dp_rm_reg(DP_RCX));
}

void dp_agg_lose(struct dp_asm *a, const struct dp_runtime *rt, const struct dp_request *req, size_t what)
{
	const size_t at = rt->answers.loss + req->probe * sizeof(struct dp_agg_loss) + what;
	dp_asm_data(a, "\xf0", 1);
	dp_asm_alu_imm(a, DP_ALU_ADD, 8, 1, dp_rm_mem(DP_RSI, (int64_t)at));
}

/* ---- a count of hits -------------------------------------------------------------------------------------------------- */

/* Whether two registers are enough. */
static bool is_plain_count(const struct dp_agg_stub *s)
{
	const struct dp_request *req = s->req;
	return req->answer && req->answer->what == DP_AGG_COUNT && !req->answer->next && !s->keyed && !req->pair && !s->spread &&
	       (!req->when || dp_expr_is_light(req->when));
}

/* A thread whose block is not at its hash index, or that has none. */
static void count_slowly(struct dp_agg_stub *s, struct dp_label done)
{
	struct dp_label locked = dp_asm_label(&s->a), out = dp_asm_label(&s->a);
	dp_asm_bind(&s->a, s->slow);
	dp_asm_push(&s->a, DP_RSI);
	dp_agg_ask(&s->a, s->rt, s->desc, out);
	dp_asm_jcc(&s->a, DP_CC_NE, locked);
	dp_agg_apply(&s->a, s->rt, s->req->answer, s->cells, DP_AGG_OWN);
	dp_asm_jmp(&s->a, out);
	dp_asm_bind(&s->a, locked);
	dp_agg_apply(&s->a, s->rt, s->req->answer, s->cells, DP_AGG_LOCKED);
	dp_asm_bind(&s->a, out);
	dp_asm_pop(&s->a, DP_RSI);
	dp_asm_jmp(&s->a, done);
}

/* rcx and rdx are free. */
static void count(struct dp_agg_stub *s)
{
	struct dp_asm *a = &s->a;
	if (is_low(s->rt)) {
		find_block(a, s->rt, DP_RDX, s->slow);
		dp_asm_alu_imm(a, DP_ALU_ADD, 8, 1, dp_rm_mem(DP_RDX, s->cells));
		return;
	}
	dp_asm_push(a, DP_RSI);
	find_block(a, s->rt, DP_RSI, s->restore);
	dp_agg_apply(a, s->rt, s->req->answer, s->cells, DP_AGG_OWN);
	dp_asm_pop(a, DP_RSI);
}

/* Counts; `bare`: nothing is saved, and rax is left alone. */
static void count_framed(struct dp_agg_stub *s, bool bare, struct dp_label done)
{
	struct dp_asm *a = &s->a;
	if (bare)
		dp_asm_lea(a, dp_rm_mem(DP_RSP, -DP_VIEW_RED_ZONE), DP_RSP);
	dp_asm_push(a, DP_RCX);
	dp_asm_push(a, DP_RDX);
	count(s);
	dp_asm_bind(a, done);
	dp_asm_pop(a, DP_RDX);
	dp_asm_pop(a, DP_RCX);
	if (bare)
		dp_asm_lea(a, dp_rm_mem(DP_RSP, DP_VIEW_RED_ZONE), DP_RSP);
}

/* A false condition runs straight: it costs a comparison. */
static uint64_t emit_plain_count(struct dp_agg_stub *s)
{
	struct dp_asm *a = &s->a;
	const bool bare = !s->flags && dp_frame_gates_near(a, s->req);
	struct dp_expr_code light = {.a = a, .rt = s->rt};
	struct dp_label done = dp_asm_label(a), hit = dp_asm_label(a);
	light.view = bare ? dp_view_bare(s->req->site) : dp_view_light(s->req->site);
	dp_asm_bind(a, s->restore); /* from count(), if far */
	dp_asm_pop(a, DP_RSI);
	count_slowly(s, done);
	if (s->req->when) {
		dp_asm_align(a, 16);
		dp_asm_bind(a, hit);
		count_framed(s, bare, done);
		dp_asm_jmp(a, s->leave);
	}
	dp_asm_align(a, CACHE_LINE);
	const uint64_t start = dp_asm_here(a);
	if (!bare)
		dp_frame_enter(a, s->flags);
	dp_frame_gates(a, s->req, s->leave);
	if (s->req->when)
		dp_expr_jump(&light, s->req->when, true, hit);
	else
		count_framed(s, bare, done);
	dp_asm_bind(a, s->leave);
	if (!bare)
		dp_frame_leave(a, s->flags);
	return start;
}

/* ---- all other stubs -------------------------------------------------------------------------------------------------- */

/*
 * The end of a call: continues only if the entry is known and the call took long enough. The time is read after the search for
 * the block: what follows rdtsc waits for it, what precedes it does not.
 */
static void emit_leave_call(struct dp_agg_stub *s)
{
	dp_pair_now(&s->a);
	dp_pair_leave(&s->a, &s->view, s->rt, s->req, s->unpaired);
	if (s->counted)
		dp_frame_count(&s->a, &s->view, s->rt, s->req->hits);
	if (!s->req->slower)
		return;
	dp_asm_mov_const(&s->a, s->req->slower, DP_RCX);
	dp_asm_alu_store(&s->a, DP_ALU_CMP, 8, DP_RCX, dp_rm_reg(DP_RAX));
	dp_asm_jcc(&s->a, DP_CC_B, s->restore);
}

/* After the block has been found. */
static void emit_known(struct dp_agg_stub *s)
{
	if (s->req->enters) {
		dp_pair_enter(&s->a, &s->view, s->rt, s->req);
		return;
	}
	if (s->timed) {
		emit_leave_call(s);
		dp_agg_condition(s);
	}
	dp_agg_answer(s, s->spread);
}

/* For keys alone, the agent finds the block. The entries of goroutines' calls are in none. */
static bool needs_block(const struct dp_agg_stub *s)
{
	return s->req->pair ? !(s->req->enters && s->req->goroutines) : !s->keyed;
}

/* A shared block has no pairs: different threads' calls would overwrite each other's. */
static void emit_slow(struct dp_agg_stub *s)
{
	struct dp_label locked = dp_asm_label(&s->a);
	dp_asm_bind(&s->a, s->slow);
	dp_agg_ask(&s->a, s->rt, s->desc, s->restore);
	dp_asm_jcc(&s->a, DP_CC_NE, locked);
	dp_asm_jmp(&s->a, s->have);
	if (s->req->only_paired) {
		dp_asm_bind(&s->a, s->unpaired);
		dp_asm_jmp(&s->a, s->restore);
	}
	dp_asm_bind(&s->a, locked);
	if (s->req->pair) {
		if (!s->req->only_paired)
			dp_asm_bind(&s->a, s->unpaired);
		if (!s->req->enters)
			dp_agg_lose(&s->a, s->rt, s->req, offsetof(struct dp_agg_loss, unpaired));
	} else {
		dp_agg_answer(s, true);
	}
	dp_asm_jmp(&s->a, s->restore);
}

static uint64_t emit_general(struct dp_agg_stub *s)
{
	struct dp_asm *a = &s->a;
	if (needs_block(s))
		emit_slow(s);
	dp_agg_undecided(s);
	dp_asm_align(a, CACHE_LINE);
	const uint64_t start = dp_asm_here(a);
	dp_frame_enter(a, s->flags);
	dp_frame_gates(a, s->req, s->leave);
	dp_frame_save(a, s->room);
	if (s->counted && !s->timed)
		dp_frame_count(a, &s->view, s->rt, s->req->hits);
	if (!s->timed)
		dp_agg_condition(s);
	if (needs_block(s) && s->spread && !s->req->pair)
		spread_block(a, s->rt, s->slow);
	else if (needs_block(s) && !s->spread)
		dp_agg_block(a, s->rt, s->slow);
	else if (needs_block(s))
		dp_asm_jmp(a, s->slow);
	dp_asm_bind(a, s->have);
	emit_known(s);
	dp_asm_bind(a, s->restore);
	dp_frame_restore(a, s->room);
	dp_asm_bind(a, s->leave);
	dp_frame_leave(a, s->flags);
	return start;
}

/* ---- all ----------------------------------------------------------------------------------------------------------------- */

static bool is_duration(const struct dp_expr *e)
{
	return e && e->kind == DP_EXPR_FACT && e->value == DP_FACT_DURATION;
}

static bool asks_for_hits(const struct dp_request *req)
{
	bool asks = dp_expr_asks_for(req->when, DP_FACT_HITS) || (req->answer && dp_expr_asks_for(req->answer->by, DP_FACT_HITS));
	for (unsigned i = 0; req->answer && i < req->answer->nkeys; i++)
		asks |= dp_expr_asks_for(req->answer->key[i], DP_FACT_HITS) ||
		        dp_expr_asks_for(req->answer->text[i].count, DP_FACT_HITS);
	for (const struct dp_agg *a = req->answer; a; a = a->next)
		asks |= dp_expr_asks_for(a->value, DP_FACT_HITS);
	return asks;
}

/* How many the agent looks for: two for the caller. */
static unsigned frames_of(const struct dp_agg *answer)
{
	unsigned most = answer->stack;
	for (unsigned i = 0; i < answer->nkeys; i++)
		most = !answer->key[i] && most < 2 ? 2 : most;
	return most;
}

static void stub_init(struct dp_agg_stub *s, struct dp_buf *out, uint64_t at)
{
	struct dp_label *const labels[] = {&s->desc, &s->slow, &s->have, &s->unpaired, &s->restore, &s->leave};
	dp_asm_init(&s->a, out, at);
	for (size_t i = 0; i < sizeof(labels) / sizeof(*labels); i++)
		*labels[i] = dp_asm_label(&s->a);
	s->timed = s->req->pair && !s->req->enters;
	s->keyed = s->req->answer && (s->req->answer->by || s->req->answer->stack || s->req->answer->nkeys);
	s->spread = s->rt->identity == DP_ID_TID && !s->rt->bases;
	s->direct = s->timed && !s->keyed && !s->req->when && !s->req->answer->next && is_duration(s->req->answer->value);
	s->room = s->timed && !s->direct ? DP_FRAME_TIMED : DP_FRAME_PLAIN;
	s->stacked =
	        s->req->answer && (dp_agg_unwinds(s->req->answer) || (s->req->small_stack && dp_agg_has_texts(s->req->answer)));
	if (s->stacked)
		s->room = DP_FRAME_STACKED;
	s->room |= s->req->answer ? DP_FRAME_WORDS(dp_agg_room(s->req->answer)) : 0;
	s->counted = s->req->hits && !s->req->enters && asks_for_hits(s->req);
	s->room |= s->counted ? DP_FRAME_COUNTED : 0u;
	s->flags = !dp_flags_free(s->rt, s->req);
	s->rt_stacked = *s->rt;
	s->field = (struct dp_field){.type = DP_TYPE_BACKTRACE, .source = DP_SRC_UNWIND};
	s->field.size = s->req->answer ? frames_of(s->req->answer) : 0;
	s->backtrace = (struct dp_fields){&s->field, 1};
	s->exits.n = DP_EXPR_PUSHES + 1;
	for (unsigned i = 0; i < s->exits.n; i++)
		s->exits.at[i] = dp_asm_label(&s->a);
	dp_agg_text_init(s);
	s->view = dp_frame_view(s->req->site, s->room);
	if (s->req->answer)
		s->cells = (int64_t)s->req->probe * (dp_agg_words(s->req->answer) + dp_agg_pending(s->req->answer)) * 8;
}

static uint16_t stack_words(const struct dp_agg *answer)
{
	unsigned n = answer->nkeys || answer->stack ? 1 + answer->nkeys + answer->stack : 0;
	for (unsigned i = 0; i < answer->nkeys; i++)
		n += dp_agg_text_words(answer->text[i].size);
	return (uint16_t)n;
}

/* For the agent, of a key with frames (agent/abi.h). */
static void put_op(struct dp_agg_stub *s)
{
	const struct dp_agg *answer = s->req->answer;
	struct dp_op op = {.size = s->field.size};
	if (answer->nkeys)
		op.addr = answer->nkeys | (uint64_t)answer->stack << 32;
	for (unsigned i = 0; i < answer->nkeys; i++)
		if (!answer->key[i])
			op.field = (uint16_t)(i + 1);
	dp_asm_data(&s->a, &op, sizeof(op));
}

struct dp_error *dp_agg_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_runtime *rt, const struct dp_request *req,
                                  struct dp_stub *ret)
{
	struct dp_agg_stub s = {.rt = rt, .req = req};
	struct dp_probe_desc desc = {
	        .agent = rt->agent, .lost = req->lost, .probe = req->probe, .site = req->site, .event = req->event};
	if (!rt->answers.head)
		return dp_error(DP_TAG_INTERNAL, "an aggregating probe has no cells");
	if (req->goroutines)
		DP_TRY(dp_pair_goroutine_check(rt));
	const bool texts = req->answer && dp_agg_has_texts(req->answer);
	stub_init(&s, out, at);
	dp_asm_bind(&s.a, s.desc);
	desc.stack_words = req->answer ? stack_words(req->answer) : 0;
	if (texts)
		desc.reserve = sizeof(desc) + (s.stacked ? sizeof(struct dp_op) : 0);
	dp_asm_data(&s.a, &desc, sizeof(desc));
	if (s.stacked)
		put_op(&s);
	if (texts)
		dp_agg_text_ops(&s);
	ret->entry = is_plain_count(&s) ? emit_plain_count(&s) : emit_general(&s);
	const bool good = dp_stub_finish(&s.a, ret);
	if (out->failed)
		return dp_error_nomem();
	return good ? NULL : dp_error(DP_TAG_SYNTAX, "an expression is too complex to compile: split or simplify it");
}
