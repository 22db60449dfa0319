/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a file that a core names is the one that was mapped. A dump has the first page of each mapped ELF file (bit 4 of
 * coredump_filter), which usually has its build-id. A file that was rebuilt has other addresses: using it would give wrong
 * values.
 */
#include "pmodules/source/core_internal.h"

#include "base/cleanup.h"
#include "base/regular.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MOST 64u
#define NOTE_MOST    4096u
#define ID_MOST      64u

struct source { /* an ELF file by file offset: the file itself, or its mapping in the core */
	const struct dp_core *c;
	uint64_t start, size;
	int fd;
};
struct build_id {
	uint8_t bytes[ID_MOST];
	size_t n;
};

static bool get(const struct source *s, uint64_t offset, void *buf, size_t n)
{
	if (s->fd >= 0)
		return pread(s->fd, buf, n, (off_t)offset) == (ssize_t)n;
	return offset < s->size && n <= s->size - offset && dp_core_read_held(s->c, s->start + offset, buf, n) == n;
}

static bool find_id(const uint8_t *notes, size_t n, struct build_id *ret)
{
	for (size_t at = 0; n - at >= sizeof(Elf64_Nhdr);) {
		Elf64_Nhdr h;
		memcpy(&h, notes + at, sizeof(h));
		at += sizeof(h);
		const uint64_t name = ((uint64_t)h.n_namesz + 3) & ~UINT64_C(3), desc = ((uint64_t)h.n_descsz + 3) & ~UINT64_C(3);
		if (name > n - at || desc > n - at - name)
			return false;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && !memcmp(notes + at, "GNU", 4) && h.n_descsz &&
		    h.n_descsz <= ID_MOST) {
			ret->n = h.n_descsz;
			memcpy(ret->bytes, notes + at + name, ret->n);
			return true;
		}
		at += name + desc;
	}
	return false;
}

static bool read_id(const struct source *s, struct build_id *ret)
{
	Elf64_Ehdr e;
	if (!get(s, 0, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_phentsize != sizeof(Elf64_Phdr))
		return false;
	for (unsigned i = 0; i < e.e_phnum && i < HEADERS_MOST; i++) {
		Elf64_Phdr p;
		uint8_t notes[NOTE_MOST];
		if (!get(s, e.e_phoff + i * sizeof(p), &p, sizeof(p)))
			return false;
		if (p.p_type == PT_NOTE && p.p_filesz <= sizeof(notes) && get(s, p.p_offset, notes, p.p_filesz) &&
		    find_id(notes, p.p_filesz, ret))
			return true;
	}
	return false;
}

static const char *digits(const struct build_id *id, char *ret)
{
	for (size_t i = 0; i < id->n; i++)
		snprintf(ret + 2 * i, 3, "%02x", id->bytes[i]);
	return ret;
}

bool dp_core_is_rebuilt(const struct dp_core *c, const struct dp_core_file *f, const char *path, char *why, size_t size)
{
	char was[2 * ID_MOST + 1] = "", is[2 * ID_MOST + 1] = "none";
	struct build_id in_core, in_file = {.n = 0};
	const struct source mapped = {.c = c, .start = f->start, .size = f->end - f->start, .fd = -1};
	dp_auto_close int fd = f->offset == 0 && read_id(&mapped, &in_core) ? dp_open_regular(path) : -1;
	const struct source file = {.fd = fd};
	if (fd < 0)
		return false;
	if (read_id(&file, &in_file))
		digits(&in_file, is);
	snprintf(why, size, "its build-id is %s, but the process had %s", is, digits(&in_core, was));
	return in_file.n != in_core.n || memcmp(in_file.bytes, in_core.bytes, in_core.n) != 0;
}

/* All mappings of a file, adjacent or not, follow the result for the mapping with the ELF header. */
void dp_core_check_files(struct dp_core *c)
{
	char why[400];
	size_t looked = 0;
	for (size_t i = 0; i < c->nfiles && looked < DP_CORE_MODULES_MOST; i++) {
		const struct dp_core_file *f = &c->file[i];
		if (f->offset || f->rebuilt || (looked++, !dp_core_is_rebuilt(c, f, f->path, why, sizeof(why))))
			continue;
		dp_core_doubt(c, "%s was rebuilt since: %s. Its names and values are omitted; %s", f->path, why,
		              c->phdr >= f->start && c->phdr < f->end ? "name the original program: snapshot --core CORE EXE"
		                                                      : "restore the original file and repeat the snapshot");
		for (size_t k = 0; k < c->nfiles; k++)
			if (!strcmp(c->file[k].path, c->file[i].path))
				c->file[k].rebuilt = true;
	}
}
