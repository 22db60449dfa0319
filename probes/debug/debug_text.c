/* SPDX-License-Identifier: MIT */
/* Searches debug information as plain text before it is parsed: most modules do not contain the requested name. */
#include "probes/debug/debug.h"

#include <string.h>

/* .debug_info is the largest section, so it is searched last, on its own. */
static bool holds_names(const char *section, bool largest)
{
	static const char *const names[] = {".debug_str", ".debug_line_str", ".debug_line"};
	if (largest)
		return !strcmp(section, ".debug_info");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(section, names[i]))
			return true;
	return false;
}

/* libdw has uncompressed sections when it opened the file. One that is still compressed cannot be searched. */
static bool mentions(Elf *elf, const char *word, bool largest)
{
	Elf_Scn *scn = NULL;
	size_t strings;
	if (!elf || elf_getshdrstrndx(elf, &strings))
		return true;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		const char *name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, strings, shdr.sh_name) : NULL;
		if (!name || shdr.sh_type == SHT_NOBITS)
			continue;
		if ((shdr.sh_flags & SHF_COMPRESSED) || !strncmp(name, ".zdebug", 7) || !strcmp(name, ".debug_addr"))
			return true; /* .debug_addr: names may be in .dwo files */
		const Elf_Data *data = holds_names(name, largest) ? elf_getdata(scn, NULL) : NULL;
		if (data && data->d_buf && memmem(data->d_buf, data->d_size, word, strlen(word)))
			return true;
	}
	return false;
}

static bool anywhere(Dwarf *dwarf, const char *word)
{
	return mentions(dwarf_getelf(dwarf), word, false) || mentions(dwarf_getelf(dwarf), word, true);
}

bool dp_debug_mentions(struct dp_debug *debug, const char *word)
{
	Dwarf *alt = dwarf_getalt(debug->dwarf);
	return anywhere(debug->dwarf, word) || (alt && anywhere(alt, word));
}
