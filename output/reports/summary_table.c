/* SPDX-License-Identifier: MIT */
/* The summary's table: of probes or, if there are several processes with several probes, of processes; with -v of both. */
#include "output/reports/summary_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 10 };

#define RESET "\033[0m"

void dp_summary_colored(struct dp_summary_out *o, const char *color, const char *text)
{
	bool on = o->color && *color;
	dp_put_str(&o->b, on ? color : "");
	dp_put_str(&o->b, text);
	dp_put_str(&o->b, on ? RESET : "");
}

void dp_summary_put_pid(struct dp_summary_out *o, pid_t pid)
{
	if (pid)
		dp_buf_printf(&o->b, "%-8d", pid);
	else
		dp_put_str(&o->b, "ended   ");
}

void dp_summary_cell(struct dp_summary_out *o, const char *text, size_t width)
{
	size_t len = strcspn(text, "\n");
	dp_put_visible(&o->b, text, len, 0);
	if (len < width)
		dp_buf_printf(&o->b, "%*s", (int)(width - len), "");
}

bool dp_summary_has_targets(const struct dp_summary *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (s->probe[i].pid != s->probe[0].pid)
			return true;
	return false;
}

size_t dp_summary_smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- probes ---- */

struct row { /* one probe; without -v all sites that people call the same */
	const char *name, *tactic;
	pid_t pid;
	uint64_t hits, recorded, lost;
	size_t order; /* of the request */
};

static struct row row_of(const struct dp_summary_probe *p, size_t order)
{
	const struct dp_counts c = dp_summary_count(p, 1);
	return (struct row){p->title ? p->title : p->name, p->tactic, p->pid, c.recorded + c.lost, c.recorded, c.lost, order};
}

static int by_name(const void *a, const void *b)
{
	const struct row *p = a, *q = b;
	const int order = p->pid != q->pid ? (p->pid < q->pid ? -1 : 1) : strcmp(p->name, q->name);
	return order ? order : p->order < q->order ? -1 : 1;
}

static int by_hits(const void *a, const void *b)
{
	const struct row *p = a, *q = b;
	return p->hits != q->hits ? (p->hits < q->hits ? 1 : -1) : p->order < q->order ? -1 : 1;
}

static size_t join(struct row *row, size_t n)
{
	size_t kept = 0;
	if (n)
		qsort(row, n, sizeof(*row), by_name);
	for (size_t i = 0; i < n; i++) {
		struct row *last = kept ? &row[kept - 1] : NULL;
		if (!last || last->pid != row[i].pid || strcmp(last->name, row[i].name)) {
			row[kept++] = row[i];
			continue;
		}
		last->hits += row[i].hits;
		last->recorded += row[i].recorded;
		last->lost += row[i].lost;
	}
	return kept;
}

static void put_counts(struct dp_summary_out *o, uint64_t hits, uint64_t recorded, uint64_t lost)
{
	char text[32];
	dp_buf_printf(&o->b, "  %12" PRIu64 "  %12" PRIu64 "  ", hits, recorded);
	snprintf(text, sizeof(text), "%12" PRIu64, lost);
	dp_summary_colored(o, lost ? DP_SUMMARY_BAD : "", text);
}

static void put_row(struct dp_summary_out *o, const struct row *row, size_t width, const struct dp_summary *s)
{
	dp_put_str(&o->b, "    ");
	if (dp_summary_has_targets(s))
		dp_summary_put_pid(o, row->pid);
	dp_summary_cell(o, row->name, width);
	put_counts(o, row->hits, row->recorded, row->lost);
	if (s->verbose) {
		dp_put_str(&o->b, "  ");
		dp_put_str(&o->b, row->tactic);
	}
	dp_put_str(&o->b, "\n");
}

static void put_rows(struct dp_summary_out *o, struct row *row, size_t n, const struct dp_summary *s)
{
	size_t width = strlen("probe");
	for (size_t i = 0; i < n; i++)
		width = strlen(row[i].name) > width ? dp_summary_smaller(strlen(row[i].name), 40) : width;
	qsort(row, n, sizeof(*row), by_hits);
	dp_put_str(&o->b, "    ");
	dp_put_str(&o->b, dp_summary_has_targets(s) ? "pid     " : "");
	dp_buf_printf(&o->b, "%-*s  %12s  %12s  %12s%s\n", (int)width, "probe", "hits", "recorded", "lost",
	              s->verbose ? "  by" : "");
	for (size_t i = 0; i < n && i < DP_SUMMARY_LISTED; i++)
		put_row(o, &row[i], width, s);
	if (n > DP_SUMMARY_LISTED)
		dp_buf_printf(&o->b, "    ... and %zu more\n", n - DP_SUMMARY_LISTED);
}

/* Of placed probes, the one with most hits first; only if there are several. */
static void put_probes(struct dp_summary_out *o, const struct dp_summary *s)
{
	struct row *row = calloc(s->n + 1, sizeof(*row));
	size_t n = 0, silent = 0;
	for (size_t i = 0; row && i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!p->tactic)
			continue;
		row[n] = row_of(p, i);
		if (p->is_call && !p->retired && !row[n].hits)
			silent++;
		else
			n++;
	}
	if (row && !s->verbose)
		n = join(row, n);
	if (n > 1 || (n && silent))
		put_rows(o, row, n, s);
	if (silent)
		dp_buf_printf(&o->b, "    %zu probe%s of system calls without a hit\n", silent, silent == 1 ? "" : "s");
	free(row);
}

/* ---- processes ---- */

static int process_by_hits(const void *a, const void *b)
{
	const struct dp_process_counts *p = a, *q = b;
	const uint64_t x = p->counts.recorded + p->counts.lost, y = q->counts.recorded + q->counts.lost;
	return x != y ? (x < y ? 1 : -1) : (p->pid > q->pid) - (p->pid < q->pid);
}

static void put_process(struct dp_summary_out *o, const struct dp_process_counts *p)
{
	const struct dp_counts *c = &p->counts;
	dp_put_str(&o->b, "    ");
	dp_summary_put_pid(o, p->pid);
	dp_summary_cell(o, p->comm ? p->comm : "", 15);
	put_counts(o, c->recorded + c->lost, c->recorded, c->lost);
	dp_put_str(&o->b, "\n");
}

/* Those with probes, the one with most hits first. False if there is one, or the table of probes shows the same. */
static bool put_processes(struct dp_summary_out *o, const struct dp_summary *s)
{
	struct dp_process_counts one, *row = calloc(s->n + 1, sizeof(*row));
	size_t n = 0, probes = 0;
	for (size_t i = 0; row && dp_summary_process(s, &i, &one);)
		if (one.counts.placed) {
			row[n++] = one;
			probes += one.counts.placed;
		}
	const bool shown = n > 1 && probes > n;
	if (shown) {
		qsort(row, n, sizeof(*row), process_by_hits);
		dp_buf_printf(&o->b, "    pid     %-15s  %12s  %12s  %12s\n", "process", "hits", "recorded", "lost");
		for (size_t i = 0; i < n && i < PROCESSES; i++)
			put_process(o, &row[i]);
		if (n > PROCESSES)
			dp_buf_printf(&o->b, "    ... and %zu more\n", n - PROCESSES);
	}
	free(row);
	return shown;
}

void dp_summary_put_tables(struct dp_summary_out *o, const struct dp_summary *s)
{
	if (!put_processes(o, s) || s->verbose)
		put_probes(o, s);
}
