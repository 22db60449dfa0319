/* SPDX-License-Identifier: MIT */
#include "probes/unwind/unwind_rows.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_HASH 1024u

void dp_unwind_rows_init(struct dp_unwind_rows *rows)
{
	static const struct dp_unwind_row none;

	memset(rows, 0, sizeof(*rows));
	dp_unwind_rows_intern(rows, &none);
}

void dp_unwind_rows_fini(struct dp_unwind_rows *rows)
{
	free(rows->pc);
	free(rows->row);
	free(rows->rule);
	free(rows->hash);
	memset(rows, 0, sizeof(*rows));
}

static size_t hash_of(const struct dp_unwind_row *rule, size_t size)
{
	uint64_t word[sizeof(*rule) / sizeof(uint64_t)];
	uint64_t h = 0;

	memcpy(word, rule, sizeof(word));
	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		h = (h ^ word[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ (h >> 29);
	return (size_t)(h >> 32) & (size - 1);
}

static void place(struct dp_unwind_rows *rows, size_t index)
{
	size_t i = hash_of(&rows->rule[index], rows->nhash);

	while (rows->hash[i])
		i = (i + 1) & (rows->nhash - 1);
	rows->hash[i] = (uint32_t)index + 1;
}

static bool grow_rules(struct dp_unwind_rows *rows)
{
	size_t cap = rows->cap_rules ? 2 * rows->cap_rules : FIRST_HASH / 2;
	struct dp_unwind_row *rule = realloc(rows->rule, cap * sizeof(*rule));
	uint32_t *hash;

	if (!rule)
		return false;
	rows->rule = rule;
	hash = calloc(2 * cap, sizeof(*hash));
	if (!hash)
		return false;
	free(rows->hash);
	rows->hash = hash;
	rows->nhash = 2 * cap;
	rows->cap_rules = cap;
	for (size_t i = 0; i < rows->nrules; i++)
		place(rows, i);
	return true;
}

uint16_t dp_unwind_rows_intern(struct dp_unwind_rows *rows, const struct dp_unwind_row *rule)
{
	if (rows->nhash)
		for (size_t i = hash_of(rule, rows->nhash); rows->hash[i]; i = (i + 1) & (rows->nhash - 1))
			if (!memcmp(&rows->rule[rows->hash[i] - 1], rule, sizeof(*rule)))
				return (uint16_t)(rows->hash[i] - 1);
	if (rows->nrules >= DP_UNWIND_ROWS_MAX)
		return 0;
	if (rows->nrules == rows->cap_rules && !grow_rules(rows)) {
		rows->failed = true;
		return 0;
	}
	rows->rule[rows->nrules] = *rule;
	place(rows, rows->nrules);
	return (uint16_t)rows->nrules++;
}

bool dp_unwind_rows_reserve(struct dp_unwind_rows *rows, size_t n)
{
	uint32_t *pc = realloc(rows->pc, n * sizeof(*pc));
	uint16_t *row;

	if (pc)
		rows->pc = pc;
	row = realloc(rows->row, n * sizeof(*row));
	if (row)
		rows->row = row;
	if (!pc || !row)
		rows->failed = true;
	else
		rows->cap = n;
	return !rows->failed;
}

void dp_unwind_rows_add(struct dp_unwind_rows *rows, uint32_t pc, uint16_t row)
{
	if (rows->n && pc < rows->pc[rows->n - 1])
		return;
	if (rows->n && pc == rows->pc[rows->n - 1]) {
		rows->n--;
	}
	if (rows->n ? rows->row[rows->n - 1] == row : row == 0)
		return;
	if (rows->n == rows->cap && !dp_unwind_rows_reserve(rows, rows->cap ? 2 * rows->cap : 4096))
		return;
	rows->pc[rows->n] = pc;
	rows->row[rows->n++] = row;
}
