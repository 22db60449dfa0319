/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	double ns;
} unit[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

enum { LARGEST = sizeof(unit) / sizeof(*unit) - 1 };

/* 1.50 -> 1.5, 2.00 -> 2 */
static void drop_zeros(char *text)
{
	size_t n = strlen(text);
	while (n && text[n - 1] == '0')
		n--;
	text[n && text[n - 1] == '.' ? n - 1 : n] = '\0';
}

const char *dp_duration(uint64_t ns, char text[DP_DURATION_TEXT])
{
	size_t i = 0;
	while (i < LARGEST && (double)ns / unit[i].ns >= 999.5) /* what rounds to 1000 of a unit is 1 of the next */
		i++;
	const double v = (double)ns / unit[i].ns;
	const int digits = !i || v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2;
	snprintf(text, DP_DURATION_TEXT - 2, "%.*f", digits, v);
	if (digits)
		drop_zeros(text);
	memcpy(text + strlen(text), unit[i].name, strlen(unit[i].name) + 1);
	return text;
}
