/* SPDX-License-Identifier: MIT */
#include "output/format/put.h"

#include "base/duration.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All pairs of decimal digits: division is by 100 then, which is half of the divisions. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
                            "4950515253545556575859606162636465666768697071727374757677787980818283848586878889909192939495"
                            "96979899";

/* The digits of `v` up to `end`. Returns their start. */
static char *digits_before(char *end, uint64_t v)
{
	char *at = end;
	while (v >= 100) {
		at -= 2;
		memcpy(at, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v < 10) {
		*--at = (char)('0' + v);
		return at;
	}
	at -= 2;
	memcpy(at, pairs + v * 2, 2);
	return at;
}

void dp_put_duration(struct dp_buf *b, uint64_t ns)
{
	char text[DP_DURATION_TEXT];
	dp_put_str(b, dp_duration(ns, text));
}

void dp_put_dec(struct dp_buf *b, uint64_t v)
{
	char text[20], *end = text + sizeof(text), *at = digits_before(end, v);
	dp_buf_put(b, at, (size_t)(end - at));
}

static void four_digits(uint8_t to[4], uint32_t v)
{
	memcpy(to, pairs + v / 100 * 2, 2);
	memcpy(to + 2, pairs + v % 100 * 2, 2);
}

void dp_format_nanoseconds(uint8_t to[9], uint32_t v)
{
	const uint32_t high = v / 10000;
	to[0] = (uint8_t)('0' + high / 10000);
	four_digits(to + 1, high % 10000);
	four_digits(to + 5, v % 10000);
}

void dp_put_signed(struct dp_buf *b, int64_t v)
{
	char text[20], *end = text + sizeof(text), *at = digits_before(end, v < 0 ? -(uint64_t)v : (uint64_t)v);
	if (v < 0)
		*--at = '-';
	dp_buf_put(b, at, (size_t)(end - at));
}

static const char hex_digits[] = "0123456789abcdef";

/* The eight digits of 32 bits. */
static uint64_t eight_hex_digits(uint32_t v)
{
	const uint64_t each = UINT64_C(0x0101010101010101);
	uint64_t x = v;
	x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
	x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
	x = (x | x << 4) & (each * 0x0f); /* a nibble in each byte, the highest one in the highest */
	const uint64_t letters = (x + each * 6) >> 4 & each;
	return __builtin_bswap64(x + each * '0' + letters * ('a' - '0' - 10));
}

void dp_put_hex(struct dp_buf *b, uint64_t v)
{
	const unsigned zeros = v ? (unsigned)__builtin_clzll(v) / 4 : 15;
	const uint64_t top = v << zeros * 4, high = eight_hex_digits((uint32_t)(top >> 32)),
	               low = eight_hex_digits((uint32_t)top);
	uint8_t *at = dp_buf_room(b, 2 + 16);
	if (!at)
		return;
	memcpy(at, "0x", 2);
	memcpy(at + 2, &high, 8);
	memcpy(at + 10, &low, 8);
	dp_buf_wrote(b, at + 18 - zeros);
}

void dp_put_hexdump(struct dp_buf *b, const uint8_t *bytes, size_t n)
{
	uint8_t *at = n ? dp_buf_room(b, 2 * n) : NULL;
	if (!at)
		return;
	for (size_t i = 0; i < n; i++) {
		at[2 * i] = (uint8_t)hex_digits[bytes[i] >> 4];
		at[2 * i + 1] = (uint8_t)hex_digits[bytes[i] & 15];
	}
	dp_buf_wrote(b, at + 2 * n);
}

static bool reads_back(const char *text, double v, unsigned size)
{
	return size == sizeof(float) ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v;
}

/*
 * Most numbers in programs have few decimal places. If a whole number of tenths, hundredths and so on gives exactly the number
 * when divided again, no search is needed. For a float the total of digits must also be so small that none can be omitted.
 */
static bool put_short(struct dp_buf *b, double v, unsigned size)
{
	const double most = size == sizeof(float) ? 1e6 : 1e15;
	double scale = 1;
	unsigned places = 0;
	for (; places < 4 && rint(v * scale) / scale != v; places++)
		scale *= 10;
	const double whole = rint(v * scale);
	if (!(fabs(whole) < most) || (v != 0 && fabs(v) < 1e-3) || (v == 0 && signbit(v)) || whole / scale != v)
		return false;
	const uint64_t n = (uint64_t)fabs(whole), unit = (uint64_t)scale;
	dp_buf_put(b, "-", v < 0);
	dp_put_dec(b, n / unit);
	dp_buf_put(b, ".", places > 0);
	for (uint64_t rest = n % unit, digit = unit / 10; digit; digit /= 10)
		dp_buf_put(b, &"0123456789"[rest / digit % 10], 1);
	return true;
}

void dp_put_double(struct dp_buf *b, double v, unsigned size)
{
	char text[40];
	if (isnan(v) || isinf(v)) {
		dp_put_str(b, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
		return;
	}
	if (put_short(b, v, size))
		return;
	for (int precision = fabs(v) < 1e15 && trunc(v) == v ? 15 : 1; precision <= 17; precision++) { /* 60, not 6e+01 */
		snprintf(text, sizeof(text), "%.*g", precision, v);
		if (reads_back(text, v, size))
			break;
	}
	/* The program may run under a locale with a decimal comma. */
	for (char *c = text; *c; c++)
		if (!strchr("0123456789+-e", *c))
			*c = '.';
	dp_put_str(b, text);
}

/* ---- enumerations ---- */

static const char *name_of(const struct dp_enumeration *names, uint64_t v)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->item[i].value == v)
			return names->item[i].name;
	return NULL;
}

static bool put_flags(struct dp_buf *b, const struct dp_enumeration *names, uint64_t v)
{
	const size_t before = b->len;
	uint64_t left = v;
	for (size_t i = 0; i < names->n; i++) {
		const struct dp_enumerator *e = &names->item[i];
		if (!e->value || (left & e->value) != e->value)
			continue;
		dp_put_str(b, b->len > before ? "|" : "");
		dp_put_str(b, e->name);
		left &= ~e->value;
	}
	if (left && left != v) {
		dp_put_str(b, "|");
		dp_put_hex(b, left);
	}
	return b->len > before;
}

bool dp_put_enumerator(struct dp_buf *b, const struct dp_enumeration *names, uint64_t v)
{
	const char *name = name_of(names, v);
	if (name)
		dp_put_str(b, name);
	return name || (names->flags && put_flags(b, names, v));
}

/* ---- characters ---- */

/* Length of the well-formed UTF-8 character at `s` (Unicode 15, table 3-7), 0 if there is none; its code point in `ret`. */
static size_t utf8(const uint8_t *s, size_t n, uint32_t *ret)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	if (!len || len > n)
		return 0;
	uint32_t c = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	*ret = c;
	return c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : len;
}

/* Control characters, and those that hide or reorder what a reader sees. */
static bool is_deceptive(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c < 0xe0080);
}

static void put_escaped_byte(struct dp_buf *b, uint8_t c)
{
	char text[8];
	if (c == '\n' || c == '\t' || c == '\r')
		dp_put_str(b, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
	else
		dp_buf_put(b, text, (size_t)snprintf(text, sizeof(text), "\\x%02x", c));
}

/* Printable ASCII without quotes and backslashes needs no escaping. */
static bool is_plain(uint8_t c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '\'';
}

/* The high bit of each byte of `v` that is zero. A byte above a zero may be marked, too. */
static uint64_t zeros(uint64_t v)
{
	return (v - UINT64_C(0x0101010101010101)) & ~v & UINT64_C(0x8080808080808080);
}

/* Whether all eight bytes are plain. Sometimes false although they are. */
static bool are_plain(uint64_t v)
{
	const uint64_t each = UINT64_C(0x0101010101010101);
	const uint64_t low = zeros(v & (each * 0xe0)), high = v & (each * 0x80);
	return !(low | high | zeros(v ^ each * 0x7f) | zeros(v ^ each * '"') | zeros(v ^ each * '\\') | zeros(v ^ each * '\''));
}

/* Number of leading plain bytes. */
static size_t plain_run(const uint8_t *s, size_t n)
{
	size_t i = 0;
	for (uint64_t v; n - i >= sizeof(v); i += sizeof(v)) {
		memcpy(&v, s + i, sizeof(v));
		if (!are_plain(v))
			break;
	}
	while (i < n && is_plain(s[i]))
		i++;
	return i;
}

void dp_put_visible(struct dp_buf *b, const void *bytes, size_t n, char quote)
{
	const uint8_t *s = bytes;
	size_t quotes = quote ? 1 : 0;
	dp_buf_put(b, &quote, quotes);
	for (size_t i = 0, len; i < n; i += len) {
		uint32_t c = 0;
		len = plain_run(s + i, n - i);
		if (len) {
			dp_buf_put(b, s + i, len);
			continue;
		}
		len = utf8(s + i, n - i, &c);
		if (!len || is_deceptive(c)) {
			len = len ? len : 1;
			for (size_t j = 0; j < len; j++)
				put_escaped_byte(b, s[i + j]);
			continue;
		}
		if (quote && (c == '\\' || c == (uint8_t)quote))
			dp_buf_put(b, "\\", 1);
		dp_buf_put(b, s + i, len);
	}
	dp_buf_put(b, &quote, quotes);
}

static void put_json_control(struct dp_buf *b, uint32_t c)
{
	char text[8];
	static const char named[] = "\b\t\n\f\r";
	const char *found = c ? strchr(named, (int)c) : NULL;
	if (found)
		dp_buf_put(b, (const char[]){'\\', "btnfr"[found - named]}, 2);
	else
		dp_buf_put(b, text, (size_t)snprintf(text, sizeof(text), "\\u%04x", c));
}

void dp_put_json(struct dp_buf *b, const void *bytes, size_t n)
{
	const uint8_t *s = bytes;
	dp_buf_put(b, "\"", 1);
	for (size_t i = 0, len; i < n; i += len) {
		uint32_t c = 0;
		len = plain_run(s + i, n - i);
		if (len) {
			dp_buf_put(b, s + i, len);
			continue;
		}
		len = utf8(s + i, n - i, &c);
		if (!len) {
			dp_put_str(b, "\xef\xbf\xbd");
			len = 1;
		} else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
			put_json_control(b, c);
		} else {
			if (c == '"' || c == '\\')
				dp_buf_put(b, "\\", 1);
			dp_buf_put(b, s + i, len);
		}
	}
	dp_buf_put(b, "\"", 1);
}

void dp_put_json_str(struct dp_buf *b, const char *s)
{
	dp_put_json(b, s, strlen(s));
}

void dp_put_json_member(struct dp_buf *b, const char *before, const char *key, const char *text)
{
	dp_put_str(b, before);
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
	if (text)
		dp_put_json_str(b, text);
	else
		dp_put_str(b, "null");
}

void dp_put_json_hex(struct dp_buf *b, const char *key, uint64_t v)
{
	dp_put_str(b, ",");
	dp_put_json_str(b, key);
	dp_put_str(b, ":\"");
	dp_put_hex(b, v);
	dp_put_str(b, "\"");
}
