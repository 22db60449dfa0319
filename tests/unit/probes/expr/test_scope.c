/* SPDX-License-Identifier: MIT */
/* The language of -t and --when: its grammar, its arithmetic, and damaged or foreign text. */
#include "agent/abi.h"
#include "probes/expr/scope/scope.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static uint64_t eval(const char *text)
{
	struct dp_regs regs = {.rflags = 0x246};
	struct dp_expr_env world = {.regs = &regs};
	struct dp_expr *e = NULL;
	uint64_t value = 0;
	for (unsigned i = 0; i < 16; i++)
		regs.gpr[i] = i * 0x1111;
	regs.gpr[7] = (uint64_t)-5; /* rdi */
	regs.gpr[6] = 0x1234567890abcdef;
	struct dp_error *err = dp_scope_expr(NULL, text, &e);
	cr_assert_null(err, "%s: %s", text, err ? err->message : "");
	cr_assert(dp_expr_eval_in(e, &world, &value), "%s", text);
	dp_expr_destroy(e);
	return value;
}

static const struct {
	const char *text;
	int64_t value;
} values[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"1 << 40", INT64_C(1) << 40},
        {"~0", -1},
        {"- -3", 3},
        {"10 / 3 * 3 + 10 % 3", 10},
        {"-7 / 2", -3},
        {"-7 % 3", -1},
        {"0xffffffffffffffff > 0", 1},
        {"1 ? 2 : 3", 2},
        {"0 ? 2 : 1 ? 4 : 5", 4},
        {"1 || 0 && 0", 1},
        {"1 | 2 ^ 3 & 2", 1},
        {"3 == 3 != 0", 1},
        {"!5 == 0", 1},
        {"'a'", 'a'},
        {"'\\n' + 0", '\n'},
        {"(char)300", 44},
        {"(unsigned char)-1", 255},
        {"(short)0x18000", -32768},
        {"(int)0xffffffff", -1},
        {"(unsigned)-1", 0xffffffff},
        {"(uint64_t)-1 > 0", 1},
        {"sizeof(int)", 4},
        {"sizeof(char *)", 8},
        {"sizeof(unsigned long)", 8},
        {"sizeof 1 + 1", 5},
        {"sizeof(int[4])", 16},
        {"sizeof(int[2][3]) + 1", 25},
        {"sizeof(char *[3])", 24},
        {"sizeof(int (*)[4])", 8},
        {"sizeof(long(**)[4][2])", 8},
        {"sizeof *(int (*)[4])$rdi", 16},
        {"sizeof(*(int (*)[4][2])$rdi)[0]", 8},
        {"(long)((int (*)[4])$rdi + 1)", 11},
        {"(long)(char (*)[0x100][2])$rdi", -5},
        {"sizeof(5000000000)", 8},
        {"sizeof 2.5f", 4},
        {"sizeof(1 ? 2 : 3)", 4},
        {"sizeof(5l)", 8},
        {"~0u", 0xffffffff},
        {"~0ul == ~0", 1},
        {"5u - 6 > 0", 1},
        {"0.1f == 0.1", 0},
        {"0.1f == (float)0.1", 1},
        {"(uint64_t)1e19", (int64_t)UINT64_C(10000000000000000000)},
        {"(uint64_t)-1.5", -1},
        {"(int64_t)1e19", INT64_MIN},
        {"$rdi", -5},
        {"rdi < 0", 1},
        {"rdi < 0x8000000000000000", 0},
        {"rdi >> 1", -3},
        {"edi", 0xfffffffb},
        {"dil == 0xfb", 1},
        {"(int)edi < 0", 1},
        {"(unsigned)edi / 2", 0x7ffffffd},
        {"rsi & 0xff", 0xef},
        {"esi >> 28", 9},
        {"arg0 + arg1", INT64_C(0x1234567890abcdea)},
        {"(int)rsi * 2", (int32_t)(0x90abcdefu * 2u)},
        {"1.5 * 2 == 3", 1},
        {"0.1 + 0.2 == 0.3", 0},
        {"(float)0.1 == 0.1", 0},
        {"(int)2.9", 2},
        {"rdi * 0.5 < -2.4", 1},
        {"rdi == -5 && rax == 0", 1},
        {"5ms", 5000000},
        {"200us + 7ns", 200007},
        {"1s", 1000000000},
        {"2.5ms", 2500000},
        {".5us", 500},
        {"0.3ms", 300000},
        {"010ms", 10000000},
        {"9223372036s", INT64_C(9223372036000000000)},
        {"sizeof(1ns)", 8},
        {"1ms > 999us && -1s < 0", 1},
};

Test(scope, computes_as_c_does)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		cr_expect_eq((int64_t)eval(values[i].text), values[i].value, "%s is %lld", values[i].text,
		             (long long)eval(values[i].text));
}

/* As an integer, 0.5 would be 0, and thus false. */
static const struct {
	const char *text;
	bool is_true;
} conditions[] = {
        {"0.5", true},
        {"-0.5", true},
        {"0.5f", true},
        {"1e-300", true},
        {"1e30", true},
        {"0.0", false},
        {"-0.0", false},
        {"rdi * 0.0", false},
        {"rdi * 0.0 / 0.0", true}, /* NaN is not 0 */
        {"rdi * 0.1", true},
        {"(float)rdi / 10", true},
        {"!0.5", false},
        {"!(rdi * 0.1)", false},
        {"0.5 && rdi * 0.1", true},
        {"0.0 || rdi * 0.1", true},
        {"0.5 ? 0 : 1", false},
        {"rdi * 0.1 ? 0.25 : 0", true},
        {"(int)0.5", false},
        {"0", false},
        {"rdi", true},
        {"1 << 40", true},
};

Test(scope, a_condition_is_false_only_if_it_is_0)
{
	for (size_t i = 0; i < sizeof(conditions) / sizeof(*conditions); i++) {
		struct dp_regs regs = {.rflags = 0x246};
		const struct dp_expr_env world = {.regs = &regs};
		struct dp_expr *e = NULL;
		uint64_t value = 0;
		regs.gpr[7] = (uint64_t)-5; /* rdi */
		struct dp_error *err = dp_scope_condition(NULL, conditions[i].text, &e);
		cr_assert_null(err, "%s: %s", conditions[i].text, err ? err->message : "");
		cr_expect(dp_expr_eval_in(e, &world, &value), "%s", conditions[i].text);
		cr_expect_eq(value != 0, conditions[i].is_true, "%s is %llu", conditions[i].text, (unsigned long long)value);
		dp_expr_destroy(e);
	}
}

static const struct {
	const char *text, *why;
} refused[] = {
        {"", "ends too early"},
        {"1 +", "ends too early"},
        {"(1", "not closed"},
        {"a[1", "not closed"},
        {"1)", "no parenthesis is open"},
        {"a = 1", "compare with '=='"},
        {"a b", "expected an operator"},
        {"\"abc", "quote is not closed"},
        {"p == \"\\q\"", "unknown escape"},
        {"x ? 1", "has no ':'"},
        {"a[b:4]", "bounds of a slice"},
        {"12z", "not a number"},
        {"5min", "not a number"},
        {"5 ms", "expected an operator"},
        {"0x5ms", "not a number"},
        {"1.5.ms", "not a number"},
        {"9223372037s", "not a number"},
        {"99999999999999999999ms", "not a number"},
        {"99999999999999999999", "not a number"},
        {"p->", "member's name"},
        {"str(p, 0)", "length of a string"},
        {"str(p, 1024)", "length of a string"},
        {"str(p, )", "expected a variable"},
        {"str(p, n, )", "limit of a string"},
        {"str(p, n, m)", "limit of a string"},
        {"str(p, n, 0)", "length of a string"},
        {"str(p, n, 3, 4)", "limit of a string"},
        {"str(p, n", "not closed"},
        {"$", "register's name"},
        {"'ab' + 1", "one character"},
        {"(int[4])p", "casts are to types like"},
        {"(int (*))[4]p", "casts are to types like"},
        {"(int (*)[])p", "casts are to types like"},
};

Test(scope, refuse_DP_SYNTAX_with_a_caret)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct dp_error *err = dp_scope_check(refused[i].text);
		cr_assert_not_null(err, "%s", refused[i].text);
		cr_expect_eq(err->tag, DP_TAG_SYNTAX);
		cr_expect_not_null(strstr(err->message, refused[i].why), "%s: %s", refused[i].text, err->message);
		cr_expect_not_null(strchr(err->message, '^'), "%s", err->message);
		dp_error_destroy(err);
	}
}

Test(scope, what_needs_a_program_is_good_grammar)
{
	static const char *const texts[] = {
	        "req->hdr.len > 3",
	        "*(struct foo *)$rdi",
	        "(foo_t *)p",
	        "(ns::Foo *)p",
	        "(unsigned long long)x",
	        "a[0:4]",
	        "file.c::counter + 1",
	        "'my-file.c'::counter",
	        "ns::depth",
	        "&p->q[2] - p->q",
	        "str(p->name, 40) =~ \"GET*\"",
	        "str(p->name, p->len)",
	        "str(p, 4 + n, 1023) == \"a\"",
	        "str(p, (n), 8)",
	        "sizeof(struct foo) > sizeof x",
	        "m == ns::Mode::on",
	        "x ? p->a : p->b",
	        "(enum color)x == RED",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct dp_error *err = dp_scope_check(texts[i]);
		cr_expect_null(err, "%s: %s", texts[i], err ? err->message : "");
		dp_error_destroy(err);
	}
}

Test(scope, contexts_that_need_no_program_are_told_apart)
{
	cr_expect(dp_scope_is_fixed("regs") && dp_scope_is_fixed("reg:rdi") && dp_scope_is_fixed("backtrace:5"));
	cr_expect(dp_scope_is_fixed("uint32:x:0x10") && dp_scope_is_fixed("string[10]:s:0x10"));
	cr_expect(!dp_scope_is_fixed("args") && !dp_scope_is_fixed("a[0:4]") && !dp_scope_is_fixed("ns::x"));
	cr_expect(!dp_scope_is_fixed("file.c::x") && !dp_scope_is_fixed("a ? b : c") && !dp_scope_is_fixed("(regs)"));
	cr_expect(dp_scope_has_names("rdi == 1") && dp_scope_has_names("p->x"));
	cr_expect(dp_scope_has_names("$duration > 10") && dp_scope_has_names("$rdi && $retval") && dp_scope_has_names("$rip == 1"));
	cr_expect(!dp_scope_has_names("$rdi == 0x10") && !dp_scope_has_names("1 + 'a'"));
}

Test(scope, flags_are_asked_for_by_names_not_by_letters)
{
	static const char *const show[] = {"regs",       "reg:rflags",     "$eflags & 0x40", "x=rflags >> 6",
	                                   "reg:eflags", "1 ? 2 : eflags", "(int)$rflags",   "p[$eflags]"};
	static const char *const show_not[] = {"req->flags", "flags",     "reg:rdi",   "rflagsx", "comm == \"eflags\"",
	                                       "args",       "backtrace", "p->eflags", "((("};
	for (size_t i = 0; i < sizeof(show) / sizeof(*show); i++)
		cr_expect(dp_context_shows_flags(show[i]), "%s", show[i]);
	for (size_t i = 0; i < sizeof(show_not) / sizeof(*show_not); i++)
		cr_expect_not(dp_context_shows_flags(show_not[i]), "%s", show_not[i]);
}

Test(scope, names_without_a_program_are_refused_DP_NO_DEBUG_INFO)
{
	struct dp_expr *e = NULL;
	struct dp_error *err = dp_scope_expr(NULL, "req->len > 3", &e);
	cr_assert_not_null(err);
	cr_expect_eq(err->tag, DP_TAG_NO_DEBUG_INFO);
	dp_error_destroy(err);
}

/* Words of the language in any order, and invalid bytes: an error or an expression, never a crash. */
Test(scope, garbage_is_refused_or_computed)
{
	static const char *const words[] = {"rdi", "1", "(", ")",     "*",        "&",      "->",  ".",    "x",
	                                    "[",   "]", ":", "?",     "str(",     "\"a*\"", "==",  "=~",   "+",
	                                    "-",   "!", "~", "(int)", "(char *)", "sizeof", "1.5", "$rax", "<<",
	                                    "/",   "%", "0", "comm",  "hits",     "::",     "'a'", ",",    "&&"};
	struct dp_regs regs = {.rflags = 2};
	const struct dp_expr_env world = {.regs = &regs};
	srand(7);
	for (unsigned round = 0; round < 20000; round++) {
		char text[256] = "";
		struct dp_expr *e = NULL;
		uint64_t value;
		for (unsigned n = 1 + (unsigned)rand() % 12; n; n--)
			strcat(text, round % 4 ? words[(unsigned)rand() % (sizeof(words) / sizeof(*words))]
			                       : (char[]){(char)(1 + rand() % 255), 0});
		struct dp_error *err = dp_scope_expr(NULL, text, &e);
		if (!err && dp_expr_eval_in(e, &world, &value))
			(void)value;
		dp_expr_destroy(e);
		dp_error_destroy(err);
	}
}

Test(scope, deep_and_long_expressions_are_refused)
{
	static char text[60000];
	static const char *const units[] = {"(", "!", "-", "(int)", "*", "1+", "1?", "x[", "sizeof "};
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		text[0] = 0;
		char *at = text;
		while (at < text + 7000)
			at = stpcpy(at, units[i]);
		struct dp_error *err = dp_scope_check(text);
		cr_expect_not_null(err, "%s", units[i]);
		dp_error_destroy(err);
	}
}
