/* SPDX-License-Identifier: MIT */
/* The summary's table: of probes or, if there are several processes with several probes, of processes; with -v of both. */
#include "output/reports/summary_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PROCESSES = 10, NAME_LEAST = 40, NUMBERS = 58, SILENT_LISTED = 10 };

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
	else if (o->ended)
		dp_buf_printf(&o->b, "%u ended%*s", o->ended, o->ended < 10 ? 1 : 0, "");
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

/* The same, shortened in the middle to the width of names. */
static void name_cell(struct dp_summary_out *o, const char *name, size_t width)
{
	struct dp_buf text = {0};
	dp_put_visible(&text, name, strlen(name), 0);
	if (text.len <= o->width) {
		dp_summary_cell(o, name, width);
	} else {
		const size_t head = (o->width - 3) / 2, tail = o->width - 3 - head;
		dp_buf_put(&o->b, text.data, head);
		dp_put_str(&o->b, "...");
		dp_buf_put(&o->b, text.data + text.len - tail, tail);
	}
	dp_buf_fini(&text);
}

size_t dp_summary_width(FILE *to)
{
	struct winsize size = {0};
	const int fd = fileno(to);
	const bool known = fd >= 0 && isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size) && size.ws_col;
	return known && size.ws_col > NAME_LEAST + NUMBERS ? (size_t)size.ws_col - NUMBERS : NAME_LEAST;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t dp_summary_probes(const struct dp_summary *s)
{
	const char **name = calloc(s->n + 1, sizeof(*name));
	size_t n = 0;
	for (size_t i = 0; name && i < s->n; i++)
		name[i] = s->probe[i].name;
	if (name && s->n)
		qsort(name, s->n, sizeof(*name), by_text);
	for (size_t i = 0; name && i < s->n; i++)
		n += !i || strcmp(name[i], name[i - 1]) != 0;
	free(name);
	return n;
}

unsigned dp_summary_ended(const struct dp_summary *s)
{
	unsigned n = 0;
	for (size_t i = 0; i < s->n; i++)
		n = !s->probe[i].pid && s->probe[i].processes > n ? s->probe[i].processes : n;
	return n;
}

size_t dp_summary_processes(const struct dp_summary *s)
{
	size_t n = dp_summary_ended(s);
	for (size_t i = 0; i < s->n; i++)
		n += s->probe[i].pid && (!i || s->probe[i - 1].pid != s->probe[i].pid);
	return n;
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
	if (s->verbose)
		dp_summary_cell(o, row->name, width);
	else
		name_cell(o, row->name, width);
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
		width = strlen(row[i].name) > width ? dp_summary_smaller(strlen(row[i].name), o->width) : width;
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

/* Has no row if there are many. */
static bool is_silent(const struct dp_summary *s, const struct dp_summary_probe *p, size_t n)
{
	const struct dp_counts c = dp_summary_count(p, 1);
	return !p->retired && !c.recorded && !c.lost && (p->is_call || (!s->verbose && n > SILENT_LISTED));
}

/* Without those at the many places of system calls. */
static size_t count_placed(const struct dp_summary *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		n += s->probe[i].tactic && !s->probe[i].is_call;
	return n;
}

/* Of placed probes, the one with most hits first; only if there are several. */
static void put_probes(struct dp_summary_out *o, const struct dp_summary *s)
{
	struct row *row = calloc(s->n + 1, sizeof(*row));
	size_t n = 0, silent = 0, silent_calls = 0;
	const size_t placed = count_placed(s);
	for (size_t i = 0; row && i < s->n; i++) {
		const struct dp_summary_probe *p = &s->probe[i];
		if (!p->tactic)
			continue;
		row[n] = row_of(p, i);
		const bool none = is_silent(s, p, placed);
		silent += none;
		silent_calls += none && p->is_call;
		n += !none;
	}
	if (row && !s->verbose)
		n = join(row, n);
	if (n > 1 || (n && silent))
		put_rows(o, row, n, s);
	if (silent)
		dp_buf_printf(&o->b, "    %zu probe%s%s without a hit\n", silent, silent == 1 ? "" : "s",
		              silent_calls == silent ? " of system calls" : "");
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

/* The tables of an aggregation have the hits, but not what was lost. */
static bool is_told(const struct dp_summary *s)
{
	return s->aggregated && !s->verbose && !dp_summary_count(s->probe, s->n).lost;
}

void dp_summary_put_tables(struct dp_summary_out *o, const struct dp_summary *s)
{
	if (is_told(s))
		return;
	if (!put_processes(o, s) || s->verbose)
		put_probes(o, s);
}
