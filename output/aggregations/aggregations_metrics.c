/* SPDX-License-Identifier: MIT */
/*
 * Metrics in the text format of Prometheus, version 0.0.4, which node_exporter's textfile collector reads: no time stamps. "#
 * EOF" is a comment there, and what OpenMetrics ends with. The lines of a family stand together. Labels tell the series of a
 * family apart: the probe, the process, the expression, the keys.
 */
#include "base/cleanup.h"
#include "output/aggregations/aggregations.h"
#include "output/format/put.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum kind { SUM, MIN, MAX, HISTOGRAM, NKINDS };

static const struct {
	const char *name, *type, *help;
} FAMILY[NKINDS][2] = {
        /* [1]: of durations */
        [SUM] = {{"dynprobe_sum", "gauge", "Sum of an expression over all hits."},
                 {"dynprobe_duration_sum_seconds", "gauge", "Sum of the durations of all calls."}},
        [MIN] = {{"dynprobe_min", "gauge", "Least value of an expression."},
                 {"dynprobe_duration_min_seconds", "gauge", "Shortest call."}},
        [MAX] = {{"dynprobe_max", "gauge", "Greatest value of an expression."},
                 {"dynprobe_duration_max_seconds", "gauge", "Longest call."}},
        [HISTOGRAM] = {{"dynprobe_value", "histogram", "Values of an expression."},
                       {"dynprobe_duration_seconds", "histogram", "Durations of calls."}},
};

static void put_head(struct dp_buf *b, const char *name, const char *type, const char *help)
{
	dp_buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

struct metrics { /* being written */
	struct dp_buf *b;
	const struct dp_aggs_shown *a;
	const bool *twin; /* of each row: another probe has its name; NULL: not known */
};

/* ---- labels ---------------------------------------------------------------------------------------------------------------- */

enum { LABEL_MOST = 64 };

/* Letters, digits and underscores. */
static void plain_name(char to[LABEL_MOST], const char *text)
{
	size_t n = 0;
	for (; *text && n < LABEL_MOST - 1; text++)
		to[n++] = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z')
		                  ? *text
		                  : '_';
	to[n] = '\0';
}

/* The prefix keeps a key apart from labels of our own, its number from a key of which the same is left. */
static void put_label_name(struct dp_buf *b, const struct dp_aggs_shown *a, size_t i)
{
	char name[LABEL_MOST], other[LABEL_MOST];
	bool again = false;
	if (a->key[i].kind != DP_KEY_VALUE && a->key[i].kind != DP_KEY_TEXT) {
		dp_put_str(b, a->key[i].text);
		return;
	}
	plain_name(name, a->key[i].text);
	for (size_t k = 0; k < i; k++) {
		plain_name(other, a->key[k].text);
		again |= !strcmp(name, other);
	}
	if (again)
		dp_buf_printf(b, "key%zu_%s", i + 1, name);
	else
		dp_buf_printf(b, "key_%s", name);
}

/* A value of a label, with its quotes; what is no UTF-8 or cannot be seen is written as \xNN first. */
static void put_label_value(struct dp_buf *b, const char *text)
{
	struct dp_buf visible;
	dp_buf_init(&visible);
	dp_put_visible(&visible, text, strlen(text), 0);
	dp_put_str(b, "\"");
	for (const char *c = dp_buf_str(&visible); *c; c++)
		dp_buf_printf(b, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	dp_put_str(b, "\"");
	dp_buf_fini(&visible);
}

/* As tables have it. */
static const char *shown_name(const struct dp_agg_row *row)
{
	return row->title ? row->title : row->name;
}

static void put_label(struct dp_buf *b, const char *name, const char *value)
{
	dp_buf_printf(b, ",%s=", name);
	put_label_value(b, value);
}

static void put_key(struct dp_buf *b, const struct dp_aggs_shown *a, size_t i, const char *word, int64_t number)
{
	dp_put_str(b, ",");
	put_label_name(b, a, i);
	dp_put_str(b, "=");
	if (word)
		put_label_value(b, word);
	else
		dp_buf_printf(b, "\"%" PRId64 "\"", number);
}

/* The process's own labels, where no key of --by is one. */
static void put_process(const struct metrics *m, const struct dp_agg_row *row)
{
	bool pid = row->pid, comm = row->comm;
	for (size_t i = 0; i < m->a->nkeys; i++) {
		pid &= m->a->key[i].kind != DP_KEY_PID;
		comm &= m->a->key[i].kind != DP_KEY_COMM;
	}
	if (pid)
		dp_buf_printf(m->b, ",pid=\"%d\"", row->pid);
	if (comm)
		put_label(m->b, "comm", row->comm);
}

/* Up to the closing brace, for labels that follow. */
static void put_series(const struct metrics *m, const char *name, const char *suffix, const struct dp_agg_row *row,
                       const char *value)
{
	const struct dp_aggs_shown *a = m->a;
	dp_buf_printf(m->b, "%s%s{probe=", name, suffix);
	put_label_value(m->b, shown_name(row));
	if (!m->twin || m->twin[row - a->row])
		put_label(m->b, "event", row->name);
	put_process(m, row);
	if (value)
		put_label(m->b, "expr", value);
	for (size_t i = 0; row->keys && i < a->nkeys; i++)
		put_key(m->b, a, i, row->keys[i].word, row->keys[i].number);
	if (!row->keys && row->keyed && a->nkeys)
		put_key(m->b, a, 0, row->word, (int64_t)row->key);
}

/* ---- places with one name -------------------------------------------------------------------------------------------------- */

static int by_shown_name(const void *x, const void *y, void *data)
{
	const struct dp_agg_row *row = data, *a = &row[*(const size_t *)x], *b = &row[*(const size_t *)y];
	const int order = strcmp(shown_name(a), shown_name(b));
	return order ? order : strcmp(a->name, b->name);
}

/* Several places of one function may be shown by one name: their rows need the event's, too. NULL if out of memory: all have it.
 */
static bool *find_twins(const struct dp_aggs_shown *a)
{
	bool *twin = calloc(a->n + 1, sizeof(*twin));
	dp_auto_free size_t *place = calloc(a->n + 1, sizeof(*place));
	if (!twin || !place) {
		free(twin);
		return NULL;
	}
	for (size_t i = 0; i < a->n; i++)
		place[i] = i;
	qsort_r(place, a->n, sizeof(*place), by_shown_name, (void *)(uintptr_t)a->row);
	for (size_t i = 0, end; i < a->n; i = end) {
		const struct dp_agg_row *first = &a->row[place[i]], *last = first;
		for (end = i + 1; end < a->n && !strcmp(shown_name(first), shown_name(&a->row[place[end]])); end++)
			last = &a->row[place[end]];
		for (size_t k = i; k < end; k++)
			twin[place[k]] = strcmp(first->name, last->name) != 0;
	}
	return twin;
}

/* ---- values ---------------------------------------------------------------------------------------------------------------- */

#define NS INT64_C(1000000000) /* a second */

static void put_number(struct dp_buf *b, bool ns, int64_t value)
{
	const uint64_t all = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	if (ns)
		dp_buf_printf(b, "%s%" PRIu64 ".%09" PRIu64, value < 0 ? "-" : "", all / NS, all % NS);
	else
		dp_buf_printf(b, "%" PRId64, value);
}

/*
 * The bound of a bucket that ends before `to`. A value is a whole number: those below `to` are those up to to - 1. A time is a
 * whole number of ns only when measured, and its bound is round.
 */
static void put_bound(struct dp_buf *b, bool ns, int64_t to)
{
	if (ns)
		dp_buf_printf(b, to % NS ? "%.12g" : "%.1f", (double)to / NS);
	else
		dp_buf_printf(b, "%" PRId64, to - 1);
}

/*
 * All series have the same bounds, whatever they contain: who adds them up by their bounds must find each. Buckets are
 * cumulative, so those with bounds outside of this are parts of the first one and of the last.
 */
static bool is_bound(const struct dp_agg_part *p, int64_t to)
{
	if (p->what & DP_AGG_DECIMAL)
		return to >= 10 && to <= 100 * NS;
	return to < INT64_MAX && (!(p->what & DP_AGG_LOG2) || to <= INT64_C(1) << 40);
}

/*
 * A sum that can fall would be read as one that has begun anew: a series has none from its first value below 0 on. No duration is
 * below 0.
 */
static void put_sum(const struct metrics *m, const struct dp_agg_row *row, size_t histogram)
{
	const struct dp_agg_part *p = dp_agg_sum_of(m->a->part, m->a->nparts, histogram);
	const uint64_t *cells = p ? dp_agg_cells_of(m->a, row, (size_t)(p - m->a->part)) : NULL;
	if (!p || (p->what & DP_AGG_MIN && dp_agg_min_of(cells[DP_AGG_WORD_MIN]) < 0))
		return;
	put_series(m, FAMILY[HISTOGRAM][dp_agg_is_ns(p)].name, "_sum", row, p->value);
	dp_put_str(m->b, "} ");
	put_number(m->b, dp_agg_is_ns(p), (int64_t)cells[DP_AGG_WORD_SUM]);
	dp_put_str(m->b, "\n");
}

static void put_buckets(const struct metrics *m, const struct dp_agg_row *row, size_t part)
{
	const struct dp_agg_part *p = &m->a->part[part];
	const uint64_t *cells = dp_agg_cells_of(m->a, row, part);
	uint64_t below = 0;
	for (unsigned i = 0; i < dp_agg_part_words(p); i++) {
		const unsigned bucket = dp_agg_bucket_in_order(p, i);
		int64_t from, to;
		dp_agg_bucket(p, bucket, &from, &to);
		below += cells[bucket];
		if (!is_bound(p, to))
			continue;
		put_series(m, FAMILY[HISTOGRAM][dp_agg_is_ns(p)].name, "_bucket", row, p->value);
		dp_put_str(m->b, ",le=\"");
		put_bound(m->b, dp_agg_is_ns(p), to);
		dp_buf_printf(m->b, "\"} %" PRIu64 "\n", below);
	}
}

static void put_histogram(const struct metrics *m, const struct dp_agg_row *row, size_t part)
{
	const struct dp_agg_part *p = &m->a->part[part];
	const uint64_t hits = dp_agg_hits(p, dp_agg_cells_of(m->a, row, part));
	const char *name = FAMILY[HISTOGRAM][dp_agg_is_ns(p)].name;
	put_buckets(m, row, part);
	put_series(m, name, "_bucket", row, p->value);
	dp_buf_printf(m->b, ",le=\"+Inf\"} %" PRIu64 "\n", hits);
	put_sum(m, row, part);
	put_series(m, name, "_count", row, p->value);
	dp_buf_printf(m->b, "} %" PRIu64 "\n", hits);
}

static void put_value(const struct metrics *m, const struct dp_agg_row *row, size_t part, enum kind kind)
{
	const struct dp_agg_part *p = &m->a->part[part];
	const uint64_t *cells = dp_agg_cells_of(m->a, row, part);
	const int64_t value = kind == SUM   ? (int64_t)cells[DP_AGG_WORD_SUM]
	                      : kind == MIN ? dp_agg_min_of(cells[DP_AGG_WORD_MIN])
	                                    : dp_agg_max_of(cells[DP_AGG_WORD_MAX]);
	if (kind != SUM && !dp_agg_hits(p, cells))
		return;
	put_series(m, FAMILY[kind][dp_agg_is_ns(p)].name, "", row, p->value);
	dp_put_str(m->b, "} ");
	put_number(m->b, dp_agg_is_ns(p), value);
	dp_put_str(m->b, "\n");
}

static bool has(const struct dp_agg_part *p, enum kind kind, bool ns)
{
	static const unsigned what[NKINDS] = {DP_AGG_SUM, DP_AGG_MIN, DP_AGG_MAX, DP_AGG_HISTOGRAM};
	return p->what & ~p->hidden & what[kind] && dp_agg_is_ns(p) == ns;
}

/* With --by, the rows without a key only count what was lost. */
static bool is_series(const struct dp_aggs_shown *a, const struct dp_agg_row *row)
{
	return !a->by || row->keyed || row->keys;
}

static void put_family(const struct metrics *m, enum kind kind, bool ns)
{
	bool headed = false;
	for (size_t part = 0; part < m->a->nparts; part++) {
		if (!has(&m->a->part[part], kind, ns))
			continue;
		if (!headed)
			put_head(m->b, FAMILY[kind][ns].name, FAMILY[kind][ns].type, FAMILY[kind][ns].help);
		headed = true;
		for (size_t i = 0; i < m->a->n; i++) {
			if (!is_series(m->a, &m->a->row[i]))
				continue;
			if (kind == HISTOGRAM)
				put_histogram(m, &m->a->row[i], part);
			else
				put_value(m, &m->a->row[i], part, kind);
		}
	}
}

static void put_hits(const struct metrics *m)
{
	put_head(m->b, "dynprobe_hits_total", "counter", "Hits of a probe since it was armed.");
	for (size_t i = 0; i < m->a->n; i++) {
		if (!is_series(m->a, &m->a->row[i]))
			continue;
		put_series(m, "dynprobe_hits_total", "", &m->a->row[i], NULL);
		dp_buf_printf(m->b, "} %" PRIu64 "\n", m->a->row[i].hits);
	}
}

static void put_lost_of(const struct metrics *m, const struct dp_agg_row *row, const char *reason, uint64_t n)
{
	if (!n)
		return;
	put_series(m, "dynprobe_uncounted_hits_total", "", row, NULL);
	dp_buf_printf(m->b, ",reason=\"%s\"} %" PRIu64 "\n", reason, n);
}

static void put_lost(const struct metrics *m)
{
	put_head(m->b, "dynprobe_uncounted_hits_total", "counter", "Hits that no other metric contains.");
	for (size_t i = 0; i < m->a->n; i++) {
		put_lost_of(m, &m->a->row[i], "unpaired", m->a->row[i].unpaired);
		put_lost_of(m, &m->a->row[i], "crowded", m->a->row[i].crowded);
	}
}

void dp_aggs_metrics(const struct dp_aggs_shown *a, FILE *to)
{
	struct dp_buf b;
	dp_auto_free bool *twin = find_twins(a);
	const struct metrics m = {&b, a, twin};
	dp_buf_init(&b);
	put_hits(&m);
	for (enum kind kind = SUM; kind < NKINDS; kind++)
		for (int ns = 0; ns < 2; ns++)
			put_family(&m, kind, ns);
	put_lost(&m);
	dp_put_str(&b, "# EOF\n");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}
