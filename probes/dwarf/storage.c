/* SPDX-License-Identifier: MIT */
#include "probes/dwarf/storage.h"

#include <dwarf.h>
#include <string.h>

enum { PIECES_MAX = 64, WORD = 8 };

void dp_storage_add(struct dp_arena *a, struct dp_storage *s, struct dp_piece piece)
{
	if (s->n >= PIECES_MAX)
		return;
	if (!s->piece)
		s->piece = dp_arena_alloc(a, PIECES_MAX * sizeof(*s->piece));
	if (s->piece)
		s->piece[s->n++] = piece;
}

static struct dp_storage one(struct dp_arena *a, struct dp_piece piece)
{
	struct dp_storage s = {.piece = dp_arena_alloc(a, sizeof(*s.piece))};
	if (s.piece) {
		*s.piece = piece;
		s.n = 1;
	}
	return s;
}

struct dp_storage dp_storage_memory(struct dp_arena *a, struct dp_expr *addr)
{
	return one(a, (struct dp_piece){.kind = DP_PIECE_MEMORY, .size = UINT64_MAX, .expr = addr});
}

struct dp_storage dp_storage_value(struct dp_arena *a, struct dp_expr *value, uint64_t size)
{
	return one(a, (struct dp_piece){.kind = DP_PIECE_VALUE, .size = size, .expr = value});
}

struct dp_storage dp_storage_none(struct dp_arena *a, const char *absent)
{
	return one(a, (struct dp_piece){.kind = DP_PIECE_NONE, .size = UINT64_MAX, .absent = absent});
}

/* Finds the piece with byte `at` and the offset in that piece. */
static const struct dp_piece *find(const struct dp_storage *s, uint64_t at, uint64_t *inside)
{
	for (size_t i = 0; i < s->n; i++) {
		if (at < s->piece[i].size) {
			*inside = at;
			return &s->piece[i];
		}
		at -= s->piece[i].size;
	}
	return NULL;
}

/* Reads `size` bytes of one piece, zero-extended. */
static struct dp_expr *part(struct dp_arena *a, const struct dp_piece *p, uint64_t inside, uint64_t size, const char **absent)
{
	if (p->kind == DP_PIECE_NONE || (p->kind == DP_PIECE_VALUE && inside + size > WORD)) {
		*absent = p->kind == DP_PIECE_NONE ? p->absent : DP_ABSENT_UNKNOWN;
		return NULL;
	}
	if (p->kind == DP_PIECE_MEMORY)
		return dp_build_load(a, dp_build_add(a, p->expr, inside), (uint8_t)size, false);
	struct dp_expr *shifted = dp_build_binary(a, DP_OP_LSHR, p->expr, dp_build_const(a, inside * 8));
	return dp_build_cast(a, shifted, (uint8_t)size, false);
}

/* Reads from several pieces, in the largest steps that loads support. */
static struct dp_expr *join(struct dp_arena *a, const struct dp_storage *s, uint64_t size, const char **absent)
{
	struct dp_expr *whole = NULL;
	for (uint64_t done = 0, step; done < size; done += step) {
		uint64_t inside;
		const struct dp_piece *p = find(s, s->offset + done, &inside);
		if (!p) {
			*absent = DP_ABSENT_OPTIMIZED;
			return NULL;
		}
		for (step = WORD; step > size - done || step > p->size - inside;)
			step /= 2;
		struct dp_expr *e = part(a, p, inside, step, absent);
		e = e ? dp_build_binary(a, DP_OP_SHL, e, dp_build_const(a, done * 8)) : NULL;
		whole = whole ? dp_build_binary(a, DP_OP_OR, whole, e) : e;
		if (!e)
			return NULL;
	}
	return whole;
}

struct dp_expr *dp_storage_read(struct dp_arena *a, const struct dp_storage *s, uint64_t size, bool is_signed,
                                const char **absent)
{
	uint64_t inside;
	const struct dp_piece *p = find(s, s->offset, &inside);
	if (size != 1 && size != 2 && size != 4 && size != 8) {
		*absent = DP_ABSENT_UNKNOWN;
		return NULL;
	}
	if (p && p->kind == DP_PIECE_MEMORY && p->size - inside >= size)
		return dp_build_load(a, dp_build_add(a, p->expr, inside), (uint8_t)size, is_signed);
	return dp_build_cast(a, join(a, s, size, absent), (uint8_t)size, is_signed);
}

struct dp_expr *dp_storage_bits(struct dp_arena *a, const struct dp_storage *s, uint64_t bit, uint64_t bits, bool is_signed,
                                const char **absent)
{
	struct dp_storage from = *s;
	from.offset += bit / 8;
	bit %= 8;
	const uint64_t bytes = (bit + bits + 7) / 8;
	struct dp_expr *e = NULL;
	if (bytes <= WORD && bits)
		e = join(a, &from, bytes, absent);
	else
		*absent = DP_ABSENT_UNKNOWN;
	if (!e)
		return NULL;
	e = dp_build_binary(a, DP_OP_SHL, e, dp_build_const(a, 64 - bit - bits));
	return dp_build_binary(a, is_signed ? DP_OP_SHR : DP_OP_LSHR, e, dp_build_const(a, 64 - bits));
}

struct dp_expr *dp_storage_address(struct dp_arena *a, const struct dp_storage *s, const char **absent)
{
	uint64_t inside;
	const struct dp_piece *p = find(s, s->offset, &inside);
	if (p && p->kind == DP_PIECE_MEMORY)
		return dp_build_add(a, p->expr, inside);
	*absent = p && p->kind == DP_PIECE_NONE ? p->absent : p ? "it is in a register, not in memory" : DP_ABSENT_OPTIMIZED;
	return NULL;
}

struct dp_expr *dp_storage_whole(struct dp_arena *a, const struct dp_storage *s, uint64_t size, const char **absent)
{
	uint64_t inside;
	const struct dp_piece *p = find(s, s->offset, &inside);
	if (p && p->kind == DP_PIECE_MEMORY && p->size - inside < size) {
		*absent = "in pieces";
		return NULL;
	}
	return dp_storage_address(a, s, absent);
}

struct dp_storage dp_storage_constant(struct dp_arena *a, Dwarf_Attribute *attr)
{
	Dwarf_Word value;
	Dwarf_Sword sword;
	Dwarf_Block block;
	if (dwarf_whatform(attr) == DW_FORM_sdata && !dwarf_formsdata(attr, &sword))
		return dp_storage_value(a, dp_build_const(a, (uint64_t)sword), sizeof(uint64_t));
	if (!dwarf_formudata(attr, &value))
		return dp_storage_value(a, dp_build_const(a, value), sizeof(uint64_t));
	if (dwarf_formblock(attr, &block) || block.length > 256)
		return dp_storage_none(a, DP_ABSENT_UNKNOWN);
	struct dp_storage storage = {0};
	for (size_t at = 0; at < block.length; at += 8) {
		uint64_t v = 0;
		const size_t n = block.length - at < 8 ? block.length - at : 8;
		memcpy(&v, block.data + at, n);
		dp_storage_add(a, &storage,
		               (struct dp_piece){.kind = DP_PIECE_VALUE, .size = n, .expr = dp_build_const(a, v)});
	}
	return storage;
}
