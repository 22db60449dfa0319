/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dp_buf_init(struct dp_buf *b)
{
	*b = (struct dp_buf){0};
}

void dp_buf_fini(struct dp_buf *b)
{
	free(b->data);
	*b = (struct dp_buf){0};
}

bool dp_buf_reserve(struct dp_buf *b, size_t n)
{
	if (b->failed || n > SIZE_MAX / 4 || b->len > SIZE_MAX / 4)
		b->failed = true;
	if (b->failed)
		return false;
	size_t want = b->len + n + 1, cap = b->cap ? b->cap : 64;
	if (want <= b->cap)
		return true;
	while (cap < want)
		cap *= 2;
	uint8_t *grown = realloc(b->data, cap);
	if (!grown) {
		b->failed = true;
		return false;
	}
	b->data = grown;
	b->cap = cap;
	return true;
}

uint8_t *dp_buf_grow(struct dp_buf *b, size_t n)
{
	if (!dp_buf_reserve(b, n))
		return NULL;
	uint8_t *at = b->data + b->len;
	memset(at, 0, n + 1);
	b->len += n;
	return at;
}

void dp_buf_printf(struct dp_buf *b, const char *fmt, ...)
{
	va_list args;
	char *text = NULL;
	va_start(args, fmt);
	int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		b->failed = true;
		return;
	}
	dp_buf_put(b, text, (size_t)n);
	free(text);
}

const char *dp_buf_str(struct dp_buf *b)
{
	return b->data ? (const char *)b->data : "";
}
