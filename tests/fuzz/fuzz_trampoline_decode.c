/* SPDX-License-Identifier: MIT */
/*
 * Arbitrary bytes as code: decoding, boundaries, tactics and relocation must neither crash nor contradict themselves.
 *   clang -fsanitize=fuzzer,address,undefined
 */
#include "trampoline/arch/x86_64/relocate/relocate.h"
#include "trampoline/arch/x86_64/tactics/tactics.h"
#include "trampoline/code/text.h"

#include <stdlib.h>
#include <string.h>

#define AT UINT64_C(0x555555555000)

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* The relocated form consists of instructions, except the quadwords of far jumps. */
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

/* Applies the plans in their order; each finds the bytes that it expects. */
static void write_plans(struct dp_planner *planner, const uint8_t *data, size_t size)
{
	const struct dp_plan *plan;
	const size_t n = dp_planner_plans(planner, &plan);
	uint8_t *copy = malloc(size);
	require(copy);
	memcpy(copy, data, size);
	for (size_t i = 0; i < n; i++) {
		require(plan[i].changed <= plan[i].len && plan[i].site - AT + plan[i].len <= size);
		require(!memcmp(copy + (plan[i].site - AT), plan[i].old_bytes, plan[i].len));
		memcpy(copy + (plan[i].site - AT), plan[i].new_bytes, plan[i].changed);
	}
	free(copy);
}

static void plan_all(const struct dp_text *text, const uint8_t *data, size_t size)
{
	static const struct dp_fields no_fields;
	static const struct dp_runtime runtime = {.agent = 0x10000000, .acquire = 0x10100000, .tid_offset = 0x2d0};
	struct dp_space *space;
	struct dp_planner *planner;
	struct dp_insn insn;
	require(!dp_space_create(&space) && !dp_space_reserve(space, AT, AT + size) &&
	        !dp_planner_create(space, &runtime, &planner));
	for (size_t at = 0; at < size && at < 64 && dp_decode_zydis(data + at, size - at, AT + at, &insn); at += insn.len) {
		const struct dp_request request = {
		        .site = AT + at, .text = text, .fields = &no_fields, .lost = 0x20000000, .tactics = DP_TACTICS_LIVE};
		struct dp_plan plan;
		dp_error_destroy(dp_planner_add(planner, &request, &plan));
	}
	write_plans(planner, data, size);
	dp_planner_destroy(planner);
	dp_space_destroy(space);
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
		plan_all(&text, data, size);
	}
	dp_error_destroy(err);
	return 0;
}
