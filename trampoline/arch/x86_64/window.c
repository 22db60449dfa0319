/* SPDX-License-Identifier: MIT */
/*
 * Which instructions a 5-byte jump covers, and what may never be covered: a call or system call with something behind it, since
 * threads return there. That nothing else leads inside is proved in window_proof.c.
 */
#include "trampoline/arch/x86_64/window.h"

#include "trampoline/arch/x86_64/encode.h"
#include "trampoline/arch/x86_64/window_proof.h"
#include "trampoline/known.h"
#include "trampoline/text.h"

static struct dp_error *refuse(const char *why)
{
	return dp_error(DP_TAG_TOO_SHORT, "%s", why);
}

static bool returns_behind(const struct dp_insn *insn)
{
	return insn->flow == DP_FLOW_CALL || insn->flow == DP_FLOW_CALL_IND || insn->flow == DP_FLOW_SYSCALL;
}

static bool in_function(const struct dp_text *text, uint64_t addr, size_t n)
{
	return addr >= text->function && addr - text->function + n <= text->size;
}

/* Decodes what lies at `offset` of the window and notes it as an interior head. */
static struct dp_error *next(const struct dp_text *text, uint64_t site, uint8_t offset, struct dp_fit *ret, struct dp_insn *insn)
{
	size_t n;
	const uint8_t *bytes = dp_text_at(text, site + offset, &n);
	if (!bytes)
		return refuse("the executable segment ends behind it");
	if (offset)
		ret->interior[ret->ninterior++] = offset;
	return dp_decode(bytes, n, site + offset, insn);
}

/* The window's last instruction ends control flow before the jump does: only padding may follow, which is then given up. */
static struct dp_error *cover_padding(const struct dp_text *text, uint64_t site, uint8_t covered, struct dp_fit *ret)
{
	struct dp_insn insn;
	while (covered < DP_JMP_NEAR) {
		DP_TRY(next(text, site, covered, ret, &insn));
		if (!dp_insn_is_padding(&insn))
			return refuse("control flow ends before the jump would, and no padding follows");
		covered = (uint8_t)(covered + insn.len);
	}
	return NULL;
}

struct dp_error *dp_window_fit(struct dp_known *known, const struct dp_text *text, const struct dp_insn *first,
                               struct dp_fit *ret)
{
	uint8_t covered = 0;
	if (!text->size || !text->pads_known)
		return refuse(text->size ? "it is not known where else the module's code is entered"
		                         : "the function around it is not known");
	for (;;) {
		struct dp_insn *insn = &ret->insn[ret->ninsns];
		DP_TRY(next(text, first->addr, covered, ret, insn));
		if (!in_function(text, insn->addr, insn->len))
			return refuse("the function ends behind it");
		ret->ninsns++;
		covered = (uint8_t)(covered + insn->len);
		if (covered >= DP_JMP_NEAR)
			break;
		if (returns_behind(insn))
			return refuse("a call would return into the jump");
		if (!dp_insn_continues(insn)) {
			DP_TRY(cover_padding(text, first->addr, covered, ret));
			break;
		}
	}
	const struct dp_landings *landings = dp_known_landings(known, text);
	if (!landings)
		return dp_error(DP_TAG_NOMEM, "out of memory for the places of the module that something leads to");
	return dp_window_prove(text, landings, first->addr, ret->interior, ret->ninterior);
}
