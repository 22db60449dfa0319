/* SPDX-License-Identifier: MIT */
#include "trampoline/code/text.h"

#include "trampoline/arch/x86_64/decode/decode.h"

#include <elf.h>
#include <string.h>

const uint8_t *dp_text_at(const struct dp_text *text, uint64_t addr, size_t *n)
{
	for (size_t i = 0; i < text->nsegments; i++) {
		const struct dp_segment *s = &text->segment[i];
		if (!s->exec || addr < s->addr || addr - s->addr >= s->n)
			continue;
		*n = s->n - (size_t)(addr - s->addr);
		return s->bytes + (addr - s->addr);
	}
	return NULL;
}

void dp_text_bounds(const struct dp_text *text, uint64_t *start, uint64_t *end)
{
	*start = text->nsegments ? text->segment[0].addr : 0;
	*end = *start;
	for (size_t i = 0; i < text->nsegments; i++) {
		const struct dp_segment *s = &text->segment[i];
		if (s->addr < *start)
			*start = s->addr;
		if (s->addr + s->n > *end)
			*end = s->addr + s->n;
	}
}

size_t dp_text_endbr(const struct dp_text *text, uint64_t addr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t n;
	const uint8_t *at = dp_text_at(text, addr, &n);
	return at && n >= sizeof(endbr64) && !memcmp(at, endbr64, sizeof(endbr64)) ? sizeof(endbr64) : 0;
}

static struct dp_error *not_boundary(const struct dp_text *text, uint64_t addr, uint64_t before, uint64_t behind)
{
	return dp_error(DP_TAG_NOT_BOUNDARY,
	                "0x%llx (+0x%llx) is inside an instruction of its function; the nearest boundaries are 0x%llx (+0x%llx) "
	                "and 0x%llx (+0x%llx)",
	                (unsigned long long)addr, (unsigned long long)(addr - text->function), (unsigned long long)before,
	                (unsigned long long)(before - text->function), (unsigned long long)behind,
	                (unsigned long long)(behind - text->function));
}

/* Walks from the function's start. Undecodable bytes on the way are data: boundaries after them are unknown. */
static struct dp_error *walk(const struct dp_text *text, uint64_t addr)
{
	struct dp_insn insn;
	for (uint64_t at = text->function; at < addr; at += insn.len) {
		size_t n;
		const uint8_t *bytes = dp_text_at(text, at, &n);
		if (!bytes || !dp_decode_zydis(bytes, n, at, &insn))
			return NULL;
		if (at + insn.len > addr)
			return not_boundary(text, addr, at, at + insn.len);
	}
	return NULL;
}

struct dp_error *dp_text_check_boundary(const struct dp_text *text, uint64_t addr)
{
	struct dp_insn insn;
	size_t n;
	const uint8_t *bytes = dp_text_at(text, addr, &n);
	if (!bytes)
		return dp_error(DP_TAG_NOT_CODE, "0x%llx is not in an executable segment of its module",
		                (unsigned long long)addr);
	if (text->function && addr >= text->function && addr - text->function < text->size)
		DP_TRY(walk(text, addr));
	return dp_decode(bytes, n, addr, &insn);
}

/* The segment with the file's first byte, and so with the program headers. */
static const struct dp_segment *first_segment(const struct dp_text *text)
{
	for (size_t i = 0; i < text->nsegments; i++)
		if (text->segment[i].n >= sizeof(Elf64_Ehdr) && !memcmp(text->segment[i].bytes, ELFMAG, SELFMAG))
			return &text->segment[i];
	return NULL;
}

void dp_text_unwind_index(const struct dp_text *text, uint64_t *start, uint64_t *end)
{
	const struct dp_segment *s = first_segment(text);
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	*start = *end = 0;
	if (!s)
		return;
	memcpy(&eh, s->bytes, sizeof(eh));
	for (size_t i = 0; i < eh.e_phnum; i++) {
		uint64_t at = eh.e_phoff + i * sizeof(ph);
		if (at > s->n || s->n - at < sizeof(ph))
			return;
		memcpy(&ph, s->bytes + at, sizeof(ph));
		if (ph.p_type != PT_GNU_EH_FRAME)
			continue;
		*start = ph.p_vaddr + (uint64_t)text->bias;
		*end = *start + ph.p_memsz;
	}
}
