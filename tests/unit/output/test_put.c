/* SPDX-License-Identifier: MIT */
/* Text from the target reaches terminals and parsers: nothing in it may act on either. */
#include "output/put.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void visible(const char *bytes, size_t n, const char *want)
{
	struct dp_buf b = {0};
	dp_put_visible(&b, bytes, n, '"');
	cr_assert_str_eq(dp_buf_str(&b), want);
	dp_buf_fini(&b);
}

#define VISIBLE(bytes, want) visible(bytes, sizeof(bytes) - 1, want)

Test(put, terminal_never_sees_control_characters)
{
	VISIBLE("plain", "\"plain\"");
	VISIBLE("a\"b\\c", "\"a\\\"b\\\\c\"");
	VISIBLE("\n\t\r", "\"\\n\\t\\r\"");
	VISIBLE("\033[31m", "\"\\x1b[31m\"");
	VISIBLE("\x7f", "\"\\x7f\"");
	VISIBLE("a\0b", "\"a\\x00b\"");
	VISIBLE("\xc2\x9b"
	        "31m",
	        "\"\\xc2\\x9b31m\""); /* C1 CSI */
	VISIBLE("\xe2\x80\xae"
	        "x",
	        "\"\\xe2\\x80\\xaex\"");                         /* right-to-left override */
	VISIBLE("gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""); /* ordinary letters stay */
	VISIBLE("\xf0\x9f\x90\x9b", "\"\xf0\x9f\x90\x9b\"");
}

Test(put, what_is_not_utf8_is_shown_in_hex)
{
	VISIBLE("\xff", "\"\\xff\"");
	VISIBLE("\xc3", "\"\\xc3\"");
	VISIBLE("\xc3(", "\"\\xc3(\"");
	VISIBLE("\xc0\xaf", "\"\\xc0\\xaf\""); /* overlong '/' */
	VISIBLE("\xe0\x80\xaf", "\"\\xe0\\x80\\xaf\"");
	VISIBLE("\xed\xa0\x80", "\"\\xed\\xa0\\x80\"");          /* surrogate */
	VISIBLE("\xf4\x90\x80\x80", "\"\\xf4\\x90\\x80\\x80\""); /* above U+10FFFF */
	VISIBLE("\xf0\x9f\x90", "\"\\xf0\\x9f\\x90\"");
}

static void json(const char *bytes, size_t n, const char *want)
{
	struct dp_buf b = {0};
	dp_put_json(&b, bytes, n);
	cr_assert_str_eq(dp_buf_str(&b), want);
	dp_buf_fini(&b);
}

#define JSON(bytes, want) json(bytes, sizeof(bytes) - 1, want)

Test(put, json_strings_are_escaped_and_valid_utf8)
{
	JSON("a\"b\\c/", "\"a\\\"b\\\\c/\"");
	JSON("\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"");
	JSON("\x01\x1f\x7f", "\"\\u0001\\u001f\\u007f\"");
	JSON("\0", "\"\\u0000\"");
	JSON("\xc2\x9b", "\"\\u009b\"");
	JSON("\xff"
	     "a",
	     "\"\xef\xbf\xbd"
	     "a\"");
	JSON("\xc3\xbc", "\"\xc3\xbc\"");
}

static void number(double v, unsigned size, const char *want)
{
	struct dp_buf b = {0};
	dp_put_double(&b, v, size);
	cr_assert_str_eq(dp_buf_str(&b), want);
	dp_buf_fini(&b);
}

Test(put, floats_are_short_and_exact)
{
	number(0.1, 8, "0.1");
	number((double)0.1f, 4, "0.1");
	number((double)0.1f, 8, "0.10000000149011612");
	number(-0.0, 8, "-0");
	number(1.0 / 3, 8, "0.3333333333333333");
	number(1e300, 8, "1e+300");
	number(5e-324, 8, "5e-324");
	number((double)NAN, 8, "nan");
	number((double)-INFINITY, 4, "-inf");
}

Test(put, random_doubles_read_back)
{
	srand(3);
	for (int i = 0; i < 10000; i++) {
		struct dp_buf b = {0};
		uint64_t bits = 0;
		double v;
		for (int j = 0; j < 8; j++)
			bits = bits << 8 | (uint64_t)(rand() & 255);
		memcpy(&v, &bits, sizeof(v));
		if (isnan(v) || isinf(v))
			continue;
		dp_put_double(&b, v, 8);
		cr_assert_eq(strtod(dp_buf_str(&b), NULL), v);
		dp_buf_fini(&b);
	}
}
