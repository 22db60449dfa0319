/* SPDX-License-Identifier: MIT */
#include "output/page/page.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void put(struct dp_page *p, const char *from, const char *end)
{
	const size_t n = (size_t)(end - from);
	p->failed |= n && fwrite(from, 1, n, p->to) != n;
}

void dp_page_until(struct dp_page *p, const char *mark)
{
	const char *here = memmem(p->at, (size_t)(p->end - p->at), mark, strlen(mark));
	if (!here) {
		p->failed = true;
		return;
	}
	put(p, p->at, here);
	p->at = here + strlen(mark);
}

void dp_page_put(struct dp_page *p, const struct dp_page_file *file)
{
	put(p, file->start, file->end);
}

struct dp_error *dp_page_end(struct dp_page *p)
{
	put(p, p->at, p->end);
	return !p->failed && !fflush(p->to) ? NULL : dp_error_sys(DP_TAG_OUTPUT, "cannot write the page");
}

/* Parts are repetitive: a low compression level is nearly as good as a high one. */
enum { LEVEL = 2 };

static void put_base64(struct dp_buf *b, const uint8_t *from, size_t n)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *to = dp_buf_grow(b, (n + 2) / 3 * 4);
	for (size_t i = 0; to && i < n; i += 3, to += 4) {
		const uint32_t v = (uint32_t)from[i] << 16 | (i + 1 < n ? from[i + 1] << 8 : 0) | (i + 2 < n ? from[i + 2] : 0);
		for (unsigned k = 0; k < 4; k++)
			to[k] = (uint8_t)(i + k <= n ? digit[v >> (18 - 6 * k) & 63] : '=');
	}
}

struct dp_error *dp_page_pack(const void *bytes, size_t n, struct dp_buf *ret)
{
	uLongf size = compressBound(n);
	uint8_t *packed = malloc(size);
	const bool made = packed && compress2(packed, &size, bytes, n, LEVEL) == Z_OK;
	if (made)
		put_base64(ret, packed, size);
	free(packed);
	dp_buf_put(ret, "\n", 1);
	return made && !ret->failed ? NULL : dp_error_nomem();
}

struct dp_error *dp_page_put_packed(FILE *to, const void *bytes, size_t n)
{
	struct dp_buf text = {0};
	struct dp_error *err = dp_page_pack(bytes, n, &text);
	if (!err && fwrite(text.data, 1, text.len, to) != text.len)
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the page");
	dp_buf_fini(&text);
	return err;
}
