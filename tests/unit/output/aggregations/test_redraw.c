/* SPDX-License-Identifier: MIT */
/* What replaces a report on a terminal: exactly its own lines. */
#include "output/aggregations/redraw.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct dp_drawn drawn;

static void draws(unsigned columns, unsigned rows, const char *text, const char *want)
{
	char *is = NULL;
	size_t n;
	FILE *to = open_memstream(&is, &n);
	dp_redraw(&drawn, columns, rows, text, to);
	fclose(to);
	cr_expect_str_eq(is, want);
	free(is);
}

Test(redraw, replaces_its_own_lines)
{
	draws(80, 24, "a\nb\nc\n", "a\nb\nc\n");
	draws(80, 24, "d\n", "\033[3A\r\033[Jd\n");
	draws(80, 24, "e\nf\n", "\033[1A\r\033[Je\nf\n");
}

Test(redraw, cuts_to_the_size)
{
	draws(5, 24, "12345678\nn\303\274r\303\274ber\n", "1234\nn\303\274r\303\274\n");
	cr_expect_eq(drawn.lines, 2);
	draws(5, 4, "1\n2\n3\n4\n", "\033[H\033[2J1\n2\n... 2 more lines\n");
	draws(5, 4, "1\n2\n3\n", "\033[3A\r\033[J1\n2\n3\n");
}

Test(redraw, a_terminal_of_another_size_begins_anew)
{
	draws(80, 24, "a\nb\n", "a\nb\n");
	draws(40, 24, "c\n", "\033[H\033[2Jc\n");
}
