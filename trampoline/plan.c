/* SPDX-License-Identifier: MIT */
/*
 * The planner. For each probe it tries the tactics in order; for each tactic it generates the stub with the displaced
 * instructions, finds room for it near the module, then lets the site's jump lead there, by a springboard if need be.
 *
 * Two kinds of bytes of a site are spoken for: those that its jump changes, and those that the jump relies upon without
 * changing them (a pun's tail). Two probes may rely on the same byte; but what one relies upon or changes, no other may change.
 */
#include "trampoline/trampoline.h"

#include "trampoline/arch/x86_64/relocate.h"
#include "trampoline/arch/x86_64/springboard.h"
#include "trampoline/arch/x86_64/stub.h"
#include "trampoline/extents.h"
#include "trampoline/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STUB_ALIGN 16u
#define REACH      UINT64_C(0x7c000000) /* of a 32-bit displacement, less 64 MiB for the module's bss and the stub itself */
#define CHUNK      UINT64_C(0x10000)
#define STUB_GUESS 512u

struct claim {
	uint64_t start;
	uint8_t changed, relied; /* bytes from start; changed <= relied */
};

struct chunk { /* free room that stubs are put into, one behind the other; its pages are taken as they are needed */
	uint64_t next, end;
};

struct dp_planner {
	struct dp_space *space;
	struct dp_runtime runtime;
	struct dp_pages *pages;
	struct claim *claim;
	size_t nclaims;
	struct chunk *chunk;
	size_t nchunks;
	struct dp_plan *plan; /* of each claim that is not another planner's */
	size_t nplans;
};

struct dp_error *dp_planner_create(struct dp_space *space, const struct dp_runtime *runtime, struct dp_planner **ret)
{
	struct dp_planner *planner = calloc(1, sizeof(*planner));
	if (!planner)
		return dp_error(DP_TAG_NOMEM, "out of memory for the planner");
	planner->space = space;
	planner->runtime = *runtime;
	struct dp_error *err = dp_pages_create(space, &planner->pages);
	if (err) {
		free(planner);
		return err;
	}
	*ret = planner;
	return NULL;
}

struct dp_planner *dp_planner_destroy(struct dp_planner *planner)
{
	if (!planner)
		return NULL;
	dp_pages_destroy(planner->pages);
	free(planner->claim);
	free(planner->chunk);
	free(planner->plan);
	free(planner);
	return NULL;
}

size_t dp_planner_extents(struct dp_planner *planner, const struct dp_extent **ret)
{
	return dp_pages_extents(planner->pages, ret);
}

/* ---- claims ---------------------------------------------------------------------------------------------------------------- */

static bool overlap(uint64_t a, size_t na, uint64_t b, size_t nb)
{
	return a < b + nb && b < a + na;
}

/* The claim that is in the way of a new one, or NULL. */
static const struct claim *conflict(const struct dp_planner *planner, const struct claim *new)
{
	for (size_t i = 0; i < planner->nclaims; i++) {
		const struct claim *old = &planner->claim[i];
		if (overlap(new->start, new->changed, old->start, old->relied) ||
		    overlap(new->start, new->relied, old->start, old->changed))
			return old;
	}
	return NULL;
}

/* Room for one more item; capacities are powers of two. */
static bool reserve(void **items, size_t n, size_t size)
{
	if (n & (n - 1))
		return true;
	void *grown = realloc(*items, (n ? 2 * n : 1) * size);
	if (grown)
		*items = grown;
	return grown;
}

static bool reserve_claim(struct dp_planner *planner)
{
	return reserve((void **)&planner->claim, planner->nclaims, sizeof(*planner->claim)) &&
	       reserve((void **)&planner->plan, planner->nplans, sizeof(*planner->plan));
}

struct dp_error *dp_planner_occupy(struct dp_planner *planner, uint64_t addr, uint8_t changed, uint8_t len)
{
	if (!reserve_claim(planner))
		return dp_error(DP_TAG_NOMEM, "out of memory for the planner");
	planner->claim[planner->nclaims++] = (struct claim){addr, changed, len};
	return NULL;
}

size_t dp_planner_plans(struct dp_planner *planner, const struct dp_plan **ret)
{
	*ret = planner->plan;
	return planner->nplans;
}

/* Keeps those of the fit's jumps that leave other probes' bytes alone. */
static struct dp_error *drop_conflicts(const struct dp_planner *planner, uint64_t site, struct dp_fit *fit)
{
	const struct claim *in_the_way = NULL;
	uint8_t kept = 0;
	for (uint8_t i = 0; i < fit->njumps; i++) {
		struct claim claim = {site, fit->changed, dp_jump_len(&fit->jump[i])};
		const struct claim *found = conflict(planner, &claim);
		if (found)
			in_the_way = found;
		else
			fit->jump[kept++] = fit->jump[i];
	}
	fit->njumps = kept;
	return kept ? NULL : dp_error(DP_TAG_OVERLAP, "the probe at 0x%" PRIx64 " is in the way", in_the_way->start);
}

/* ---- stubs ------------------------------------------------------------------------------------------------------------------
 */

struct reach {
	uint64_t lo, hi, near;
};

/* From everywhere in there, everything in the module is in reach, and the other way round. */
static struct reach reach_of(const struct dp_text *text)
{
	uint64_t start, end;
	dp_text_bounds(text, &start, &end);
	return (struct reach){dp_saturating_sub(end, REACH), dp_saturating_add(start, REACH), start};
}

static bool in_chunk(const struct dp_planner *planner, const struct chunk *chunk, const struct reach *reach, size_t size,
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
	struct chunk *grown = realloc(planner->chunk, (planner->nchunks + 1) * sizeof(*grown));
	uint64_t start = 0, least = dp_page_up(size);
	if (!grown)
		return false;
	planner->chunk = grown;
	for (uint64_t room = CHUNK > least ? CHUNK : least; room >= least; room = dp_page_up(room / 2)) {
		if (dp_space_find(planner->space, reach->lo, reach->hi, reach->near, room, &start)) {
			planner->chunk[planner->nchunks++] = (struct chunk){start, start + room};
			return true;
		}
		if (room == dp_page_up(room / 2))
			break;
	}
	return false;
}

static bool find_room(struct dp_planner *planner, const struct reach *reach, size_t size, uint64_t *at)
{
	for (size_t i = 0; i < planner->nchunks; i++)
		if (in_chunk(planner, &planner->chunk[i], reach, size, at))
			return true;
	return add_chunk(planner, reach, size) && in_chunk(planner, &planner->chunk[planner->nchunks - 1], reach, size, at);
}

/* The chunk's next stub starts behind this one. */
static void advance(struct dp_planner *planner, uint64_t end)
{
	for (size_t i = 0; i < planner->nchunks; i++)
		if (end > planner->chunk[i].next && end <= planner->chunk[i].end)
			planner->chunk[i].next = (end + STUB_ALIGN - 1) & ~(uint64_t)(STUB_ALIGN - 1);
}

static struct dp_error *generate(const struct dp_planner *planner, const struct dp_request *request, const struct dp_fit *fit,
                                 uint64_t at, struct dp_buf *out, struct dp_plan *plan, uint64_t *entry)
{
	DP_TRY(dp_stub_emit(out, at, &planner->runtime, request, entry));
	plan->npairs = 0;
	dp_plan_pair(plan, *entry, request->site, false);
	DP_TRY(dp_relocate_run(fit->insn, fit->ninsns, at, out, plan));
	return out->failed ? dp_error(DP_TAG_NOMEM, "out of memory for a stub") : NULL;
}

/* Generates the stub where there is room for it and puts it into the pages. Its size is known only when it is done. */
static struct dp_error *place_stub(struct dp_planner *planner, const struct dp_request *request, const struct dp_fit *fit,
                                   struct dp_plan *plan, uint64_t *entry)
{
	struct reach reach = reach_of(request->text);
	struct dp_error *err = NULL;
	bool placed = false;
	for (size_t size = STUB_GUESS; !placed && !err;) {
		struct dp_buf code;
		if (!find_room(planner, &reach, size, &plan->stub))
			return dp_error(DP_TAG_NO_SPACE, "no %zu free bytes within 2 GiB of the whole module", size);
		dp_buf_init(&code);
		err = generate(planner, request, fit, plan->stub, &code, plan, entry);
		placed = !err && code.len <= size;
		if (placed)
			err = dp_pages_put(planner->pages, plan->stub, code.data, code.len);
		plan->stub_end = plan->stub + code.len;
		size = code.len + STUB_ALIGN;
		dp_buf_fini(&code);
	}
	return err;
}

/* ---- sites --------------------------------------------------------------------------------------------------------------------
 */

static void fill(const struct dp_fit *fit, const struct dp_landing *landing, struct dp_plan *plan)
{
	plan->len = dp_jump_len(&landing->jump);
	memcpy(plan->new_bytes, plan->old_bytes, sizeof(plan->new_bytes));
	dp_jump_encode(&landing->jump, plan->site, landing->target, plan->new_bytes);
	for (uint8_t i = 0; i < fit->ninsns; i++)
		plan->displaced = (uint8_t)(plan->displaced + fit->insn[i].len);
	plan->ninterior = fit->ninterior;
	memcpy(plan->interior, fit->interior, sizeof(plan->interior));
	if (!landing->springboard)
		return;
	plan->springboard = landing->target;
	dp_plan_pair(plan, landing->target, plan->site, false);
}

static struct dp_error *place(struct dp_planner *planner, const struct dp_request *request, struct dp_fit *fit,
                              struct dp_plan *plan)
{
	struct dp_landing landing;
	uint64_t entry;
	DP_TRY(drop_conflicts(planner, request->site, fit));
	DP_TRY(place_stub(planner, request, fit, plan, &entry));
	struct dp_error *err = NULL;
	if (!reserve_claim(planner))
		err = dp_error(DP_TAG_NOMEM, "out of memory for the planner");
	if (!err)
		err = dp_springboard_place(planner->pages, planner->space, fit->jump, fit->njumps, entry, &landing);
	if (err) {
		dp_pages_drop(planner->pages, plan->stub, (size_t)(plan->stub_end - plan->stub));
		return err;
	}
	fill(fit, &landing, plan);
	plan->changed = fit->changed < plan->len ? fit->changed : plan->len;
	planner->claim[planner->nclaims++] = (struct claim){plan->site, fit->changed, plan->len};
	planner->plan[planner->nplans++] = *plan;
	advance(planner, plan->stub_end);
	return NULL;
}

/* An int3 changes one byte and needs no springboard. */
static struct dp_error *place_trap(struct dp_planner *planner, const struct dp_request *request, struct dp_fit *fit,
                                   struct dp_plan *plan)
{
	const struct claim claim = {request->site, fit->changed, fit->changed}, *old = conflict(planner, &claim);
	uint64_t entry;
	if (old)
		return dp_error(DP_TAG_OVERLAP, "the probe at 0x%" PRIx64 " is in the way", old->start);
	if (!reserve_claim(planner))
		return dp_error(DP_TAG_NOMEM, "out of memory for the planner");
	DP_TRY(place_stub(planner, request, fit, plan, &entry));
	memcpy(plan->new_bytes, plan->old_bytes, sizeof(plan->new_bytes));
	plan->new_bytes[0] = DP_INT3;
	plan->displaced = fit->insn[0].len;
	plan->len = plan->changed = fit->changed;
	planner->claim[planner->nclaims++] = claim;
	planner->plan[planner->nplans++] = *plan;
	advance(planner, plan->stub_end);
	return NULL;
}

/* Which of two refusals says more: what belongs to the instruction, then other probes, then room, then its length. */
static int weight(enum dp_tag tag)
{
	switch (tag) {
	case DP_TAG_TOO_SHORT:
		return 0;
	case DP_TAG_NO_SPACE:
		return 1;
	case DP_TAG_OVERLAP:
		return 2;
	default:
		return 3;
	}
}

/* The site's own instruction can be moved, that is known by now: a window complains about those that follow. */
static enum dp_tag tag_of(const struct dp_error *err, enum dp_tactic tactic)
{
	bool follower = err->tag == DP_TAG_UNDECODABLE || err->tag == DP_TAG_UNRELOCATABLE;
	return tactic == DP_TACTIC_WINDOW && follower ? DP_TAG_TOO_SHORT : err->tag;
}

/* Collects the tactics' refusals into one error, whose tag is that of the weightiest. */
static struct dp_error *collect(struct dp_error *all, struct dp_error *one, enum dp_tactic tactic)
{
	enum dp_tag tag = tag_of(one, tactic);
	if (all && weight(all->tag) >= weight(tag))
		tag = all->tag;
	struct dp_error *both =
	        dp_error(tag, "%s%s%s: %s", all ? all->message : "", all ? "; " : "", dp_tactic_name(tactic), one->message);
	dp_error_destroy(all);
	dp_error_destroy(one);
	return both;
}

static struct dp_error *try_tactics(struct dp_planner *planner, const struct dp_request *request, const struct dp_insn *first,
                                    struct dp_plan *plan)
{
	const struct dp_plan blank = *plan;
	struct dp_error *all = NULL;
	const unsigned allowed = request->tactics ? request->tactics : DP_TACTICS_JUMPS;
	for (size_t i = 0; i < dp_ntactics; i++) {
		struct dp_fit fit;
		if (!(allowed >> dp_tactics[i].tactic & 1))
			continue;
		*plan = blank;
		plan->tactic = dp_tactics[i].tactic;
		struct dp_error *err = dp_tactics[i].fit(request->text, first, &fit);
		if (!err)
			err = (plan->tactic == DP_TACTIC_TRAP ? place_trap : place)(planner, request, &fit, plan);
		if (!err) {
			dp_error_destroy(all);
			return NULL;
		}
		all = collect(all, err, dp_tactics[i].tactic);
	}
	char text[DP_INSN_TEXT];
	dp_insn_text(first, text);
	return all ? dp_error_wrap(all, "%s: no jump fits", text) : dp_error(DP_TAG_TOO_SHORT, "%s: no tactic is allowed", text);
}

/* Could the instruction run from a stub at all? Asked first, so that its refusal is not hidden behind those of the tactics. */
static struct dp_error *check_relocatable(const struct dp_insn *insn)
{
	struct dp_buf scratch;
	dp_buf_init(&scratch);
	struct dp_error *err = dp_relocate(insn, insn->addr, &scratch);
	dp_buf_fini(&scratch);
	return err;
}

struct dp_error *dp_planner_add(struct dp_planner *planner, const struct dp_request *request, struct dp_plan *ret)
{
	struct dp_plan plan = {.site = request->site, .probe = request->probe};
	struct dp_insn first;
	size_t n;
	const uint8_t *bytes = dp_text_at(request->text, request->site, &n);
	if (!bytes)
		return dp_error(DP_TAG_NOT_CODE, "0x%" PRIx64 " is not in an executable segment of its module", request->site);
	DP_TRY(dp_decode(bytes, n, request->site, &first));
	DP_TRY(check_relocatable(&first));
	memcpy(plan.old_bytes, bytes, n < sizeof(plan.old_bytes) ? n : sizeof(plan.old_bytes));
	DP_TRY(try_tactics(planner, request, &first, &plan));
	*ret = plan;
	return NULL;
}
