/* SPDX-License-Identifier: MIT */
/* The format of --printf: how it is parsed, and that an invalid one is refused on the command line. */
#include "probes/expr/syntax/printf_form.h"

#include <criterion/criterion.h>
#include <string.h>

Test(printf_form, is_taken_apart_at_commas_of_its_own)
{
	struct dp_printf_form *f = NULL;
	const char *text = "foo \"a=%d\", a";
	cr_assert_eq(dp_printf_begins(text), 4);
	struct dp_error *err = dp_printf_parse("\"a=%d, %5.2f %%\\t\\\"%-3s\\\"\\n\", (a + b[1]) , p == \"a,b\" , str(p, 9)", &f);
	cr_assert_null(err, "%s", err ? err->message : "");
	cr_expect_str_eq(f->format, "a=%d, %5.2f %%\t\"%-3s\"");
	cr_assert_eq(f->n, 3);
	cr_expect_str_eq(f->arg[0], "(a + b[1])");
	cr_expect_str_eq(f->arg[1], "p == \"a,b\"");
	cr_expect_str_eq(f->arg[2], "str(p, 9)");
	dp_printf_destroy(f);
}

/* C++'s literal operator is part of a name. */
Test(printf_form, a_quote_that_no_blank_precedes_belongs_to_the_name)
{
	cr_expect_eq(dp_printf_begins("operator\"\"_km"), 0);
	cr_expect_eq(dp_printf_begins("\"a\""), 0);
	cr_expect_eq(dp_printf_begins(""), 0);
}

static const struct {
	const char *text, *why;
} refused[] = {
        {"\"a", "not closed"},
        {"\"a\\", "unknown escape"},
        {"\"\\q\"", "unknown escape"},
        {"\"%\"", "unknown conversion"},
        {"\"%n\", a", "unknown conversion"},
        {"\"%*d\", a, b", "unknown conversion"},
        {"\"%999d\", a", "unknown conversion"},
        {"\"%99999999999999999999d\", a", "unknown conversion"},
        {"\"%-+-+-+-+d\", a", "unknown conversion"},
        {"\"%d\"", "no argument"},
        {"\"%d %d\", a", "no argument"},
        {"\"\", a", "more arguments"},
        {"\"%d\" a", "expected a comma"},
        {"\"%d\",", "an argument is missing"},
        {"\"%d\", , a", "an argument is missing"},
        {"\"%d\", locals", "not one value"},
        {"\"%d\", a +", "ends too early"},
};

Test(printf_form, refuse_DP_SYNTAX_with_a_caret)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct dp_printf_form *f = NULL;
		struct dp_error *err = dp_printf_parse(refused[i].text, &f);
		cr_assert_not_null(err, "%s", refused[i].text);
		cr_expect_eq(err->tag, DP_TAG_SYNTAX);
		cr_expect_not_null(strstr(err->message, refused[i].why), "%s: %s", refused[i].text, err->message);
		cr_expect_not_null(strchr(err->message, '^'), "%s", err->message);
		dp_error_destroy(err);
	}
}

Test(printf_form, more_conversions_than_there_is_room_for)
{
	char text[3 * DP_PRINTF_ARGS + 8] = "\"";
	struct dp_printf_form *f = NULL;
	for (unsigned i = 0; i <= DP_PRINTF_ARGS; i++)
		strcat(text, "%d");
	strcat(text, "\"");
	struct dp_error *err = dp_printf_parse(text, &f);
	cr_assert_not_null(err);
	cr_expect_not_null(strstr(err->message, "more than 32"), "%s", err->message);
	dp_error_destroy(err);
}

static bool shows(const char *text, const struct dp_field *field)
{
	struct dp_printf_form *f = NULL;
	cr_assert_null(dp_printf_parse(text, &f));
	struct dp_error *err = dp_printf_check(f, 0, field);
	const bool fits = !err;
	dp_error_destroy(err);
	dp_printf_destroy(f);
	return fits;
}

Test(printf_form, a_conversion_takes_its_own_type_only)
{
	const struct dp_field number = {.type = DP_TYPE_INT, .size = 4, .source = DP_SRC_REG};
	const struct dp_field real = {.type = DP_TYPE_FLOAT, .size = 8, .source = DP_SRC_EXPR};
	const struct dp_field string = {.type = DP_TYPE_STRING, .size = 64, .source = DP_SRC_STRING};
	const struct dp_field pointer = {.type = DP_TYPE_POINTER, .size = 8, .source = DP_SRC_REG};
	const struct dp_field absent = {.type = DP_TYPE_UINT, .size = 1, .source = DP_SRC_NONE, .absent = "optimized out"};
	cr_expect(shows("\"%ld\", a", &number) && shows("\"%c\", a", &number) && shows("\"%08llx\", a", &number));
	cr_expect(!shows("\"%s\", a", &number) && !shows("\"%f\", a", &number) && !shows("\"%p\", a", &number));
	cr_expect(shows("\"%.3f\", a", &real) && !shows("\"%d\", a", &real) && !shows("\"%s\", a", &real));
	cr_expect(shows("\"%% %-9s\", a", &string) && !shows("\"%% %d\", a", &string) && !shows("\"%p\", a", &string));
	cr_expect(shows("\"%p\", a", &pointer) && shows("\"%x\", a", &pointer) && !shows("\"%d\", a", &pointer));
	cr_expect(shows("\"%s\", a", &absent) && shows("\"%f\", a", &absent));
}
