/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions with both back ends: values in a frame, and computations at a site. The results must be equal, and each must
 * end.
 */
#include "agent/abi.h"
#include "pmodules/frames/frames.h"
#include "probes/dwarf/dwarf_machine.h"
#include "probes/expr/scope/scope_internal.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RAX = 0, RBX = 3, OPS_MAX = 24, PROGRAMS = 20000 };
#define MEMORY UINT64_C(0x5000)

static uint8_t memory[4096];
static struct dp_regs regs;
static struct dp_debug_ctx *world;
static struct dp_image *image;
static struct dp_fplan plan;
static struct dp_fstate frame = {.plan = &plan, .cfa = 0x7000, .regs.known = (1u << DP_DWARF_REGS) - 1};

static size_t read_page(uint64_t addr, void *buf, size_t n, bool *late, void *data)
{
	(void)data;
	*late = false;
	if (addr < MEMORY || addr >= MEMORY + sizeof(memory))
		return 0;
	n = n < MEMORY + sizeof(memory) - addr ? n : MEMORY + sizeof(memory) - addr;
	memcpy(buf, memory + (addr - MEMORY), n);
	return n;
}

static bool read_here(uint64_t addr, void *buf, size_t n, void *data)
{
	return dp_debug_ctx_get(data, addr, buf, n, NULL);
}

static void set_up(void)
{
	static const uint8_t number[16] = {0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
	cr_assert_null(dp_image_create("", "", 0, &image));
	cr_assert_null(dp_debug_ctx_create(image, read_page, NULL, &world));
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + 1);
	for (unsigned i = 0; i < 16; i++) {
		frame.regs.value[i] = MEMORY + 64 * i;
		regs.gpr[number[i]] = frame.regs.value[i];
	}
	plan = (struct dp_fplan){0};
}

static void tear_down(void)
{
	dp_debug_ctx_destroy(world);
	dp_image_destroy(image);
}

TestSuite(dwarf_machine, .init = set_up, .fini = tear_down);

/* ---- both ways ---------------------------------------------------------------------------------------------------------- */

static const char *by_number(const Dwarf_Op *ops, size_t n, uint64_t *ret)
{
	const struct dp_eval e = {.w = world, .frame = &frame, .base = &plan.base};
	return dp_eval_number(&e, ops, n, ret);
}

/* The value that the stub would compute; false: the stub would report a failure. */
static const char *by_stub(Dwarf_Op *ops, size_t n, uint64_t *ret, bool *done)
{
	struct dp_scope s = {.cfa_asked = true};
	const struct dp_expr_env at = {.regs = &regs, .read = read_here, .data = world};
	const char *absent = NULL;
	s.cfa = dp_build_const(&s.arena, frame.cfa);
	struct dp_expr *e = dp_location_value(&s, NULL, ops, n, &absent), *tree = NULL;
	struct dp_error *err = e ? dp_build_finish(e, &tree) : NULL;
	*done = tree && dp_expr_eval_in(tree, &at, ret);
	dp_error_destroy(err);
	dp_expr_destroy(tree);
	dp_arena_fini(&s.arena);
	return e ? NULL : absent;
}

/* Gives each operation the offset that it has in a file, for jumps. */
static void lay_out(Dwarf_Op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ops[i].offset = 3 * i;
}

#define EXPECT(result, ...)                                                                                                      \
	do {                                                                                                                     \
		Dwarf_Op ops[] = {__VA_ARGS__};                                                                                  \
		expect(__LINE__, result, ops, sizeof(ops) / sizeof(*ops));                                                       \
	} while (0)
#define FAIL(why, ...) cr_expect_str_eq(number_of((Dwarf_Op[]){__VA_ARGS__}, sizeof((Dwarf_Op[]){__VA_ARGS__}), NULL), why)
#define EXPECT_NUMBER(result, ...)                                                                                               \
	do {                                                                                                                     \
		uint64_t number = 0;                                                                                             \
		cr_expect_null(number_of((Dwarf_Op[]){__VA_ARGS__}, sizeof((Dwarf_Op[]){__VA_ARGS__}), &number));                \
		cr_expect_eq(number, result);                                                                                    \
	} while (0)

static const char *number_of(Dwarf_Op *ops, size_t size, uint64_t *ret)
{
	uint64_t v;
	lay_out(ops, size / sizeof(*ops));
	return by_number(ops, size / sizeof(*ops), ret ? ret : &v);
}

static void expect(int line, uint64_t result, Dwarf_Op *ops, size_t n)
{
	uint64_t v = 0, stub = 0;
	bool done;
	lay_out(ops, n);
	const char *why = by_number(ops, n, &v), *absent = by_stub(ops, n, &stub, &done);
	cr_expect_null(why, "line %d: %s", line, why);
	cr_expect_eq(v, result, "line %d: 0x%" PRIx64, line, v);
	cr_expect(!absent && done && stub == result, "line %d: by the stub: %s, 0x%" PRIx64, line, absent ? absent : "", stub);
}

#define OP(name)                                                                                                                 \
	{                                                                                                                        \
		.atom = DW_OP_##name                                                                                             \
	}
#define OP1(name, operand)                                                                                                       \
	{                                                                                                                        \
		.atom = DW_OP_##name, .number = (Dwarf_Word)(operand)                                                            \
	}

Test(dwarf_machine, the_generic_type_is_signed_but_for_mod_and_shr)
{
	EXPECT((uint64_t)-3, OP1(const1s, -7), OP(lit2), OP(div));
	EXPECT((UINT64_MAX - 6) % 4, OP1(const1s, -7), OP(lit4), OP(mod));
	EXPECT(1, OP1(const1s, -1), OP(lit0), OP(lt));
	EXPECT(0, OP1(const1s, -1), OP(lit0), OP(ge));
	EXPECT(UINT64_MAX >> 1, OP1(const1s, -1), OP(lit1), OP(shr));
	EXPECT(UINT64_MAX, OP1(const1s, -2), OP(lit1), OP(shra));
	EXPECT(7, OP1(const1s, -7), OP(abs));
	EXPECT(7, OP(lit7), OP(abs));
	EXPECT((uint64_t)-7, OP(lit7), OP(neg));
	EXPECT(~UINT64_C(7), OP(lit7), OP(not ));
}

Test(dwarf_machine, what_is_shifted_out_is_gone)
{
	EXPECT(0, OP1(const1s, -1), OP1(const1u, 64), OP(shl));
	EXPECT(0, OP1(const1s, -1), OP1(const1u, 200), OP(shr));
	EXPECT(UINT64_MAX, OP1(const1s, -2), OP1(const1u, 64), OP(shra));
	EXPECT(UINT64_C(1) << 63, OP(lit1), OP1(const1u, 63), OP(shl));
}

Test(dwarf_machine, the_stack_is_moved_as_the_standard_draws_it)
{
	EXPECT(2, OP(lit1), OP(lit2), OP(swap), OP(drop));
	EXPECT(1, OP(lit1), OP(lit2), OP(over), OP(swap), OP(drop));
	EXPECT(1 * 16 + 3, OP(lit2), OP(lit1), OP(lit3), OP1(pick, 1), OP(lit16), OP(mul), OP(plus));
	/* rot: the top goes third; 1 2 3 -> 3 1 2 */
	EXPECT(3 * 256 + 1 * 16 + 2, OP(lit1), OP(lit2), OP(lit3), OP(rot), OP(rot), OP(rot), OP(rot), OP(swap), OP(lit16),
	       OP(mul), OP(plus), OP(swap), OP1(const2u, 256), OP(mul), OP(plus));
}

Test(dwarf_machine, registers_memory_and_the_frame)
{
	EXPECT(frame.cfa, OP(call_frame_cfa));
	EXPECT(MEMORY + 64 * RBX + 5, OP1(breg3, 5));
	EXPECT(MEMORY + 64 * 12, {.atom = DW_OP_bregx, .number = 12});
	EXPECT(MEMORY + 64 * RBX, OP(reg3));
	EXPECT(1 + (8 << 8), OP1(breg0, 0), OP1(deref_size, 2));
	EXPECT(frame.cfa - 16 + 3, OP(call_frame_cfa), OP1(const1s, -16), OP(plus), OP1(plus_uconst, 3));
}

Test(dwarf_machine, jumps_lead_where_they_say)
{
	EXPECT(5, OP(lit1), OP1(bra, 3), OP(lit9), OP(lit5));
	EXPECT(9, OP(lit9), OP(lit0), OP1(bra, 3), OP(nop), OP(nop));
	EXPECT(4, OP(lit4), OP1(skip, 3), OP(drop));
	/* A counting loop with a jump back; three rounds: 3 + 2 + 1. */
	EXPECT(6, OP(lit0), OP(lit3), OP(swap), OP(over), OP(plus), OP(swap), OP(lit1), OP(minus), OP(dup), OP1(bra, -3 * 8),
	       OP(drop));
}

/* ---- expressions to refuse ---------------------------------------------------------------------------------------------- */

Test(dwarf_machine, an_expression_without_end_ends)
{
	FAIL(DP_ABSENT_ENDLESS, OP1(skip, -3));
	FAIL(DP_ABSENT_ENDLESS, OP(lit1), OP(dup), OP1(bra, -6));
	FAIL(DP_ABSENT_UNKNOWN, OP(lit1), OP(dup), OP1(skip, -6)); /* the stack overflows first */
	FAIL(DP_ABSENT_UNKNOWN, OP(lit1), OP1(skip, -4), OP(nop)); /* into the middle of an operation */
}

Test(dwarf_machine, the_stack_has_two_ends)
{
	FAIL(DP_ABSENT_UNKNOWN, OP(plus));
	FAIL(DP_ABSENT_UNKNOWN, OP(lit1), OP(plus));
	FAIL(DP_ABSENT_UNKNOWN, OP(lit1), OP(lit1), OP(rot));
	FAIL(DP_ABSENT_UNKNOWN, OP(lit1), OP1(pick, 1));
	FAIL(DP_ABSENT_UNKNOWN, OP(lit1), OP1(pick, UINT64_MAX));
	FAIL(DP_ABSENT_UNKNOWN, OP(drop));
	FAIL(DP_ABSENT_UNKNOWN, OP(nop));
}

Test(dwarf_machine, nothing_is_divided_by_zero)
{
	FAIL(DP_ABSENT_DIVIDES, OP(lit1), OP(lit0), OP(div));
	FAIL(DP_ABSENT_DIVIDES, OP(lit1), OP(lit0), OP(mod));
	EXPECT(UINT64_C(1) << 63, OP1(const8u, UINT64_C(1) << 63), OP1(const1s, -1), OP(div));
}

Test(dwarf_machine, what_is_not_known_is_not_guessed)
{
	FAIL(DP_ABSENT_UNKNOWN, {.atom = 0xff});
	FAIL(DP_ABSENT_UNKNOWN, OP(lit1), OP(xderef));
	FAIL(DP_ABSENT_UNKNOWN, OP1(addr, 0x1000)); /* in no module */
	FAIL(DP_ABSENT_CALLERS, OP1(GNU_parameter_ref, 16), OP(stack_value));
	FAIL("the memory that holds its location cannot be read", OP(lit0), OP(deref));
	FAIL(DP_ABSENT_OPTIMIZED, {.atom = DW_OP_bregx, .number = 77});
	frame.regs.known &= ~(1u << RBX);
	FAIL(DP_ABSENT_OPTIMIZED, OP(breg3));
	frame.regs.known |= 1u << RBX;
}

Test(dwarf_machine, a_frame_base_that_counts_from_itself_goes_in_a_circle)
{
	Dwarf_Op base[] = {OP1(fbreg, 8)};
	plan.base.ops = base;
	plan.base.n = 1;
	FAIL(DP_ABSENT_CIRCLE, OP1(fbreg, 16));
}

Test(dwarf_machine, frame_bases_of_frame_bases_share_one_budget)
{
	static Dwarf_Op base[3000];
	for (size_t i = 0; i < 3000; i++)
		base[i] = (Dwarf_Op)OP(nop);
	base[0] = (Dwarf_Op)OP(lit1);
	plan.base.ops = base;
	plan.base.n = 3000;
	EXPECT_NUMBER(2, OP1(fbreg, 1));
	FAIL(DP_ABSENT_ENDLESS, OP1(fbreg, 1), OP(drop), OP1(fbreg, 1));
}

/* ---- pieces ------------------------------------------------------------------------------------------------------------- */

static struct dp_value place_of(Dwarf_Op *ops, size_t n, uint64_t size)
{
	static struct dp_ctype type;
	const struct dp_eval e = {.w = world, .frame = &frame, .base = &plan.base};
	type = (struct dp_ctype){.kind = DP_CTYPE_OTHER, .size = size};
	struct dp_value v = {.w = world, .type = &type};
	lay_out(ops, n);
	dp_eval_place(&e, ops, n, &v);
	return v;
}

Test(dwarf_machine, pieces_stand_behind_each_other_and_gaps_stay_gaps)
{
	Dwarf_Op ops[] = {OP(reg3), OP1(piece, 2), OP1(piece, 1), OP1(breg0, 1), OP1(bit_piece, 16)};
	const struct dp_value v = place_of(ops, 5, 8);
	cr_assert_eq(v.where, DP_VALUE_BYTES);
	cr_expect_arr_eq(v.bytes, &frame.regs.value[RBX], 2);
	cr_expect_arr_eq(v.bytes + 3, memory + 1, 2);
	cr_expect_arr_eq(v.valid, ((uint8_t[]){1, 1, 0, 1, 1, 0, 0, 0}), 8);
}

Test(dwarf_machine, behind_a_piece_of_odd_bits_nothing_is_known)
{
	Dwarf_Op ops[] = {OP(reg3), OP1(piece, 2), OP(reg0), OP1(bit_piece, 3), OP(reg0), OP1(piece, 1)};
	const struct dp_value v = place_of(ops, 6, 8);
	cr_assert_eq(v.where, DP_VALUE_BYTES);
	cr_expect_arr_eq(v.valid, ((uint8_t[]){1, 1, 0, 0, 0, 0, 0, 0}), 8);
}

Test(dwarf_machine, pieces_in_a_loop_end_and_fit_into_their_object)
{
	Dwarf_Op ops[] = {OP(reg3), OP1(piece, 3), OP1(skip, -9)}, huge[] = {OP(reg3), OP1(piece, UINT64_MAX)};
	struct dp_value v = place_of(ops, 3, 8);
	cr_expect_eq(v.where, DP_VALUE_BYTES);
	cr_expect_eq(v.nbytes, 8);
	v = place_of(huge, 2, 8);
	cr_expect_arr_eq(v.bytes, &frame.regs.value[RBX], 8);
	v = place_of(huge, 2, 1 << 20);
	cr_expect_eq(v.where, DP_VALUE_NOWHERE);
}

Test(dwarf_machine, a_register_is_a_place_of_its_own_size)
{
	static const uint64_t xmm[16][2] = {[1] = {0x1122334455667788, 0x99aabbccddeeff00}};
	Dwarf_Op general[] = {OP(reg0)}, vector[] = {OP1(regx, 18)};
	struct dp_value v = place_of(general, 1, 8);
	cr_expect_arr_eq(v.bytes, &frame.regs.value[RAX], 8);
	v = place_of(general, 1, 16);
	cr_expect_eq(v.where, DP_VALUE_NOWHERE);
	v = place_of(vector, 1, 16);
	cr_expect_eq(v.where, DP_VALUE_NOWHERE); /* this frame's value was not preserved */
	frame.xmm = xmm;
	v = place_of(vector, 1, 16);
	cr_expect_arr_eq(v.bytes, xmm[1], 16);
	frame.xmm = NULL;
}

/* ---- random expressions ------------------------------------------------------------------------------------------------- */

static unsigned next(uint64_t *seed, unsigned n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(*seed >> 33) % n;
}

static Dwarf_Op any_operation(uint64_t *seed)
{
	static const uint8_t atoms[] = {
	        DW_OP_lit0 + 1, DW_OP_lit0 + 31, DW_OP_const1u, DW_OP_const8s,    DW_OP_breg0,       DW_OP_breg0 + 12,
	        DW_OP_dup,      DW_OP_drop,      DW_OP_over,    DW_OP_swap,       DW_OP_rot,         DW_OP_pick,
	        DW_OP_abs,      DW_OP_neg,       DW_OP_not,     DW_OP_and,        DW_OP_or,          DW_OP_xor,
	        DW_OP_plus,     DW_OP_minus,     DW_OP_mul,     DW_OP_div,        DW_OP_mod,         DW_OP_shl,
	        DW_OP_shr,      DW_OP_shra,      DW_OP_eq,      DW_OP_ne,         DW_OP_lt,          DW_OP_le,
	        DW_OP_gt,       DW_OP_ge,        DW_OP_deref,   DW_OP_deref_size, DW_OP_plus_uconst, DW_OP_call_frame_cfa,
	};
	static const uint64_t operands[] = {0, 1, 2, 3, 4, 8, 63, 64, 255, UINT64_MAX, UINT64_C(1) << 63, MEMORY};
	Dwarf_Op op = {.atom = atoms[next(seed, sizeof(atoms))]};
	const bool is_constant = op.atom == DW_OP_const1u || op.atom == DW_OP_const8s;
	op.number = operands[next(seed, is_constant ? sizeof(operands) / sizeof(*operands) : 6)];
	return op;
}

Test(dwarf_machine, both_back_ends_mean_the_same)
{
	uint64_t seed = 20261122;
	unsigned both = 0;
	for (unsigned i = 0; i < PROGRAMS; i++) {
		Dwarf_Op ops[OPS_MAX];
		const uint64_t from = seed;
		const size_t n = 1 + next(&seed, OPS_MAX);
		uint64_t v = 0, stub = 0;
		bool done;
		for (size_t k = 0; k < n; k++)
			ops[k] = k < 3 ? (Dwarf_Op)OP1(const1u, next(&seed, 256)) : any_operation(&seed);
		lay_out(ops, n);
		const char *why = by_number(ops, n, &v);
		if (by_stub(ops, n, &stub, &done) || !done)
			continue; /* a shift by a value that is not known yet, or a load that fails */
		if (why && (!strcmp(why, DP_ABSENT_DIVIDES) || strstr(why, "cannot be read")))
			continue; /* in a value that is dropped later, which a stub never computes */
		both++;
		cr_assert_null(why, "program of seed %" PRIu64 ": %s", from, why);
		cr_assert_eq(v, stub, "program of seed %" PRIu64 ": 0x%" PRIx64 ", by the stub 0x%" PRIx64, from, v, stub);
	}
	cr_expect_gt(both, PROGRAMS / 20, "only %u programs had a value", both);
}
