/* SPDX-License-Identifier: MIT */
/* The probes of a process as text: one line each, and more lines for details. Removed probes are omitted. */
#include "output/format/put.h"
#include "output/reports/summary.h"

#include "injector/injector.h"

#include <inttypes.h>
#include <string.h>

static void put(struct dp_buf *b, const char *text)
{
	dp_put_visible(b, text, strlen(text), 0);
}

static void cell(struct dp_buf *b, const char *text, size_t width)
{
	put(b, text);
	if (strlen(text) < width)
		dp_buf_printf(b, "%*s", (int)(width - strlen(text)), "");
	dp_put_str(b, "  ");
}

static void put_contexts(struct dp_buf *b, const struct dp_listing_probe *p)
{
	for (size_t i = 0; i < p->ncontexts; i++) {
		dp_put_str(b, i ? ", " : "      records  ");
		put(b, p->context[i]);
	}
	dp_put_str(b, p->ncontexts ? "\n" : "");
	if (!p->when)
		return;
	dp_put_str(b, "      when     ");
	put(b, p->when);
	dp_put_str(b, "\n");
}

static void put_losses(struct dp_buf *b, const struct dp_listing_probe *p)
{
	const struct dp_counts c = dp_summary_count(&p->loss, 1);
	const char *before = " (";
	if (!c.lost)
		return;
	dp_buf_printf(b, "      lost     %" PRIu64, c.lost);
	for (size_t i = 0; i < DP_LOSS_COUNT; i++)
		if (c.loss[i]) {
			dp_buf_printf(b, "%s%s %" PRIu64, before, dp_loss_names[i].text, c.loss[i]);
			before = ", ";
		}
	dp_put_str(b, ")\n");
}

static void put_probe(struct dp_buf *b, const struct dp_listing_probe *p, size_t width)
{
	dp_put_str(b, "  ");
	cell(b, p->name, width);
	cell(b, p->state, strlen("disabled"));
	dp_put_hex(b, p->addr);
	dp_put_str(b, "  ");
	cell(b, p->where ? p->where : "", 0);
	put(b, p->sink);
	if (p->session) {
		dp_put_str(b, ", session ");
		put(b, p->session);
	}
	dp_put_str(b, "\n");
	put_contexts(b, p);
	put_losses(b, p);
}

void dp_leftover_origin(const struct dp_leftover *l, char ret[DP_LEFTOVER_SIZE])
{
	if (!l->forked)
		snprintf(ret, DP_LEFTOVER_SIZE, "an earlier dynprobe");
	else if (!l->fork_of)
		snprintf(ret, DP_LEFTOVER_SIZE, "a fork of a probed process");
	else if (l->tool && l->fork_of_lives)
		snprintf(ret, DP_LEFTOVER_SIZE, "a fork of %d, which dynprobe (%d) is probing", l->fork_of, l->tool);
	else
		snprintf(ret, DP_LEFTOVER_SIZE, "a fork of %d%s", l->fork_of, l->fork_of_lives ? "" : ", which has ended");
}

void dp_leftover_extent(const struct dp_leftover *l, char ret[DP_LEFTOVER_SIZE])
{
	snprintf(ret, DP_LEFTOVER_SIZE, "%zu changed place%s of text, %" PRIu64 " KiB", l->places, l->places == 1 ? "" : "s",
	         l->bytes >> 10);
}

static void put_leftover(struct dp_buf *b, const struct dp_leftover *l)
{
	char origin[DP_LEFTOVER_SIZE], extent[DP_LEFTOVER_SIZE];
	dp_leftover_origin(l, origin);
	dp_leftover_extent(l, extent);
	dp_buf_printf(b, "leftover of %s: %s\n", origin, extent);
}

static void put_leftovers(struct dp_buf *b, const struct dp_listing *l)
{
	for (size_t i = 0; i < l->nleftovers; i++) {
		dp_put_str(b, "  ");
		put_leftover(b, &l->leftover[i]);
	}
}

void dp_listing_text(const struct dp_listing *l, FILE *to)
{
	struct dp_buf b = {0};
	size_t width = 0, standing = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (!l->probe[i].addr)
			continue;
		standing++;
		width = strlen(l->probe[i].name) > width ? strlen(l->probe[i].name) : width;
	}
	dp_buf_printf(&b, "%d ", l->pid);
	put(&b, l->comm);
	dp_buf_printf(&b, ": %zu probe%s", standing, standing == 1 ? "" : "s");
	if (l->trouble) {
		dp_put_str(&b, "; ");
		put(&b, l->trouble);
	}
	dp_put_str(&b, "\n");
	for (size_t i = 0; i < l->n; i++)
		if (l->probe[i].addr)
			put_probe(&b, &l->probe[i], width);
	put_leftovers(&b, l);
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}
