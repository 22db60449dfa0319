/* SPDX-License-Identifier: MIT */
/* The exact bytes of each kind of instruction after it is moved from FROM to NEAR (in reach) or FAR (out of reach). */
#include "trampoline/arch/x86_64/relocate/relocate.h"

#include <criterion/criterion.h>
#include <string.h>

#define FROM UINT64_C(0x401000)
#define NEAR UINT64_C(0x402000)
#define FAR  UINT64_C(0x7f0000001000)

struct golden {
	const char *name;
	uint64_t to;
	const char *in, *out; /* hex; out NULL: refused */
};

static const struct golden golden[] = {
#include "golden_relocate.def"
};

static size_t parse(const char *hex, uint8_t *bytes)
{
	size_t n = 0;
	for (unsigned v; sscanf(hex, "%2x", &v) == 1; hex += hex[2] ? 3 : 2)
		bytes[n++] = (uint8_t)v;
	return n;
}

static void dump(const uint8_t *bytes, size_t n, char *text)
{
	*text = '\0';
	for (size_t i = 0; i < n; i++)
		text += sprintf(text, "%s%02x", i ? " " : "", bytes[i]);
}

static void check(const struct golden *g)
{
	uint8_t in[32];
	char text[256];
	struct dp_insn insn;
	struct dp_buf out;
	dp_buf_init(&out);
	size_t n = parse(g->in, in);
	cr_assert_null(dp_decode(in, n, FROM, &insn), "%s", g->name);
	cr_expect_eq(insn.len, n, "%s: length %u", g->name, insn.len);
	struct dp_error *err = dp_relocate(&insn, g->to, &out);
	dump(out.data, out.len, text);
	if (g->out)
		cr_expect_str_eq(err ? err->message : text, g->out, "%s: %s", g->name, err ? err->message : text);
	else
		cr_expect(err && err->tag == DP_TAG_UNRELOCATABLE, "%s: became %s", g->name, text);
	dp_error_destroy(err);
	dp_buf_fini(&out);
}

Test(relocate, golden_bytes)
{
	for (size_t i = 0; i < sizeof(golden) / sizeof(*golden); i++)
		check(&golden[i]);
}

/* Threads are moved by the run's pairs: a wrong one runs an instruction twice or not at all. */
Test(relocate, run_pairs_every_instruction_and_jumps_back)
{
	static const uint8_t code[] = {0x31, 0xc0, 0x89, 0xd1, 0x0f, 0x05}; /* xor %eax,%eax; mov %edx,%ecx; syscall */
	struct dp_insn insn[3];
	struct dp_plan plan = {0};
	struct dp_buf out;
	dp_buf_init(&out);
	for (int i = 0; i < 3; i++)
		cr_assert_null(dp_decode(code + 2 * i, 2, FROM + 2 * (uint64_t)i, &insn[i]));
	dp_buf_grow(&out, 16);
	cr_assert_null(dp_relocate_run(insn, 3, NEAR, &out, &plan));
	cr_assert_eq(plan.npairs, 5);
	const struct dp_pc_pair want[] = {{NEAR + 16, FROM, false},
	                                  {NEAR + 18, FROM + 2, false},
	                                  {NEAR + 20, FROM + 4, false},
	                                  {NEAR + 22, FROM + 6, true},
	                                  {NEAR + 29, FROM + 6, false}};
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(plan.pair[i].stub, want[i].stub, "pair %d", i);
		cr_expect_eq(plan.pair[i].original, want[i].original, "pair %d", i);
		cr_expect_eq(plan.pair[i].fix_rcx, want[i].fix_rcx, "pair %d", i);
	}
	struct dp_insn back;
	cr_assert_null(dp_decode(out.data + 29, out.len - 29, NEAR + 29, &back));
	cr_expect_eq(back.flow, DP_FLOW_JMP);
	cr_expect_eq(back.target, FROM + 6);
	cr_expect_eq(out.len, 34);
	dp_buf_fini(&out);
}

Test(relocate, run_that_ends_in_ret_does_not_jump_back)
{
	static const uint8_t ret = 0xc3;
	struct dp_insn insn;
	struct dp_plan plan = {0};
	struct dp_buf out;
	dp_buf_init(&out);
	cr_assert_null(dp_decode(&ret, 1, FROM, &insn));
	cr_assert_null(dp_relocate_run(&insn, 1, NEAR, &out, &plan));
	cr_expect_eq(out.len, 1);
	cr_expect_eq(plan.npairs, 1);
	dp_buf_fini(&out);
}
