/* SPDX-License-Identifier: MIT */
/* Appending pieces of text to a buffer: what text, JSON and metadata share. Nothing here depends on the locale. */
#ifndef DP_OUTPUT_PUT_H
#define DP_OUTPUT_PUT_H

#include "base/buf.h"
#include "probes/probes.h"

void dp_put_str(struct dp_buf *b, const char *s);
void dp_put_dec(struct dp_buf *b, uint64_t v);
void dp_put_signed(struct dp_buf *b, int64_t v);
void dp_put_hex(struct dp_buf *b, uint64_t v); /* with 0x */
void dp_put_hexdump(struct dp_buf *b, const uint8_t *bytes, size_t n);
/* The shortest decimal that reads back as the same value; "nan", "inf", "-inf". `size`: 4 for a float, 8 for a double. */
void dp_put_double(struct dp_buf *b, double v, unsigned size);
/* Sixteen bytes as the number that `look` says they are (DP_LOOK_INT128 and what follows). False, and nothing is put, for other looks. */
bool dp_put_wide(struct dp_buf *b, enum dp_look look, const uint8_t *bytes);
/*
 * Bytes for a terminal: control characters (C1 and the invisible ones that reorder text, too) and what is not UTF-8 become
 * \n, \t or \xNN. With `quote`, that character is put around them and escaped inside, as is the backslash.
 */
void dp_put_visible(struct dp_buf *b, const void *bytes, size_t n, char quote);
/*
 * The name of an enumeration's value; of flags, those that are set (A|B, the rest in hexadecimal). False, and nothing is put, if
 * it has none.
 */
bool dp_put_enumerator(struct dp_buf *b, const struct dp_enumeration *names, uint64_t v);
/* A system call's number, or the error that its result is, by name: openat, -ENOENT. False, and nothing is put, for other values. */
bool dp_put_call_look(struct dp_buf *b, enum dp_look look, uint64_t v);
/* A JSON string, quotes included. What is not UTF-8 becomes U+FFFD, a byte each. */
void dp_put_json(struct dp_buf *b, const void *bytes, size_t n);
void dp_put_json_str(struct dp_buf *b, const char *s);
/* `before` (a comma, a brace), "key":"text"; null where there is no text. */
void dp_put_json_member(struct dp_buf *b, const char *before, const char *key, const char *text);
/* ,"key":"0x..." */
void dp_put_json_hex(struct dp_buf *b, const char *key, uint64_t v);

#endif
