/* SPDX-License-Identifier: MIT */
/*
 * A function without a table starts at its symbol and ends with the symbol's size, at the latest before the next function. Bytes
 * between functions stay unknown. Symbols of separate debug files are not used: they are many, and assembler functions of such
 * files have tables.
 */
#include "probes/unwind/unwind_bare.h"

#include "probes/elf/gopclntab.h"

#include <stdlib.h>

#define SIZELESS 4096u /* assumed maximal size of a function whose size is unknown */

struct pairs { /* new pairs, offsets from the segment's start; a `mark` ends a function */
	struct pair {
		uint32_t pc;
		uint16_t row;
		bool mark;
	} * pair;
	size_t n, cap;
	struct dp_unwind_rows *rows; /* to intern rules */
	uint32_t base;               /* start of the function */
	struct dp_gopclntab go;      /* steps 0: the file has no such table */
	bool failed;
};

static void add(struct pairs *p, uint32_t pc, uint16_t row, bool mark)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 256;
		struct pair *grown = realloc(p->pair, cap * sizeof(*grown));

		if (!grown) {
			p->failed = true;
			return;
		}
		p->pair = grown;
		p->cap = cap;
	}
	p->pair[p->n++] = (struct pair){pc, row, mark};
}

static void take_row(uint32_t offset, const struct dp_unwind_row *row, void *data)
{
	struct pairs *p = data;
	struct dp_unwind_row guess = *row;

	guess.flags = DP_UNWIND_GUESSED; /* a static analysis may be wrong, so the agent does not rely on such rows */
	add(p, p->base + offset, row->kind ? dp_unwind_rows_intern(p->rows, &guess) : 0, false);
}

/* Go keeps rbp below the return address in frames that have room for it; nothing that calls Go code needs it. */
static void take_piece(uint64_t offset, uint64_t pushed, bool outermost, void *data)
{
	struct pairs *p = data;
	struct dp_unwind_row row = {.kind = DP_UNWIND_REG, .reg = 4, .off = (int32_t)pushed + 8, .flags = DP_UNWIND_PLAIN};

	row.rule[DP_UNWIND_RA] = DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -1);
	if (outermost) {
		row.rule[DP_UNWIND_RA] = DP_UNWIND_RULE(DP_UNWIND_END, 0);
		row.flags = 0;
	} else if (pushed >= 8) {
		row.rule[DP_UNWIND_RBP] = DP_UNWIND_RULE(DP_UNWIND_AT_CFA, -2);
		row.changed = 1u << DP_UNWIND_RBP;
	}
	add(p, p->base + (uint32_t)offset, pushed <= INT32_MAX - 8 ? dp_unwind_rows_intern(p->rows, &row) : 0, false);
}

static bool take_go(uint64_t start, uint64_t size, struct pairs *p)
{
	const struct dp_go_pieces to = {size, take_piece, p};

	return p->go.steps && dp_gopclntab_frames(&p->go, start, &to);
}

/* The pair of `rows` that applies at `offset`, or -1 before the first one. */
static ptrdiff_t pair_at(const struct dp_unwind_rows *rows, uint64_t offset)
{
	size_t lo = 0, hi = rows->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (rows->pc[mid] <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (ptrdiff_t)lo - 1;
}

static bool described(const struct dp_unwind_rows *rows, ptrdiff_t pair)
{
	return pair >= 0 && rows->row[pair] != 0;
}

struct bare {
	uint64_t start, size;
};

struct bares {
	struct bare *bare;
	size_t n, cap;
};

static int by_start(const void *a, const void *b)
{
	const struct bare *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->size < y->size) - (x->size > y->size);
}

/* Finds functions of [start, end) without a table, ascending. Of symbols with one address the longest comes first. */
static bool find(struct dp_module *m, uint64_t start, uint64_t end, const struct dp_unwind_rows *rows, struct bares *ret)
{
	const struct dp_symbols *symbols = dp_module_own_symbols(m);

	*ret = (struct bares){0};
	for (size_t i = 0; i < symbols->n; i++) {
		const struct dp_symbol *s = &symbols->symbol[i];

		if (!s->code || (s->type != STT_FUNC && s->type != STT_GNU_IFUNC) || s->value < start || s->value >= end)
			continue;
		if (described(rows, pair_at(rows, s->value - start)))
			continue;
		if (ret->n == ret->cap) {
			struct bare *grown = realloc(ret->bare, (ret->cap = ret->cap ? 2 * ret->cap : 64) * sizeof(*grown));

			if (!grown)
				return false;
			ret->bare = grown;
		}
		ret->bare[ret->n++] = (struct bare){s->value, s->size};
	}
	if (ret->n)
		qsort(ret->bare, ret->n, sizeof(*ret->bare), by_start);
	return true;
}

/* The end of a function: by its size, or the next function if it has none; at the latest where a table begins. */
static uint64_t end_of(const struct bare *f, const struct bare *next, const struct dp_unwind_rows *rows, uint64_t start,
                       uint64_t end)
{
	const uint64_t size = f->size ? f->size : SIZELESS, room = end - f->start;
	uint64_t most = f->start + (size < room ? size : room);

	if (next && !f->size && next->start < most)
		most = next->start;
	for (size_t i = (size_t)(pair_at(rows, f->start - start) + 1); i < rows->n && start + rows->pc[i] < most; i++)
		if (rows->row[i])
			most = start + rows->pc[i];
	return most;
}

static void follow_one(struct dp_module *m, uint64_t from, uint64_t to, dp_unwind_follow follow, struct pairs *p)
{
	struct dp_span code;

	if (!dp_elf_at(m->elf, from, &code) || code.size < to - from)
		return;
	if (!take_go(from, to - from, p))
		follow(code.bytes, to - from, take_row, p);
	add(p, p->base + (uint32_t)(to - from), 0, true);
}

static bool follow_all(struct dp_module *m, uint64_t start, uint64_t end, dp_unwind_follow follow, struct pairs *p)
{
	uint64_t done = start;
	struct bares bares;
	bool found = find(m, start, end, p->rows, &bares);
	const struct bare *bare = bares.bare;
	const size_t n = bares.n;

	for (size_t i = 0; found && i < n && !p->failed; i++) {
		size_t next = i + 1;

		if (bare[i].start < done)
			continue;
		while (next < n && bare[next].start == bare[i].start)
			next++;
		done = end_of(&bare[i], next < n ? &bare[next] : NULL, p->rows, start, end);
		p->base = (uint32_t)(bare[i].start - start);
		if (done > bare[i].start)
			follow_one(m, bare[i].start, done, follow, p);
	}
	free(bares.bare);
	return found;
}

/* Merges both lists. If pairs have the same offset, the last one wins: the end of a function, then the table's row, then a start
 * of a function. */
static void merge(const struct dp_unwind_rows *old, const struct pairs *p, struct dp_unwind_rows *ret)
{
	size_t i = 0, k = 0;

	while ((i < old->n || k < p->n) && !ret->failed) {
		bool theirs = i < old->n &&
		              (k == p->n || old->pc[i] < p->pair[k].pc || (old->pc[i] == p->pair[k].pc && !p->pair[k].mark));

		if (theirs)
			dp_unwind_rows_add(ret, old->pc[i], dp_unwind_rows_intern(ret, &old->rule[old->row[i]]));
		else
			dp_unwind_rows_add(ret, p->pair[k].pc, dp_unwind_rows_intern(ret, &old->rule[p->pair[k].row]));
		i += theirs;
		k += !theirs;
	}
}

bool dp_unwind_bare(struct dp_module *m, uint64_t start, uint64_t end, dp_unwind_follow follow, struct dp_unwind_rows *rows)
{
	struct pairs pairs = {.rows = rows};
	struct dp_unwind_rows all;
	bool good;

	if (!m->elf || end - start > UINT32_MAX)
		return true;
	if (!dp_gopclntab_open(m->elf, &pairs.go))
		pairs.go.steps = 0;
	good = follow_all(m, start, end, follow, &pairs) && !pairs.failed && !rows->failed;
	if (good && pairs.n) {
		dp_unwind_rows_init(&all);
		merge(rows, &pairs, &all);
		good = !all.failed;
		dp_unwind_rows_fini(rows);
		*rows = all;
	}
	free(pairs.pair);
	return good;
}
