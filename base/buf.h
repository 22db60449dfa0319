/* SPDX-License-Identifier: MIT */
/* A growing byte buffer. Out of memory sets `failed` and makes further appends no-ops: check once at the end. */
#ifndef DP_BASE_BUF_H
#define DP_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dp_buf {
	uint8_t *data;
	size_t len, cap;
	bool failed;
};

void dp_buf_init(struct dp_buf *b);
void dp_buf_fini(struct dp_buf *b);
void dp_buf_printf(struct dp_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Makes room for `n` more bytes and a NUL. False: out of memory. */
bool dp_buf_reserve(struct dp_buf *b, size_t n);
/* Appends `n` zero bytes and returns where they start (NULL when out of memory); valid until the next append. */
uint8_t *dp_buf_grow(struct dp_buf *b, size_t n);
/* Returns the bytes as a C string: a NUL follows the last byte and is not counted in len. Never NULL. */
const char *dp_buf_str(struct dp_buf *b);

/*
 * For writers of many short pieces: returns where up to `n` bytes may be written (NULL when out of memory). dp_buf_wrote() takes
 * where they end; what is after them in the buffer is undefined until then.
 */
static inline uint8_t *dp_buf_room(struct dp_buf *b, size_t n)
{
	const bool fits = !b->failed && b->cap - b->len > n;
	return fits || dp_buf_reserve(b, n) ? b->data + b->len : NULL;
}

static inline void dp_buf_wrote(struct dp_buf *b, uint8_t *end)
{
	*end = '\0';
	b->len = (size_t)(end - b->data);
}

static inline void dp_buf_put(struct dp_buf *b, const void *bytes, size_t n)
{
	uint8_t *at = n ? dp_buf_room(b, n) : NULL;
	if (!at)
		return;
	memcpy(at, bytes, n);
	dp_buf_wrote(b, at + n);
}

/* The same for short texts of any length, if DP_BUF_BLOCK more bytes than `n` can be read. */
enum { DP_BUF_BLOCK = 32 };
static inline void dp_buf_put_blocks(struct dp_buf *b, const uint8_t *bytes, size_t n)
{
	uint8_t *at = dp_buf_room(b, n + DP_BUF_BLOCK);
	if (!at)
		return;
	for (size_t i = 0; i < n; i += DP_BUF_BLOCK)
		memcpy(at + i, bytes + i, DP_BUF_BLOCK);
	dp_buf_wrote(b, at + n);
}

#endif
