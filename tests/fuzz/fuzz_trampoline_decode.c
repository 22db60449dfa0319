/* SPDX-License-Identifier: MIT */
/*
 * Arbitrary bytes as code: decoding, boundaries, tactics and relocation must neither crash nor contradict themselves.
 *   clang -fsanitize=fuzzer,address,undefined
 */
#include "trampoline/arch/x86_64/relocate.h"
#include "trampoline/arch/x86_64/tactics.h"
#include "trampoline/text.h"

#include <stdlib.h>
#include <string.h>

#define AT UINT64_C(0x555555555000)

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* The relocated form consists of instructions, but for the quadwords of far jumps. */
static void walk(const struct dp_buf *code, uint64_t base)
{
	for (size_t at = 0; at < code->len;) {
		struct dp_insn insn;
		require(dp_decode_zydis(code->data + at, code->len - at, base + at, &insn));
		bool far = insn.flow == DP_FLOW_JMP_IND && insn.len == 6 && !memcmp(insn.bytes, "\xff\x25\0\0\0\0", 6);
		at += insn.len + (far ? 8U : 0);
	}
}

static void relocate(const struct dp_insn *insn, uint64_t to)
{
	struct dp_plan plan = {0};
	struct dp_buf out;
	dp_buf_init(&out);
	struct dp_error *err = dp_relocate_run(insn, 1, to, &out, &plan);
	if (!err)
		walk(&out, to);
	require(err || plan.npairs >= 1);
	dp_error_destroy(err);
	dp_buf_fini(&out);
}

static void try_tactics(const struct dp_text *text, const struct dp_insn *insn)
{
	for (size_t i = 0; i < dp_ntactics; i++) {
		struct dp_fit fit;
		struct dp_error *err = dp_tactics[i].fit(text, insn, &fit);
		require(err || (fit.ninsns && fit.njumps && fit.ninterior <= 4));
		for (int k = 0; !err && k < fit.njumps; k++) {
			struct dp_insn jump;
			uint8_t bytes[16] = {0};
			size_t n;
			const uint8_t *old = dp_text_at(text, insn->addr, &n);
			memcpy(bytes, old, n < sizeof(bytes) ? n : sizeof(bytes));
			dp_jump_encode(&fit.jump[k], insn->addr, fit.jump[k].hi, bytes);
			require(dp_decode_zydis(bytes, sizeof(bytes), insn->addr, &jump) && jump.target == fit.jump[k].hi);
		}
		dp_error_destroy(err);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dp_segment segment = {AT, data, size, true};
	struct dp_text text = {.segment = &segment, .nsegments = 1, .function = AT, .size = size, .pads_known = true};
	struct dp_insn insn;
	char name[DP_INSN_TEXT];
	if (!size)
		return 0;
	dp_error_destroy(dp_text_check_boundary(&text, AT + size / 2));
	struct dp_error *err = dp_decode(data, size, AT, &insn);
	if (!err) {
		require(insn.len <= size && *dp_insn_text(&insn, name));
		relocate(&insn, AT + 0x100000);
		relocate(&insn, AT + UINT64_C(0x100000000000));
		try_tactics(&text, &insn);
	}
	dp_error_destroy(err);
	return 0;
}
