/* SPDX-License-Identifier: MIT */
#include "session/totals/ended_rows.h"

#include "base/arena.h"
#include "base/text_hash.h"

#include <stdlib.h>

struct entry {
	struct dp_ended_row row;
	UT_hash_handle hh;
	uint64_t cell[];
};

struct dp_ended_rows {
	struct dp_arena arena; /* owns the entries */
	struct entry *entry;
	size_t size, most; /* of an entry; entries */
};

struct dp_ended_rows *dp_ended_rows_create(unsigned cells, size_t most)
{
	struct dp_ended_rows *rows = calloc(1, sizeof(*rows));
	if (!rows)
		return NULL;
	rows->size = sizeof(struct entry) + cells * sizeof(uint64_t);
	rows->most = most / rows->size;
	return rows;
}

struct dp_ended_rows *dp_ended_rows_destroy(struct dp_ended_rows *rows)
{
	if (!rows)
		return NULL;
	HASH_CLEAR(hh, rows->entry);
	dp_arena_fini(&rows->arena);
	free(rows);
	return NULL;
}

struct dp_ended_row *dp_ended_rows_get(struct dp_ended_rows *rows, const struct dp_row_key *key)
{
	struct entry *e;
	const size_t n = HASH_COUNT(rows->entry);
	HASH_FIND(hh, rows->entry, key, sizeof(*key), e);
	if (e || n >= rows->most)
		return e ? &e->row : NULL;
	e = dp_arena_alloc(&rows->arena, rows->size);
	if (!e)
		return NULL;
	e->row = (struct dp_ended_row){.key = *key, .cells = e->cell};
	HASH_ADD_KEYPTR(hh, rows->entry, &e->row.key, sizeof(*key), e);
	return HASH_COUNT(rows->entry) > n ? &e->row : NULL;
}

bool dp_ended_rows_each(const struct dp_ended_rows *rows, bool (*each)(const struct dp_ended_row *row, void *data), void *data)
{
	for (const struct entry *e = rows->entry; e; e = e->hh.next)
		if (!each(&e->row, data))
			return false;
	return true;
}
