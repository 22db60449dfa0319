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

struct table {
	struct dp_span s;
	uint64_t n;            /* number of functions */
	uint64_t names, pairs; /* offsets */
	uint64_t records;      /* base of the records' offsets */
	uint64_t text;         /* base of the starts */
	unsigned width;        /* size of a start, bytes */
};

bool dp_gopclntab_find(const struct dp_elf *elf, struct dp_span *ret)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	GElf_Shdr shdr;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (dp_elf_section(elf, names[i], 0, &shdr, ret))
			return true;
	return false;
}

static bool number(const struct table *t, uint64_t at, unsigned width, uint64_t *ret)
{
	*ret = 0;
	if (at > t->s.size || t->s.size - at < width)
		return false;
	memcpy(ret, t->s.bytes + at, width);
	return true;
}

static bool word(const struct table *t, unsigned i, uint64_t *ret)
{
	return number(t, WORDS + (uint64_t)i * WORD, WORD, ret) && *ret <= t->s.size;
}

/* The text's start is an address; in a PIE a relocation writes it. */
static bool text_start(const struct dp_elf *elf, struct table *t)
{
	return dp_elf_pointer(elf, t->s.vaddr + WORDS + 2 * WORD, &t->text) && dp_elf_executable(elf, t->text);
}

static bool read_header(const struct dp_elf *elf, struct table *t)
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
		return text_start(elf, t) && word(t, 3, &t->names) && word(t, 7, &t->pairs) && word(t, 7, &t->records);
	default:
		return false;
	}
}

/* Start of function `i`. For i = n: end of the last function. */
static bool start_of(const struct table *t, uint64_t i, uint64_t *ret)
{
	const uint64_t at = t->pairs + i * 2 * t->width;
	if (!number(t, at, t->width, ret))
		return false;
	if (t->width != WORD)
		*ret += t->text;
	return true;
}

static const char *name_of(const struct table *t, uint64_t i, size_t *len)
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

void dp_gopclntab_load(struct dp_symbols *symbols, const struct dp_elf *elf)
{
	struct table t = {0};
	uint64_t start, end;
	if (!dp_gopclntab_find(elf, &t.s) || !read_header(elf, &t) || !start_of(&t, 0, &start))
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
