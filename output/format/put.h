/* SPDX-License-Identifier: MIT */
/* Appends pieces of text to a buffer, for text, JSON and metadata. Independent of the locale. */
#ifndef DP_OUTPUT_FORMAT_PUT_H
#define DP_OUTPUT_FORMAT_PUT_H

#include "base/buf.h"
#include "probes/probes.h"

static inline void dp_put_str(struct dp_buf *b, const char *s)
{
	dp_buf_put(b, s, strlen(s));
}
void dp_put_dec(struct dp_buf *b, uint64_t v);
void dp_put_signed(struct dp_buf *b, int64_t v);
/* Nine digits of a number below a second. */
void dp_format_nanoseconds(uint8_t to[9], uint32_t v);
void dp_put_hex(struct dp_buf *b, uint64_t v); /* with 0x */
void dp_put_hexdump(struct dp_buf *b, const uint8_t *bytes, size_t n);
/* The shortest decimal that reads back as the same value; or "nan", "inf", "-inf". `size`: 4 for float, 8 for double. */
void dp_put_double(struct dp_buf *b, double v, unsigned size);
void dp_put_duration(struct dp_buf *b, uint64_t ns); /* base/duration.h */
/* Sixteen bytes as a number of the kind `look` (DP_DISPLAY_INT128 and later). For other looks returns false and appends nothing.
 */
bool dp_put_wide(struct dp_buf *b, enum dp_display look, const uint8_t *bytes);
/*
 * Escapes bytes for a terminal: control characters (also C1 and the invisible ones that reorder text) and invalid UTF-8 become
 * \n, \t or \xNN. A nonzero `quote` is put around the text; it and backslashes are escaped inside.
 */
void dp_put_visible(struct dp_buf *b, const void *bytes, size_t n, char quote);
/*
 * The name of an enumeration's value; for flags the names that are set (A|B, the rest in hexadecimal). Returns false and appends
 * nothing if it has none.
 */
bool dp_put_enumerator(struct dp_buf *b, const struct dp_enumeration *names, uint64_t v);
/* Name of a system call's number, or of a result's error: openat, -ENOENT. Returns false and appends nothing for other values. */
bool dp_put_call_display(struct dp_buf *b, enum dp_display look, uint64_t v);
/* A JSON string with quotes. Each byte that is not UTF-8 becomes U+FFFD. */
void dp_put_json(struct dp_buf *b, const void *bytes, size_t n);
void dp_put_json_str(struct dp_buf *b, const char *s);
/* `before` (a comma or brace), "key":"text"; null if `text` is NULL. */
void dp_put_json_member(struct dp_buf *b, const char *before, const char *key, const char *text);
/* ,"key":"0x..." */
void dp_put_json_hex(struct dp_buf *b, const char *key, uint64_t v);

#endif
