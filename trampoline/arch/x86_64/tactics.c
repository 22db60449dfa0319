/* SPDX-License-Identifier: MIT */
/*
 * Fitting a 5-byte jump (e9 rel32) into code whose instructions are shorter than that.
 *
 * jump    The instruction has 5 bytes or more: the jump replaces its first 5. What is left of it is dead.
 * pun     The instruction has 1 to 4 bytes, and whoever jumps to its successors must find them unchanged. So the upper bytes of
 *         rel32 ARE the successors' bytes, and only the lower ones can be chosen: the jump can lead into a range of addresses,
 * where a springboard has to be. Redundant prefixes in front of e9 shift the jump and so make other bytes the upper ones:
 *
 *             48 89 c7      mov %rax,%rdi      e9 xx xx|31 c0     or     26 e9 xx|31 c0 89    or     26 26 e9|31 c0 89 d1
 *             31 c0         xor %eax,%eax
 *             89 d1         mov %edx,%ecx
 *
 *         No instruction but the site's own changes, so nothing needs to be known about the program's control flow.
 * window  The jump replaces several instructions, after proof that nothing lands inside (window.c).
 *
 * Prefixes that e9 ignores on every processor: segment overrides and REX. Not 66 (AMD cuts rip to 16 bits), not f2, f3, f0.
 */
#include "trampoline/arch/x86_64/tactics.h"

#include "trampoline/arch/x86_64/encode.h"
#include "trampoline/arch/x86_64/window.h"
#include "trampoline/text.h"

#include <string.h>

#define PADDING 0x26 /* %es: has no meaning in 64-bit code */

uint8_t dp_jump_len(const struct dp_jump *jump)
{
	return (uint8_t)(jump->prefixes + DP_JMP_NEAR);
}

void dp_jump_encode(const struct dp_jump *jump, uint64_t site, uint64_t target, uint8_t *bytes)
{
	uint32_t rel = (uint32_t)(target - (site + dp_jump_len(jump)));
	memset(bytes, PADDING, jump->prefixes);
	bytes[jump->prefixes] = 0xe9;
	memcpy(bytes + jump->prefixes + 1, &rel, sizeof(rel));
}

/* A jump whose whole displacement can be chosen. */
static struct dp_jump free_jump(uint64_t site)
{
	uint64_t end = site + DP_JMP_NEAR;
	return (struct dp_jump){.lo = end < -(int64_t)INT32_MIN ? 0 : end + (uint64_t)(int64_t)INT32_MIN, .hi = end + INT32_MAX};
}

static struct dp_error *fit_jump(const struct dp_text *text, const struct dp_insn *first, struct dp_fit *ret)
{
	(void)text;
	if (first->len < DP_JMP_NEAR)
		return dp_error(DP_TAG_TOO_SHORT, "the instruction has only %u bytes", first->len);
	*ret = (struct dp_fit){.ninsns = 1, .changed = DP_JMP_NEAR, .njumps = 1};
	ret->insn[0] = *first;
	ret->jump[0] = free_jump(first->addr);
	return NULL;
}

/*
 * `free_bytes` low bytes of rel32 can be chosen, the others are at `kept`. False if no address of user space can be reached.
 */
static bool pun_range(uint64_t end, unsigned free_bytes, const uint8_t *kept, struct dp_jump *ret)
{
	uint32_t rel = 0;
	memcpy((uint8_t *)&rel + free_bytes, kept, sizeof(rel) - free_bytes);
	int64_t lo = (int64_t)end + (int32_t)rel;
	ret->hi = (uint64_t)(lo + (int64_t)((UINT64_C(1) << (8 * free_bytes)) - 1));
	ret->lo = (uint64_t)lo;
	return lo > 0;
}

static struct dp_error *fit_pun(const struct dp_text *text, const struct dp_insn *first, struct dp_fit *ret)
{
	size_t n;
	const uint8_t *bytes = dp_text_at(text, first->addr, &n);
	if (first->len >= DP_JMP_NEAR)
		return dp_error(DP_TAG_TOO_SHORT, "there is nothing to share");
	*ret = (struct dp_fit){.ninsns = 1, .changed = first->len};
	ret->insn[0] = *first;
	for (uint8_t prefixes = 0; prefixes < first->len; prefixes++) {
		struct dp_jump jump = {.prefixes = prefixes};
		uint8_t len = dp_jump_len(&jump);
		if (len <= n && pun_range(first->addr + len, first->len - prefixes - 1U, bytes + first->len, &jump))
			ret->jump[ret->njumps++] = jump;
	}
	if (ret->njumps)
		return NULL;
	return dp_error(DP_TAG_TOO_SHORT, "the bytes that follow lead to no usable address");
}

static struct dp_error *fit_window(const struct dp_text *text, const struct dp_insn *first, struct dp_fit *ret)
{
	*ret = (struct dp_fit){.changed = DP_JMP_NEAR, .njumps = 1};
	ret->jump[0] = free_jump(first->addr);
	return dp_window_fit(text, first, ret);
}

/* Whatever the instruction is, its first byte becomes an int3: nothing else changes, and nothing is relied upon. */
static struct dp_error *fit_trap(const struct dp_text *text, const struct dp_insn *first, struct dp_fit *ret)
{
	(void)text;
	*ret = (struct dp_fit){.ninsns = 1, .changed = 1};
	ret->insn[0] = *first;
	return NULL;
}

const struct dp_tactic_entry dp_tactics[] = {
        {DP_TACTIC_JUMP, fit_jump},
        {DP_TACTIC_PUN, fit_pun},
        {DP_TACTIC_WINDOW, fit_window},
        {DP_TACTIC_TRAP, fit_trap},
};
const size_t dp_ntactics = sizeof(dp_tactics) / sizeof(*dp_tactics);
