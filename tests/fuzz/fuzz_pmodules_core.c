/* SPDX-License-Identifier: MIT */
/*
 * Core files: the reader refuses any bytes, or returns threads, mappings and memory. The first byte says whether the rest is a
 * whole file, or the notes of one (each: type, size, bytes), which get a page of memory after them. Paths in it other than
 * /proc/self/exe do not exist.
 */
#include "base/buf.h"
#include "pmodules/source/core.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY UINT64_C(0x7f0000000000)
#define PAGE   4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Puts the notes into a file that is otherwise valid. */
static void wrap(struct dp_buf *b, const uint8_t *data, size_t size)
{
	struct dp_buf notes = {0};
	static const uint8_t page[PAGE];
	while (size >= 3) {
		static const uint32_t types[] = {NT_PRSTATUS, NT_PRPSINFO, NT_SIGINFO, NT_FILE, NT_AUXV, NT_FPREGSET};
		size_t n = data[1] | (size_t)data[2] << 8;
		n = n < size - 3 ? n : size - 3;
		const Elf64_Nhdr h = {5, (Elf64_Word)n, types[data[0] % (sizeof(types) / sizeof(*types))]};
		dp_buf_put(&notes, &h, sizeof(h));
		dp_buf_put(&notes, "CORE\0\0\0", 8);
		dp_buf_put(&notes, data + 3, n);
		dp_buf_put(&notes, page, -n & 3u);
		data += 3 + n;
		size -= 3 + n;
	}
	const Elf64_Ehdr e = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	                      .e_type = ET_CORE,
	                      .e_machine = EM_X86_64,
	                      .e_phoff = sizeof(e),
	                      .e_phentsize = sizeof(Elf64_Phdr),
	                      .e_phnum = 2};
	const uint64_t at = sizeof(e) + 2 * sizeof(Elf64_Phdr);
	const Elf64_Phdr p[2] = {{.p_type = PT_NOTE, .p_offset = at, .p_filesz = notes.len},
	                         {.p_type = PT_LOAD,
	                          .p_flags = PF_R | PF_W,
	                          .p_offset = at + notes.len,
	                          .p_vaddr = MEMORY,
	                          .p_filesz = PAGE,
	                          .p_memsz = PAGE}};
	dp_buf_put(b, &e, sizeof(e));
	dp_buf_put(b, p, sizeof(p));
	dp_buf_put(b, notes.data, notes.len);
	dp_buf_put(b, page, PAGE);
	dp_buf_fini(&notes);
}

static void use(struct dp_core *c)
{
	struct dp_stopped_thread *t = NULL;
	struct dp_image *image = NULL;
	uint8_t buf[2 * PAGE];
	size_t n;
	struct dp_error *err = dp_core_threads(c, &t, &n);
	dp_error_destroy(err);
	free(t);
	for (uint64_t at = MEMORY - 8; at < MEMORY + 2 * PAGE; at += 1000)
		if (dp_core_read(c, at, buf, sizeof(buf)) > sizeof(buf))
			abort();
	err = dp_core_image(c, &image);
	if (!err)
		dp_image_destroy(image);
	dp_error_destroy(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	char path[64];
	struct dp_buf file = {0};
	struct dp_core *c = NULL;
	if (fd < 0)
		fd = memfd_create("core", 0);
	if (fd < 0 || !size)
		return 0;
	if (data[0] & 1)
		dp_buf_put(&file, data + 1, size - 1);
	else
		wrap(&file, data + 1, size - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!ftruncate(fd, 0) && pwrite(fd, file.data, file.len, 0) == (ssize_t)file.len) {
		struct dp_error *err = dp_core_open(path, data[0] & 2 ? "/proc/self/exe" : NULL, &c);
		if (!err)
			use(c);
		dp_error_destroy(err);
		dp_core_close(c);
	}
	dp_buf_fini(&file);
	return 0;
}
