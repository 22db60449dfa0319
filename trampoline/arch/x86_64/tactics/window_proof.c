/* SPDX-License-Identifier: MIT */
/*
 * Proves that nothing jumps inside a window. Does not reconstruct control flow, which would be wrong for unusual programs; checks
 * every place of the module's file that could contain an address inside the window, in any of the forms in which x86-64 code and
 * data contain addresses. Whatever looks like one counts as one.
 *
 *   rel32          e8, e9, 0f 8x, c7 f8 (call, jmp, jcc, xbegin) and every RIP-relative ModRM, at every byte of the executable
 *                  segments, as if instructions started everywhere
 *   rel8           70-7f, e0-e3, eb at every byte within reach outside of the function; inside, along the instructions from the
 *                  function's start, which must all decode, and no branch among which may lead between two of them
 *   pointers       eight bytes anywhere in any segment that are the address, in the file or in the target: function pointers,
 *                  relocation addends, symbol values, absolute jump tables. In a module linked to a fixed address, four bytes
 *   self-relative  four aligned bytes in data segments that lead there from their own address: function starts in .eh_frame
 *   jump tables    for every address that a lea in the module names: the run of four-byte entries there that lead, relative to
 *                  that address, into executable segments
 *   labels         a lea of an address inside the function: code that computes a jump target (such functions are refused)
 *   landing pads   from the caller
 *
 * Not covered: code that adds to a function's address without a visible lea, and jumps from other modules to symbol+n. Both would
 * have to be written by hand, in another file than the function's own.
 */
#include "trampoline/arch/x86_64/tactics/window_proof.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/code/text.h"

#include <inttypes.h>

#define SHORT_REACH 131u

struct proof {
	const struct dp_text *text;
	uint64_t site;
	unsigned inside;  /* bit i: nothing may jump to site + i */
	const char *what; /* what leads inside, and its address, 0: anywhere in the module */
	uint64_t where;
};

static bool found(struct proof *p, const char *what, uint64_t where)
{
	p->what = what;
	p->where = where;
	return true;
}

static bool is_inside(const struct proof *p, uint64_t addr)
{
	return addr - p->site < 8 && (p->inside >> (addr - p->site) & 1);
}

/* ---- rel8 --------------------------------------------------------------------------------------------------------------- */

static bool is_short_branch(uint8_t opcode)
{
	return (opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 || opcode == 0xeb;
}

static bool scan_short_outside(struct proof *p)
{
	uint64_t end = p->text->function + p->text->size;
	for (uint64_t at = p->site - SHORT_REACH; at < p->site + SHORT_REACH; at++) {
		size_t n;
		const uint8_t *b = at >= p->text->function && at < end ? NULL : dp_text_at(p->text, at, &n);
		if (b && n >= 2 && is_short_branch(b[0]) && is_inside(p, at + 2 + (uint64_t)(int64_t)(int8_t)b[1]))
			return found(p, "a short branch", at);
	}
	return false;
}

#define HEADS 512u /* range around the site, on either side, for which instruction starts are stored */

/* Whether `addr` is in the range of `heads` (instruction starts, a bit each, from `base`), but not one of them. */
static bool between(const uint64_t *heads, uint64_t base, uint64_t upto, uint64_t addr)
{
	uint64_t bit = addr - base;
	return addr >= base && addr < upto && bit < 2 * HEADS && !(heads[bit / 64] >> (bit % 64) & 1);
}

/*
 * Walks the instructions of the function. Stores the starts of those near the site, so that a branch into the middle of one of
 * them reveals that the code is not what it seems.
 */
static bool scan_function(struct proof *p, uint64_t *heads, uint64_t base, bool check)
{
	uint64_t end = p->text->function + p->text->size;
	size_t n = 0;
	const uint8_t *bytes = dp_text_at(p->text, p->text->function, &n);
	struct dp_insn_step step;
	for (uint64_t at = p->text->function; at < end; at += step.len, bytes += step.len, n -= step.len) {
		if (!bytes || !dp_decode_step(bytes, n, at, &step) || at + step.len > end)
			return found(p, "an undecodable instruction", at);
		if (check && step.relative && (is_inside(p, step.target) || between(heads, base, end, step.target)))
			return found(p, "a branch", at);
		if (at >= base && at - base < 2 * HEADS)
			heads[(at - base) / 64] |= UINT64_C(1) << ((at - base) % 64);
	}
	return false;
}

static bool scan_short_inside(struct proof *p)
{
	uint64_t heads[2 * HEADS / 64] = {0};
	uint64_t base = p->site - p->text->function > HEADS ? p->site - HEADS : p->text->function;
	return scan_function(p, heads, base, false) || scan_function(p, heads, base, true);
}

/* ---- the proof ---------------------------------------------------------------------------------------------------------- */

/* Index of the first landing pad at or after the site. */
static size_t first_pad(const struct proof *p)
{
	size_t lo = 0, hi = p->text->npads;
	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (p->text->pads[mid] < p->site)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool scan_pads(struct proof *p)
{
	for (size_t i = first_pad(p); i < p->text->npads && p->text->pads[i] - p->site < 8; i++)
		if (is_inside(p, p->text->pads[i]))
			return found(p, "a landing pad", p->text->pads[i]);
	return false;
}

static bool scan_module(struct proof *p, const struct dp_branch_targets *landings)
{
	static const char *const what[DP_BRANCH_TARGET_KINDS] = {
	        [DP_BRANCH_TARGET_BRANCH] = "a displacement",
	        [DP_BRANCH_TARGET_POINTER] = "a pointer",
	        [DP_BRANCH_TARGET_TABLE] = "a jump table's entry",
	};
	for (unsigned i = 0; i < 8; i++) {
		const enum dp_landing kind =
		        p->inside >> i & 1 ? dp_branch_targets_at(landings, p->site + i) : DP_BRANCH_TARGET_NONE;
		if (kind)
			return found(p, what[kind], 0);
	}
	return dp_branch_targets_lea_in(landings, p->text->function + 1, p->text->function + p->text->size) &&
	       found(p, "a computed jump to a label", 0);
}

struct dp_error *dp_window_prove(const struct dp_text *text, const struct dp_branch_targets *landings, uint64_t site,
                                 const uint8_t *interior, size_t n)
{
	struct proof p = {.text = text, .site = site};
	for (size_t i = 0; i < n; i++)
		p.inside |= 1U << interior[i];
	if (!scan_pads(&p) && !scan_short_outside(&p) && !scan_module(&p, landings) && !scan_short_inside(&p))
		return NULL;
	if (!p.where)
		return dp_error(DP_TAG_TOO_SHORT, "%s somewhere in the module may lead into the following instructions", p.what);
	return dp_error(DP_TAG_TOO_SHORT, "%s at 0x%" PRIx64 " may lead into the following instructions", p.what, p.where);
}
