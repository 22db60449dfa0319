/* SPDX-License-Identifier: MIT */
#include "probes/point/suggest.h"

#include <limits.h>
#include <string.h>

#define LONGEST    127
#define PART_LEAST 4                      /* letters of a name that say which one is meant */
#define MAX_WORK   (100ULL * 1000 * 1000) /* character comparisons, about a tenth of a second */

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

/* UINT_MAX: too far apart. */
static unsigned near(struct dp_suggest *s, const char *name, size_t len)
{
	const size_t apart = len > s->len ? len - s->len : s->len - len;
	if (apart > s->limit || len > LONGEST || s->len > LONGEST || s->work > MAX_WORK)
		return UINT_MAX;
	const unsigned d = distance(s, name, len);
	return d <= s->limit && d < s->len ? d : UINT_MAX;
}

void dp_suggest_offer(struct dp_suggest *s, const char *name, size_t len)
{
	const unsigned d = is_part(s, name, len) ? 1 : near(s, name, len);
	if (d != UINT_MAX)
		insert(s, (struct dp_suggestion){name, len, s->within, d});
}

/* Does the word begin or end at `at`? Words of a name are parted by '_'. */
static bool is_edge(const char *name, size_t len, size_t at)
{
	return !at || at == len || name[at] == '_' || name[at - 1] == '_';
}

static bool is_within(const struct dp_suggest *s, const char *name, size_t len)
{
	const char *at = s->len >= PART_LEAST && len > s->len ? memmem(name, len, s->wanted, s->len) : NULL;
	return at && is_edge(name, len, (size_t)(at - name)) && is_edge(name, len, (size_t)(at - name) + s->len);
}

/* Of a name that begins with a word for its program (ngx_, sqlite3_), that word may be missing. */
static unsigned near_without_first_word(struct dp_suggest *s, const char *name, size_t len)
{
	const char *rest = s->len >= PART_LEAST ? memchr(name, '_', len) : NULL;
	return rest ? near(s, rest + 1, len - (size_t)(rest + 1 - name)) : UINT_MAX;
}

/* As good as a name with two misspelled letters. */
void dp_suggest_offer_part(struct dp_suggest *s, const char *name, size_t len)
{
	const size_t before = s->n;
	dp_suggest_offer(s, name, len);
	if (s->n != before)
		return;
	const unsigned d = is_within(s, name, len) ? 0 : near_without_first_word(s, name, len);
	if (d != UINT_MAX)
		insert(s, (struct dp_suggestion){name, len, s->within, 2 + d});
}

void dp_suggest_print(const struct dp_suggest *s, struct dp_buf *to)
{
	for (size_t i = 0; i < s->n; i++)
		dp_buf_printf(to, "%s%s%s%.*s",
		              i == 0         ? "; did you mean "
		              : i + 1 < s->n ? ", "
		                             : " or ",
		              s->best[i].within ? s->best[i].within : "", s->best[i].within ? "!" : "", (int)s->best[i].len,
		              s->best[i].name);
	if (s->n)
		dp_buf_printf(to, "?");
}
