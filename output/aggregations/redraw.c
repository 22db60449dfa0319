/* SPDX-License-Identifier: MIT */
#include "output/aggregations/redraw.h"

#include <stdbool.h>
#include <string.h>

void dp_redraw_clear(struct dp_drawn *d, FILE *to)
{
	if (d->lines)
		fprintf(to, "\033[%uA\r\033[J", d->lines);
	d->lines = 0;
}

/* The bytes of the line that have so many columns. The text is without control characters. */
static size_t cut(const char *line, size_t n, unsigned columns)
{
	unsigned used = 0;
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)line[i] & 0xc0) != 0x80 && used++ == columns)
			return i;
	return n;
}

static unsigned count(const char *text)
{
	unsigned n = 0;
	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* A terminal of another size has moved the lines: it begins anew. */
static void begin(struct dp_drawn *d, unsigned columns, unsigned rows, FILE *to)
{
	const bool same = columns == d->columns && rows == d->rows;
	if (d->lines && !same) {
		fputs("\033[H\033[2J", to);
		d->lines = 0;
	}
	dp_redraw_clear(d, to);
	d->columns = columns;
	d->rows = rows;
}

void dp_redraw(struct dp_drawn *d, unsigned columns, unsigned rows, const char *text, FILE *to)
{
	const unsigned all = count(text), room = rows > 2 ? rows - 1 : 1;
	const unsigned most = all > room ? room - 1 : all;
	begin(d, columns, rows, to);
	for (const char *end; d->lines < most && (end = strchr(text, '\n')); text = end + 1, d->lines++)
		fprintf(to, "%.*s\n", (int)cut(text, (size_t)(end - text), columns > 1 ? columns - 1 : 1), text);
	if (most == all)
		return;
	fprintf(to, "... %u more lines\n", all - most);
	d->lines++;
}
