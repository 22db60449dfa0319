/* SPDX-License-Identifier: MIT */
/* Small programs that compilers make when a fuzzer starts; the fuzzer's input damages their sections. */
#ifndef DP_TESTS_FUZZ_DAMAGED_H
#define DP_TESTS_FUZZ_DAMAGED_H

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const damaged_sections[] = {".debug_info", ".debug_abbrev", ".debug_loclists", ".debug_rnglists",
                                               ".debug_line", ".debug_str",    ".eh_frame",       ".debug_line_str",
                                               ".debug_loc",  ".debug_ranges", ".debug_addr",     ".debug_str_offsets"};
enum { DAMAGED_SECTIONS = sizeof(damaged_sections) / sizeof(*damaged_sections), DAMAGED_BEHIND = 1 << 14 };

struct damaged {
	uint8_t *bytes; /* and DAMAGED_BEHIND bytes more */
	size_t size, at[DAMAGED_SECTIONS], len[DAMAGED_SECTIONS], header[DAMAGED_SECTIONS];
	uint64_t work, end; /* the function `work` */
};

static void damaged_symbol(struct damaged *v, const Elf64_Shdr *table, const Elf64_Shdr *strings)
{
	for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
		const Elf64_Sym *s = (const void *)(v->bytes + table->sh_offset + at);
		if (!strcmp((const char *)v->bytes + strings->sh_offset + s->st_name, "work")) {
			v->work = s->st_value;
			v->end = s->st_value + s->st_size;
		}
	}
}

static void damaged_find(struct damaged *v)
{
	const Elf64_Ehdr *e = (const void *)v->bytes;
	const Elf64_Shdr *s = (const void *)(v->bytes + e->e_shoff);
	for (unsigned i = 0; i < e->e_shnum; i++) {
		const char *name = (const char *)v->bytes + s[e->e_shstrndx].sh_offset + s[i].sh_name;
		for (unsigned k = 0; k < DAMAGED_SECTIONS; k++)
			if (!strcmp(name, damaged_sections[k])) {
				v->at[k] = s[i].sh_offset;
				v->len[k] = s[i].sh_size;
				v->header[k] = e->e_shoff + i * sizeof(*s);
			}
		if (s[i].sh_type == SHT_SYMTAB)
			damaged_symbol(v, &s[i], &s[s[i].sh_link]);
	}
}

static void damaged_load(struct damaged *v, const char *path)
{
	struct stat st;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !(v->bytes = calloc(1, (size_t)st.st_size + DAMAGED_BEHIND)) ||
	    read(fd, v->bytes, (size_t)st.st_size) != st.st_size)
		abort();
	close(fd);
	v->size = (size_t)st.st_size;
	damaged_find(v);
	if (v->end <= v->work)
		abort();
}

/* `command` is a compiler with options; `source` is the program's text. */
static void damaged_build(struct damaged *v, const char *command, const char *suffix, const char *source)
{
	char dir[] = "/tmp/dp-fuzz-dwarf-XXXXXX", line[512], path[128];
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/a.%s", dir, suffix);
	FILE *f = fopen(path, "we");
	if (!f || fputs(source, f) < 0 || fclose(f))
		abort();
	snprintf(line, sizeof(line), "cd %s && %s -w -no-pie -o a a.%s", dir, command, suffix);
	if (system(line)) /* NOLINT: a fixed string */
		abort();
	snprintf(path, sizeof(path), "%s/a", dir);
	damaged_load(v, path);
	snprintf(line, sizeof(line), "rm -r %s", dir);
	if (system(line)) /* NOLINT: a fixed string */
		abort();
}

/* A file as a process may have mapped it, with the text at the linker's address. Returns -1 if out of memory. */
static int damaged_file(const uint8_t *bytes, size_t size, char *maps, size_t room)
{
	const int fd = memfd_create("fuzz", MFD_CLOEXEC);
	snprintf(maps, room,
	         "00400000-00401000 r--p 00000000 00:00 0 /proc/self/fd/%d\n00401000-00402000 r-xp 00001000 00:00 0 "
	         "/proc/self/fd/%d\n",
	         fd, fd);
	if (fd >= 0 && write(fd, bytes, size) == (ssize_t)size)
		return fd;
	close(fd);
	return -1;
}

#endif
