/* SPDX-License-Identifier: MIT */
/*
 * Random expressions of every kind, over registers, vector registers and partly unmapped memory, compiled at the lowest level
 * that they need. They give the reference interpreter's result, fail where it fails, and leave the machine state unchanged.
 */
#include "test_expr_machine.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define MEMORY ((void *)0x150000000000) /* far from [vvar], which instructions can read but system calls cannot */
enum { PAGE = 4096, PAGES = 6, NODES = 64, NOTHING = 7 };
#define STACK_BOUND 320u

static uint8_t *memory; /* every other page is readable */

static void setup(void)
{
	cr_assert(expr_machine_setup());
	memory = mmap(MEMORY, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert(memory != MAP_FAILED);
	for (unsigned i = 1; i < PAGES; i += 2)
		mprotect(memory + i * PAGE, PAGE, PROT_NONE);
}

/* ---- trees ------------------------------------------------------------------------------------------------------------ */

static struct dp_expr pool[NODES];
static char texts[NODES][48];
static unsigned used;

/* Often near the end of readable memory. */
static uint64_t pick_address(void)
{
	uint64_t r = machine_random(), page = (uint64_t)memory + r % (PAGES / 2) * 2 * PAGE;
	switch (r >> 8 & 7) {
	case 0:
		return machine_random();
	case 1:
	case 2:
		return page + PAGE - (r >> 16) % 48;
	case 3:
		return page - (r >> 16) % 8;
	default:
		return page + (r >> 16) % (PAGE - 8);
	}
}

static uint64_t pick_value(void)
{
	static const uint64_t edges[] = {
	        0,          1,          2,          0x7f,      0x80,       0xff,       0x100,   0xffff,
	        0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63, UINT64_MAX, -128ull, 0xffffffff80000000};
	uint64_t r = machine_random();
	return r % 3 == 0 ? pick_address() : r % 3 == 1 ? edges[(r >> 8) % 16] : machine_random();
}

static struct dp_expr *node(enum dp_expr_kind kind)
{
	struct dp_expr *e = &pool[used++];
	*e = (struct dp_expr){.kind = kind};
	return e;
}

static struct dp_expr *tree(unsigned depth);
static struct dp_expr *floating(unsigned depth);

static struct dp_expr *leaf(void)
{
	static const uint8_t sizes[] = {1, 2, 4, 8, 8, 8};
	struct dp_expr *e = node(DP_EXPR_CONST);
	uint64_t r = machine_random();
	e->value = pick_value();
	switch (r % 12) {
	case 0:
		e->kind = DP_EXPR_RFLAGS;
		break;
	case 1:
		e->kind = DP_EXPR_THREAD;
		break;
	case 2:
		e->kind = DP_EXPR_XMM;
		e->reg = r >> 8 & 15;
		e->size = r >> 16 & 1 ? 4 : 8;
		break;
	case 3:
		e->kind = DP_EXPR_FACT;
		e->value = r >> 8 & 1 ? DP_FACT_PID : DP_FACT_TID;
		break;
	case 4:
	case 5:
		break;
	default:
		e->kind = DP_EXPR_REG;
		e->reg = r >> 8 & 15;
		e->size = sizes[(r >> 16) % 6];
		e->shift = e->size == 1 && e->reg < 4 && (r >> 32 & 1) ? 8 : 0;
	}
	return e;
}

static struct dp_expr *loading(unsigned depth)
{
	uint64_t r = machine_random();
	struct dp_expr *e = node(DP_EXPR_LOAD), *sum;
	e->size = (uint8_t)(1 << (r & 3));
	e->is_signed = r >> 2 & 1;
	if (r >> 3 & 1) {
		e->a = tree(depth - 1);
		return e;
	}
	sum = e->a = node(DP_EXPR_BINARY); /* a pointer and an offset */
	sum->op = DP_OP_ADD;
	sum->a = tree(depth - 1);
	sum->b = node(DP_EXPR_CONST);
	sum->b->value = (uint64_t)((int64_t)(r >> 8 & 0xff) - 64);
	return e;
}

/* A string that often equals what is in memory. */
static struct dp_expr *matching(unsigned depth)
{
	uint64_t r = machine_random(), at = (uint64_t)memory + (r >> 8) % (PAGE - 64);
	struct dp_expr *e = node(DP_EXPR_MATCH);
	char *text = texts[used];
	size_t n = (r >> 40) % (sizeof(texts[0]) - 1);
	e->match = (enum dp_match)(r % 3);
	e->text = text;
	memset(text, 0, sizeof(texts[0]));
	strncpy(text, (const char *)at, n);
	for (size_t i = 0; text[i]; i++)
		if (text[i] == '*' || machine_random() % 16 == 0)
			text[i] = "?*x"[machine_random() % 3];
	e->a = node(DP_EXPR_CONST);
	e->a->value = r >> 4 & 3 ? at : pick_address();
	if (depth > 1 && r >> 6 & 1)
		e->a = tree(depth - 1);
	if (e->match == DP_MATCH_GLOB && depth > 1 && r >> 60 & 1) { /* of a length that often is that of the text */
		e->b = r >> 61 & 1 ? tree(depth - 1) : node(DP_EXPR_CONST);
		e->b->value = e->b->kind == DP_EXPR_CONST ? n : e->b->value;
		e->is_signed = r >> 62 & 1;
	}
	return e;
}

static struct dp_expr *binary(enum dp_expr_op op, struct dp_expr *a, struct dp_expr *b)
{
	struct dp_expr *e = node(DP_EXPR_BINARY);
	e->op = op;
	e->a = a;
	e->b = b;
	return e;
}

static struct dp_expr *unary(enum dp_expr_op op, struct dp_expr *a)
{
	struct dp_expr *e = node(DP_EXPR_UNARY);
	e->op = op;
	e->a = a;
	return e;
}

/* A double. If both operands of an addition are NaN, the compiler chooses the result: so at most one operand may be a NaN. */
static struct dp_expr *floating(unsigned depth)
{
	uint64_t r = machine_random();
	if (depth < 2 || r % 4 == 0)
		return r & 32 ? unary(r & 16 ? DP_OP_I2D : DP_OP_U2D, leaf())
		              : unary(DP_OP_F2D, unary(r & 16 ? DP_OP_I2F : DP_OP_U2F, leaf()));
	if (r % 4 == 1)
		return unary(DP_OP_FNEG, floating(depth - 1));
	if (r % 4 == 2)
		return unary(DP_OP_F2D, unary(DP_OP_D2F, floating(depth - 1)));
	struct dp_expr *a = floating(depth - 1), *b = floating(depth - 2);
	return binary((enum dp_expr_op)(DP_OP_FADD + (r >> 8) % 4), a, b);
}

static struct dp_expr *of_floats(unsigned depth)
{
	uint64_t r = machine_random();
	if (r % 2)
		return unary(r & 256 ? DP_OP_D2I : DP_OP_D2U, floating(depth));
	struct dp_expr *a = floating(depth), *b = floating(depth);
	return binary((enum dp_expr_op)(DP_OP_FEQ + (r >> 8) % 6), a, b);
}

static struct dp_expr *tree(unsigned depth)
{
	static const uint8_t ops[] = {DP_OP_MUL, DP_OP_ADD,  DP_OP_SUB,  DP_OP_SHL, DP_OP_SHR,  DP_OP_AND, DP_OP_XOR,
	                              DP_OP_OR,  DP_OP_EQ,   DP_OP_NE,   DP_OP_LT,  DP_OP_LE,   DP_OP_GT,  DP_OP_GE,
	                              DP_OP_ULT, DP_OP_ULE,  DP_OP_UGT,  DP_OP_UGE, DP_OP_LAND, DP_OP_LOR, DP_OP_DIV,
	                              DP_OP_MOD, DP_OP_UDIV, DP_OP_UMOD, DP_OP_LSHR};
	uint64_t r = machine_random();
	if (depth == 0 || r % 8 == 0 || used > NODES - 24)
		return leaf();
	struct dp_expr *e;
	switch (r >> 8 & 15) {
	case 0:
	case 1:
	case 2:
		return loading(depth);
	case 3:
	case 4:
		e = node(DP_EXPR_CAST);
		e->size = (uint8_t)(1 << (r >> 16 & 3));
		e->is_signed = r >> 18 & 1;
		e->a = tree(depth - 1);
		return e;
	case 5:
		e = node(DP_EXPR_COND);
		e->c = tree(depth - 1);
		e->a = tree(depth - 1);
		e->b = tree(depth - 1);
		return e;
	case 6:
		return unary((enum dp_expr_op)((r >> 16) % 3), tree(depth - 1));
	case 7:
		return matching(depth);
	case 8:
		return of_floats(depth < 3 ? depth : 3);
	default:
		e = tree(depth - 1);
		return binary((enum dp_expr_op)ops[(r >> 16) % sizeof(ops)], e, tree(depth - 1));
	}
}

/* ---- running ---------------------------------------------------------------------------------------------------------- */

static void check_state(const struct machine *in, const struct machine *out, const uint8_t *before, unsigned i)
{
	size_t top = in->gpr[4] - (uint64_t)stack;
	cr_assert_arr_eq(out->gpr, in->gpr, sizeof(in->gpr), "tree %u: registers", i);
	cr_assert_eq(out->rflags, in->rflags, "tree %u: flags %lx not %lx", i, out->rflags, in->rflags);
	cr_assert_arr_eq(out->xmm, in->xmm, sizeof(in->xmm), "tree %u: vector registers", i);
	cr_assert_arr_eq(stack + top - 128, before + top - 128, MACHINE_STACK - top + 128, "tree %u: red zone or stack", i);
	cr_assert_arr_eq(stack, before, top - STACK_BOUND, "tree %u: stack bound", i);
}

/* The machine's state, with pointers in it, and MXCSR with any rounding, any sticky flags, any exceptions unmasked. */
static void run_once(const struct dp_expr *e, bool truth, struct verdict *v, unsigned i)
{
	static uint8_t before[MACHINE_STACK];
	struct machine in, out;
	uint64_t xmm[16][2], want = 0;
	machine_randomize(&in, stack);
	for (unsigned r = 0; r < 16; r++)
		if (r != 4 && machine_random() % 2)
			in.gpr[r] = pick_value();
	memcpy(xmm, in.xmm, sizeof(xmm));
	struct dp_regs regs = {.rflags = in.rflags};
	memcpy(regs.gpr, in.gpr, sizeof(regs.gpr));
	const struct dp_expr_env world = {&regs, (const uint64_t(*)[2])xmm, thread_pointer(), fact, read_self, NULL};
	machine_fill(stack);
	memcpy(before, stack, sizeof(before));
	bool good = dp_expr_eval_in(e, &world, &want);
	*v = (struct verdict){truth ? 0 : NOTHING, 0};
	uint32_t control = (uint32_t)machine_random() & 0xffff, after = 0, usual = 0x1f80;
	control &= ~0x3fu | ~control >> 7; /* no flag of an unmasked exception, which would trap at once */
	__asm__ volatile("ldmxcsr %0" ::"m"(control));
	machine_run(&in, &out, code);
	__asm__ volatile("stmxcsr %0; ldmxcsr %1" : "=m"(after) : "m"(usual));
	check_state(&in, &out, before, i);
	cr_assert_eq(after, control, "tree %u: MXCSR %x not %x", i, after, control);
	cr_assert_eq(v->failed, !good, "tree %u: %s", i, good ? "failed" : "did not fail");
	if (good)
		cr_assert_eq(v->value, truth ? !!want : want, "tree %u: %lx not %lx (%s)", i, v->value, want,
		             truth ? "truth" : "value");
	else
		cr_assert_eq(v->value, truth ? 0 : NOTHING, "tree %u: it failed, but has a value", i);
}

static void refill(void)
{
	for (unsigned p = 0; p < PAGES; p += 2)
		for (size_t i = 0; i < PAGE; i += 8)
			memcpy(memory + p * PAGE + i,
			       &(uint64_t){machine_random() % 2 ? pick_address() : machine_random() & 0x0061006362616261}, 8);
}

static void run(unsigned trees)
{
	static struct verdict v;
	unsigned compiled = 0, failures = 0;
	setup();
	for (unsigned i = 0; i < trees; i++) {
		if (i % 256 == 0)
			refill();
		used = 0;
		rt.faults = machine_random() % 4 != 0;
		rt.identity = machine_random() % 8 ? DP_ID_SELF : DP_ID_TID;
		const struct dp_expr *e = tree(1 + i % 6);
		for (unsigned truth = 0; truth < 2; truth++) {
			if (!compile(e, truth, &v))
				continue;
			compiled++;
			for (unsigned n = 0; n < 4; n++) {
				run_once(e, truth, &v, i);
				failures += v.failed != 0;
			}
		}
	}
	cr_expect_eq(compiled, 2 * trees, "all but %u compiled", 2 * trees - compiled);
	cr_expect(failures > trees / 20 && faults > trees / 20, "%u failures, %u faults", failures, faults);
}

Test(expr_random, decides_as_the_interpreter)
{
	run(6000);
}
