/* SPDX-License-Identifier: MIT */
/*
 * Finds the code of a source line. It may be in many places: compilers move parts of it, and every inlined copy and template
 * instance has its own. Each run of instructions of the line starts at a row of the line table. Rows that begin a statement are
 * the line's places; a row after one of the same line continues its run.
 */
#include "base/path.h"
#include "probes/debug/debug_names.h"
#include "probes/image/module.h"
#include "probes/point/source/source.h"


struct row {
	uint64_t addr;
	const char *file;
	int line;
	bool statement, end;
};

static bool read_row(Dwarf_Lines *lines, size_t i, struct row *ret)
{
	Dwarf_Line *l = dwarf_onesrcline(lines, i);
	Dwarf_Addr addr;
	*ret = (struct row){0};
	if (!l || dwarf_lineaddr(l, &addr) || dwarf_lineno(l, &ret->line) || dwarf_linebeginstatement(l, &ret->statement) ||
	    dwarf_lineendsequence(l, &ret->end))
		return false;
	ret->addr = addr;
	ret->file = dwarf_linesrc(l, NULL, NULL);
	return ret->file;
}

static void learn(struct dp_line_query *q, const struct row *row)
{
	const uint32_t line = (uint32_t)row->line;
	if (!q->file_known)
		snprintf(q->path, sizeof(q->path), "%s", row->file);
	q->file_known = true;
	if (!row->statement || row->line <= 0)
		return;
	if (line < q->line && line > q->below)
		q->below = line;
	if (line > q->line && (!q->above || line < q->above))
		q->above = line;
}

static void search_unit(struct dp_module *m, struct dp_debug *debug, Dwarf_Die *unit, struct dp_line_query *q,
                        struct dp_selection *ret)
{
	Dwarf_Lines *lines;
	size_t n;
	const char *known = NULL; /* rows of a file share the name's address */
	bool ours = false, inside = false, taken = false;
	if (dwarf_getsrclines(unit, &lines, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		struct row row;
		if (!read_row(lines, i, &row))
			continue;
		if (row.file != known)
			ours = dp_path_ends(row.file, q->file);
		known = row.file;
		inside = ours && !row.end && row.addr;
		if (inside)
			learn(q, &row);
		if (!inside || (uint32_t)row.line != q->line)
			taken = false;
		else if (row.statement && !taken)
			taken = dp_selection_add(ret, m, dp_module_vaddr(m, dp_debug_addr(debug, row.addr)), true, NULL);
	}
}

void dp_lines_find(struct dp_module *m, struct dp_debug *debug, struct dp_line_query *q, struct dp_selection *ret)
{
	struct dp_debug_units units;
	struct dp_debug_unit *one;
	if (!dp_debug_units_load(debug, &units)) {
		ret->failed = true;
		return;
	}
	dp_debug_units_mark_file(&units, dp_path_last(q->file));
	while ((one = dp_debug_units_next(&units, false)))
		search_unit(m, debug, &one->die, q, ret);
	dp_debug_units_fini(&units);
}
