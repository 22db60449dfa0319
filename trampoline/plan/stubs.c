/* SPDX-License-Identifier: MIT */
/* Allocates room for stubs, near the module and one after the other, and generates them there. */
#include "trampoline/arch/x86_64/asm/encode.h"
#include "trampoline/arch/x86_64/emit/springboard.h"
#include "trampoline/arch/x86_64/emit/stub.h"
#include "trampoline/arch/x86_64/relocate/relocate.h"
#include "trampoline/code/text.h"
#include "trampoline/plan/planner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STUB_ALIGN  16u
#define REACH       UINT64_C(0x7c000000) /* of a 32-bit displacement, minus 64 MiB for the module's bss and the stub itself */
#define CHUNK       UINT64_C(0x10000)
#define STUB_GUESS  512u
#define MOVED_GUESS 64u /* only a moved instruction and the jump back */

struct reach {
	uint64_t lo, hi, near;
};

/* Any address in this range reaches the whole module by rel32, and the reverse. */
static struct reach reach_of(const struct dp_text *text)
{
	uint64_t start, end;
	dp_text_bounds(text, &start, &end);
	return (struct reach){dp_saturating_sub(end, REACH), dp_saturating_add(start, REACH), start};
}

static bool in_chunk(const struct dp_planner *planner, const struct dp_chunk *chunk, const struct reach *reach, size_t size,
                     uint64_t *ret)
{
	if (chunk->next < reach->lo || chunk->end > reach->hi)
		return false;
	for (uint64_t at = chunk->next; at + size <= chunk->end; at += STUB_ALIGN)
		if (dp_pages_fits(planner->pages, at, size)) {
			*ret = at;
			return true;
		}
	return false;
}

/* Adds a chunk of 64 KiB, or of less if there is no hole of that size. */
static bool add_chunk(struct dp_planner *planner, const struct reach *reach, size_t size)
{
	struct dp_chunk *grown = realloc(planner->chunk, (planner->nchunks + 1) * sizeof(*grown));
	uint64_t start = 0, least = dp_page_up(size);
	if (!grown)
		return false;
	planner->chunk = grown;
	for (uint64_t room = CHUNK > least ? CHUNK : least; room >= least; room = dp_page_up(room / 2)) {
		if (dp_space_find(planner->space, reach->lo, reach->hi, reach->near, room, &start)) {
			planner->chunk[planner->nchunks++] = (struct dp_chunk){start, start + room};
			return true;
		}
		if (room == dp_page_up(room / 2))
			break;
	}
	return false;
}

/* The last chunk first: earlier ones are full, except where stubs were removed. */
static bool find_room(struct dp_planner *planner, const struct reach *reach, size_t size, uint64_t *at)
{
	for (size_t i = planner->nchunks; i-- > 0;)
		if (in_chunk(planner, &planner->chunk[i], reach, size, at))
			return true;
	return add_chunk(planner, reach, size) && in_chunk(planner, &planner->chunk[planner->nchunks - 1], reach, size, at);
}

/* The chunk's next stub starts after this one. */
static void advance(struct dp_planner *planner, uint64_t end)
{
	for (size_t i = planner->nchunks; i-- > 0;)
		if (end > planner->chunk[i].next && end <= planner->chunk[i].end) {
			planner->chunk[i].next = (end + STUB_ALIGN - 1) & ~(uint64_t)(STUB_ALIGN - 1);
			return;
		}
}

static struct dp_error *put_probe(const struct dp_planner *planner, const struct dp_request *request, struct dp_buf *out,
                                  struct dp_plan *plan)
{
	struct dp_stub stub;
	DP_TRY(dp_stub_emit(out, plan->stub, &planner->runtime, request, &stub));
	plan->entry = stub.entry;
	plan->nfixups = stub.nfixups;
	plan->guarded = plan->guarded || stub.nfixups;
	memcpy(plan->fixup, stub.fixup, sizeof(stub.fixup[0]) * stub.nfixups);
	return NULL;
}

static struct dp_error *generate(const struct dp_planner *planner, const struct dp_request *request,
                                 const struct dp_stub_tail *code, struct dp_buf *out, struct dp_plan *plan)
{
	plan->entry = plan->stub;
	plan->npairs = 0;
	plan->nfixups = 0;
	if (request)
		DP_TRY(put_probe(planner, request, out, plan));
	dp_plan_pair(plan, plan->entry, plan->site, false);
	if (code->below) {
		dp_plan_pair(plan, plan->stub + out->len, plan->site, false);
		dp_put_jmp(out, plan->stub + out->len, code->below);
	} else {
		DP_TRY(dp_relocate_run(code->insn, code->ninsns, plan->stub, out, plan));
	}
	return out->failed ? dp_error_nomem() : NULL;
}

/* See DP_PC_READ. */
static void pad(struct dp_buf *out, uint64_t stub)
{
	const uint64_t last = stub + out->len - 1;
	if (dp_page_down(last) == dp_page_down(last + DP_PC_READ))
		return;
	for (unsigned i = 0; i < DP_PC_READ; i++)
		dp_put_u8(out, DP_INT3);
}

/* The size of a stub is known only after it was generated. */
struct dp_error *dp_stubs_put(struct dp_planner *planner, const struct dp_text *text, const struct dp_request *request,
                              const struct dp_stub_tail *code, struct dp_plan *plan)
{
	struct reach reach = reach_of(text);
	struct dp_error *err = NULL;
	bool placed = false;
	plan->calls_out = request && request->hook;
	plan->displaced = 0;
	for (uint8_t i = 0; i < code->ninsns; i++)
		plan->displaced = (uint8_t)(plan->displaced + code->insn[i].len);
	for (size_t size = request ? STUB_GUESS : MOVED_GUESS; !placed && !err;) {
		struct dp_buf *out = &planner->code;
		if (!find_room(planner, &reach, size, &plan->stub))
			return dp_error(DP_TAG_NO_SPACE, "no %zu free bytes within 2 GiB of the whole module", size);
		out->len = 0;
		out->failed = false;
		err = generate(planner, request, code, out, plan);
		if (!err)
			pad(out, plan->stub);
		placed = !err && out->len <= size;
		if (placed)
			err = dp_pages_put(planner->pages, plan->stub, out->data, out->len);
		plan->stub_end = plan->stub + out->len;
		size = out->len + STUB_ALIGN;
	}
	if (!err)
		advance(planner, plan->stub_end);
	return err;
}

/* The chunk whose next stub starts after this one goes on from `end` instead. */
static void retreat(struct dp_planner *planner, uint64_t from, uint64_t end)
{
	for (size_t i = planner->nchunks; i-- > 0;)
		if (planner->chunk[i].next == ((from + STUB_ALIGN - 1) & ~(uint64_t)(STUB_ALIGN - 1)))
			planner->chunk[i].next = (end + STUB_ALIGN - 1) & ~(uint64_t)(STUB_ALIGN - 1);
}

bool dp_stubs_extend(struct dp_planner *planner, const struct dp_insn *insn, struct dp_plan *plan)
{
	struct dp_plan longer = *plan;
	struct dp_buf *out = &planner->code;
	const uint64_t tail = plan->pair[plan->npairs - 1].stub, known = plan->stub_end - tail;
	longer.npairs--;
	out->len = 0;
	out->failed = false;
	struct dp_error *err = dp_relocate_run(insn, 1, tail, out, &longer);
	if (!err)
		pad(out, tail);
	longer.stub_end = tail + out->len;
	if (!err && (out->failed || out->len <= known || !dp_pages_fits(planner->pages, plan->stub_end, out->len - known)))
		err = dp_error(DP_TAG_NO_SPACE, "no room after the stub");
	if (!err)
		err = dp_pages_put(planner->pages, plan->stub_end, out->data + known, out->len - known);
	if (!err)
		err = dp_pages_put(planner->pages, tail, out->data, known); /* over its own bytes: cannot fail */
	const bool good = !err;
	dp_error_destroy(err);
	if (!good)
		return false;
	advance(planner, longer.stub_end);
	*plan = longer;
	return true;
}

void dp_stubs_cut(struct dp_planner *planner, const struct dp_plan *plan, struct dp_plan *longer)
{
	const struct dp_pc_pair *back = &plan->pair[plan->npairs - 1];
	struct dp_buf *out = &planner->code;
	if (longer->stub_end == plan->stub_end)
		return;
	out->len = 0;
	dp_put_jmp(out, back->stub, back->original);
	pad(out, back->stub);
	dp_error_destroy(dp_pages_put(planner->pages, back->stub, out->data, out->len)); /* over its own bytes: cannot fail */
	dp_pages_drop(planner->pages, plan->stub_end, (size_t)(longer->stub_end - plan->stub_end));
	retreat(planner, longer->stub_end, plan->stub_end);
	*longer = *plan;
}

void dp_stubs_drop(struct dp_planner *planner, const struct dp_plan *plan)
{
	dp_pages_drop(planner->pages, plan->stub, (size_t)(plan->stub_end - plan->stub));
	retreat(planner, plan->stub_end, plan->stub); /* a last stub's room is free again */
}
