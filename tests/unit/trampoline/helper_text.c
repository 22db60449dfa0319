/* SPDX-License-Identifier: MIT */
#include "helper_text.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/code/text.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct search {
	struct helper_module *m;
	const char *name; /* part of the path; "" for the executable */
};

static int find_module(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct search *search = data;
	struct helper_module *m = search->m;
	(void)size;
	if (*search->name ? !strstr(info->dlpi_name, search->name) : *info->dlpi_name)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			m->eh_frame_hdr = (const uint8_t *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (int i = 0; i < info->dlpi_phnum && m->text.nsegments < HELPER_SEGMENTS; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_R))
			continue;
		uint64_t addr = info->dlpi_addr + p->p_vaddr;
		m->segment[m->text.nsegments++] =
		        (struct dp_segment){addr, (const uint8_t *)addr, p->p_filesz, (p->p_flags & PF_X) != 0};
		if (p->p_flags & PF_X) {
			m->code = addr;
			m->code_end = addr + p->p_filesz;
		}
	}
	m->text.bias = (int64_t)info->dlpi_addr;
	return 1;
}

static void helper_module(struct helper_module *ret, const char *name)
{
	struct search search = {ret, name};
	memset(ret, 0, sizeof(*ret));
	dl_iterate_phdr(find_module, &search);
	ret->text.segment = ret->segment;
	if (!ret->code)
		abort();
}

void helper_libc(struct helper_module *ret)
{
	helper_module(ret, "/libc.so");
}

void helper_self(struct helper_module *ret)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	helper_module(ret, "");
	for (size_t i = 0; i < ret->text.nsegments; i++) {
		struct dp_segment *s = &ret->segment[i];
		uint8_t *copy = malloc(s->n);
		if (!copy || pread(fd, copy, s->n, (off_t)s->addr) != (ssize_t)s->n)
			abort();
		s->bytes = copy;
	}
	close(fd);
}

void helper_code(struct helper_module *ret, uint64_t addr, const uint8_t *bytes, size_t n)
{
	memset(ret, 0, sizeof(*ret));
	ret->segment[0] = (struct dp_segment){addr, bytes, n, true};
	ret->text = (struct dp_text){.segment = ret->segment, .nsegments = 1, .function = addr, .size = n, .pads_known = true};
	ret->code = addr;
	ret->code_end = addr + n;
}

void helper_add(struct helper_module *m, uint64_t addr, const void *bytes, size_t n)
{
	m->segment[m->text.nsegments++] = (struct dp_segment){addr, bytes, n, false};
}

static int32_t load(const uint8_t *at)
{
	int32_t v;
	memcpy(&v, at, sizeof(v));
	return v;
}

bool helper_function(struct helper_module *m, uint64_t addr)
{
	const uint8_t *hdr = m->eh_frame_hdr, *table = hdr + 12;
	size_t n = (size_t)load(hdr + 8), i = 0;
	if (hdr[1] != 0x1b || hdr[2] != 0x03 || hdr[3] != 0x3b)
		return false;
	while (i < n && (uint64_t)hdr + (uint64_t)(int64_t)load(table + 8 * i) <= addr)
		i++;
	if (!i)
		return false;
	const uint8_t *fde = hdr + load(table + 8 * (i - 1) + 4); /* length, CIE, pc-relative start, size */
	m->text.function = (uint64_t)(fde + 8) + (uint64_t)(int64_t)load(fde + 8);
	m->text.size = (uint32_t)load(fde + 12);
	m->text.pads_known = true;
	return addr >= m->text.function && addr - m->text.function < m->text.size;
}

uint64_t helper_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

uint64_t helper_random_insn(const struct helper_module *m, uint64_t *state)
{
	for (;;) {
		uint64_t at = m->code + helper_random(state) % (m->code_end - m->code - 256);
		struct dp_insn insn;
		unsigned good = 0;
		for (; good < 24; good++) {
			size_t n;
			const uint8_t *bytes = dp_text_at(&m->text, at, &n);
			if (!bytes || !dp_decode_zydis(bytes, n, at, &insn))
				break;
			at += insn.len;
		}
		if (good == 24)
			return at - insn.len;
	}
}
