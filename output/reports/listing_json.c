/* SPDX-License-Identifier: MIT */
/* The list as JSON, one line per process (docs/json.md). */
#include "output/format/put.h"
#include "output/reports/summary.h"

#include "injector/injector.h"

static void put_contexts(struct dp_buf *b, const struct dp_listing_probe *p)
{
	dp_put_str(b, ",\"contexts\":[");
	for (size_t i = 0; i < p->ncontexts; i++) {
		dp_put_str(b, i ? "," : "");
		dp_put_json_str(b, p->context[i]);
	}
	dp_put_str(b, "]");
}

static void put_probe(struct dp_buf *b, const struct dp_listing_probe *p)
{
	const struct dp_counts c = dp_summary_count(&p->loss, 1);
	dp_put_json_member(b, "{", "name", p->name);
	dp_put_json_member(b, ",", "spec", p->spec);
	dp_put_json_member(b, ",", "state", p->state);
	dp_put_json_hex(b, "addr", p->addr);
	dp_put_json_member(b, ",", "where", p->where);
	dp_put_json_member(b, ",", "sink", p->sink);
	dp_put_json_member(b, ",", "session", p->session);
	put_contexts(b, p);
	dp_put_json_member(b, ",", "when", p->when);
	dp_put_str(b, ",\"lost\":{\"total\":");
	dp_put_dec(b, c.lost);
	for (size_t i = 0; i < DP_LOSS_COUNT; i++) {
		dp_put_str(b, ",");
		dp_put_json_str(b, dp_loss_names[i].key);
		dp_put_str(b, ":");
		dp_put_dec(b, c.loss[i]);
	}
	dp_put_str(b, "}}");
}

/* null for 0 */
static void put_pid(struct dp_buf *b, const char *key, pid_t pid)
{
	dp_put_str(b, key);
	if (pid)
		dp_put_dec(b, (uint64_t)pid);
	else
		dp_put_str(b, "null");
}

static void put_leftovers(struct dp_buf *b, const struct dp_listing *l)
{
	dp_put_str(b, ",\"leftovers\":[");
	for (size_t i = 0; i < l->nleftovers; i++) {
		const struct dp_leftover *o = &l->leftover[i];
		dp_put_json_member(b, i ? ",{" : "{", "of", o->forked ? "fork" : "killed");
		put_pid(b, ",\"fork_of\":", o->fork_of);
		dp_put_str(b, o->fork_of_lives ? ",\"fork_of_lives\":true" : ",\"fork_of_lives\":false");
		put_pid(b, ",\"tool\":", o->tool);
		dp_put_str(b, ",\"places\":");
		dp_put_dec(b, o->places);
		dp_put_str(b, ",\"bytes\":");
		dp_put_dec(b, o->bytes);
		dp_put_str(b, "}");
	}
	dp_put_str(b, "]");
}

void dp_listing_json(const struct dp_listing *l, FILE *to)
{
	struct dp_buf b = {0};
	dp_put_str(&b, "{\"type\":\"status\",\"version\":1,\"pid\":");
	dp_put_dec(&b, (uint64_t)l->pid);
	dp_put_json_member(&b, ",", "comm", l->comm);
	dp_put_json_member(&b, ",", "trouble", l->trouble);
	dp_put_str(&b, ",\"probes\":[");
	for (size_t i = 0; i < l->n; i++) {
		dp_put_str(&b, i ? "," : "");
		put_probe(&b, &l->probe[i]);
	}
	dp_put_str(&b, "]");
	put_leftovers(&b, l);
	dp_put_str(&b, "}\n");
	fwrite(dp_buf_str(&b), 1, b.len, to);
	dp_buf_fini(&b);
}
