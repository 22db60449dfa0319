/* SPDX-License-Identifier: MIT */
/*
 * If the program has an allocator of its own, the C library's functions return memory from that. The guest, which uses the C
 * library's allocator only (libc.c), would free it with the wrong one. So these functions are reimplemented.
 */
#include "agent/lttng/guest/redirect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *dp_lttng_strndup(const char *text, size_t n)
{
	const size_t length = strnlen(text, n);
	char *copy = malloc(length + 1);
	if (!copy)
		return NULL;
	copy[length] = 0;
	return memcpy(copy, text, length);
}

char *dp_lttng_strdup(const char *text)
{
	return dp_lttng_strndup(text, strlen(text));
}

int dp_lttng_vasprintf(char **ret, const char *format, va_list list)
{
	va_list again;
	va_copy(again, list);
	const int n = vsnprintf(NULL, 0, format, list);
	*ret = n >= 0 ? malloc((size_t)n + 1) : NULL;
	const int done = *ret ? vsnprintf(*ret, (size_t)n + 1, format, again) : -1;
	va_end(again);
	return done;
}

int dp_lttng_vasprintf_chk(char **ret, int flag, const char *format, va_list list)
{
	(void)flag;
	return dp_lttng_vasprintf(ret, format, list);
}

int dp_lttng_asprintf(char **ret, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	const int n = dp_lttng_vasprintf(ret, format, list);
	va_end(list);
	return n;
}

int dp_lttng_asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list list;
	(void)flag;
	va_start(list, format);
	const int n = dp_lttng_vasprintf(ret, format, list);
	va_end(list);
	return n;
}

static bool has_room(char **line, size_t *size, size_t wanted)
{
	if (*line && *size >= wanted)
		return true;
	const size_t more = wanted < 120 ? 120 : 2 * wanted;
	char *larger = realloc(*line, more);
	if (!larger)
		return false;
	*line = larger;
	*size = more;
	return true;
}

ssize_t dp_lttng_getdelim(char **line, size_t *size, int end, FILE *stream)
{
	size_t n = 0;
	int c = 0;
	if (!line || !size || !stream) {
		errno = EINVAL;
		return -1;
	}
	while ((!n || c != end) && (c = getc(stream)) != EOF) {
		if (!has_room(line, size, n + 2))
			return -1;
		(*line)[n++] = (char)c;
	}
	if (!n || !has_room(line, size, n + 1))
		return -1;
	(*line)[n] = 0;
	return (ssize_t)n;
}
