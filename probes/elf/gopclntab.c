/* SPDX-License-Identifier: MIT */
/*
 * Reads a Go program's table of functions (go/src/runtime/symtab.go, cmd/link/internal/ld/pcln.go). Its header is
 *
 *     magic, 0, 0, smallest instruction, pointer size; then words of that size:
 *     Go 1.2    number of functions, the functions themselves
 *     Go 1.16   number, files, and offsets from the table's start: names, units, file table, pc tables, functions
 *     Go 1.18   the same with the text's start before the names; Go 1.20 differs only in the magic
 *
 * Functions are ascending pairs (start, offset of its record), followed by the end of the last one. The offset counts from the
 * first pair (Go 1.2: from the table's start). A record begins with the start again, then the name's offset. Up to Go 1.16 starts
 * are addresses and pairs are two words; later pairs are two 32-bit numbers and starts count from the text's start.
 *
 * A table is not read in a PIE from Go before 1.18, where relocations write the starts.
 *
 * The table is untrusted: all offsets are checked against the section, and functions must ascend and lie in code.
 */
#include "probes/elf/gopclntab.h"

#include "probes/elf/relocations.h"

#include <string.h>

#define MAGIC_2  0xfffffffbu
#define MAGIC_16 0xfffffffau
#define MAGIC_18 0xfffffff0u
#define MAGIC_20 0xfffffff1u
#define WORDS    8u /* offset of the header's words */
#define WORD     8u
#define INT3     0xcc

/* In a record of Go 1.18 and later, from its start. */
#define STEPS    16u
#define FLAGS_18 37u
#define FLAGS_20 41u
#define TOPFRAME 1u
#define SPWRITE  2u

bool dp_gopclntab_find(const struct dp_elf *elf, struct dp_span *ret)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	GElf_Shdr shdr;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (dp_elf_section(elf, names[i], 0, &shdr, ret))
			return true;
	return false;
}

static bool number(const struct dp_gopclntab *t, uint64_t at, unsigned width, uint64_t *ret)
{
	*ret = 0;
	if (at > t->s.size || t->s.size - at < width)
		return false;
	memcpy(ret, t->s.bytes + at, width);
	return true;
}

static bool word(const struct dp_gopclntab *t, unsigned i, uint64_t *ret)
{
	return number(t, WORDS + (uint64_t)i * WORD, WORD, ret) && *ret <= t->s.size;
}

/* The text's start is an address; in a PIE a relocation writes it. */
static bool text_start(const struct dp_elf *elf, struct dp_gopclntab *t)
{
	return dp_elf_pointer(elf, t->s.vaddr + WORDS + 2 * WORD, &t->text) && dp_elf_executable(elf, t->text);
}

static bool read_header(const struct dp_elf *elf, struct dp_gopclntab *t)
{
	uint64_t magic, shape;
	if (!number(t, 0, 4, &magic) || !number(t, 4, 4, &shape) || shape >> 24 != WORD || !word(t, 0, &t->n))
		return false;
	t->width = WORD;
	switch (magic) {
	case MAGIC_2:
		t->pairs = WORDS + WORD;
		return true;
	case MAGIC_16:
		t->records = 0;
		return word(t, 2, &t->names) && word(t, 6, &t->pairs) && word(t, 6, &t->records);
	case MAGIC_18:
	case MAGIC_20:
		t->width = 4;
		t->flags = (magic == MAGIC_20 ? FLAGS_20 : FLAGS_18);
		return word(t, 6, &t->steps) && text_start(elf, t) && word(t, 3, &t->names) && word(t, 7, &t->pairs) &&
		       word(t, 7, &t->records);
	default:
		return false;
	}
}

/* Start of function `i`. For i = n: end of the last function. */
static bool start_of(const struct dp_gopclntab *t, uint64_t i, uint64_t *ret)
{
	const uint64_t at = t->pairs + i * 2 * t->width;
	if (!number(t, at, t->width, ret))
		return false;
	if (t->width != WORD)
		*ret += t->text;
	return true;
}

static const char *name_of(const struct dp_gopclntab *t, uint64_t i, size_t *len)
{
	uint64_t record, name;
	if (!number(t, t->pairs + (2 * i + 1) * t->width, t->width, &record) || record > t->s.size ||
	    !number(t, t->records + record + t->width, 4, &name))
		return NULL;
	const uint64_t at = t->names + name;
	if (at >= t->s.size)
		return NULL;
	*len = strnlen((const char *)t->s.bytes + at, t->s.size - at);
	return *len && *len < t->s.size - at && *len <= UINT32_MAX ? (const char *)t->s.bytes + at : NULL;
}

/* Functions are padded with int3; the table counts the padding as part of them. */
static uint64_t without_padding(const struct dp_elf *elf, uint64_t start, uint64_t end)
{
	struct dp_span code;
	if (!dp_elf_at(elf, start, &code) || code.size < end - start)
		return 0;
	uint64_t size = end - start;
	while (size > 1 && code.bytes[size - 1] == INT3)
		size--;
	return size;
}

bool dp_gopclntab_open(const struct dp_elf *elf, struct dp_gopclntab *ret)
{
	*ret = (struct dp_gopclntab){0};
	return dp_gopclntab_find(elf, &ret->s) && read_header(elf, ret);
}

void dp_gopclntab_load(struct dp_symbols *symbols, const struct dp_elf *elf)
{
	struct dp_gopclntab t;
	uint64_t start, end;
	if (!dp_gopclntab_open(elf, &t) || !start_of(&t, 0, &start))
		return;
	for (uint64_t i = 0; i < t.n && start_of(&t, i + 1, &end) && end >= start; i++, start = end) {
		struct dp_symbol s = {.value = start, .version = "", .type = STT_FUNC, .bind = STB_LOCAL, .code = true};
		size_t len = 0;
		s.name = name_of(&t, i, &len);
		s.len = (uint32_t)len;
		s.size = end > start && dp_elf_executable(elf, start) ? without_padding(elf, start, end) : 0;
		if (s.name && s.size && !dp_symbols_add(symbols, &s))
			return;
	}
}

/* ---- frames ---------------------------------------------------------------------------------------------------------------- */

/* The record of the function that starts at `start`; 0 if there is none. */
static uint64_t record_of(const struct dp_gopclntab *t, uint64_t start)
{
	uint64_t lo = 0, hi = t->n, at, record;
	while (lo < hi) {
		const uint64_t mid = lo + (hi - lo) / 2;
		if (!start_of(t, mid, &at))
			return 0;
		if (at == start)
			return number(t, t->pairs + (2 * mid + 1) * t->width, t->width, &record) ? t->records + record : 0;
		if (at < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return 0;
}

/* A number of Go's encoding/binary: seven bits a byte, the lowest first. */
static bool varint(const struct dp_gopclntab *t, uint64_t *at, uint32_t *ret)
{
	uint64_t byte;
	*ret = 0;
	for (unsigned shift = 0; shift < 32; shift += 7) {
		if (!number(t, (*at)++, 1, &byte))
			return false;
		*ret |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/*
 * Pairs (change of the value, length of the code with that value), from the value -1 on, up to a change by 0 that is not the
 * first. Changes are zigzag numbers.
 */
static void walk_steps(const struct dp_gopclntab *t, uint64_t at, bool outermost, const struct dp_go_pieces *to)
{
	uint32_t change, length;
	int32_t value = -1;
	for (uint64_t offset = 0; offset < to->size; offset += length) {
		if (!varint(t, &at, &change) || (!change && offset) || !varint(t, &at, &length) || !length)
			return;
		value += (int32_t)(change >> 1 ^ -(change & 1));
		if (value < 0)
			return;
		to->piece(offset, (uint64_t)value, outermost, to->data);
	}
}

bool dp_gopclntab_frames(const struct dp_gopclntab *t, uint64_t start, const struct dp_go_pieces *to)
{
	const uint64_t record = t->steps ? record_of(t, start) : 0;
	uint64_t flags, steps;
	if (!record || !number(t, record + t->flags, 1, &flags) || !number(t, record + STEPS, 4, &steps) || flags & SPWRITE)
		return false;
	walk_steps(t, t->steps + steps, flags & TOPFRAME, to);
	return true;
}
