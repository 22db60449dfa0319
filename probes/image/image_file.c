/* SPDX-License-Identifier: MIT */
/*
 * The image of a file that is not running. Writes the mappings that kernel and loader would make as /proc/PID/maps text.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "probes/image/image_internal.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE      UINT64_C(4096)
#define HEAP_SIZE UINT64_C(0x21000) /* of a program that has just started to use it */

/* Writes a path as the kernel does in maps: on one line. */
static void put_path(struct dp_buf *b, const char *path)
{
	for (; *path; path++)
		if (*path == '\n')
			dp_buf_printf(b, "\\012");
		else
			dp_buf_put(b, path, 1);
}

struct mapped { /* the text so far */
	struct dp_buf text;
	uint64_t base, end; /* end: of the last mapping so far */
	uint64_t inode;
	const char *path;
};

static void put_range(struct mapped *m, uint64_t start, uint64_t end, const Elf64_Phdr *p, bool file)
{
	if (start < m->end)
		start = m->end;
	if (start >= end)
		return;
	const uint64_t offset = file ? (p->p_offset & ~(PAGE - 1)) + (start - m->base - (p->p_vaddr & ~(PAGE - 1))) : 0;
	dp_buf_printf(&m->text, "%llx-%llx r%c%cp %08llx 00:00 %llu ", (unsigned long long)start, (unsigned long long)end,
	              p->p_flags & PF_W ? 'w' : '-', p->p_flags & PF_X ? 'x' : '-', (unsigned long long)offset,
	              file ? (unsigned long long)m->inode : 0);
	if (file)
		put_path(&m->text, m->path);
	dp_buf_printf(&m->text, "\n");
	m->end = end;
}

/* Segments must be in ascending order; otherwise the file is damaged. */
static void put_segments(struct mapped *m, const struct dp_elf *elf)
{
	for (size_t i = 0; i < elf->nphdr; i++) {
		const Elf64_Phdr *p = &elf->phdr[i];
		struct dp_span s;
		if (p->p_type != PT_LOAD || !dp_elf_load(elf, i, &s))
			continue;
		const uint64_t start = m->base + (p->p_vaddr & ~(PAGE - 1)), end = m->base + p->p_vaddr + s.size;
		put_range(m, start, (end + PAGE - 1) & ~(PAGE - 1), p, true);
		if (p->p_memsz > p->p_filesz)
			put_range(m, start, (m->base + p->p_vaddr + p->p_memsz + PAGE - 1) & ~(PAGE - 1), p, false);
	}
}

static bool is_program(const struct dp_elf *elf)
{
	uint64_t flags;
	return (dp_elf_dynamic(elf, DT_FLAGS_1, &flags) && (flags & DF_1_PIE)) ||
	       (dp_elf_phdr(elf, PT_INTERP) && !dp_elf_dynamic(elf, DT_SONAME, &flags));
}

static struct dp_error *check(const struct dp_elf *elf, const char *path)
{
	uint64_t start, end;
	if (elf->ehdr.e_type != ET_EXEC && elf->ehdr.e_type != ET_DYN)
		return dp_error(DP_TAG_BAD_ELF, "'%s' is not an executable or a shared library, so its code has no addresses",
		                path);
	if (!dp_elf_extent(elf, &start, &end) || end > DP_FILE_BASE_LIBRARY)
		return dp_error(DP_TAG_BAD_ELF, "'%s' has no loadable segments", path);
	return NULL;
}

/* A small heap, as every program has one: after the program; for a library, where a program would be. */
static void put_heap(struct mapped *m, uint64_t start)
{
	dp_buf_printf(&m->text, "%llx-%llx rw-p 00000000 00:00 0 [heap]\n", (unsigned long long)start,
	              (unsigned long long)(start + HEAP_SIZE));
}

static struct dp_error *write_maps(const char *path, const struct dp_elf *elf, uint64_t inode, struct mapped *m)
{
	const bool fixed = elf->ehdr.e_type == ET_EXEC, library = !fixed && !is_program(elf);
	DP_TRY(check(elf, path));
	m->base = fixed ? 0 : library ? DP_FILE_BASE_LIBRARY : DP_FILE_BASE_PROGRAM;
	m->path = path;
	m->inode = inode;
	if (library)
		put_heap(m, DP_FILE_BASE_PROGRAM);
	put_segments(m, elf);
	if (!library)
		put_heap(m, m->end + PAGE);
	dp_buf_printf(&m->text, "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]\n");
	return m->text.failed ? dp_error_nomem() : NULL;
}

struct dp_error *dp_image_from_file(const char *path, struct dp_image **ret)
{
	struct stat st;
	struct dp_elf *elf = NULL;
	struct mapped m = {0};
	dp_auto_free char *full = realpath(path, NULL);
	dp_auto_close int fd = full ? open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	if (fd < 0 || fstat(fd, &st))
		return dp_error_sys(DP_TAG_BAD_ELF, "cannot open '%s'", path);
	DP_TRY(dp_elf_open(fd, path, &elf));
	struct dp_error *err = write_maps(full, elf, st.st_ino, &m);
	if (!err)
		err = dp_image_create(dp_buf_str(&m.text), "", 0, ret);
	if (!err)
		dp_image_call(*ret, path);
	dp_elf_destroy(elf);
	dp_buf_fini(&m.text);
	return err;
}
