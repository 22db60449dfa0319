/* SPDX-License-Identifier: MIT */
#include "probes/debug/debug_names.h"

#include "base/buf.h"
#include "probes/debug/debug_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { OFFSETS_MAX = 64, FEW = 6, FILTER_BITS = 1 << 16 };

static bool add(struct dp_debug_units *u, const struct dp_debug_unit *one)
{
	if (u->n == u->capacity) {
		const size_t capacity = u->capacity ? 2 * u->capacity : 256;
		struct dp_debug_unit *grown = realloc(u->unit, capacity * sizeof(*grown));
		if (!grown)
			return false;
		u->unit = grown;
		u->capacity = capacity;
	}
	u->unit[u->n++] = *one;
	return true;
}

struct dp_span dp_debug_section(Dwarf *dwarf, const char *wanted)
{
	size_t strings;
	Elf_Scn *scn = NULL;
	Elf *elf = dwarf_getelf(dwarf);
	if (!elf || elf_getshdrstrndx(elf, &strings))
		return (struct dp_span){0};
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, strings, shdr.sh_name) : NULL;
		if (!name || strcmp(name, wanted) || shdr.sh_type == SHT_NOBITS || (shdr.sh_flags & SHF_COMPRESSED))
			continue;
		const Elf_Data *data = elf_getdata(scn, NULL);
		return data ? (struct dp_span){.bytes = data->d_buf, .size = data->d_size} : (struct dp_span){0};
	}
	return (struct dp_span){0};
}

/* Compressed string sections cannot be searched. */
bool dp_debug_is_packed(Dwarf *dwarf)
{
	size_t strings;
	Elf_Scn *scn = NULL;
	Elf *elf = dwarf_getelf(dwarf);
	if (!elf || elf_getshdrstrndx(elf, &strings))
		return true;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, strings, shdr.sh_name) : NULL;
		if (!name || !strncmp(name, ".zdebug", 7) || (!strncmp(name, ".debug", 6) && (shdr.sh_flags & SHF_COMPRESSED)))
			return true;
	}
	return false;
}

/* A unit's bytes end at the next unit's first entry, or at the end of the section. */
static void bound(struct dp_debug_units *u, size_t from, struct dp_span info)
{
	for (size_t i = from; i < u->n; i++) {
		struct dp_debug_unit *one = &u->unit[i];
		const uint8_t *first = one->die.addr, *end = info.bytes + info.size;
		if (!info.bytes || first < info.bytes || first >= end)
			continue;
		one->start = first;
		one->end = end;
		if (i > from && u->unit[i - 1].start && u->unit[i - 1].start < first)
			u->unit[i - 1].end = first;
	}
}

/* refers_far(): true if an abbreviation has a reference form that leaves its unit, or cannot be parsed. */
static bool uleb(struct dp_span *s, uint64_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; s->size && shift < 64; shift += 7) {
		const uint8_t b = *s->bytes++;
		s->size--;
		*ret |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return false;
}

static bool skip_leb(struct dp_span *s)
{
	uint64_t unused;
	return uleb(s, &unused);
}

static bool has_far_form(struct dp_span *s)
{
	uint64_t attribute, form;
	for (;;) {
		if (!uleb(s, &attribute) || !uleb(s, &form))
			return true;
		if (form == DW_FORM_ref_addr || form == DW_FORM_GNU_ref_alt || form == DW_FORM_ref_sup4 ||
		    form == DW_FORM_ref_sup8)
			return true;
		if (form == DW_FORM_implicit_const && !skip_leb(s))
			return true;
		if (!attribute && !form)
			return false;
	}
}

static bool refers_far(struct dp_span s)
{
	uint64_t code, tag;
	if (!s.bytes)
		return true;
	while (s.size) {
		if (!uleb(&s, &code))
			return true;
		if (!code)
			continue;
		if (!uleb(&s, &tag) || !s.size)
			return true;
		s.bytes++;
		s.size--;
		if (has_far_form(&s))
			return true;
	}
	return false;
}

static bool load_alt(struct dp_debug_units *u, Dwarf *alt)
{
	Dwarf_CU *cu = NULL;
	struct dp_debug_unit one = {.alt = true};
	while (alt && dwarf_get_units(alt, cu, &cu, NULL, NULL, &one.die, NULL) == 0)
		if (!add(u, &one))
			return false;
	return true;
}

bool dp_debug_units_load(struct dp_debug *debug, struct dp_debug_units *ret)
{
	Dwarf_CU *cursor = NULL;
	struct dp_debug_unit one = {0};
	Dwarf *alt = dwarf_getalt(debug->dwarf);
	*ret = (struct dp_debug_units){.debug = debug};
	bool done = true;
	while (done && dp_debug_next_unit(debug, &cursor, &one.die))
		done = add(ret, &one);
	const size_t own = ret->n;
	bound(ret, 0, dp_debug_section(debug->dwarf, ".debug_info"));
	done = done && load_alt(ret, alt);
	if (alt)
		bound(ret, own, dp_debug_section(alt, ".debug_info"));
	ret->refers = alt || refers_far(dp_debug_section(debug->dwarf, ".debug_abbrev"));
	if (!done)
		dp_debug_units_fini(ret);
	return done;
}

/* Type units are not in the same order as the others. */
bool dp_debug_units_add_types(struct dp_debug_units *units)
{
	Dwarf *dwarf = units->debug->dwarf;
	Dwarf_CU *cu = NULL;
	struct dp_debug_unit one = {0};
	const size_t before = units->n;
	uint8_t type;
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &one.die, NULL) == 0)
		if (type == DW_UT_type && !add(units, &one))
			return false;
	bound(units, before, dp_debug_section(dwarf, ".debug_info"));
	return true;
}

void dp_debug_units_fini(struct dp_debug_units *units)
{
	free(units->unit);
	*units = (struct dp_debug_units){0};
}

struct dp_debug_unit *dp_debug_units_next(struct dp_debug_units *units, bool alt)
{
	while (units->next < units->n) {
		struct dp_debug_unit *one = &units->unit[units->next++];
		if (one->marked && !one->walked && (alt || !one->alt)) {
			one->walked = true;
			return one;
		}
	}
	return NULL;
}

typedef uint8_t lanes __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static lanes lanes_at(const uint8_t *p)
{
	lanes v;
	memcpy(&v, p, sizeof(v));
	return v;
}

static bool is_any(const uint8_t *p, const uint32_t *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word_at(p) == word[i])
			return true;
	return false;
}

static bool is_within(const uint8_t *p, size_t n, const uint32_t *word)
{
	for (size_t i = 0; i < n; i++)
		if (is_any(p + i, word, 2))
			return true;
	return false;
}

/* Finds one of two words at any byte offset: compares their first two bytes at sixteen positions at a time. */
static bool holds_pair(const uint8_t *p, const uint8_t *end, const uint32_t word[2])
{
	const lanes none = {0}, x = none + (uint8_t)word[0], y = none + (uint8_t)word[1], x2 = none + (uint8_t)(word[0] >> 8),
	            y2 = none + (uint8_t)(word[1] >> 8);
	for (; end - p >= 19; p += 16) {
		const lanes a = lanes_at(p), b = lanes_at(p + 1);
		const halves found = (halves)(((a == x) & (b == x2)) | ((a == y) & (b == y2)));
		if ((found[0] | found[1]) && is_within(p, 16, word))
			return true;
	}
	return end - p >= 4 && is_within(p, (size_t)(end - p) - 3, word);
}

static bool holds_few(const uint8_t *p, const uint8_t *end, const uint32_t *word, size_t n)
{
	bool found = false;
	for (size_t i = 0; !found && i < n; i += 2)
		found = holds_pair(p, end, (const uint32_t[]){word[i], word[i + 1 < n ? i + 1 : i]});
	return found;
}

static unsigned hash(uint32_t v)
{
	return (v * UINT32_C(0x9e3779b1)) >> 16;
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static size_t unique(uint32_t *word, size_t n)
{
	size_t k = 0;
	qsort(word, n, sizeof(*word), compare);
	for (size_t i = 0; i < n; i++)
		if (!k || word[k - 1] != word[i])
			word[k++] = word[i];
	return k;
}

static bool holds_many(const uint8_t *p, const uint8_t *end, const uint8_t *filter, const uint32_t *word, size_t n)
{
	for (; end - p >= 4; p++) {
		const uint32_t v = word_at(p);
		const unsigned h = hash(v);
		if ((filter[h / 8] >> h % 8 & 1) && bsearch(&v, word, n, sizeof(*word), compare))
			return true;
	}
	return false;
}

void dp_debug_units_mark_words(struct dp_debug_units *units, uint32_t *word, size_t n)
{
	uint8_t filter[FILTER_BITS / 8] = {0};
	n = unique(word, n);
	units->next = 0;
	for (size_t i = 0; i < n; i++)
		filter[hash(word[i]) / 8] |= (uint8_t)(1u << hash(word[i]) % 8);
	for (size_t i = 0; n && i < units->n; i++) {
		struct dp_debug_unit *one = &units->unit[i];
		if (!one->marked && one->start)
			one->marked = n <= FEW ? holds_few(one->start, one->end, word, n)
			                       : holds_many(one->start, one->end, filter, word, n);
	}
}

struct needle {
	const char *word;
	size_t length;
	uint32_t offset[OFFSETS_MAX + 2]; /* offsets of the strings, then the first bytes of the inline form */
	size_t n;
	bool many; /* too many to search for */
};

static bool goes_on(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '$' || c >= 0x80;
}

/* A string may be the tail of another one, so it may start anywhere. */
static void find_strings(struct needle *k, struct dp_span s)
{
	const uint8_t *p = s.bytes, *end = p ? p + s.size : p;
	while (p && (p = memmem(p, (size_t)(end - p), k->word, k->length))) {
		if (p + k->length < end && !goes_on(p[k->length])) {
			k->many |= k->n >= OFFSETS_MAX || (uint64_t)(p - s.bytes) > UINT32_MAX;
			if (k->many)
				return;
			k->offset[k->n++] = (uint32_t)(p - s.bytes);
		}
		p++;
	}
}

/* Names stored in the unit itself: short names by gcc, all names by some compilers. */
static void add_written(struct needle *k)
{
	char text[5] = {0};
	memcpy(text, k->word, k->length < 4 ? k->length : 4);
	k->many |= k->length < 3;
	k->offset[k->n++] = word_at((const uint8_t *)text);
	text[3] = k->length == 3 ? '<' : text[3];
	k->offset[k->n++] = word_at((const uint8_t *)text);
}

/* Names by index: the unit's part of .debug_str_offsets must contain one of the offsets. */
static bool is_indexed(struct dp_debug_unit *one, struct dp_span table, uint32_t *offset, size_t n)
{
	Dwarf_Attribute attr;
	Dwarf_Word base;
	if (!dwarf_attr(&one->die, DW_AT_str_offsets_base, &attr))
		return false;
	if (!table.bytes || dwarf_formudata(&attr, &base) || base < 8 || base > table.size)
		return true;
	const uint64_t length = word_at(table.bytes + base - 8);
	if (length == UINT32_MAX || length < 4 || length - 4 > table.size - base)
		return true;
	for (uint64_t at = 0; at + 4 <= length - 4; at += 4)
		if (is_any(table.bytes + base + at, offset, n))
			return true;
	return false;
}

const char *dp_debug_word_of(const char *name, struct dp_debug_word *buf)
{
	const size_t whole = strcspn(name, "<(");
	size_t from = 0;
	for (size_t i = 0; i + 1 < whole; i++)
		if (name[i] == ':' && name[i + 1] == ':')
			from = i + 2;
	const size_t n = whole - from;
	if (strspn(name + from, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$") < n || !n ||
	    n >= sizeof(buf->text))
		return NULL;
	memcpy(buf->text, name + from, n);
	buf->text[n] = '\0';
	return buf->text;
}

static void mark_all(struct dp_debug_units *units)
{
	units->next = 0;
	for (size_t i = 0; i < units->n; i++)
		units->unit[i].marked = true;
}

void dp_debug_units_mark_name(struct dp_debug_units *units, const char *word)
{
	Dwarf *dwarf = units->debug->dwarf, *alt = dwarf_getalt(dwarf);
	struct needle k = {.word = word, .length = word ? strlen(word) : 0};
	const struct dp_span strings = dp_debug_section(dwarf, ".debug_str"), lines = dp_debug_section(dwarf, ".debug_line_str");
	k.many = dp_debug_is_packed(dwarf) || (alt && dp_debug_is_packed(alt));
	if (k.length && !k.many) {
		find_strings(&k, strings);
		find_strings(&k, lines);
		find_strings(&k, alt ? dp_debug_section(alt, ".debug_str") : (struct dp_span){0});
	}
	const size_t strings_found = k.n;
	if (k.length && !k.many)
		add_written(&k);
	if (!k.length || k.many) {
		mark_all(units);
		return;
	}
	const struct dp_span table = dp_debug_section(dwarf, ".debug_str_offsets");
	for (size_t i = 0; i < units->n; i++) {
		struct dp_debug_unit *one = &units->unit[i];
		one->marked = one->marked || !one->start || is_indexed(one, table, k.offset, strings_found);
	}
	dp_debug_units_mark_words(units, k.offset, k.n);
}
