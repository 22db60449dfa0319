/* SPDX-License-Identifier: MIT */
/* The text of --dry-run. */
#include "output/format/put.h"
#include "output/reports/plan.h"

#include <inttypes.h>
#include <string.h>

static void put(struct dp_buf *b, const char *text)
{
	dp_put_visible(b, text, strlen(text), 0);
}

/* "e9 aa bb | 48 89": the bytes that change; after the bar those that the jump relies on unchanged. */
static void put_bytes(struct dp_buf *b, const uint8_t *bytes, const struct dp_planned_bytes *p)
{
	for (size_t i = 0; i < p->len; i++)
		dp_buf_printf(b, "%s%02x", !i ? "" : i == p->changed ? " | " : " ", bytes[i]);
}

static void put_patch(struct dp_buf *b, const struct dp_planned_bytes *p)
{
	put_bytes(b, p->before, p);
	dp_put_str(b, " -> ");
	put_bytes(b, p->after, p);
}

static void put_stub(struct dp_buf *b, const struct dp_planned_bytes *p)
{
	dp_buf_printf(b, "stub %zu bytes at 0x%" PRIx64, p->stub_size, p->stub);
	if (p->springboard)
		dp_buf_printf(b, ", springboard at 0x%" PRIx64, p->springboard);
}

static void put_evicted(struct dp_buf *b, const struct dp_planned_bytes *p)
{
	dp_buf_printf(b, "    evicts 0x%" PRIx64 "  ", p->addr);
	put(b, p->where);
	dp_put_str(b, "  ");
	put_patch(b, p);
	dp_put_str(b, "\n      ");
	put_stub(b, p);
	dp_put_str(b, "\n");
}

static void flush(struct dp_buf *b, FILE *to)
{
	fwrite(dp_buf_str(b), 1, b->len, to);
	dp_buf_fini(b);
}

void dp_plan_text(const struct dp_planned_site *s, FILE *to)
{
	struct dp_buf b = {0};
	put(&b, s->name);
	dp_buf_printf(&b, "  0x%" PRIx64 "  ", s->patch.addr);
	put(&b, s->patch.where);
	if (!s->tactic) {
		dp_put_str(&b, "  refused: ");
		put(&b, s->reason);
		dp_buf_printf(&b, " [%s]\n", s->tag);
		flush(&b, to);
		return;
	}
	dp_buf_printf(&b, "  %s  ", s->tactic);
	put_patch(&b, &s->patch);
	dp_buf_printf(&b, "\n    displaced %u, ", s->displaced);
	put_stub(&b, &s->patch);
	dp_put_str(&b, "\n");
	for (size_t i = 0; i < s->nevicted; i++)
		put_evicted(&b, &s->evicted[i]);
	flush(&b, to);
}

static void put_counts(struct dp_buf *b, const struct dp_plan_count *c)
{
	for (size_t i = 0; c[i].word; i++)
		dp_buf_printf(b, "%s%zu %s", i ? ", " : "", c[i].n, c[i].word);
}

static void put_size(struct dp_buf *b, uint64_t bytes)
{
	dp_buf_printf(b, "%" PRIu64 " KiB", (bytes + 1023) / 1024);
}

void dp_plan_total_text(const struct dp_plan_total *t, FILE *to)
{
	struct dp_buf b = {0};
	dp_buf_printf(&b, "%d ", t->pid);
	put(&b, t->comm);
	dp_buf_printf(&b, ": %zu of %zu placed", t->placed, t->asked);
	if (t->placed) {
		dp_put_str(&b, " (");
		put_counts(&b, t->tactic);
		dp_put_str(&b, ")");
	}
	if (t->evicted)
		dp_buf_printf(&b, ", %zu neighbour%s evicted", t->evicted, t->evicted == 1 ? "" : "s");
	if (t->hooks)
		dp_buf_printf(&b, ", %zu hook%s", t->hooks, t->hooks == 1 ? "" : "s");
	if (t->placed < t->asked) {
		dp_buf_printf(&b, ", %zu refused (", t->asked - t->placed);
		put_counts(&b, t->refusal);
		dp_put_str(&b, ")");
	}
	dp_buf_printf(&b, "\n  copied text: %zu page%s (", t->text_pages, t->text_pages == 1 ? "" : "s");
	put_size(&b, (uint64_t)t->text_pages * 4096);
	dp_buf_printf(&b, ")\n  mappings: %zu for stubs (", t->stub_mappings);
	put_size(&b, t->stub_bytes);
	dp_buf_printf(&b, "), %u for agent and data (", t->own_mappings);
	put_size(&b, t->own_bytes);
	dp_put_str(&b, "; rings: ");
	put_size(&b, t->ring_bytes);
	dp_put_str(&b, " of address space, ");
	put_size(&b, t->ring_memory);
	dp_put_str(&b, " of memory at most)\n");
	dp_buf_printf(&b,
	              "  time: about %.3g ms to install, %.3g ms to remove; threads are held for at most %.4g ms one at a time, "
	              "for at most %.4g ms together\n",
	              (double)t->install_ns / 1e6, (double)t->removal_ns / 1e6, (double)t->pause_ns / 1e6,
	              (double)t->together_ns / 1e6);
	if (t->note) {
		dp_put_str(&b, "  ");
		put(&b, t->note);
		dp_put_str(&b, "\n");
	}
	flush(&b, to);
}
