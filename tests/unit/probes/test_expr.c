/* SPDX-License-Identifier: MIT */
/* Conditions give the C compiler's results, with which they are compared. */
#include "agent/abi.h"
#include "probes/probes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct dp_regs regs = {
        /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
        .gpr = {0x1122334455667788, 3, 0xfffffffffffffff6, 0, 0x7ffc00001000, 0x7ffc00002000, 7, 5, 64, 65, 1, 2, 0x80000000,
                0xffffffff, 0x8000000000000000, 0x7fffffffffffffff},
        .rip = 0x401234,
        .rflags = 0x246,
};

static uint64_t value_of(const char *text)
{
	struct dp_expr *e = NULL;
	struct dp_error *err = dp_expr_parse(text, &e);
	if (err)
		dp_error_print(err, stderr);
	cr_assert_null(err, "%s", text);
	uint64_t v = dp_expr_eval(e, &regs);
	dp_expr_destroy(e);
	return v;
}

#define SAME(e)                                                                                                                  \
	do {                                                                                                                     \
		uint64_t want = (uint64_t)(e), got = value_of(#e);                                                               \
		cr_assert_eq(got, want, "%s: 0x%lx, C says 0x%lx", #e, (long)got, (long)want);                                   \
	} while (0)

/* Compilers warn about exactly the expressions that this file tests. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#else
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wlogical-not-parentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wint-in-bool-context"
#pragma GCC diagnostic ignored "-Wextra"
#endif

Test(expr, precedence_is_that_of_c)
{
	int64_t rax = (int64_t)regs.gpr[0], rcx = 3, rdx = -10, rbx = 0, rsi = 7, rdi = 5;
	SAME(rdi + rsi * rcx);
	SAME(rdi * rsi + rcx);
	SAME(rdi - rsi - rcx);
	SAME(rdi << 1 + rcx);
	SAME(rdi & rsi == 7);
	SAME(rdi | rsi ^ rcx & 6);
	SAME(rbx || rdi && rsi);
	SAME(rdi && rbx || rsi);
	SAME(!rbx == 1);
	SAME(~rdi & 255);
	SAME(-rdi * -rsi);
	SAME(- -rdi);
	SAME(!!rdi);
	SAME(rdi < rsi == rcx < rsi);
	SAME(rdi != rsi != 1);
	SAME(1 << rcx << 2 >> 1);
	SAME((rdi + rsi) * rcx);
	SAME(rax == 0x1122334455667788);
	SAME(rdx < 0);
	SAME(rdx >> 1);
	SAME(rdx <= -10 && rdx >= -10);
	SAME(0777 + 0x1F + 19);
	SAME(rdi < rsi && rcx > rbx || !rbx);
}

Test(expr, large_literals_compare_unsigned_and_folded_values_signed)
{
	int64_t rdx = -10, rdi = 5;
	SAME(rdi < 0xffffffffffffffff);
	SAME(rdx > 0x8000000000000000);
	SAME(0xfffffffffffffff0 <= rdx);
	SAME(rdi >= 0x8000000000000000);
	SAME(rdi > -1);
	SAME(rdi > ~0);
	SAME(rdx < 0x7fffffffffffffff);
}

Test(expr, wraps_and_masks_shift_counts)
{
	cr_assert_eq(value_of("r15 + 1"), 0x8000000000000000);
	cr_assert_eq(value_of("-r14"), 0x8000000000000000);
	cr_assert_eq(value_of("rdi << r8"), 5);
	cr_assert_eq(value_of("rdi << r9"), 10);
	cr_assert_eq(value_of("r14 >> 63"), UINT64_MAX);
	cr_assert_eq(value_of("rdi * 0xffffffffffffffff"), (uint64_t)-5);
	cr_assert_eq(value_of("rdi << 65"), 10);
	cr_assert_eq(value_of("1 << 63 < 0"), 1);
	cr_assert_eq(value_of("rdi + 0xffffffffffffffff < 5"), 1);
}

Test(expr, registers_of_every_width_and_alias)
{
	cr_assert_eq(value_of("eax"), 0x55667788);
	cr_assert_eq(value_of("ax"), 0x7788);
	cr_assert_eq(value_of("al"), 0x88);
	cr_assert_eq(value_of("$ah"), 0x77);
	cr_assert_eq(value_of("$rax"), 0x1122334455667788);
	cr_assert_eq(value_of("r13d"), 0xffffffff);
	cr_assert_eq(value_of("al + ah"), 0xff);
	cr_assert_eq(value_of("r13d < 0"), 0, "narrow registers are zero-extended");
	cr_assert_eq(value_of("r12d > 0"), 1);
	cr_assert_eq(value_of("arg0 == rdi && arg1 == rsi && arg2 == rdx && arg3 == rcx && arg4 == r8 && arg5 == r9"), 1);
	cr_assert_eq(value_of("eflags == rflags && rflags & 0x40"), 1);
	cr_assert_eq(value_of("rip == 0x401234"), 1);
}

Test(expr, logic_gives_truth_values_and_short_circuits)
{
	cr_assert_eq(value_of("rdi && rsi"), 1);
	cr_assert_eq(value_of("rbx || rdi"), 1);
	cr_assert_eq(value_of("rbx && rdi"), 0);
	cr_assert_eq(value_of("rbx || rbx"), 0);
}

Test(expr, rip_is_bound_as_a_constant)
{
	struct dp_expr *e = NULL;
	cr_assert_null(dp_expr_parse("rip + 1 == 0x1001", &e));
	dp_expr_bind(e, dp_addr_of(0x1000));
	cr_assert_eq(e->a->a->kind, DP_EXPR_CONST);
	cr_assert_eq(e->a->a->value, 0x1000);
	dp_expr_destroy(e);
}

Test(expr, constants_are_folded)
{
	struct dp_expr *e = NULL;
	cr_assert_null(dp_expr_parse("rdi == -(1 << 4) * 2", &e));
	cr_assert_eq(e->b->kind, DP_EXPR_CONST);
	cr_assert_eq((int64_t)e->b->value, -32);
	dp_expr_destroy(e);
}

/* ---- errors ---- */

static void refuses(const char *text, size_t column, const char *part)
{
	struct dp_expr *e = NULL;
	struct dp_error *err = dp_expr_parse(text, &e);
	cr_assert_not_null(err, "%s", text);
	cr_assert_null(e);
	cr_assert_eq(err->tag, DP_TAG_SYNTAX);
	const char *caret = strrchr(err->message, '\n');
	cr_assert_not_null(caret);
	cr_assert_not_null(strstr(err->message, part), "%s", err->message);
	cr_assert_eq(strlen(caret), strlen("\n    ^") + column, "%s", err->message);
	dp_error_destroy(err);
}

Test(expr, errors_point_at_the_place)
{
	refuses("", 0, "ends too early");
	refuses("rdi ==", 6, "ends too early");
	refuses("rdi = 1", 4, "'=='");
	refuses("rdi == 1)", 8, "no parenthesis is open");
	refuses("(rdi == 1", 0, "not closed");
	refuses("rdi rsi", 4, "expected an operator");
	refuses("$raz == 1", 0, "did you mean rax");
	refuses("rdi == $RAX", 7, "did you mean rax?");
	refuses("rdi == $foo", 7, "arg0 ... arg5");
	refuses("rdi == 0x", 7, "not a number");
	refuses("rdi == 09", 7, "not a number");
	refuses("rdi == 12ab", 7, "not a number");
	refuses("rdi == 18446744073709551616", 7, "below 2^64");
	refuses("$ == 1", 0, "'$'");
	refuses("rdi == @", 7, "a register, a number");
	refuses("rdi == $arg6", 7, "in registers");
	refuses("sizeof (rdi == 1", 7, "not closed");
	refuses("rdi == 1 / 0", 9, "division by 0");
	refuses("\"GET\"", 0, "is a string");
	refuses("str(rdi)", 0, "values are numbers");
}

Test(expr, error_shows_no_control_characters)
{
	struct dp_expr *e = NULL;
	struct dp_error *err = dp_expr_parse("rdi == \033[31m", &e);
	cr_assert_not_null(err);
	cr_assert_null(strchr(err->message, '\033'));
	dp_error_destroy(err);
}

static void refuses_repeated(const char *before, const char *unit, size_t n, const char *after)
{
	char *text = calloc(1, strlen(before) + n * strlen(unit) + strlen(after) + 1);
	struct dp_expr *e = NULL;
	strcat(text, before);
	for (size_t i = 0, at = strlen(before); i < n; i++, at += strlen(unit))
		strcpy(text + at, unit);
	strcat(text, after);
	struct dp_error *err = dp_expr_parse(text, &e);
	cr_assert_not_null(err);
	cr_assert_eq(err->tag, DP_TAG_SYNTAX);
	dp_error_destroy(err);
	free(text);
}

Test(expr, depth_and_length_are_bounded)
{
	refuses_repeated("", "(", 100000, "rdi");
	refuses_repeated("", "!", 100000, "rdi");
	refuses_repeated("", "+", 100000, "rdi");
	refuses_repeated("rdi", "+rdi", 100000, "");
	refuses_repeated("rdi", "&&rdi", 100000, "");
}

/* ---- random text never crashes, and what parses evaluates ---- */

Test(expr, random_tokens_never_crash)
{
	static const char *const tokens[] = {"rdi", "al", "$rsi", "arg1", "1",  "0xffffffffffffffff",
	                                     "(",   ")",  "==",   "<",    "&&", "||",
	                                     "!",   "~",  "-",    "+",    "*",  "<<",
	                                     ">>",  "&",  "|",    "^",    " ",  "rip"};
	unsigned parsed = 0;
	srand(7);
	for (int round = 0; round < 20000; round++) {
		char text[256] = "";
		for (int i = rand() % 8; i >= 0; i--)
			strcat(text, tokens[(size_t)rand() % (sizeof(tokens) / sizeof(tokens[0]))]);
		struct dp_expr *e = NULL;
		struct dp_error *err = dp_expr_parse(text, &e);
		if (!err) {
			parsed++;
			(void)dp_expr_eval(e, &regs);
		}
		dp_error_destroy(err);
		dp_expr_destroy(e);
	}
	cr_assert_gt(parsed, 100);
}
