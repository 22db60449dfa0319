/* SPDX-License-Identifier: MIT */
/*
 * Finds where an inlined copy starts. gcc states it (DW_AT_entry_pc). clang gives only ranges and reorders a copy's blocks: rare
 * ones go to the end, and a loop's entry after its body. So the lowest address may be hit never, or too often. Like debuggers,
 * this uses the line table: a copy starts at the lowest line of its function; code inlined into it counts as the line that calls
 * it.
 */
#include "base/path.h"
#include "probes/point/source/source.h"

#include <dwarf.h>
#include <string.h>

enum { NESTED_MAX = 64, DEPTH_MAX = 32, ROWS_MAX = 1 << 16 };

struct search {
	Dwarf_Lines *lines;
	size_t nlines;
	const char *file; /* file of the function */
	int first;        /* line of its declaration */
	int line;         /* lowest line so far, or 0 */
	uint64_t pc;
	Dwarf_Die nested[NESTED_MAX];
	size_t nnested;
	unsigned depth;
};

static bool find_entry(Dwarf_Die *die, unsigned depth, uint64_t *ret);

static bool is_better(const struct search *s, int line, uint64_t pc)
{
	return pc && line >= s->first && (!s->line || line < s->line || (line == s->line && pc < s->pc));
}

static void consider(struct search *s, int line, uint64_t pc)
{
	if (!is_better(s, line, pc))
		return;
	s->line = line;
	s->pc = pc;
}

static bool unit_of(Dwarf_Die *die, Dwarf_Die *ret)
{
	return !dwarf_cu_info(die->cu, NULL, NULL, ret, NULL, NULL, NULL, NULL) && ret->addr;
}

bool dp_inline_call_site(Dwarf_Die *die, const char **file, int *line)
{
	Dwarf_Attribute attr;
	Dwarf_Word index, number;
	Dwarf_Die unit;
	Dwarf_Files *files;
	size_t n;
	if (!dwarf_attr(die, DW_AT_call_file, &attr) || dwarf_formudata(&attr, &index) || !unit_of(die, &unit) ||
	    dwarf_getsrcfiles(&unit, &files, &n) || index >= n || !dwarf_attr(die, DW_AT_call_line, &attr) ||
	    dwarf_formudata(&attr, &number) || number > INT32_MAX)
		return false;
	*file = dwarf_filesrc(files, index, NULL, NULL);
	*line = (int)number;
	return *file;
}

static bool is_called_in_file(const struct search *s, Dwarf_Die *die, int *line)
{
	const char *file;
	return dp_inline_call_site(die, &file, line) && !strcmp(dp_path_last(file), s->file);
}

static void look_inside(struct search *s, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	uint64_t pc;
	int line;
	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		const int tag = dwarf_tag(&die);
		if (tag == DW_TAG_lexical_block)
			look_inside(s, &die, depth + 1);
		if (tag != DW_TAG_inlined_subroutine)
			continue;
		if (s->nnested < NESTED_MAX)
			s->nested[s->nnested++] = die;
		if (is_called_in_file(s, &die, &line) && find_entry(&die, s->depth + 1, &pc))
			consider(s, line, pc);
	} while (!dwarf_siblingof(&die, &die));
}

static bool is_nested(struct search *s, uint64_t pc)
{
	for (size_t i = 0; i < s->nnested; i++)
		if (dwarf_haspc(&s->nested[i], pc) > 0)
			return true;
	return false;
}

static uint64_t address_of(const struct search *s, size_t i)
{
	Dwarf_Addr addr;
	Dwarf_Line *l = dwarf_onesrcline(s->lines, i);
	return l && !dwarf_lineaddr(l, &addr) ? addr : 0;
}

/* The first row at `pc`, or the row that covers it. */
static size_t row_around(const struct search *s, uint64_t pc)
{
	size_t lo = 0, hi = s->nlines;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		if (address_of(s, mid) < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && (lo == s->nlines || address_of(s, lo) > pc) ? lo - 1 : lo;
}

static void look_at_row(struct search *s, size_t i, uint64_t pc)
{
	Dwarf_Line *l = dwarf_onesrcline(s->lines, i);
	bool statement = false, end = true;
	int line = 0;
	if (!l || dwarf_lineno(l, &line) || line <= 0 || !is_better(s, line, pc) || dwarf_linebeginstatement(l, &statement) ||
	    dwarf_lineendsequence(l, &end) || end || !statement)
		return;
	const char *file = dwarf_linesrc(l, NULL, NULL);
	if (!file || strcmp(dp_path_last(file), s->file) || is_nested(s, pc))
		return;
	consider(s, line, pc);
}

static void look_at_lines(struct search *s, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	unsigned steps = 0;
	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;)
		for (size_t i = row_around(s, start); i < s->nlines && steps++ < ROWS_MAX; i++) {
			const uint64_t pc = address_of(s, i);
			if (pc >= end)
				break;
			look_at_row(s, i, pc < start ? start : pc);
		}
}

static bool first_range(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Addr base, start = 0, end;
	if (dwarf_entrypc(die, &start) && dwarf_ranges(die, 0, &base, &start, &end) <= 0)
		start = 0;
	*ret = start;
	return start;
}

static bool find_entry(Dwarf_Die *die, unsigned depth, uint64_t *ret)
{
	struct search s = {.depth = depth};
	Dwarf_Die unit;
	const char *file;
	if (!first_range(die, ret))
		return false;
	if (dwarf_tag(die) != DW_TAG_inlined_subroutine || dwarf_hasattr(die, DW_AT_entry_pc) || depth > DEPTH_MAX ||
	    !(file = dp_debug_decl_file(die)) || dwarf_decl_line(die, &s.first) || !unit_of(die, &unit) ||
	    dwarf_getsrclines(&unit, &s.lines, &s.nlines))
		return true;
	s.file = dp_path_last(file);
	look_inside(&s, die, 0);
	look_at_lines(&s, die);
	if (s.line)
		*ret = s.pc;
	return true;
}

bool dp_inline_entry(Dwarf_Die *die, uint64_t *ret)
{
	return find_entry(die, 0, ret);
}
