/* SPDX-License-Identifier: MIT */
/* Finds units with lines of a file: a line table's header has the file's name, or the offset of a string that ends with it. */
#include "probes/debug/debug_internal.h"
#include "probes/debug/debug_names.h"

#include <dwarf.h>
#include <string.h>

enum { STRINGS_MAX = 64, LENGTH = 4, VERSION = 2, SIZES = 2 };

struct strings { /* ranges of offsets at which a string starts that ends with the name */
	struct {
		uint32_t first, last;
	} range[STRINGS_MAX];
	size_t n;
	bool many;
};

static void find_strings(struct strings *f, struct dp_span s, const char *name)
{
	const size_t length = strlen(name) + 1;
	const uint8_t *p = s.bytes, *end = s.bytes + s.size;
	for (; p && (p = memmem(p, (size_t)(end - p), name, length)); p += length) {
		const uint8_t *before = p == s.bytes ? NULL : memrchr(s.bytes, 0, (size_t)(p - s.bytes));
		f->many |= f->n == STRINGS_MAX || (uint64_t)(p - s.bytes) > UINT32_MAX;
		if (f->many)
			return;
		f->range[f->n].first = before ? (uint32_t)(before + 1 - s.bytes) : 0;
		f->range[f->n++].last = (uint32_t)(p - s.bytes);
	}
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static bool is_string(const struct strings *f, uint32_t offset)
{
	for (size_t i = 0; i < f->n; i++)
		if (offset >= f->range[i].first && offset <= f->range[i].last)
			return true;
	return false;
}

/* Finds the header of the table at `offset`; false if its form is unknown. */
static bool header_at(struct dp_span lines, uint64_t offset, struct dp_span *ret)
{
	const uint8_t *p = lines.bytes + offset;
	uint16_t version;
	if (!lines.bytes || offset > lines.size || lines.size - offset < LENGTH + VERSION + SIZES + LENGTH ||
	    word_at(p) == UINT32_MAX)
		return false;
	memcpy(&version, p + LENGTH, sizeof(version));
	p += LENGTH + VERSION + (version >= 5 ? SIZES : 0);
	const uint32_t length = word_at(p);
	p += LENGTH;
	*ret = (struct dp_span){.bytes = p, .size = length};
	return length <= lines.size - (uint64_t)(p - lines.bytes);
}

static bool names(const struct strings *f, struct dp_span header, const char *name)
{
	if (memmem(header.bytes, header.size, name, strlen(name) + 1))
		return true;
	for (size_t i = 0; f->n && i + LENGTH <= header.size; i++)
		if (is_string(f, word_at(header.bytes + i)))
			return true;
	return false;
}

void dp_debug_units_mark_file(struct dp_debug_units *units, const char *name)
{
	Dwarf *dwarf = units->debug->dwarf;
	struct strings f = {.many = dp_debug_is_packed(dwarf)};
	const struct dp_span lines = dp_debug_section(dwarf, ".debug_line");
	units->next = 0;
	find_strings(&f, dp_debug_section(dwarf, ".debug_line_str"), name);
	find_strings(&f, dp_debug_section(dwarf, ".debug_str"), name);
	for (size_t i = 0; i < units->n; i++) {
		struct dp_debug_unit *one = &units->unit[i];
		Dwarf_Attribute attr;
		Dwarf_Word offset;
		struct dp_span header;
		if (one->start && !f.many && !dwarf_hasattr(&one->die, DW_AT_stmt_list))
			continue;
		one->marked = !one->start || f.many || !dwarf_attr(&one->die, DW_AT_stmt_list, &attr) ||
		              dwarf_formudata(&attr, &offset) || !header_at(lines, offset, &header) || names(&f, header, name);
	}
}
