/* SPDX-License-Identifier: MIT */
/*
 * Functions by the module's own unwind index (.eh_frame_hdr: a sorted table of starts, each with its FDE, which has the length).
 * Supports only the encodings that every linker writes: a table of 32-bit offsets from the index, self-relative FDEs.
 */
#include "trampoline/code/text.h"

#include <string.h>

#define VERSION  1
#define PCREL4   0x1b
#define UDATA4   0x03
#define DATAREL4 0x3b
#define TABLE    12u /* after the version, three encodings, .eh_frame's address and the count */
#define EXTENDED UINT32_MAX
#define FDE_PC   8u /* after length and CIE */

static bool read_at(const struct dp_text *text, uint64_t addr, void *to, size_t n)
{
	for (size_t i = 0; i < text->nsegments; i++) {
		const struct dp_segment *s = &text->segment[i];
		if (addr < s->addr || addr - s->addr >= s->n || s->n - (addr - s->addr) < n)
			continue;
		memcpy(to, s->bytes + (addr - s->addr), n);
		return true;
	}
	return false;
}

/* Entry `i` of the table: a function's start, and its FDE. */
static bool entry(const struct dp_text *text, uint64_t index, uint64_t i, uint64_t *start, uint64_t *fde)
{
	int32_t pair[2];
	if (!read_at(text, index + TABLE + i * sizeof(pair), pair, sizeof(pair)))
		return false;
	*start = index + (uint64_t)(int64_t)pair[0];
	*fde = index + (uint64_t)(int64_t)pair[1];
	return true;
}

static bool length(const struct dp_text *text, uint64_t start, uint64_t fde, uint64_t *ret)
{
	uint32_t field[4]; /* length, CIE, start, size */
	if (!read_at(text, fde, field, sizeof(field)) || !field[0] || field[0] == EXTENDED)
		return false;
	*ret = field[3];
	return fde + FDE_PC + (uint64_t)(int64_t)(int32_t)field[2] == start;
}

bool dp_text_function(const struct dp_text *text, uint64_t addr, struct dp_range *ret)
{
	uint64_t index, index_end, start = 0, fde = 0, size;
	struct {
		uint8_t version, frame, count, table;
		uint32_t place, n;
	} head;
	*ret = (struct dp_range){0};
	dp_text_unwind_index(text, &index, &index_end);
	if (index == index_end || !read_at(text, index, &head, sizeof(head)))
		return false;
	if (head.version != VERSION || head.frame != PCREL4 || head.count != UDATA4 || head.table != DATAREL4)
		return false;
	uint64_t lo = 0, hi = head.n;
	while (lo < hi) { /* lo: number of starts at or below addr */
		uint64_t middle = (lo + hi) / 2;
		if (!entry(text, index, middle, &start, &fde))
			return false;
		if (start <= addr)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo < head.n && entry(text, index, lo, &start, &fde))
		ret->start = start;
	if (!lo || !entry(text, index, lo - 1, &start, &fde) || !length(text, start, fde, &size) || addr - start >= size)
		return false;
	*ret = (struct dp_range){start, size};
	return true;
}
