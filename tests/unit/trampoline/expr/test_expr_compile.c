/* SPDX-License-Identifier: MIT */
/* A compiled condition gives the reference interpreter's result, for every operator, register part and constant. */
#include "agent/abi.h"
#include "test_stub_machine.h"
#include "trampoline/arch/x86_64/expr/expr.h"

#include <criterion/criterion.h>
#include <stdio.h>

static uint8_t *code, *stack;

static void setup(void)
{
	code = machine_room(false);
	stack = malloc(MACHINE_STACK);
	cr_assert(code && stack);
}

static void teardown(void)
{
	munmap(code, 1 << 20);
	free(stack);
}

static const struct dp_runtime nobody; /* no agent */
static const uint64_t site = UINT64_C(0x5555deadbeef);

/* As in a stub: frame, condition, then the result into the byte `seen`; ends in machine_leave without restoring anything. */
static void compile(const struct dp_expr *e, bool light, uint8_t *seen)
{
	struct dp_buf out;
	struct dp_asm a;
	struct dp_view view = light ? dp_view_light(site) : dp_view_full(site);
	dp_buf_init(&out);
	dp_asm_init(&a, &out, (uint64_t)code);
	struct dp_label yes = dp_asm_label(&a), end = dp_asm_label(&a);
	dp_asm_lea(&a, dp_rm_mem(DP_RSP, -DP_VIEW_RED_ZONE), DP_RSP);
	dp_asm_push(&a, DP_RAX);
	dp_asm_lahf(&a);
	dp_asm_seto_al(&a);
	for (unsigned i = 0; !light && i < 4; i++)
		dp_asm_push(&a, (unsigned[]){DP_RAX, DP_RCX, DP_RDX, DP_RSI}[i]);
	struct dp_expr_code c = {.a = &a, .rt = &nobody, .view = view};
	dp_expr_jump(&c, e, true, yes);
	dp_asm_mov_const(&a, 0, DP_RCX);
	dp_asm_jmp(&a, end);
	dp_asm_bind(&a, yes);
	dp_asm_mov_const(&a, 1, DP_RCX);
	dp_asm_bind(&a, end);
	dp_asm_mov_const(&a, (uint64_t)seen, DP_RDX);
	dp_asm_mov_store(&a, 1, DP_RCX, dp_rm_mem(DP_RDX, 0));
	cr_assert(dp_asm_finish(&a));
	machine_put_leave(&out);
	memcpy(code, out.data, out.len);
	dp_buf_fini(&out);
}

/* Values that make comparisons interesting, often equal to one another. */
static uint64_t pick_value(void)
{
	static const uint64_t edges[] = {0,
	                                 1,
	                                 2,
	                                 0x7f,
	                                 0x80,
	                                 0xff,
	                                 0x100,
	                                 0x7fff,
	                                 0x8000,
	                                 0xffff,
	                                 0x7fffffff,
	                                 0x80000000,
	                                 0xffffffff,
	                                 UINT64_C(1) << 32,
	                                 INT64_MAX,
	                                 1ull << 63,
	                                 UINT64_MAX,
	                                 -128ull,
	                                 -129ull,
	                                 -32768ull,
	                                 0xffffffff80000000,
	                                 0xffffffff7fffffff};
	uint64_t r = machine_random();
	return r % 8 ? edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))] : machine_random();
}

static void pick_state(struct machine *m)
{
	machine_randomize(m, stack);
	for (unsigned r = 0; r < 16; r++)
		if (r != DP_RSP && machine_random() % 4)
			m->gpr[r] = pick_value();
}

static struct dp_regs regs_of(const struct machine *m)
{
	struct dp_regs regs = {.rip = site, .rflags = m->rflags};
	memcpy(regs.gpr, m->gpr, sizeof(regs.gpr));
	return regs;
}

static void check(const struct dp_expr *e, unsigned states, const char *what)
{
	struct machine in, out;
	uint8_t seen = 0;
	for (unsigned light = 0; light <= (unsigned)dp_expr_is_light(e); light++) {
		compile(e, light, &seen);
		for (unsigned i = 0; i < states; i++) {
			pick_state(&in);
			struct dp_regs regs = regs_of(&in);
			seen = 7;
			machine_run(&in, &out, code);
			cr_assert_eq(seen, !!dp_expr_eval(e, &regs), "%s (%s)", what, light ? "light" : "full");
			cr_assert(!light || out.gpr[DP_RAX] >> 16 == in.gpr[DP_RAX] >> 16, "a light condition changed rax");
		}
	}
}

static void check_text(const char *text, bool light)
{
	struct dp_expr *e = NULL;
	struct dp_error *err = dp_expr_parse(text, &e);
	cr_assert(!err, "%s", err ? err->message : "");
	dp_expr_bind(e, dp_addr_of(site));
	cr_expect_eq(dp_expr_is_light(e), light, "%s", text);
	check(e, 200, text);
	dp_expr_destroy(e);
}

Test(expr_compile, register_against_constant_is_light, .init = setup, .fini = teardown)
{
	static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
	static const char *const regs[] = {"rax", "eax", "ax", "al", "ah", "rbx", "bh", "sil", "r8", "r13d", "r15w", "r9b"};
	static const char *const values[] = {"0", "1", "127", "128", "255"};
	char text[64];
	for (size_t r = 0; r < sizeof(regs) / sizeof(regs[0]); r++)
		for (size_t o = 0; o < 6; o++)
			for (size_t v = 0; v < 5; v++) {
				snprintf(text, sizeof(text), "%s %s %s", regs[r], ops[o], values[v]);
				check_text(text, true);
				snprintf(text, sizeof(text), "%s %s %s", values[v], ops[o], regs[r]);
				check_text(text, true);
			}
}

Test(expr_compile, light_forms, .init = setup, .fini = teardown)
{
	check_text("rdi", true);
	check_text("!bh", true);
	check_text("rdi & 0x80", true);
	check_text("(al & 0x180) == 0", true);
	check_text("(r9w & 0x8000) != 0 && rsi", true);
	check_text("rax == rbx", true);
	check_text("rbx < rax || rdi >= rsi", true);
	check_text("!(rdi == 1 && rsi == 2) || (rdx < -128 && rcx > 2147483647)", true);
	check_text("edi == 0xffffffff || edi < 0x80000000", true);
	check_text("1", true);
	check_text("3 - 3 || rdi", true);
	check_text("rip == 0x5555deadbeef && rdi != 0", true);
}

Test(expr_compile, full_forms, .init = setup, .fini = teardown)
{
	check_text("rsp & 7", false);
	check_text("esp > 0x1000 && spl < 9", false);
	check_text("rdi == 0x123456789abcdef", false);
	check_text("edi == 0x1ffffffff", false);
	check_text("rflags & 0x400", false);
	check_text("(rflags & 0x8d5) == 0 || rdi", false);
	check_text("rflags + rax * rflags - rdx > rcx", false);
	check_text("rax == eax", false);
	check_text("rcx == (rdx << rcx)", false);
	check_text("(rax >> 65) + (rbx >> rcx) < 0", false);
	check_text("rax > 0x8000000000000000", false);
	check_text("rdi + rsi == rsi - -rdi", false);
	check_text("(rdi == rsi) + (rdx == rcx) + !rax == 2", false);
	check_text("~(rax ^ rbx) & (rcx | rdx)", false);
	check_text("rax * rbx + (rflags & 0x800) == rax * rbx", false);
}

/* ---- random trees ---- */

static struct dp_expr pool[64];
static unsigned used;

static struct dp_expr *leaf(void)
{
	static const uint8_t sizes[] = {1, 2, 4, 8, 8, 8};
	struct dp_expr *e = &pool[used++];
	*e = (struct dp_expr){.kind = DP_EXPR_CONST, .value = pick_value()};
	uint64_t r = machine_random();
	if (r % 8 == 0) {
		e->kind = DP_EXPR_RFLAGS;
	} else if (r % 8 < 6) {
		e->kind = DP_EXPR_REG;
		e->reg = r >> 8 & 15;
		e->size = sizes[(r >> 16) % 6];
		e->shift = e->size == 1 && e->reg < 4 && (r >> 32 & 1) ? 8 : 0;
	}
	return e;
}

static struct dp_expr *tree(unsigned depth)
{
	uint64_t r = machine_random();
	if (depth == 0 || r % 8 == 0 || used > 50)
		return leaf();
	struct dp_expr *e = &pool[used++];
	*e = (struct dp_expr){.kind = r % 5 ? DP_EXPR_BINARY : DP_EXPR_UNARY};
	if (e->kind == DP_EXPR_UNARY) {
		e->op = (enum dp_expr_op)((r >> 8) % 3);
		e->a = tree(depth - 1);
		return e;
	}
	e->op = (enum dp_expr_op)(DP_OP_MUL + (r >> 8) % (DP_OP_LOR - DP_OP_MUL + 1));
	e->a = tree(depth - 1);
	e->b = tree(depth - 1);
	return e;
}

Test(expr_compile, random_trees, .init = setup, .fini = teardown)
{
	char what[32];
	for (unsigned i = 0; i < 20000; i++) {
		used = 0;
		snprintf(what, sizeof(what), "tree %u", i);
		check(tree(1 + i % 5), 4, what);
	}
}

/* ---- limits ---- */

/* A complete binary tree of additions over products that cannot be folded into an operand. */
static struct dp_expr *full_tree(struct dp_expr **next, unsigned depth)
{
	struct dp_expr *e = (*next)++;
	*e = (struct dp_expr){.kind = DP_EXPR_RFLAGS};
	if (depth) {
		*e = (struct dp_expr){.kind = DP_EXPR_BINARY, .op = DP_OP_ADD};
		e->a = full_tree(next, depth - 1);
		e->b = full_tree(next, depth - 1);
	}
	return e;
}

Test(expr_compile, pushes_are_bounded, .init = setup, .fini = teardown)
{
	struct dp_expr *nodes = calloc(2048, sizeof(*nodes)), *next = nodes;
	check(full_tree(&next, 7), 3, "as many nodes as a condition may have"); /* 255 of them */
	struct dp_buf out;
	struct dp_asm a;
	struct dp_view view = dp_view_full(site);
	dp_buf_init(&out);
	dp_asm_init(&a, &out, 0);
	next = nodes;
	struct dp_expr_code c = {.a = &a, .rt = &nobody, .view = view};
	dp_expr_jump(&c, full_tree(&next, 9), false, dp_asm_label(&a));
	cr_expect(a.failed, "more words were pushed than the stub's stack bound allows");
	dp_buf_fini(&out);
	free(nodes);
}
