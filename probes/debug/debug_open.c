/* SPDX-License-Identifier: MIT */
/* Opens one file for libdw. */
#include "probes/debug/debug_cache.h"
#include "probes/debug/debug_internal.h"

#include <unistd.h>

/* A file with only call-frame tables is debug information for libdw, but not for us. */
static bool has_units(Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	return dwarf && dwarf_get_units(dwarf, NULL, &cu, NULL, NULL, NULL, NULL) == 0;
}

bool dp_debug_file_open(int fd, struct dp_debug_file *ret)
{
	struct dp_debug_file f = {.fd = fd, .dwarf = fd >= 0 ? dwarf_begin(fd, DWARF_C_READ) : NULL};
	if (has_units(f.dwarf)) {
		*ret = f;
		return true;
	}
	dp_debug_file_close(&f);
	return false;
}

bool dp_debug_file_open_kept(int fd, struct dp_debug_file *ret)
{
	struct dp_debug_key key;
	const bool is_kept = dp_debug_cache_key(fd, &key);
	struct dp_elf *kept = is_kept ? dp_debug_cache_load(&key) : NULL;
	if (kept && dp_debug_memory_open(kept, ret)) {
		ret->bytes = kept;
		close(fd);
		return true;
	}
	dp_elf_destroy(kept);
	if (!dp_debug_file_open(fd, ret))
		return false;
	if (is_kept)
		dp_debug_cache_store(&key, dwarf_getelf(ret->dwarf));
	return true;
}

bool dp_debug_memory_open(const struct dp_elf *elf, struct dp_debug_file *ret)
{
	struct dp_debug_file f = {.fd = -1, .elf = elf_memory((char *)elf->bytes, elf->size)};
	f.dwarf = f.elf ? dwarf_begin_elf(f.elf, DWARF_C_READ, NULL) : NULL;
	if (has_units(f.dwarf)) {
		*ret = f;
		return true;
	}
	dp_debug_file_close(&f);
	return false;
}

void dp_debug_file_close(struct dp_debug_file *f)
{
	if (f->dwarf)
		dwarf_end(f->dwarf);
	if (f->elf)
		elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	dp_elf_destroy(f->bytes);
	*f = (struct dp_debug_file){.fd = -1};
}
