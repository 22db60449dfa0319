/* SPDX-License-Identifier: MIT */
#include "probes/point/source/source_names.h"

#include "base/path.h"
#include "probes/debug/debug_names.h"
#include "probes/elf/elf_file.h"
#include "probes/image/module.h"

#include <stdlib.h>

#define LINES_MOST (1u << 20)

void dp_source_files_each(struct dp_debug *debug, bool (*each)(const char *path, void *data), void *data)
{
	Dwarf_CU *cursor = NULL;
	Dwarf_Die unit;
	while (dp_debug_next_unit(debug, &cursor, &unit)) {
		const char *path = dwarf_diename(&unit);
		if (path && !each(path, data))
			return;
	}
}

/* A bit for each line. */
static void mark_lines(Dwarf_Die *unit, const char *file, uint8_t *marks)
{
	Dwarf_Lines *lines;
	size_t n;
	const char *known = NULL; /* rows of a file share the name's address */
	bool ours = false, statement = false;
	if (dwarf_getsrclines(unit, &lines, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		const char *path = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
		int line = 0;
		if (!path || dwarf_lineno(row, &line) || line <= 0 || line >= (int)LINES_MOST)
			continue;
		if (path != known)
			ours = dp_path_ends(path, file);
		known = path;
		if (ours && !dwarf_linebeginstatement(row, &statement) && statement)
			marks[line / 8] |= (uint8_t)(1u << line % 8);
	}
}

void dp_source_code_lines(struct dp_debug *debug, const char *file, bool (*each)(uint32_t line, void *data), void *data)
{
	struct dp_debug_units units;
	struct dp_debug_unit *one;
	uint8_t *marks = calloc(1, LINES_MOST / 8);
	if (marks && dp_debug_units_load(debug, &units)) {
		dp_debug_units_mark_file(&units, dp_path_last(file));
		while ((one = dp_debug_units_next(&units, false)))
			mark_lines(&one->die, file, marks);
		dp_debug_units_fini(&units);
		for (uint32_t line = 1; line < LINES_MOST; line++)
			if ((marks[line / 8] & 1u << line % 8) && !each(line, data))
				break;
	}
	free(marks);
}

bool dp_source_is_near(const struct dp_module *m)
{
	GElf_Shdr shdr;
	struct dp_span bytes;
	return m->elf && !m->vdso && (m->executable || dp_elf_section(m->elf, ".debug_info", 0, &shdr, &bytes));
}
