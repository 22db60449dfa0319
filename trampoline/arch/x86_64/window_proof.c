/* SPDX-License-Identifier: MIT */
/*
 * The proof that nothing lands inside a window. It does not reconstruct control flow, which would be wrong where the program is
 * unusual; it looks at every place of the module's file where an address of the window's inside could be written, in any of the
 * ways in which x86-64 code and data write addresses. Whatever looks like one counts as one.
 *
 *   rel32          e8, e9, 0f 8x, c7 f8 (call, jmp, jcc, xbegin) and every RIP-relative ModRM, at every byte of the executable
 *                  segments, as if instructions started everywhere
 *   rel8           70-7f, e0-e3, eb at every byte within reach outside of the function; inside, along the instructions from the
 *                  function's start, which must all decode, and no branch among which may lead between two of them
 *   pointers       eight bytes anywhere in any segment that are the address, in the file or in the target: function pointers,
 *                  relocation addends, symbol values, absolute jump tables. In a module linked to a fixed address, four bytes
 *   self-relative  four aligned bytes in data segments that lead there from their own address: function starts in .eh_frame
 *   jump tables    for every address that a lea in the module names: the run of four-byte entries there that lead, counted from
 *                  that address, into executable segments
 *   labels         a lea of an address inside the function: code that computes where to jump (no such function is touched)
 *   landing pads   from the caller
 *
 * Not covered: code that takes a function's address and adds to it where no lea shows it, and jumps from other modules to
 * symbol+n. Both would have to be written by hand, in another file than the function's own.
 */
#include "trampoline/arch/x86_64/window_proof.h"

#include "trampoline/arch/x86_64/decode.h"
#include "trampoline/text.h"

#include <inttypes.h>
#include <string.h>

#define WORD        4u
#define BLOCK       256u /* words that are tested at a time */
#define IMMEDIATES  4u   /* largest immediate behind a RIP-relative operand: the address counts from its end */
#define SHORT_REACH 131u

typedef uint32_t unaligned32 __attribute__((aligned(1), may_alias));

struct proof {
	const struct dp_text *text;
	uint64_t site;
	unsigned inside; /* bit i: site + i must not be landed on */
	uint64_t file_site;
	bool fixed;                      /* 32-bit absolute addresses are possible */
	uint64_t index_start, index_end; /* .eh_frame_hdr */
	const char *what;                /* what leads inside, and where it is */
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

static bool in_exec(const struct proof *p, uint64_t addr)
{
	size_t n;
	return dp_text_at(p->text, addr, &n) != NULL;
}

static uint32_t load32(const uint8_t *at)
{
	return *(const unaligned32 *)at;
}

/* ---- words: rel32, pointers, self-relative
 * ------------------------------------------------------------------------------------- */

/* Is the word at `i` written as a pointer? */
static bool is_pointer(const struct proof *p, const struct dp_segment *s, size_t i)
{
	uint64_t value = load32(s->bytes + i);
	if (p->fixed && is_inside(p, value))
		return true;
	if (i + 2 * WORD > s->n)
		return false;
	value |= (uint64_t)load32(s->bytes + i + WORD) << 32;
	return is_inside(p, value) || is_inside(p, p->site + (value - p->file_site));
}

/* Is the word at `i` the operand of a direct branch, if an instruction stands there? */
static bool follows_branch(const uint8_t *word, size_t i)
{
	uint8_t last = i >= 1 ? word[-1] : 0, before = i >= 2 ? word[-2] : 0;
	return last == 0xe8 || last == 0xe9 || (before == 0x0f && (last & 0xf0) == 0x80) || (before == 0xc7 && last == 0xf8);
}

/* Is it a RIP-relative displacement? */
static bool follows_modrm(const uint8_t *word, size_t i)
{
	return i >= 1 && (word[-1] & 0xc7) == 0x05;
}

/* The operand of a RIP-relative instruction that leads inside, or a lea of a label of the function. */
static bool operand_leads_inside(const struct proof *p, uint64_t target, bool lea)
{
	for (unsigned immediate = 0; immediate <= IMMEDIATES; immediate++)
		if (is_inside(p, target + immediate))
			return true;
	return lea && target > p->text->function && target - p->text->function < p->text->size;
}

/*
 * What counts from its own address in data is .eh_frame, whose words are aligned. (.eh_frame_hdr counts from its own start: near
 * functions' entries there would look like addresses a few bytes into others.)
 */
static bool self_relative_place(const struct proof *p, uint64_t at)
{
	return at % WORD == 0 && !(at >= p->index_start && at < p->index_end);
}

static bool leads_inside(const struct proof *p, const struct dp_segment *s, size_t i)
{
	const uint8_t *word = s->bytes + i;
	uint64_t self = s->addr + i + (uint64_t)(int64_t)(int32_t)load32(word);
	bool branch = s->exec && follows_branch(word, i), operand = s->exec && follows_modrm(word, i);
	if (is_pointer(p, s, i) || (branch && is_inside(p, self + WORD)))
		return true;
	if (operand && operand_leads_inside(p, self + WORD, i >= 2 && word[-2] == 0x8d))
		return true;
	return !s->exec && self_relative_place(p, s->addr + i) && is_inside(p, self);
}

/* What a word must be to deserve a closer look, in 32-bit arithmetic: near the site or the function as a displacement or an
 * address. */
struct filter {
	uint32_t relative, relative_span; /* word + its place - relative < relative_span */
	uint32_t absolute, file;          /* word - absolute < 8 */
};

static struct filter make_filter(const struct proof *p, const struct dp_segment *s)
{
	const uint32_t margin = WORD + IMMEDIATES;
	return (struct filter){
	        .relative = (uint32_t)(p->text->function - s->addr - margin),
	        .relative_span = (uint32_t)p->text->size + 2 * margin + 16, /* padding behind the function may be inside */
	        .absolute = (uint32_t)p->site,
	        .file = (uint32_t)p->file_site,
	};
}

static inline unsigned passes(const struct filter *f, uint32_t word, uint32_t place)
{
	return (unsigned)(word + place - f->relative < f->relative_span) | (word - f->absolute < 8) | (word - f->file < 8);
}

/* Every fourth byte from `i` on, for BLOCK words: no branches, so that compilers use vector instructions. */
static unsigned block_passes(const struct filter *f, const uint8_t *bytes, size_t i)
{
	const unaligned32 *word = (const unaligned32 *)(bytes + i);
	unsigned any = 0;
	for (unsigned k = 0; k < BLOCK; k++)
		any |= passes(f, word[k], (uint32_t)i + WORD * k);
	return any;
}

static bool scan_words(struct proof *p, const struct dp_segment *s)
{
	struct filter f = make_filter(p, s);
	const size_t bytes = BLOCK * WORD;
	for (size_t i = 0; i + WORD <= s->n;) {
		size_t end = i + bytes;
		if (end + WORD - 1 > s->n)
			end = s->n - WORD + 1;
		else if (!(block_passes(&f, s->bytes, i) | block_passes(&f, s->bytes, i + 1) | block_passes(&f, s->bytes, i + 2) |
		           block_passes(&f, s->bytes, i + 3)))
			i = end;
		for (; i < end; i++)
			if (passes(&f, load32(s->bytes + i), (uint32_t)i) && leads_inside(p, s, i))
				return found(p, "a displacement or pointer", s->addr + i);
	}
	return false;
}

/* ---- jump tables
 * ----------------------------------------------------------------------------------------------------------------- */

static const struct dp_segment *segment_at(const struct dp_text *text, uint64_t addr)
{
	for (size_t i = 0; i < text->nsegments; i++)
		if (addr - text->segment[i].addr < text->segment[i].n)
			return &text->segment[i];
	return NULL;
}

static bool table_leads_inside(struct proof *p, uint64_t base)
{
	const struct dp_segment *s = segment_at(p->text, base);
	for (size_t i = s ? base - s->addr : 0; s && i + WORD <= s->n; i += WORD) {
		uint64_t target = base + (uint64_t)(int64_t)(int32_t)load32(s->bytes + i);
		if (is_inside(p, target))
			return found(p, "a jump table's entry", s->addr + i);
		if (!in_exec(p, target))
			return false;
	}
	return false;
}

static bool scan_tables(struct proof *p, const struct dp_segment *s)
{
	const uint8_t *at = s->bytes, *end = s->bytes + s->n;
	while (end - at >= 2 + (ptrdiff_t)WORD && (at = memchr(at, 0x8d, (size_t)(end - at) - 1 - WORD))) {
		uint64_t next = s->addr + (uint64_t)(at - s->bytes) + 2 + WORD;
		if ((at[1] & 0xc7) == 0x05 && table_leads_inside(p, next + (uint64_t)(int64_t)(int32_t)load32(at + 2)))
			return true;
		at++;
	}
	return false;
}

/* ---- rel8
 * ------------------------------------------------------------------------------------------------------------------------- */

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

#define HEADS 512u /* instruction starts that are remembered around the site, on either side */

/* Is `addr` within the bytes whose instruction starts `heads` (a bit each, from `base`) knows, and not one of them? */
static bool between(const uint64_t *heads, uint64_t base, uint64_t upto, uint64_t addr)
{
	uint64_t bit = addr - base;
	return addr >= base && addr < upto && bit < 2 * HEADS && !(heads[bit / 64] >> (bit % 64) & 1);
}

/*
 * Along the instructions of the function. The starts of those near the site are kept, so that a branch into the middle of one of
 * them shows that the function's code is not what it seems.
 */
static bool scan_function(struct proof *p, uint64_t *heads, uint64_t base, bool check)
{
	uint64_t end = p->text->function + p->text->size;
	struct dp_insn insn;
	for (uint64_t at = p->text->function; at < end; at += insn.len) {
		size_t n;
		const uint8_t *bytes = dp_text_at(p->text, at, &n);
		if (!bytes || !dp_decode_zydis(bytes, n, at, &insn) || at + insn.len > end)
			return found(p, "what is not an instruction", at);
		if (check && insn.rel_size && (is_inside(p, insn.target) || between(heads, base, end, insn.target)))
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

/* ---- the proof
 * ---------------------------------------------------------------------------------------------------------------------- */

static bool scan_pads(struct proof *p)
{
	for (size_t i = 0; i < p->text->npads; i++)
		if (is_inside(p, p->text->pads[i]))
			return found(p, "a landing pad", p->text->pads[i]);
	return false;
}

static bool scan_segments(struct proof *p)
{
	for (size_t i = 0; i < p->text->nsegments; i++) {
		const struct dp_segment *s = &p->text->segment[i];
		if (scan_words(p, s) || (s->exec && scan_tables(p, s)))
			return true;
	}
	return false;
}

struct dp_error *dp_window_prove(const struct dp_text *text, uint64_t site, const uint8_t *interior, size_t n)
{
	struct proof p = {.text = text, .site = site, .file_site = site - (uint64_t)text->bias};
	p.fixed = text->bias == 0 && site <= UINT32_MAX;
	dp_text_unwind_index(text, &p.index_start, &p.index_end);
	for (size_t i = 0; i < n; i++)
		p.inside |= 1U << interior[i];
	if (!scan_pads(&p) && !scan_short_outside(&p) && !scan_short_inside(&p) && !scan_segments(&p))
		return NULL;
	return dp_error(DP_TAG_TOO_SHORT, "%s at 0x%" PRIx64 " may lead into the instructions that follow", p.what, p.where);
}
