/* SPDX-License-Identifier: MIT */
/* Sixteen-byte numbers, whatever types the machine that shows them has. */
#include "output/format/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_unsigned(struct dp_buf *b, unsigned __int128 v)
{
	char digits[40], *at = digits + sizeof(digits);
	do
		*--at = (char)('0' + (int)(v % 10));
	while (v /= 10);
	dp_buf_put(b, at, (size_t)(digits + sizeof(digits) - at));
}

/* Does the text convert to exactly this number? */
static bool reads_back(const char *text, long double v)
{
	return strtold(text, NULL) == v;
}

/*
 * The shortest decimal that reads back. Encodings that the x87 calls invalid (without the leading one that the exponent requires)
 * are shown as NaN, which is what loading them gives.
 */
static void put_long_double(struct dp_buf *b, const uint8_t *bytes)
{
	uint64_t mantissa;
	uint16_t exponent;
	long double v = 0;
	char text[64];
	memcpy(&mantissa, bytes, sizeof(mantissa));
	memcpy(&exponent, bytes + sizeof(mantissa), sizeof(exponent));
	const bool ones = (exponent & 0x7fff) == 0x7fff, negative = exponent >> 15;
	if (ones || ((exponent & 0x7fff) && !(mantissa >> 63))) {
		dp_put_str(b, !ones || mantissa << 1 || !(mantissa >> 63) ? "nan" : negative ? "-inf" : "inf");
		return;
	}
	memcpy(&v, bytes, 10);
	const bool whole = v < 1e18L && v > -1e18L && v == (long double)(int64_t)v;
	for (int precision = whole ? 18 : 1; precision <= 21; precision++) { /* 60, not 6e+01 */
		snprintf(text, sizeof(text), "%.*Lg", precision, v);
		if (reads_back(text, v))
			break;
	}
	for (char *c = text; *c; c++)
		if (!strchr("0123456789+-e", *c)) /* whatever the locale's decimal point */
			*c = '.';
	dp_put_str(b, text);
}

bool dp_put_wide(struct dp_buf *b, enum dp_display look, const uint8_t *bytes)
{
	unsigned __int128 v;
	memcpy(&v, bytes, sizeof(v));
	switch (look) {
	case DP_DISPLAY_LONG_DOUBLE:
		put_long_double(b, bytes);
		return true;
	case DP_DISPLAY_INT128:
		if (v >> 127) {
			dp_put_str(b, "-");
			v = -v;
		}
		put_unsigned(b, v);
		return true;
	case DP_DISPLAY_UINT128:
		put_unsigned(b, v);
		return true;
	default:
		return false;
	}
}
