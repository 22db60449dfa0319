/* SPDX-License-Identifier: MIT */
/*
 * Of a function without a table its symbol tells where it begins; it ends with the symbol's size, and before the next function.
 * What lies between functions stays unknown. The symbols of separate debug files are not asked: they are many, and their files'
 * assembler functions have tables.
 */
#include "probes/unwind_bare.h"

#include <stdlib.h>

#define SIZELESS 4096u /* how far a function may reach whose size nothing tells */

struct pairs { /* new ones, offsets from the segment's start; `mark` ends what is known */
	struct pair {
		uint32_t pc;
		uint16_t row;
		bool mark;
	} * pair;
	size_t n, cap;
	struct dp_unwind_rows *rows; /* interns rules */
	uint32_t base;               /* of the function */
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

	add(p, p->base + offset, row->kind ? dp_unwind_rows_intern(p->rows, row) : 0, false);
}

static bool is_function(const struct dp_symbol *s)
{
	return s->code && (s->type == STT_FUNC || s->type == STT_GNU_IFUNC);
}

/* Where what begins with symbol i ends at the latest. */
static uint64_t end_of(struct dp_module *m, const struct dp_symbol_index *index, size_t i, uint64_t end)
{
	const struct dp_symbol *s = index->symbol[i];
	const struct dp_fdes *fdes = dp_module_fdes(m);
	uint64_t most = s->value + (s->size ? s->size : SIZELESS);
	size_t lo = 0, hi = fdes->n;

	while (lo < hi) { /* the first that begins behind it */
		size_t mid = (lo + hi) / 2;

		if (fdes->fde[mid].start <= s->value)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < fdes->n && fdes->fde[lo].start < most)
		most = fdes->fde[lo].start;
	for (size_t k = i + 1; k < index->n && !s->size; k++)
		if (index->symbol[k]->value > s->value && is_function(index->symbol[k])) {
			most = index->symbol[k]->value < most ? index->symbol[k]->value : most;
			break;
		}
	return most < end ? most : end;
}

static void follow_one(struct dp_module *m, uint64_t from, uint64_t to, dp_unwind_follow follow, struct pairs *p)
{
	struct dp_span code;

	if (!dp_elf_at(m->elf, from, &code) || code.size < to - from)
		return;
	follow(code.bytes, to - from, take_row, p);
	add(p, p->base + (uint32_t)(to - from), 0, true);
}

static void follow_all(struct dp_module *m, uint64_t start, uint64_t end, dp_unwind_follow follow, struct pairs *p)
{
	const struct dp_symbol_index *index = dp_module_own_index(m);
	uint64_t done = start;

	for (size_t i = 0; i < index->n && !p->failed; i++) {
		const struct dp_symbol *s = index->symbol[i];

		if (!is_function(s) || s->value < done || s->value >= end || dp_module_fde_at(m, s->value))
			continue;
		done = end_of(m, index, i, end);
		p->base = (uint32_t)(s->value - start);
		if (done > s->value)
			follow_one(m, s->value, done, follow, p);
	}
}

/* What begins at one place: the end of a function without a table gives way to the table's row, and that to a function's begin.
 */
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

	if (!m->elf || end - start > UINT32_MAX || dp_module_fdes(m)->damaged)
		return true;
	follow_all(m, start, end, follow, &pairs);
	good = !pairs.failed && !rows->failed;
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
