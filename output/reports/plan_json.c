/* SPDX-License-Identifier: MIT */
/* The JSON of --dry-run (docs/json.md). */
#include "output/format/put.h"
#include "output/reports/plan.h"

static void put_key(struct dp_buf *b, const char *key)
{
	dp_put_str(b, ",");
	dp_put_json_str(b, key);
	dp_put_str(b, ":");
}

static void put_text(struct dp_buf *b, const char *key, const char *text)
{
	put_key(b, key);
	if (text)
		dp_put_json_str(b, text);
	else
		dp_put_str(b, "null");
}

static void put_number(struct dp_buf *b, const char *key, uint64_t v)
{
	put_key(b, key);
	dp_put_dec(b, v);
}

/* An address; 0 is none. */
static void put_address(struct dp_buf *b, const char *key, uint64_t v)
{
	put_key(b, key);
	if (!v) {
		dp_put_str(b, "null");
		return;
	}
	dp_put_str(b, "\"");
	dp_put_hex(b, v);
	dp_put_str(b, "\"");
}

static void put_bytes(struct dp_buf *b, const char *key, const uint8_t *bytes, size_t n)
{
	put_key(b, key);
	dp_put_str(b, "\"");
	dp_put_hexdump(b, bytes, n);
	dp_put_str(b, "\"");
}

/* Members to append after others. */
static void put_patch(struct dp_buf *b, const struct dp_planned_bytes *p)
{
	put_bytes(b, "old", p->before, p->len);
	put_bytes(b, "new", p->after, p->len);
	put_number(b, "changed", p->changed);
	put_number(b, "relied_upon", p->len - p->changed);
	put_address(b, "stub", p->stub);
	put_number(b, "stub_size", p->stub_size);
	put_address(b, "springboard", p->springboard);
}

static void put_evicted(struct dp_buf *b, const struct dp_planned_site *s)
{
	put_key(b, "evicted");
	dp_put_str(b, "[");
	for (size_t i = 0; i < s->nevicted; i++) {
		dp_put_str(b, i ? ",{\"where\":" : "{\"where\":");
		dp_put_json_str(b, s->evicted[i].where);
		put_address(b, "addr", s->evicted[i].addr);
		put_patch(b, &s->evicted[i]);
		dp_put_str(b, "}");
	}
	dp_put_str(b, "]");
}

static void end(struct dp_buf *b, FILE *to)
{
	dp_put_str(b, "}\n");
	fwrite(dp_buf_str(b), 1, b->len, to);
	dp_buf_fini(b);
}

void dp_plan_json(const struct dp_planned_site *s, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_str(&b, "{\"type\":\"plan\",\"version\":1");
	put_number(&b, "pid", (uint64_t)s->pid);
	put_text(&b, "name", s->name);
	put_text(&b, "spec", s->spec);
	put_address(&b, "addr", s->patch.addr);
	put_text(&b, "where", s->patch.where);
	put_text(&b, "tactic", s->tactic);
	put_text(&b, "tag", s->tactic ? NULL : s->tag);
	put_text(&b, "reason", s->tactic ? NULL : s->reason);
	if (s->tactic) {
		put_patch(&b, &s->patch);
		put_number(&b, "displaced", s->displaced);
		put_evicted(&b, s);
	}
	end(&b, to);
}

static void put_counts(struct dp_buf *b, const char *key, const struct dp_plan_count *c)
{
	put_key(b, key);
	dp_put_str(b, "{");
	for (size_t i = 0; c[i].word; i++) {
		dp_put_str(b, i ? "," : "");
		dp_put_json_str(b, c[i].word);
		dp_put_str(b, ":");
		dp_put_dec(b, c[i].n);
	}
	dp_put_str(b, "}");
}

void dp_plan_total_json(const struct dp_plan_total *t, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_str(&b, "{\"type\":\"plan_total\",\"version\":1");
	put_number(&b, "pid", (uint64_t)t->pid);
	put_text(&b, "comm", t->comm);
	put_number(&b, "asked", t->asked);
	put_number(&b, "placed", t->placed);
	put_number(&b, "refused", t->asked - t->placed);
	put_counts(&b, "tactics", t->tactic);
	put_counts(&b, "refusals", t->refusal);
	put_number(&b, "evicted", t->evicted);
	put_number(&b, "hooks", t->hooks);
	put_number(&b, "text_pages", t->text_pages);
	put_number(&b, "stub_mappings", t->stub_mappings);
	put_number(&b, "stub_bytes", t->stub_bytes);
	put_number(&b, "own_mappings", t->own_mappings);
	put_number(&b, "own_bytes", t->own_bytes);
	put_number(&b, "ring_bytes", t->ring_bytes);
	put_number(&b, "ring_memory", t->ring_memory);
	put_number(&b, "install_ns", t->install_ns);
	put_number(&b, "removal_ns", t->removal_ns);
	put_number(&b, "pause_ns", t->pause_ns);
	put_number(&b, "together_ns", t->together_ns);
	put_text(&b, "note", t->note);
	end(&b, to);
}
