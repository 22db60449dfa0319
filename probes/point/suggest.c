/* SPDX-License-Identifier: MIT */
#include "probes/point/suggest.h"

#include <string.h>

#define LONGEST  127
#define MAX_WORK (100ULL * 1000 * 1000) /* character comparisons, about a tenth of a second */

void dp_suggest_init(struct dp_suggest *s, const char *wanted, size_t len)
{
	*s = (struct dp_suggest){.wanted = wanted, .len = len, .limit = len <= 3 ? 1 : len <= 7 ? 2 : 3};
}

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance, row by row. Stops when a whole row exceeds the limit. */
static unsigned distance(struct dp_suggest *s, const char *b, size_t m)
{
	unsigned rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *row = rows[2];
	const char *a = s->wanted;
	for (size_t j = 0; j <= m; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= s->len; i++) {
		unsigned least = row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			row[j] = min(min(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min(row[j], before[j - 2] + 1);
			least = min(least, row[j]);
		}
		s->work += m;
		if (least > s->limit)
			return least;
		unsigned *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[m];
}

/* True for foo.part.0, foo.cold, foo.constprop.0: parts that the compiler made from foo. */
static bool is_part(const struct dp_suggest *s, const char *name, size_t len)
{
	return len > s->len && name[s->len] == '.' && !memcmp(name, s->wanted, s->len);
}

static void insert(struct dp_suggest *s, struct dp_suggestion found)
{
	size_t at = s->n;
	for (size_t i = 0; i < s->n; i++)
		if (s->best[i].len == found.len && !memcmp(s->best[i].name, found.name, found.len))
			return;
	while (at && s->best[at - 1].distance > found.distance)
		at--;
	if (at == DP_SUGGESTIONS)
		return;
	if (s->n < DP_SUGGESTIONS)
		s->n++;
	memmove(&s->best[at + 1], &s->best[at], (s->n - at - 1) * sizeof(found));
	s->best[at] = found;
}

void dp_suggest_offer(struct dp_suggest *s, const char *name, size_t len)
{
	if (is_part(s, name, len)) {
		insert(s, (struct dp_suggestion){name, len, 1});
		return;
	}
	size_t apart = len > s->len ? len - s->len : s->len - len;
	if (apart > s->limit || len > LONGEST || s->len > LONGEST || s->work > MAX_WORK)
		return;
	unsigned d = distance(s, name, len);
	if (d <= s->limit && d < s->len)
		insert(s, (struct dp_suggestion){name, len, d});
}

void dp_suggest_print(const struct dp_suggest *s, struct dp_buf *to)
{
	for (size_t i = 0; i < s->n; i++)
		dp_buf_printf(to, "%s%.*s",
		              i == 0         ? "; did you mean "
		              : i + 1 < s->n ? ", "
		                             : " or ",
		              (int)s->best[i].len, s->best[i].name);
	if (s->n)
		dp_buf_printf(to, "?");
}
