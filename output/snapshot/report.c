/* SPDX-License-Identifier: MIT */
/*
 * Fills the three placeholders of share/report/page.html. The data is the snapshot's JSON in parts (dp_snapshot_json_parts()),
 * one per line, deflated and in base64. So a browser unpacks only the parts that are viewed, and the program's memory cannot
 * become markup; the script inserts everything as text.
 */
#include "output/snapshot/report.h"

#include "output/snapshot/show.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Embedded by cmake/dynprobe.cmake. */
extern const char dp_report_page[], dp_report_page_end[], dp_report_style[], dp_report_style_end[], dp_report_script[],
        dp_report_script_end[];

static bool put(FILE *to, const char *from, const char *end)
{
	const size_t n = (size_t)(end - from);
	return !n || fwrite(from, 1, n, to) == n;
}

/* ---- the data */

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

static struct dp_error *put_part(void *of, const void *json, size_t n)
{
	FILE *to = of;
	uLongf size = compressBound(n);
	struct dp_buf text = {0};
	uint8_t *packed = malloc(size);
	const bool made = packed && compress2(packed, &size, json, n, LEVEL) == Z_OK;
	if (made)
		put_base64(&text, packed, size);
	free(packed);
	dp_buf_put(&text, "\n", 1);
	struct dp_error *err = !made || text.failed ? dp_error_nomem() : NULL;
	if (!err && fwrite(text.data, 1, text.len, to) != text.len)
		err = dp_error_sys(DP_TAG_OUTPUT, "cannot write the report");
	dp_buf_fini(&text);
	return err;
}

/* ---- the page */

static const char *find(const char *at, const char *mark)
{
	return memmem(at, (size_t)(dp_report_page_end - at), mark, strlen(mark));
}

/* Writes the text before the mark, then the replacement; moves *at past the mark. */
static bool fill(FILE *to, const char **at, const char *mark, const char *from, const char *end)
{
	const char *here = find(*at, mark);
	if (!here || !put(to, *at, here))
		return false;
	*at = here + strlen(mark);
	return put(to, from, end);
}

struct dp_error *dp_report_html(struct dp_snapshot *s, FILE *to)
{
	const char *at = dp_report_page;
	bool good = fill(to, &at, "@STYLE@", dp_report_style, dp_report_style_end) && fill(to, &at, "@DATA@", "", "");
	if (good)
		DP_TRY(dp_snapshot_json_parts(s, &(struct dp_json_sink){put_part, to}));
	good = good && fill(to, &at, "@SCRIPT@", dp_report_script, dp_report_script_end) && put(to, at, dp_report_page_end);
	return good && !fflush(to) ? NULL : dp_error_sys(DP_TAG_OUTPUT, "cannot write the report");
}
