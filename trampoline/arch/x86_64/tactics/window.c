/* SPDX-License-Identifier: MIT */
/*
 * Selects the instructions that a 5-byte jump covers. A call or system call with a following instruction must not be covered,
 * since threads return there. window_proof.c proves that nothing else leads inside. If fewer than five bytes can be covered, the
 * rest of the jump is the following bytes, as in a pun: the instructions after the last one do not change.
 */
#include "trampoline/arch/x86_64/tactics/window.h"

#include "trampoline/arch/x86_64/asm/encode.h"
#include "trampoline/arch/x86_64/decode/analysis.h"
#include "trampoline/arch/x86_64/tactics/window_proof.h"
#include "trampoline/code/text.h"

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

/* Takes the instruction at ret->covered, or padding if control does not get there. False: it cannot be covered, *why says why. */
static bool take(const struct dp_text *text, uint64_t site, bool reached, struct dp_fit *ret, struct dp_error **why)
{
	const uint64_t at = site + ret->covered;
	struct dp_insn insn;
	size_t n;
	const uint8_t *bytes = dp_text_at(text, at, &n);
	*why = bytes ? dp_decode(bytes, n, at, &insn) : refuse("the executable segment ends after it");
	if (!*why && reached && !in_function(text, at, insn.len))
		*why = refuse("the function ends after it");
	if (!*why && !reached && !dp_insn_is_padding(&insn))
		*why = refuse("control flow ends within the jump, and no padding follows");
	if (*why)
		return false;
	if (ret->covered)
		ret->interior[ret->ninterior++] = ret->covered;
	if (reached)
		ret->insn[ret->ninsns++] = insn;
	ret->covered = (uint8_t)(ret->covered + insn.len);
	ret->heads++;
	return true;
}

/* Covers as many instructions as the jump needs, at most `most`, and none after one to which threads return. */
static struct dp_error *cover(const struct dp_text *text, uint64_t site, uint8_t most, struct dp_fit *ret)
{
	struct dp_error *why = NULL;
	bool reached = true;
	while (ret->covered < DP_JMP_NEAR && ret->heads < most && take(text, site, reached, ret, &why)) {
		const struct dp_insn *last = &ret->insn[ret->ninsns - 1];
		if (reached && ret->covered < DP_JMP_NEAR && returns_behind(last)) {
			why = refuse("a call would return into the jump");
			break;
		}
		reached = reached && dp_insn_continues(last);
	}
	if (ret->covered < DP_JMP_NEAR && !ret->ninterior)
		return why ? why : refuse("no following instruction can be covered");
	dp_error_destroy(why);
	return NULL;
}

/* `text` with its landing pads. */
static struct dp_error *fit(struct dp_analysis *known, const struct dp_text *text, const struct dp_insn *first, uint8_t most,
                            struct dp_fit *ret)
{
	if (!text->pads_known)
		return refuse("the module's landing pads are unknown");
	DP_TRY(cover(text, first->addr, most, ret));
	const struct dp_branch_targets *landings = dp_analysis_branch_targets(known, text);
	if (!landings)
		return dp_error_nomem();
	return dp_window_prove(text, landings, first->addr, ret->interior, ret->ninterior);
}

struct dp_error *dp_window_fit(struct dp_analysis *known, const struct dp_text *text, const struct dp_insn *first, uint8_t most,
                               struct dp_fit *ret)
{
	*ret = (struct dp_fit){0};
	if (!text->size)
		return refuse("its function is unknown");
	struct dp_text complete = *text;
	if (text->read_pads)
		text->read_pads(&complete);
	return fit(known, &complete, first, most, ret);
}
