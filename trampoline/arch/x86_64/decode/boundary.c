/* SPDX-License-Identifier: MIT */
/* Instruction boundaries of a function. */
#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/code/text.h"

#include <string.h>

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
