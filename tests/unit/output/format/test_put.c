/* SPDX-License-Identifier: MIT */
/* Text from the target must not control terminals or parsers. */
#include "output/format/put.h"

#include <criterion/criterion.h>
#include <inttypes.h>
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

/* ---- sixteen bytes ---- */

static void wide(enum dp_display look, uint64_t high, uint64_t low, const char *wanted)
{
	const uint64_t halves[2] = {low, high};
	struct dp_buf b;
	dp_buf_init(&b);
	cr_expect(dp_put_wide(&b, look, (const uint8_t *)halves));
	cr_expect_str_eq(dp_buf_str(&b), wanted);
	dp_buf_fini(&b);
}

Test(put, integers_of_128_bits_to_their_ends)
{
	wide(DP_DISPLAY_INT128, 0, 0, "0");
	wide(DP_DISPLAY_INT128, UINT64_MAX, UINT64_MAX, "-1");
	wide(DP_DISPLAY_INT128, UINT64_C(1) << 63, 0, "-170141183460469231731687303715884105728");
	wide(DP_DISPLAY_INT128, UINT64_MAX >> 1, UINT64_MAX, "170141183460469231731687303715884105727");
	wide(DP_DISPLAY_UINT128, UINT64_MAX, UINT64_MAX, "340282366920938463463374607431768211455");
	wide(DP_DISPLAY_UINT128, 1, 0, "18446744073709551616");
}

/* Bit patterns that no arithmetic produces may be in uninitialized memory. */
Test(put, long_doubles_and_what_only_looks_like_one)
{
	const uint64_t one = UINT64_C(1) << 63;
	wide(DP_DISPLAY_LONG_DOUBLE, 0x3fff, one, "1");
	wide(DP_DISPLAY_LONG_DOUBLE, UINT64_C(0xabcdef000000bfff), one, "-1"); /* the padding may have any value */
	wide(DP_DISPLAY_LONG_DOUBLE, 0x8000, 0, "-0");
	wide(DP_DISPLAY_LONG_DOUBLE, 0x3ffb, UINT64_C(0xcccccccccccccccd), "0.1");
	wide(DP_DISPLAY_LONG_DOUBLE, 0x7fff, one, "inf");
	wide(DP_DISPLAY_LONG_DOUBLE, 0xffff, one, "-inf");
	wide(DP_DISPLAY_LONG_DOUBLE, 0x7fff, one | 1, "nan");
	wide(DP_DISPLAY_LONG_DOUBLE, 0x7fff, 0, "nan");  /* a NaN of the 8087 */
	wide(DP_DISPLAY_LONG_DOUBLE, 0x3fff, 77, "nan"); /* unnormal */
	wide(DP_DISPLAY_LONG_DOUBLE, 0x7ffe, UINT64_MAX, "1.189731495357231765e+4932");
	wide(DP_DISPLAY_LONG_DOUBLE, 0, 1, "4e-4951");
}

Test(put, bytes_that_are_no_number_are_left_to_others)
{
	const uint8_t bytes[16] = {0};
	struct dp_buf b;
	dp_buf_init(&b);
	cr_expect_not(dp_put_wide(&b, DP_DISPLAY_NUMBER, bytes));
	cr_expect_eq(b.len, 0);
	dp_buf_fini(&b);
}

/* Eight bytes are looked at together: no byte that needs escaping may pass, wherever it stands. */
Test(put, a_byte_is_escaped_at_every_place_in_a_long_text)
{
	for (unsigned c = 0; c < 256; c++)
		for (size_t at = 0; at < 17; at++) {
			char text[] = "abcdefghijklmnopq", one = (char)c, want[64];
			struct dp_buf alone = {0};
			text[at] = one;
			dp_put_visible(&alone, &one, 1, '"');
			snprintf(want, sizeof(want), "\"%.*s%.*s%s\"", (int)at, text, (int)alone.len - 2, dp_buf_str(&alone) + 1,
			         &"abcdefghijklmnopq"[at + 1]);
			visible(text, sizeof(text) - 1, want);
			dp_buf_fini(&alone);
		}
}

static void integer_is(uint64_t v)
{
	char want[80];
	uint8_t nanoseconds[10] = {0};
	struct dp_buf b = {0};
	dp_put_dec(&b, v);
	dp_put_str(&b, " ");
	dp_put_signed(&b, (int64_t)v);
	dp_put_str(&b, " ");
	dp_put_hex(&b, v);
	snprintf(want, sizeof(want), "%" PRIu64 " %" PRId64 " 0x%" PRIx64, v, (int64_t)v, v);
	cr_assert_str_eq(dp_buf_str(&b), want);
	dp_format_nanoseconds(nanoseconds, (uint32_t)(v % 1000000000));
	snprintf(want, sizeof(want), "%09u", (unsigned)(v % 1000000000));
	cr_assert_str_eq((const char *)nanoseconds, want);
	dp_buf_fini(&b);
}

Test(put, integers_of_every_length_have_all_their_digits)
{
	uint64_t decimal = 1, v = 1;
	for (int i = 0; i < 20; i++, decimal *= 10)
		for (uint64_t off = 0; off < 3; off++)
			integer_is(decimal + off - 1);
	for (int i = 0; i < 64; i++)
		for (uint64_t off = 0; off < 3; off++)
			integer_is((UINT64_C(1) << i) + off - 1);
	for (int i = 0; i < 10000; i++, v = v * 6364136223846793005u + 1442695040888963407u)
		integer_is(v >> i % 64);
}
