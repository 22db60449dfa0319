/* SPDX-License-Identifier: MIT */
#include "trampoline/arch/x86_64/decode/branch_targets.h"

#include "trampoline/code/text.h"

#include <stdlib.h>
#include <string.h>

#define WORD       4u
#define IMMEDIATES 4u /* largest immediate after a RIP-relative operand: the address is relative to its end */

typedef uint32_t unaligned32 __attribute__((aligned(1), may_alias));
typedef uint64_t unaligned64 __attribute__((aligned(1), may_alias));

struct dp_branch_targets {
	uint64_t lo, span; /* of the executable segments */
	uint64_t *set[DP_BRANCH_TARGET_KINDS];
};

struct bases { /* of jump tables */
	uint64_t *at;
	size_t n, cap;
	bool failed;
};

struct pass {
	struct dp_branch_targets *to;
	const struct dp_text *text;
	const struct dp_segment *segment;
	bool fixed;                      /* 32-bit absolute addresses are possible */
	uint64_t index_start, index_end; /* .eh_frame_hdr */
	struct bases bases;
};

static uint32_t load32(const uint8_t *at)
{
	return *(const unaligned32 *)at;
}

/* ---- the sets ------------------------------------------------------------------------------------------------------------- */

static void note(struct dp_branch_targets *l, enum dp_landing kind, uint64_t addr)
{
	const uint64_t bit = addr - l->lo;
	if (bit < l->span)
		l->set[kind][bit / 64] |= UINT64_C(1) << bit % 64;
}

static bool has(const struct dp_branch_targets *l, enum dp_landing kind, uint64_t addr)
{
	const uint64_t bit = addr - l->lo;
	return bit < l->span && (l->set[kind][bit / 64] >> bit % 64 & 1);
}

enum dp_landing dp_branch_targets_at(const struct dp_branch_targets *l, uint64_t addr)
{
	for (enum dp_landing kind = DP_BRANCH_TARGET_BRANCH; kind <= DP_BRANCH_TARGET_TABLE; kind++)
		if (has(l, kind, addr))
			return kind;
	return DP_BRANCH_TARGET_NONE;
}

bool dp_branch_targets_lea_in(const struct dp_branch_targets *l, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end;) {
		const uint64_t bit = at - l->lo;
		if (bit < l->span && bit % 64 == 0 && end - at >= 64 && !l->set[DP_BRANCH_TARGET_LEA][bit / 64]) {
			at += 64;
			continue;
		}
		if (has(l, DP_BRANCH_TARGET_LEA, at))
			return true;
		at++;
	}
	return false;
}

struct dp_branch_targets *dp_branch_targets_destroy(struct dp_branch_targets *l)
{
	for (int kind = 0; l && kind < DP_BRANCH_TARGET_KINDS; kind++)
		free(l->set[kind]);
	free(l);
	return NULL;
}

/* ---- one operand ---------------------------------------------------------------------------------------------------------- */

/* A RIP-relative operand; a lea's may be a label or a jump table. */
static void note_operand(struct pass *p, uint64_t target, bool lea)
{
	struct bases *b = &p->bases;
	for (unsigned immediate = 0; immediate <= IMMEDIATES; immediate++)
		note(p->to, DP_BRANCH_TARGET_BRANCH, target + immediate);
	if (!lea)
		return;
	note(p->to, DP_BRANCH_TARGET_LEA, target);
	if (b->n == b->cap) {
		const size_t cap = b->cap ? 2 * b->cap : 4096;
		uint64_t *grown = realloc(b->at, cap * sizeof(*grown));
		if (!grown) {
			b->failed = true;
			return;
		}
		b->at = grown;
		b->cap = cap;
	}
	b->at[b->n++] = target;
}

/* Whether this byte may be the last before a rel32 or a RIP-relative displacement. Few are. */
static bool may_precede(uint8_t byte)
{
	return (byte & 0xc7) == 0x05 || (byte & 0xf0) == 0x80 || (byte & 0xfe) == 0xe8 || byte == 0xf8;
}

/* The word at `i` of an executable segment, taken as the operand of a possible instruction. */
static void look_at_operand(struct pass *p, size_t i)
{
	const uint8_t *word = p->segment->bytes + i;
	const uint8_t last = word[-1], before = i >= 2 ? word[-2] : 0;
	const uint64_t target = p->segment->addr + i + WORD + (uint64_t)(int64_t)(int32_t)load32(word);
	if (last == 0xe8 || last == 0xe9 || (before == 0x0f && (last & 0xf0) == 0x80) || (before == 0xc7 && last == 0xf8))
		note(p->to, DP_BRANCH_TARGET_BRANCH, target);
	if ((last & 0xc7) == 0x05)
		note_operand(p, target, before == 0x8d);
}

static void scan_operands(struct pass *p)
{
	const uint8_t *bytes = p->segment->bytes;
	for (size_t i = 1; i + WORD <= p->segment->n; i++)
		if (may_precede(bytes[i - 1]))
			look_at_operand(p, i);
}

/* Eight bytes that are an address, of the file or of the target; in a module linked to a fixed address, four. */
static void scan_pointers(struct pass *p)
{
	const struct dp_segment *s = p->segment;
	const uint64_t lo = p->to->lo, span = p->to->span, bias = (uint64_t)p->text->bias;
	for (size_t i = 0; p->fixed && i + WORD <= s->n; i++)
		if (load32(s->bytes + i) - lo < span)
			note(p->to, DP_BRANCH_TARGET_POINTER, load32(s->bytes + i));
	for (size_t i = 0; i + 2 * WORD <= s->n; i++) {
		const uint64_t value = *(const unaligned64 *)(s->bytes + i);
		if (value - lo < span)
			note(p->to, DP_BRANCH_TARGET_POINTER, value);
		if (value + bias - lo < span)
			note(p->to, DP_BRANCH_TARGET_POINTER, value + bias);
	}
}

/*
 * In data, only .eh_frame has addresses relative to themselves, and its words are aligned. (.eh_frame_hdr's are relative to its
 * start: the entries of near functions would look like addresses a few bytes into others.)
 */
static void scan_self_relative(struct pass *p)
{
	const struct dp_segment *s = p->segment;
	for (size_t i = -s->addr % WORD; i + WORD <= s->n; i += WORD) {
		const uint64_t at = s->addr + i;
		if (at < p->index_start || at >= p->index_end)
			note(p->to, DP_BRANCH_TARGET_POINTER, at + (uint64_t)(int64_t)(int32_t)load32(s->bytes + i));
	}
}

/* ---- jump tables ---------------------------------------------------------------------------------------------------------- */

static const struct dp_segment *segment_at(const struct dp_text *text, uint64_t addr)
{
	for (size_t i = 0; i < text->nsegments; i++)
		if (addr - text->segment[i].addr < text->segment[i].n)
			return &text->segment[i];
	return NULL;
}

/* The four-byte entries from `base` on, until one does not lead into code. */
static void note_table(struct pass *p, uint64_t base)
{
	const struct dp_segment *s = segment_at(p->text, base);
	for (size_t i = s ? (size_t)(base - s->addr) : 0; s && i + WORD <= s->n; i += WORD) {
		const uint64_t target = base + (uint64_t)(int64_t)(int32_t)load32(s->bytes + i);
		size_t n;
		if (target - p->to->lo >= p->to->span || !dp_text_at(p->text, target, &n))
			return;
		note(p->to, DP_BRANCH_TARGET_TABLE, target);
	}
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void note_tables(struct pass *p)
{
	const struct bases *b = &p->bases;
	if (b->n)
		qsort(b->at, b->n, sizeof(*b->at), ascending);
	for (size_t i = 0; i < b->n; i++)
		if (!i || b->at[i] != b->at[i - 1])
			note_table(p, b->at[i]);
}

/* ---- all ------------------------------------------------------------------------------------------------------------------ */

static bool make_sets(struct dp_branch_targets *l, const struct dp_text *text)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	for (size_t i = 0; i < text->nsegments; i++) {
		const struct dp_segment *s = &text->segment[i];
		if (!s->exec || !s->n)
			continue;
		lo = s->addr < lo ? s->addr : lo;
		hi = s->addr + s->n > hi ? s->addr + s->n : hi;
	}
	l->lo = lo;
	l->span = hi > lo ? hi - lo : 0;
	for (int kind = DP_BRANCH_TARGET_BRANCH; kind < DP_BRANCH_TARGET_KINDS; kind++) {
		l->set[kind] = calloc(l->span / 64 + 1, sizeof(*l->set[kind]));
		if (!l->set[kind])
			return false;
	}
	return true;
}

struct dp_branch_targets *dp_branch_targets_create(const struct dp_text *text)
{
	struct dp_branch_targets *l = calloc(1, sizeof(*l));
	struct pass p = {.to = l, .text = text, .fixed = text->bias == 0};
	if (!l || !make_sets(l, text))
		return dp_branch_targets_destroy(l);
	dp_text_unwind_index(text, &p.index_start, &p.index_end);
	for (size_t i = 0; i < text->nsegments; i++) {
		p.segment = &text->segment[i];
		scan_pointers(&p);
		if (p.segment->exec)
			scan_operands(&p);
		else
			scan_self_relative(&p);
	}
	note_tables(&p);
	free(p.bases.at);
	return p.bases.failed ? dp_branch_targets_destroy(l) : l;
}
