/* SPDX-License-Identifier: MIT */
#include "probes/record/lex.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 32, SHOWN_BEFORE = 60, SHOWN = 100 };

bool dp_lex_number(const char *text, size_t len, uint64_t *ret)
{
	char copy[NUMBER_MAX + 1], *end = NULL;
	if (!len || len > NUMBER_MAX || !isdigit((unsigned char)text[0]))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	errno = 0;
	uint64_t value = strtoull(copy, &end, 0);
	if (errno || end != copy + len)
		return false;
	*ret = value;
	return true;
}

bool dp_lex_identifier(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c >= 0x80 || !(c == '_' || isalpha(c) || (i && isdigit(c))))
			return false;
	}
	return len > 0;
}

/* Appends a window of the text around `at`, safe for a terminal. Returns the caret's column. */
static size_t show(struct dp_buf *buf, const char *text, size_t at)
{
	size_t from = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0, column = 0, i = from;
	dp_buf_printf(buf, "\n    %s", from ? "..." : "");
	for (; text[i] && i < from + SHOWN; i++) {
		unsigned char c = (unsigned char)text[i];
		dp_buf_put(buf, c < 0x20 || c == 0x7f ? "?" : &text[i], 1);
		/* UTF-8 continuation bytes take no column. */
		if (i < at && (c & 0xc0) != 0x80)
			column++;
	}
	dp_buf_printf(buf, "%s", text[i] ? "..." : "");
	return column + (from ? strlen("...") : 0);
}

struct dp_error *dp_lex_point(enum dp_tag tag, const char *text, size_t at, const char *message)
{
	struct dp_buf buf;
	dp_buf_init(&buf);
	size_t column = show(&buf, text, at);
	struct dp_error *err = dp_error(tag, "%s%s\n    %*s^", message, dp_buf_str(&buf), (int)column, "");
	dp_buf_fini(&buf);
	return err;
}

struct dp_error *dp_lex_error(const char *text, size_t at, const char *fmt, ...)
{
	dp_auto_free char *message = NULL;
	va_list args;
	va_start(args, fmt);
	int n = vasprintf(&message, fmt, args);
	va_end(args);
	if (n < 0) {
		message = NULL;
		return dp_error_nomem();
	}
	return dp_lex_point(DP_TAG_SYNTAX, text, at, message);
}
