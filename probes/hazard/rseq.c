/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences (rseq(2)): if the kernel interrupts a thread between start and end, it moves it to the abort handler,
 * which must have a signature in the four bytes before it. A jump from the range to a stub would leave the range unnoticed.
 * librseq and similar libraries collect the descriptors in a section: version, flags, start, length, abort handler, 32 bytes
 * each. Even `i` are ranges, odd ones abort handlers.
 */
#include "probes/elf/relocations.h"
#include "probes/image/module.h"
#include "probes/hazard/hazard.h"

#include <string.h>

#define SECTION   "__rseq_cs"
#define SIZE      32u
#define SIGNATURE 4u
#define LONGEST   (UINT64_C(1) << 20)

bool dp_module_rseq(struct dp_module *m, size_t i, dp_addr *start, uint64_t *size)
{
	GElf_Shdr shdr;
	struct dp_span s;
	uint64_t from, length, handler;
	if (!m->elf || !dp_elf_section(m->elf, SECTION, 0, &shdr, &s) || i / 2 >= s.size / SIZE)
		return false;
	const uint64_t at = i / 2 * SIZE;
	memcpy(&length, s.bytes + at + 16, sizeof(length));
	*start = dp_addr_of(0);
	*size = 0;
	if (!dp_elf_pointer(m->elf, s.vaddr + at + 8, &from) || !dp_elf_pointer(m->elf, s.vaddr + at + 24, &handler))
		return true;
	*start = dp_module_addr(m, i % 2 ? handler - SIGNATURE : from);
	*size = i % 2 ? SIGNATURE + 1 : length < LONGEST ? length : LONGEST;
	return true;
}
