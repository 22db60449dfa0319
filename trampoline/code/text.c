/* SPDX-License-Identifier: MIT */
#include "trampoline/code/text.h"

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
