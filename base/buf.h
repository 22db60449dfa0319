/* SPDX-License-Identifier: MIT */
/* A growing byte buffer. Out of memory sets `failed` and makes further appends no-ops: check once at the end. */
#ifndef DP_BASE_BUF_H
#define DP_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_buf {
	uint8_t *data;
	size_t len, cap;
	bool failed;
};

void dp_buf_init(struct dp_buf *b);
void dp_buf_fini(struct dp_buf *b);
void dp_buf_put(struct dp_buf *b, const void *bytes, size_t n);
void dp_buf_printf(struct dp_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends `n` zero bytes and returns where they start (NULL when out of memory); valid until the next append. */
uint8_t *dp_buf_grow(struct dp_buf *b, size_t n);
/* Returns the bytes as a C string: a NUL follows the last byte and is not counted in len. Never NULL. */
const char *dp_buf_str(struct dp_buf *b);

#endif
